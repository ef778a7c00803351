# shellcheck shell=bash
# The changes of the demo and how they are seen in the search indexes: what docker/demo.sh (in
# containers) and scripts/demo (without) have in common. Sourced; the caller has defined
#
#   shop_psql ARGUMENT...       psql in the database shop, as its owner
#   search_bash SCRIPT ARG...   runs a bash script where 127.0.0.1:$SEARCH_PORT is the search server
#   demo_alive                  ends with a message when a part of the demo has ended; may be empty
#
# Times are from the commit (the database's clock) to the first search that shows it, both taken on
# the machine of the servers. The search runs on while the change is made, so that starting a
# program in a container is not in them.

TABLES=(customers products orders order_items)
LIMIT=${CDCD_DEMO_TIMEOUT:-120} # seconds until a change must have been found
TIMES=()                        # ms, of every change that was found
FAILURES=0

# GET over bash's own sockets: neither the plain machine nor an image needs curl for it. A server
# that is asked by HTTP/1.0 closes the connection after its answer.
HTTP_GET='get() {
    { printf "GET %s HTTP/1.0\r\n\r\n" "$1" >&3; cat <&3; } 2>/dev/null 3<>"/dev/tcp/127.0.0.1/$PORT"
}'

# poll PATH TEXT SECONDS: asks until the answer has the text, and prints the time in ms.
POLL_SCRIPT='PORT=$1
'$HTTP_GET'
end=$((SECONDS + $4))
until [[ $(get "$2") == *"$3"* ]]; do
    ((SECONDS < end)) || exit 1
    sleep 0.01
done
date +%s%3N'

GET_SCRIPT='PORT=$1
'$HTTP_GET'
get "$2"'

search_get() { search_bash "$GET_SCRIPT" "$SEARCH_PORT" "$1" | sed '1,/^\r*$/d'; }

# search_wait INDEX QUERY COUNT [SECONDS]: until the search finds so many documents.
search_wait() {
    search_bash "$POLL_SCRIPT" "$SEARCH_PORT" "/shop-$1/_count?q=$2" "\"count\":$3," "${4:-$LIMIT}"
}

# The documents as one line, without what surrounds them; empty when none is found.
search_show() { # search_show INDEX QUERY
    search_get "/shop-$1/_search?q=$2&size=1&filter_path=hits.hits._source" |
        sed -e 's/^{"hits":{"hits":\[{"_source"://' -e 's/}\]}}$//' -e '/^{}$/d' | cut -c 1-"${SHOW_WIDTH:-100}"
}

# step WHAT SQL INDEX QUERY COUNT: makes the change and tells when the search shows it. COUNT is how
# many documents the query finds then; it finds another number before.
step() {
    local found watcher committed ms seen
    found=$(mktemp)
    search_wait "$3" "$4" "$5" >"$found" 2>/dev/null </dev/null &
    watcher=$!
    committed=$(shop_psql -c "$2" -c "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint") || {
        kill "$watcher" 2>/dev/null || true
        rm -f "$found"
        die "the database refused: $2"
    }
    while kill -0 "$watcher" 2>/dev/null; do
        demo_alive
        sleep 0.05
    done
    if wait "$watcher"; then
        ms=$(($(<"$found") - committed))
        if ((ms < 0)); then ms=0; fi
        TIMES+=("$ms")
        if (($5 > 0)); then seen=$(search_show "$3" "$4"); else seen='(no document)'; fi
        printf '%-34s %-9s %6d ms  %s\n' "$1" "$( (($5 > 0)) && echo found || echo 'not found')" "$ms" "$seen"
    else
        FAILURES=$((FAILURES + 1))
        printf '%-34s %-9s after %s s; the search says: %s\n' "$1" 'WRONG' "$LIMIT" \
            "$(search_get "/shop-$3/_count?q=$4" | cut -c 1-200)"
    fi
    rm -f "$found"
}

