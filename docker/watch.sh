#!/usr/bin/env bash
# Shows what the search says about the shop of docker/compose.yaml, again and again: how many
# documents each index has, and the newest orders. Change rows beside it, in another terminal:
#
#   docker-compose -f docker/compose.yaml exec postgres psql -U postgres shop
#
# Ctrl-C ends it. `docker/watch.sh --once` shows it once.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
ONCE=0
case ${1:-} in
'') ;;
--once) ONCE=1 ;;
-h | --help) sed -n '2,/^set /s/^# \{0,1\}//p' "$0" | sed '$d'; exit 0 ;;
*) printf "watch: unknown option '%s'; see --help\n" "$1" >&2; exit 2 ;;
esac
say() { printf '%s\n' "$*" >&2; }
die() { say "watch: $*"; exit 1; }
# shellcheck source=docker/compose.sh
. docker/compose.sh
# shellcheck source=docker/steps.sh
. docker/steps.sh

show() {
    local t
    for t in "${TABLES[@]}"; do
        printf '%-18s %s documents\n' "shop-$t" \
            "$(search_get "/shop-$t/_count" | sed -n 's/^{"count":\([0-9]*\),.*/\1/p')"
    done
    printf '\nThe newest orders:\n'
    search_get '/shop-orders/_search?size=10&sort=id:desc&filter_path=hits.hits._source' |
        sed -e 's/^{"hits":{"hits":\[{"_source"://' -e 's/}\]}}$//' -e 's/},{"_source":/\n/g' -e '/^{}$/d' |
        sed 's/^/  /'
    printf '\n'
}

if ((ONCE)); then
    show
    exit 0
fi
while :; do
    screen=$(show)
    printf '\e[H\e[2J%s\n' "$screen"
    sleep 1
done
