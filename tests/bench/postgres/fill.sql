-- :rows rows in one transaction.
INSERT INTO bench (a, b, c, d, e) SELECT * FROM bench_rows(1, :rows);
