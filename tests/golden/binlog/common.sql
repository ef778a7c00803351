-- Values at the ends of their ranges, for both servers. Runs in an empty database.
SET NAMES utf8mb4;
SET time_zone = '+00:00';
SET sql_mode = '';

CREATE TABLE numbers (
    id int PRIMARY KEY, t tinyint, tu tinyint unsigned, s smallint, su smallint unsigned,
    m mediumint, mu mediumint unsigned, i int, iu int unsigned zerofill, l bigint,
    lu bigint unsigned, y year, after_year int unsigned, d1 decimal(65,30), d2 decimal(10,2),
    d3 decimal(5,5), d4 decimal(20,0), d5 decimal(9,3) unsigned zerofill, f float, g double,
    h double(10,4), b1 bit(1), b5 bit(5), b13 bit(13), b64 bit(64));
INSERT INTO numbers VALUES
    (1, -128, 0, -32768, 0, -8388608, 0, -2147483648, 0, -9223372036854775808, 0, 0, 4294967295,
     -99999999999999999999999999999999999.999999999999999999999999999999, -99999999.99, -0.99999,
     -99999999999999999999, 0, -3.4028234e38, -1.7976931348623157e308, -0.0001, b'0', 0, 1, 0),
    (2, 127, 255, 32767, 65535, 8388607, 16777215, 2147483647, 4294967295, 9223372036854775807,
     18446744073709551615, 2155, 1,
     99999999999999999999999999999999999.999999999999999999999999999999, 99999999.99, 0.99999,
     99999999999999999999, 999999.999, 3.4028234e38, 1.7976931348623157e308, 999999.9999, b'1',
     b'11111', b'1111111111111', 0xFFFFFFFFFFFFFFFF),
    (3, -1, 200, -300, 40000, -70000, 9000000, -100000, 42, -5000000000, 9223372036854775808, 1901,
     2147483648, 12345678901234567890.1234567890, 0.01, 0.00001, 7, 1.5, 1.1, 0.1, 1234.5678, b'1',
     b'10101', b'1010101010101', 0x0102030405060708),
    (4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1970, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
    (5, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2000, 1, -0.000000000000000000000000000001, -0.01, -0.00001,
     -1, 0.001, 1.17549435e-38, 5e-324, 1, 1, 1, 1, 1),
    (6, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2024, 2, 2, 2, 0.2, 2, 2, 16777217, 1e15, 2, 1, 2, 2, 2),
    (7, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 2025, 3, 3, 3, 0.3, 3, 3, 123.45, 9007199254740993, 3, 0, 3,
     3, 3),
    (8, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 2025, 3, 3, 3, 0.3, 3, 3, 1e-45, -0e0, 3, 0, 3, 3, 3);
INSERT INTO numbers (id) VALUES (9);

CREATE TABLE times (
    id int PRIMARY KEY, d date, t0 time, t1 time(1), t2 time(2), t3 time(3), t4 time(4), t5 time(5),
    t6 time(6), dt0 datetime, dt1 datetime(1), dt2 datetime(2), dt3 datetime(3), dt4 datetime(4),
    dt5 datetime(5), dt6 datetime(6), ts0 timestamp NULL, ts1 timestamp(1) NULL,
    ts2 timestamp(2) NULL, ts3 timestamp(3) NULL, ts4 timestamp(4) NULL, ts5 timestamp(5) NULL,
    ts6 timestamp(6) NULL);
SET sql_mode = 'ALLOW_INVALID_DATES';
INSERT INTO times SELECT 1, v, t, t, t, t, t, t, t, v, v, v, v, v, v, v, s, s, s, s, s, s, s FROM
    (SELECT '2024-02-29 13:14:15.123456' v, '-838:59:58.999999' t, '2024-02-29 13:14:15.123456' s) x;
INSERT INTO times SELECT 2, v, t, t, t, t, t, t, t, v, v, v, v, v, v, v, s, s, s, s, s, s, s FROM
    (SELECT '0000-00-00 00:00:00' v, '-00:00:00.000001' t, '0000-00-00 00:00:00' s) x;
INSERT INTO times SELECT 3, v, t, t, t, t, t, t, t, v, v, v, v, v, v, v, s, s, s, s, s, s, s FROM
    (SELECT '2024-02-31 01:02:03.05' v, '838:59:58.99' t, '1970-01-01 00:00:01.000001' s) x;
INSERT INTO times SELECT 4, v, t, t, t, t, t, t, t, v, v, v, v, v, v, v, s, s, s, s, s, s, s FROM
    (SELECT '9999-12-31 23:59:59' v, '00:00:00' t, '2038-01-19 03:14:07' s) x;
INSERT INTO times SELECT 5, v, t, t, t, t, t, t, t, v, v, v, v, v, v, v, s, s, s, s, s, s, s FROM
    (SELECT '0000-01-01 00:00:00.1' v, '-00:00:01.1' t, '2000-01-01' s) x;
INSERT INTO times SELECT 6, v, t, t, t, t, t, t, t, v, v, v, v, v, v, v, s, s, s, s, s, s, s FROM
    (SELECT '2024-00-15 00:00:00' v, '-00:00:00.01' t, '2000-01-01' s) x;
SET sql_mode = '';

CREATE TABLE texts (
    id int PRIMARY KEY, c char(10), v varchar(300), t tinytext, x text, m mediumtext, l longtext,
    c_wide char(255) CHARACTER SET utf8mb4, latin1 varchar(20) CHARACTER SET latin1,
    cp1251 varchar(20) CHARACTER SET cp1251, swe7 char(10) CHARACTER SET swe7,
    ucs2 varchar(20) CHARACTER SET ucs2, utf16 text CHARACTER SET utf16,
    utf16le char(5) CHARACTER SET utf16le, utf32 varchar(20) CHARACTER SET utf32,
    gbk varchar(20) CHARACTER SET gbk, big5 text CHARACTER SET big5, sjis char(5) CHARACTER SET sjis,
    cp932 varchar(20) CHARACTER SET cp932, ujis varchar(20) CHARACTER SET ujis,
    eucjpms varchar(20) CHARACTER SET eucjpms, euckr varchar(20) CHARACTER SET euckr,
    bin binary(8), vb varbinary(300), tb tinyblob, b blob, mb mediumblob, lb longblob,
    e enum('a', 'ç', 'd,e', 'it''s'), el enum('é', 'ÿ') CHARACTER SET latin1,
    s set('x', 'y', 'é') CHARACTER SET gbk COLLATE gbk_bin) CHARACTER SET utf8mb4;
INSERT INTO texts VALUES
    (1, ' ab', 'héllo "q" \n\t\\ 😀', 'tt', REPEAT('x', 70000), 'mt', '', REPEAT('😀', 255), '€é',
     'Да', 'Åä', 'ü€Ж', '💥é', '💥é', '💥é', '数据丂', '中文', '日ｱ', '日①～', '日丂', '日①', '가갂',
     x'0001', x'00ff10', x'00', x'deadbeef00', '', x'02', 'ç', 'ÿ', 'x,é'),
    (2, '', '', '', '', '', REPEAT('é', 70000), '', '', '', '', '', '', '', '', '', '', '', '', '', '',
     '', '', '', '', '', REPEAT(x'ff', 70000), '', 'no such', 'é', '');
INSERT INTO texts (id) VALUES (3);

CREATE TABLE shapes (id int PRIMARY KEY, g geometry, p point, l linestring);
-- A statement each: mysqlbinlog gives up an event at the first geometry.
INSERT INTO shapes VALUES
    (1, ST_GeomFromText('POINT(1 2)'), ST_GeomFromText('POINT(1.5 -2.25)'),
     ST_GeomFromText('LINESTRING(0 0,1 1)'));
INSERT INTO shapes VALUES
    (2, ST_GeomFromText('GEOMETRYCOLLECTION(POINT(1 1),LINESTRING(0 0,1 1))'),
     ST_GeomFromText('POINT(1e100 -1e-100)'), NULL);
