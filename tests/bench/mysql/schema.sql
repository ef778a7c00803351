-- The tables of the benchmarks, for both servers: a key, an integer, 80 characters of text, money,
-- a time, and a small JSON document; about 185 bytes a row in the log.
CREATE TABLE bench (
    id bigint AUTO_INCREMENT PRIMARY KEY,
    a int,
    b varchar(200),
    c decimal(12, 2),
    d timestamp(6) NULL,
    e json
) CHARACTER SET utf8mb4;

CREATE TABLE wide (id bigint AUTO_INCREMENT PRIMARY KEY, body longtext) CHARACTER SET utf8mb4;

CREATE TABLE hundred (n int PRIMARY KEY);
INSERT INTO hundred WITH RECURSIVE i (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < 100)
    SELECT n FROM i;

DELIMITER //
-- The same rows in every run, a statement for each hundred: a transaction of its own unless the
-- caller has opened one.
CREATE PROCEDURE bench_rows(how_many bigint)
BEGIN
    DECLARE i bigint DEFAULT 0;
    WHILE i < how_many DO
        INSERT INTO bench (a, b, c, d, e)
            SELECT g * 7919 % 1000003,
                   CONCAT(SHA2(g, 256), LEFT(SHA2(g + 1, 256), 16)), -- MySQL 9.6 has no MD5
                   g % 10000000 / 100,
                   TIMESTAMP '2024-01-01 00:00:00' + INTERVAL g SECOND,
                   CONCAT('{"k": ', g, ', "ok": ', IF(g % 2 = 0, 'true', 'false'), ', "tag": "',
                          LEFT(SHA2(g + 3, 256), 12), '", "name": "customer ', g, '"}')
            FROM (SELECT i + n AS g FROM hundred ORDER BY n) AS numbers;
        SET i = i + 100;
    END WHILE;
END//

-- Rows of 100 kB.
CREATE PROCEDURE wide_rows(how_many bigint)
BEGIN
    DECLARE i bigint DEFAULT 0;
    WHILE i < how_many DO
        SET i = i + 1;
        INSERT INTO wide (body) VALUES (REPEAT(LEFT(SHA2(i, 256), 50), 2000));
    END WHILE;
END//
DELIMITER ;
