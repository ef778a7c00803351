#!/usr/bin/env bash
# Shows that the search indexes follow the database: brings the containers of docker/compose.yaml
# up, waits until all are healthy, inserts, changes and deletes rows in PostgreSQL, and tells for
# each when the search in OpenSearch shows it. Ends with 0 when all were found (or, deleted, not
# found any more), else with 1. The containers stay: docker/watch.sh shows more, and
# `docker-compose -f docker/compose.yaml down -v` removes them with their data.
#
#   docker/demo.sh [--no-up] [--rounds N]
#
#   --no-up      the containers are there already
#   --rounds N   how often the eight changes are made; default 3
#
# Environment: COMPOSE, the command (default: docker-compose, else docker compose); COMPOSE_FILE,
# more files than docker/compose.yaml, as of docker-compose; CDCD_DEMO_TIMEOUT (120), seconds for
# each change.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
UP=1 ROUNDS=3
while [[ $# -gt 0 ]]; do
    case $1 in
    --no-up) UP=0 ;;
    --rounds) ROUNDS=${2:-} && shift ;;
    -h | --help) sed -n '2,/^set /s/^# \{0,1\}//p' "$0" | sed '$d'; exit 0 ;;
    *) printf "demo: unknown option '%s'; see --help\n" "$1" >&2; exit 2 ;;
    esac
    shift
done
[[ $ROUNDS =~ ^[1-9][0-9]*$ ]] || { echo 'demo: --rounds wants a number from 1' >&2; exit 2; }

say() { printf '%s\n' "$*" >&2; }
die() { say "demo: $*"; exit 1; }

# shellcheck source=docker/compose.sh
. docker/compose.sh
# shellcheck source=docker/steps.sh
. docker/steps.sh

if ((UP)); then
    say "Starting the containers (the first time this builds an image) ..."
    compose up -d --build >&2 || die "'$COMPOSE up' failed; what it said stands above"
fi

say "Waiting until all are healthy ..."
for service in postgres kafka opensearch capture index; do wait_healthy "$service"; done
wait_rows
for ((i = 1; i <= ROUNDS; i++)); do round "$i"; done
compare
summary
