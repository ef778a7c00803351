-- The table of the benchmarks: a generated key, an integer, 80 characters of text, money, a
-- time, and a small JSON document; about 220 bytes a row.
CREATE TABLE bench (
    id bigserial PRIMARY KEY,
    a integer,
    b text,
    c numeric(12, 2),
    d timestamptz,
    e jsonb
);

-- Row g is the same in every run. Plain SQL, so that the planner inlines it.
CREATE FUNCTION bench_rows(first bigint, last bigint)
RETURNS TABLE (a integer, b text, c numeric, d timestamptz, e jsonb)
LANGUAGE sql STABLE AS $$
    SELECT ((g * 7919) % 1000003)::integer,
           md5(g::text) || md5((g + 1)::text) || left(md5((g + 2)::text), 16),
           (g % 10000000) / 100.0,
           timestamptz '2024-01-01 00:00:00+00' + g * interval '1 second',
           jsonb_build_object('k', g, 'name', 'customer ' || g, 'ok', g % 2 = 0,
                              'tag', left(md5((g + 3)::text), 12))
    FROM generate_series(first, last) AS g
$$;

-- Large values, stored and sent as they are.
CREATE TABLE wide (id bigserial PRIMARY KEY, body text);
ALTER TABLE wide ALTER COLUMN body SET STORAGE EXTERNAL;

CREATE PUBLICATION bench_pub FOR TABLE bench, wide;
