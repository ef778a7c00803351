#!/bin/bash
# As the public image does: an empty data folder is initialised, the server runs on its socket only
# while the scripts of /docker-entrypoint-initdb.d do their work, and then as it is told to.
set -e
if [ "$(id -u)" = 0 ]; then
    chown postgres:postgres "$PGDATA"
    chmod 700 "$PGDATA"
    exec setpriv --reuid=postgres --regid=postgres --init-groups -- "$0" "$@"
fi
: "${POSTGRES_USER:=postgres}"
: "${POSTGRES_DB:=$POSTGRES_USER}"
export POSTGRES_USER POSTGRES_DB
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    [ -n "$POSTGRES_PASSWORD" ] || { echo 'POSTGRES_PASSWORD is not set' >&2; exit 1; }
    initdb -U "$POSTGRES_USER" --auth-local=trust --auth-host=scram-sha-256 \
        --pwfile=<(printf '%s\n' "$POSTGRES_PASSWORD")
    echo 'host all all all scram-sha-256' >>"$PGDATA/pg_hba.conf"
    echo 'host replication all all scram-sha-256' >>"$PGDATA/pg_hba.conf"
    echo "listen_addresses = '*'" >>"$PGDATA/postgresql.conf"
    pg_ctl -w start -o "$(printf '%q ' "${@:2}") -c listen_addresses=''"
    [ "$POSTGRES_DB" = postgres ] || createdb -U "$POSTGRES_USER" "$POSTGRES_DB"
    for f in /docker-entrypoint-initdb.d/*; do
        case $f in
        *.sh) if [ -x "$f" ]; then "$f"; else . "$f"; fi ;;
        *.sql) psql -v ON_ERROR_STOP=1 --no-password -U "$POSTGRES_USER" -d "$POSTGRES_DB" -f "$f" ;;
        esac
    done
    pg_ctl -w -m fast stop
fi
exec "$@"
