-- :rows rows in transactions of 100. Prints a log position within the last transaction: who has
-- confirmed that much has confirmed everything.
SELECT set_config('bench.transactions', (:rows / 100 - 1)::text, false) \g /dev/null
DO $$
BEGIN
    FOR i IN 0 .. current_setting('bench.transactions')::bigint - 1 LOOP
        INSERT INTO bench (a, b, c, d, e) SELECT * FROM bench_rows(i * 100 + 1, i * 100 + 100);
        COMMIT;
    END LOOP;
END
$$;
BEGIN;
INSERT INTO bench (a, b, c, d, e) SELECT * FROM bench_rows(:rows - 99, :rows);
SELECT pg_current_wal_insert_lsn();
COMMIT;
