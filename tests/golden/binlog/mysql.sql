-- What MySQL alone has.
SET NAMES utf8mb4;
CREATE TABLE j (id int PRIMARY KEY, js json, other json);
INSERT INTO j (id, js) VALUES (1, 'null'), (2, 'true'), (3, '"a\\"b\\\\ \\u0001\\u001f\\b/é😀"'),
    (4, '{}'), (5, '[]'), (6, '{"": 0, "b": {"c": [1, [2, [-3]]]}, "a": false}'),
    (7, '[0, -1, 32767, 32768, -32769, 65535, 65536, 2147483648, 4294967296, 9223372036854775808]'),
    (8, '[1.0, -0.0, 0.1, 1e7, 12345678.0, 1234567.0, 1e15, 1e16, 1e20, 1e300, 1e-5, 1e-15, 1.5e-16]'),
    (9, '[123456789012345678901234567890, 0.30000000000000004, 5e-324, 12345678.9]'),
    (10, JSON_OBJECT('d', CAST(123.450 AS decimal(10,3)), 'n', CAST(12345678.0 AS decimal(12,1)),
                     'z', CAST(-5 AS decimal(5,0)))),
    (11, JSON_ARRAY(CAST('-12:34:56.789012' AS time(6)), CAST('838:59:59' AS time),
                    CAST('2024-02-29' AS date), CAST('2024-02-29 13:14:15.1' AS datetime(1)),
                    TIMESTAMP('2024-02-29 13:14:15'))),
    (12, JSON_ARRAY(x'00ff10', b'101', CAST(REPEAT('x', 58) AS binary), ST_GeomFromText('POINT(1 2)'))),
    (13, JSON_OBJECT('pad', REPEAT('é', 40000), 'k', 1, 'list', JSON_ARRAY(1, 'two', 3.5, NULL)));
INSERT INTO j (id) VALUES (14);
INSERT INTO j VALUES (20, JSON_OBJECT('a', 1, 'arr', JSON_ARRAY(1, 2, 3), 'pad', REPEAT('x', 300),
    'deep', JSON_OBJECT('b', JSON_OBJECT('c', 'd'))), JSON_OBJECT('o', 1, 'pad', REPEAT('y', 300)));
SET SESSION binlog_row_value_options = 'PARTIAL_JSON';
UPDATE j SET js = JSON_SET(js, '$.a', 42) WHERE id = 20;
UPDATE j SET js = JSON_SET(JSON_SET(js, '$.arr[1]', 'x'), '$."new key"', JSON_ARRAY(true)) WHERE id = 20;
UPDATE j SET js = JSON_REMOVE(js, '$.arr[0]', '$.deep.b.c'), other = JSON_SET(other, '$.o', 2) WHERE id = 20;
UPDATE j SET other = JSON_REPLACE(other, '$.o', 'replaced') WHERE id = 20;
UPDATE j SET js = JSON_SET(js, '$.deep.b."q\\"é.["', 1.5), other = NULL WHERE id = 20;
UPDATE j SET js = JSON_SET(js, '$.arr[last]', JSON_OBJECT('n', NULL), '$.arr[9]', 7) WHERE id = 20;
SET SESSION binlog_row_value_options = '';

CREATE TABLE own (id int PRIMARY KEY, v vector(4), p point SRID 4326, gen int AS (id * 2) STORED,
    virt int AS (id * 3) VIRTUAL, inv int INVISIBLE DEFAULT 5);
INSERT INTO own (id, v, p) VALUES (1, STRING_TO_VECTOR('[1,2.5,-3,0.1]'), ST_GeomFromText('POINT(1 2)', 4326));
INSERT INTO own (id, v, p) VALUES (2, STRING_TO_VECTOR('[3.4e38]'), NULL);

CREATE TABLE multi (id int PRIMARY KEY, js json, KEY k ((CAST(js->'$.tags' AS unsigned ARRAY))),
    KEY f ((id + 1)));
INSERT INTO multi VALUES (1, '{"tags": [1, 2, 3]}'), (2, NULL);

SET SESSION binlog_transaction_compression = ON;
CREATE TABLE packed (id int PRIMARY KEY, v varchar(200));
INSERT INTO packed VALUES (1, REPEAT('packed ', 20)), (2, NULL);
UPDATE packed SET v = 'x';
SET SESSION binlog_transaction_compression = OFF;
