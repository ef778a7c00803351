-- :tables tables of one row each.
SELECT format('CREATE TABLE t%s (id bigserial PRIMARY KEY, name text NOT NULL, price numeric(10, 2), '
              'changed timestamptz DEFAULT now())', lpad(i::text, 5, '0')),
       format('INSERT INTO t%s (name, price) VALUES (%L, %s)', lpad(i::text, 5, '0'), 'row of ' || i, i)
FROM generate_series(1, :tables) AS i \gexec
