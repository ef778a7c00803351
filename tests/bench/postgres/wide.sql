-- :rows rows of 100 kB in one transaction.
INSERT INTO wide (body) SELECT repeat(md5(g::text), 3125) FROM generate_series(1, :rows) AS g;
