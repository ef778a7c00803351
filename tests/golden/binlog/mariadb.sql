-- What MariaDB alone has.
SET NAMES utf8mb4;
CREATE TABLE own (id int PRIMARY KEY, js json, vc varchar(8000) COMPRESSED, tc longtext COMPRESSED,
    bc blob COMPRESSED, after_ varchar(10) CHARACTER SET latin1, gen int AS (id * 2) STORED,
    inv int INVISIBLE DEFAULT 5);
INSERT INTO own (id, js, vc, tc, bc, after_) VALUES
    (1, '{"b": 1, "a":  2}', REPEAT('comp', 400), REPEAT('é', 50000), REPEAT(x'00', 3000), 'é'),
    (2, ' null ', 'short', '', NULL, ''), (3, NULL, '', NULL, '', NULL);
SET GLOBAL log_bin_compress = ON;
SET GLOBAL log_bin_compress_min_len = 10;
CREATE TABLE packed (id int PRIMARY KEY, v varchar(2000));
INSERT INTO packed VALUES (1, REPEAT('packed ', 200)), (2, NULL);
UPDATE packed SET v = REPEAT('x', 1000);
DELETE FROM packed WHERE id = 1;
SET GLOBAL log_bin_compress = OFF;
