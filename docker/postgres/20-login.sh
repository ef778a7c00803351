#!/bin/bash
# Runs once, in an empty database, after the shop's tables and its user cdcd were made: gives that
# user a password, since it comes over the network.
set -e
psql -v ON_ERROR_STOP=1 -v "password=$CDCD_DB_PASSWORD" -U "$POSTGRES_USER" -d "$POSTGRES_DB" <<'SQL'
ALTER ROLE cdcd PASSWORD :'password';
SQL
