# shellcheck shell=bash disable=SC2034
# How docker/demo.sh and docker/watch.sh reach the containers. Sourced, in the repository's root.

if [[ -z ${COMPOSE:-} ]]; then
    if command -v docker-compose >/dev/null 2>&1; then
        COMPOSE=docker-compose
    elif command -v docker >/dev/null 2>&1 && docker compose version >/dev/null 2>&1; then
        COMPOSE='docker compose'
    else
        die "neither docker-compose nor 'docker compose' is installed; scripts/demo needs no containers"
    fi
fi
export COMPOSE_FILE=${COMPOSE_FILE:-$PWD/docker/compose.yaml}

# shellcheck disable=SC2086 # a command of one or two words
compose() { $COMPOSE "$@"; }

SEARCH_PORT=9200
shop_psql() {
    compose exec -T postgres psql -X -q -At -v ON_ERROR_STOP=1 -U postgres -d shop "$@" </dev/null
}
search_bash() { compose exec -T opensearch bash -c "$1" search "${@:2}" </dev/null; }
demo_alive() { :; } # compose restarts what ends

# wait_healthy SERVICE: until the first container's own health check says so.
wait_healthy() {
    local check end=$((SECONDS + ${CDCD_DEMO_TIMEOUT:-120}))
    case $1 in
    postgres) check=(pg_isready -q -h 127.0.0.1 -U postgres -d shop) ;;
    kafka) check=(/opt/kafka/bin/kafka-topics.sh --bootstrap-server localhost:9092 --list) ;;
    opensearch) check=(bash -c '</dev/tcp/127.0.0.1/9200') ;;
    *) check=(sh -c 'cdcd status "$CDCD_STATUS_URL"') ;;
    esac
    until compose exec -T "$1" "${check[@]}" </dev/null >/dev/null 2>&1; do
        if ((SECONDS > end)); then
            compose ps >&2
            compose logs --tail 20 "$1" >&2
            die "$1 is not healthy; what it said stands above"
        fi
        sleep 1
    done
}
