BEGIN;
INSERT INTO every_type (flag, i2, i4, i8, f4, f8, num, num_10_2, num_5, price, txt, vc, fixed, bin,
    day, tod, tod3, todtz, ts, ts3, tstz, span, uid, js, jsb, ints, words, nums, stamps, mood, host,
    net, mac, mac8, spot, pairs, markup, b1, b8, bv, r4, rtz, vec, pos, home, ref, note)
SELECT flag, i2, i4, i8, f4, f8, num, num_10_2, num_5, price, txt, vc, fixed, bin,
    day, tod, tod3, todtz, ts, ts3, tstz, span, uid, js, jsb, ints, words, nums, stamps, mood, host,
    net, mac, mac8, spot, pairs, markup, b1, b8, bv, r4, rtz, vec, pos, home, ref, note
FROM every_type WHERE id = 1;
INSERT INTO every_type (f4, f8, day, ts, tstz, rtz, r4, tod)
    VALUES ('NaN', 'Infinity', 'infinity', 'infinity', 'infinity', 'empty', 'empty', '24:00:00');
INSERT INTO every_type (f4, f8, day, ts, tstz, num, num_10_2, num_5)
    VALUES ('-Infinity', '-Infinity', '-infinity', '-infinity', '-infinity', -0.00001, -0.01, -1);
INSERT INTO every_type (f4, f8, day, ts, tstz, num)
    VALUES ('-0', '1e300', '0001-01-01', '1900-01-01 00:00:00', '1900-01-01 00:00:00+00', 1e30);
INSERT INTO every_type DEFAULT VALUES;
INSERT INTO whole VALUES (2, 'two', 2.25);
COMMIT;
UPDATE every_type SET txt = 'upd', i4 = 1 WHERE id = 5;
UPDATE whole SET amount = 9.99 WHERE id = 1;
UPDATE whole SET id = 20 WHERE id = 2;
DELETE FROM whole WHERE id = 1;
DELETE FROM every_type WHERE id = 6;
UPDATE every_type SET id = 100 WHERE id = 5;
UPDATE large SET n = 2 WHERE id = 1;
INSERT INTO keyless VALUES (2, 'y');
TRUNCATE keyless;
SELECT pg_logical_emit_message(true, 'pfx', 'hello');
SELECT pg_logical_emit_message(false, 'pfx', 'hello-nontx');
