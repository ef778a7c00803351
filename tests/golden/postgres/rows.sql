INSERT INTO every_type (flag, i2, i4, i8, f4, f8, num, num_10_2, num_5, price, txt, vc, fixed, bin,
    day, tod, tod3, todtz, ts, ts3, tstz, span, uid, js, jsb, ints, words, nums, stamps, mood, host,
    net, mac, mac8, spot, pairs, markup, b1, b8, bv, r4, rtz, vec, pos, home, ref, note)
VALUES (
    true, -32768, 2147483647, 9223372036854775807, 1.1, 2.2250738585072014e-300,
    123456789.123456789, 12345678.90, 99999, '$1,234.56',
    E'h\u00e9llo "q" \n\t \\ \U0001F600 \u0001', 'varchar', 'ab', '\x00ff10ab',
    '2024-02-29', '13:14:15.123456', '13:14:15.123', '13:14:15.123456+02:30',
    '2024-02-29 13:14:15.123456', '2024-02-29 13:14:15.123', '2024-02-29 13:14:15.123456+02',
    '1 year 2 mons 3 days 04:05:06.789',
    'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{"a": 1,  "b":[true,null]}', '{"b":[true,null], "a":1.50}',
    '{1,2,NULL}', '{a,"b c",NULL,"q\"x"}', '{1.10,2.25}', '{2024-02-29 13:14:15.123456}',
    'sun', '192.168.0.1/24', '10.0.0.0/8', '08:00:2b:01:02:03', '08:00:2b:01:02:03:04:05',
    '(1.5,-2.25)', 'a=>1,b=>NULL', '<x a="1">t</x>', B'1', B'10101010', B'1010101',
    '[1,10)', '[2024-01-01 00:00+00,infinity)', 'the quick:1A fox', 7, ROW('Main', 5), 4294967295,
    'plain');
INSERT INTO whole VALUES (1, 'one', 1.50);
INSERT INTO keyless VALUES (1, 'x');
INSERT INTO large VALUES (1, repeat('x', 20000), 1);