# Every row that is there must be found before anything is changed.
wait_rows() {
    local t n end=$((SECONDS + LIMIT * 2))
    for t in "${TABLES[@]}"; do
        n=$(shop_psql -c "SELECT count(*) FROM $t")
        until search_wait "$t" '*' "$n" 5 >/dev/null 2>&1; do
            demo_alive
            ((SECONDS < end)) || die "shop-$t does not have the $n rows of $t after $((LIMIT * 2)) s: $(search_get "/shop-$t/_count" | cut -c 1-200)"
        done
        printf '%-34s %-9s %6d rows\n' "index shop-$t" "found" "$n"
    done
}

# round N: a customer and an order come, change, and go.
round() {
    local c o
    read -r c o < <(shop_psql -F ' ' -c 'SELECT greatest(1000, (SELECT max(id) + 1 FROM customers)),
        greatest(1000, (SELECT max(id) + 1 FROM orders))')
    step "insert  customer $c" \
        "INSERT INTO customers (id, name, email, profile) VALUES ($c, 'Esi Mensah', 'esi$c@example.com', '{\"round\": $1}')" \
        customers "id:$c" 1
    step "insert  order $o" \
        "INSERT INTO orders (id, customer_id, total) VALUES ($o, $c, 21.25)" \
        orders "id:$o%20AND%20customer_id:$c" 1
    step "change  order $o is paid" \
        "UPDATE orders SET status = 'paid' WHERE id = $o" \
        orders "id:$o%20AND%20status:paid" 1
    step "change  two lines, one transaction" \
        "BEGIN; INSERT INTO order_items VALUES ($o, 1, 'CUP-RED', 1, 8.50), ($o, 2, 'TEA-250', 1, 12.75); UPDATE orders SET status = 'shipped' WHERE id = $o; COMMIT" \
        order_items "order_id:$o" 2
    step "change  name of customer $c" \
        "UPDATE customers SET name = 'Esi Owusu' WHERE id = $c" \
        customers "id:$c%20AND%20name:%22Esi%20Owusu%22" 1
    step "delete  lines of order $o" "DELETE FROM order_items WHERE order_id = $o" \
        order_items "order_id:$o" 0
    step "delete  order $o" "DELETE FROM orders WHERE id = $o" orders "id:$o" 0
    step "delete  customer $c" "DELETE FROM customers WHERE id = $c" customers "id:$c" 0
}

# At the end index and table agree: in number, and every order with its status.
compare() {
    local t n id status
    for t in "${TABLES[@]}"; do
        n=$(shop_psql -c "SELECT count(*) FROM $t")
        if ! search_wait "$t" '*' "$n" 15 >/dev/null 2>&1; then
            FAILURES=$((FAILURES + 1))
            printf '%-34s DIFFERS: the table has %d rows, the index: %s\n' "index shop-$t" "$n" \
                "$(search_get "/shop-$t/_count" | cut -c 1-200)"
        fi
    done
    while read -r id status; do
        if ! search_wait orders "id:$id%20AND%20status:$status" 1 15 >/dev/null 2>&1; then
            FAILURES=$((FAILURES + 1))
            printf '%-34s DIFFERS: the table says %s\n' "order $id" "$status"
        fi
    done < <(shop_psql -F ' ' -c 'SELECT id, status FROM orders ORDER BY id LIMIT 20')
}

summary() { # prints it; fails when something was not as it must be
    local sorted n=${#TIMES[@]}
    if ((FAILURES)); then
        printf '\n%d WRONG of %d changes\n' "$FAILURES" "$((n + FAILURES))"
        return 1
    fi
    mapfile -t sorted < <(printf '%s\n' "${TIMES[@]}" | sort -n)
    printf '\nAll %d changes found, and index and tables agree. From commit to searchable: %d ms in the middle, %d at most.\n' \
        "$n" "${sorted[$((n / 2))]}" "${sorted[$((n - 1))]}"
}
