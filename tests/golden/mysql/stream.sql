USE cdc;
SET NAMES utf8mb4;
-- T1: one transaction, several rows and tables
BEGIN;
INSERT INTO types_t(id,c_ti,c_tiu,c_ti1,c_ti1u,c_bool,c_si,c_siu,c_mi,c_miu,c_i,c_iu,c_izf,c_bi,c_biu,c_dec,c_dec50,c_dec65,c_decu,c_num,c_f,c_f72,c_f30,c_d,c_d104,c_real,c_bit,c_bit1,c_bit5,c_bit13,c_bit64,c_year,c_date,c_t0,c_t3,c_t6,c_dt0,c_dt3,c_dt6,c_ts0,c_ts3,c_ts6,c_char,c_charl,c_vc,c_vcl,c_vc16,c_vcb,c_vccp,c_vcsj,c_tt,c_tx,c_txl,c_mt,c_lt,c_bin,c_vb,c_tb,c_bl,c_mb,c_lb,c_enum,c_set,c_json,c_geom,c_point,c_ls,c_poly,c_mp,c_mls,c_mpoly,c_gc,c_vec) VALUES (101,-5,200,1,1,TRUE,-300,40000,-70000,9000000,-100000,3000000000,42,-5000000000,5000000000,12345.67,99999,12345678901234567890.123456789012345678901234567890,1.10,7,1.1,123.45,1.1,2.2250738585072014E-300,1234.5678,0.1,b'1',b'1',b'10101',b'1010101010101',x'0102030405060708',2024,'2024-02-29','13:14:15','13:14:15.123','13:14:15.123456','2024-02-29 13:14:15','2024-02-29 13:14:15.123','2024-02-29 13:14:15.123456','2024-02-29 13:14:15','2024-02-29 13:14:15.120','2024-02-29 13:14:15.123456','ab','café','héllo "q" \n\t \\ 😀 ','café','hé😀','ab','Да','日本','tt','tèxt','tèxt','mt','lt',x'0001',x'00ff10ab',x'00ff',x'deadbeef00',x'01',x'02','ç','x,z','{"b": 1, "a": [1, -2, 3.5, 1e10, "s", null, true, {"deep": "é😀"}], "big": 18446744073709551615}',ST_GeomFromText('LINESTRING(0 0,1 1)'),ST_GeomFromText('POINT(1.5 -2.25)'),ST_GeomFromText('LINESTRING(0 0,1 1,2 2)'),ST_GeomFromText('POLYGON((0 0,4 0,4 4,0 4,0 0),(1 1,2 1,2 2,1 2,1 1))'),ST_GeomFromText('MULTIPOINT(0 0,1 1)'),ST_GeomFromText('MULTILINESTRING((0 0,1 1),(2 2,3 3))'),ST_GeomFromText('MULTIPOLYGON(((0 0,1 0,1 1,0 0)))'),ST_GeomFromText('GEOMETRYCOLLECTION(POINT(1 1),LINESTRING(0 0,1 1))'),STRING_TO_VECTOR('[1,2.5,-3,0.1]'));
INSERT INTO types_t(id,c_ti,c_tiu,c_ti1,c_ti1u,c_bool,c_si,c_siu,c_mi,c_miu,c_i,c_iu,c_izf,c_bi,c_biu,c_dec,c_dec50,c_dec65,c_decu,c_num,c_f,c_f72,c_f30,c_d,c_d104,c_real,c_bit,c_bit1,c_bit5,c_bit13,c_bit64,c_year,c_date,c_t0,c_t3,c_t6,c_dt0,c_dt3,c_dt6,c_ts0,c_ts3,c_ts6,c_char,c_charl,c_vc,c_vcl,c_vc16,c_vcb,c_vccp,c_vcsj,c_tt,c_tx,c_txl,c_mt,c_lt,c_bin,c_vb,c_tb,c_bl,c_mb,c_lb,c_enum,c_set,c_json,c_geom,c_point,c_ls,c_poly,c_mp,c_mls,c_mpoly,c_gc,c_vec) VALUES (102,127,255,127,255,2,32767,65535,8388607,16777215,2147483647,4294967295,4294967295,9223372036854775807,18446744073709551615,99999999.99,99999,99999999999999999999999999999999999.999999999999999999999999999999,99999999.99,9999999999,3.402823e38,99999.99,3.402823e38,1.7976931348623157e308,999999.9999,1e15,b'1',b'1',b'11111',b'1111111111111',x'FFFFFFFFFFFFFFFF',2155,'9999-12-31','838:59:59','838:59:58.999','838:59:58.999999','9999-12-31 23:59:59','9999-12-31 23:59:59.999','9999-12-31 23:59:59.999999','2038-01-19 03:14:07','2038-01-19 03:14:07.999','2038-01-19 03:14:07.999999',REPEAT('😀',10),'€ÿ',REPEAT('日',255),REPEAT('ÿ',300),'日本',x'ff00','Я','ｶ',REPEAT('t',255),REPEAT('x',300),'ÿ','mt','lt',x'ffffffffffffffff',REPEAT(x'ff',300),x'ff',REPEAT(x'00',4),x'01',x'02','it''s','x,y,z','[]',ST_GeomFromText('POINT(1 2)',4326),ST_GeomFromText('POINT(1e100 -1e100)'),NULL,NULL,NULL,NULL,NULL,NULL,STRING_TO_VECTOR('[3.4e38,-3.4e38,0,1]'));
INSERT INTO types_t(id,c_ti,c_tiu,c_ti1,c_ti1u,c_bool,c_si,c_siu,c_mi,c_miu,c_i,c_iu,c_izf,c_bi,c_biu,c_dec,c_dec50,c_dec65,c_decu,c_num,c_f,c_f72,c_f30,c_d,c_d104,c_real,c_bit,c_bit1,c_bit5,c_bit13,c_bit64,c_year,c_date,c_t0,c_t3,c_t6,c_dt0,c_dt3,c_dt6,c_ts0,c_ts3,c_ts6,c_char,c_charl,c_vc,c_vcl,c_vc16,c_vcb,c_vccp,c_vcsj,c_tt,c_tx,c_txl,c_mt,c_lt,c_bin,c_vb,c_tb,c_bl,c_mb,c_lb,c_enum,c_set,c_json,c_geom,c_point,c_ls,c_poly,c_mp,c_mls,c_mpoly,c_gc,c_vec) VALUES (103,-128,0,-128,0,FALSE,-32768,0,-8388608,0,-2147483648,0,0,-9223372036854775808,9223372036854775808,-99999999.99,-99999,-99999999999999999999999999999999999.999999999999999999999999999999,0,-9999999999,-3.402823e38,-99999.99,1e-37,-1.7976931348623157e308,-0.0001,-0.0,b'0',b'0',b'00000',b'1',x'8000000000000000',1901,'1000-01-01','-838:59:59','-838:59:58.999','-00:00:00.000001','1000-01-01 00:00:00','1000-01-01 00:00:00.001','1000-01-01 00:00:00.000001','1970-01-01 00:00:01','1970-01-01 00:00:01.001','1970-01-01 00:00:01.000001','',' x ','','','','','','','','','','','',x'0000000000000000','','','','','','d,e','','{}',ST_GeomFromText('GEOMETRYCOLLECTION EMPTY'),ST_GeomFromText('POINT(0 0)'),NULL,NULL,NULL,NULL,NULL,NULL,STRING_TO_VECTOR('[0]'));
INSERT INTO types_t(id,c_inv) VALUES (104,NULL);
SET sql_mode='';
INSERT INTO zd(id,d,dn,dt,dtn,dt6,ts,tsn,t,y,e) VALUES (101,'0000-00-00','0000-00-00','0000-00-00 00:00:00','0000-00-00 00:00:00','0000-00-00 00:00:00','0000-00-00 00:00:00','0000-00-00 00:00:00','00:00:00',0,'bad');
INSERT INTO zd(id,d,dn,dt,dtn,dt6,ts,tsn,t,y,e) VALUES (102,'2024-00-00','2024-02-00','2024-00-00 01:02:03','2024-02-00 01:02:03','2024-05-00 01:02:03.5','1970-01-01 00:00:01','2038-01-19 03:14:07','-00:00:00',1901,'a');
INSERT INTO zd(id,d,dn,dt,dtn,dt6,ts,tsn,t,y,e) VALUES (103,'0001-01-01','0999-12-31','0001-01-01 00:00:00','0050-01-01 00:00:00','0099-12-31 23:59:59.999999','2000-01-01 00:00:00','2000-01-01 00:00:00','24:00:00',2155,NULL);
INSERT INTO zd(id,d,dn,dt,dtn,dt6,ts,tsn,t,y,e) VALUES (104,'1582-10-10','1582-10-04','1582-10-04 00:00:00','1582-10-15 00:00:00','1900-01-01 00:00:00','2000-01-01 00:00:00','2000-01-01 00:00:00','23:59:59',2000,'b');
SET sql_mode='STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION';
INSERT INTO nopk VALUES (2,'y');
COMMIT;
-- json values one by one
INSERT INTO jsn VALUES (101,NULL);
INSERT INTO jsn VALUES (102,'null');
INSERT INTO jsn VALUES (103,'true');
INSERT INTO jsn VALUES (104,'1');
INSERT INTO jsn VALUES (105,'-1');
INSERT INTO jsn VALUES (106,'1.5');
INSERT INTO jsn VALUES (107,'1.0');
INSERT INTO jsn VALUES (108,'1e300');
INSERT INTO jsn VALUES (109,'-0.0');
INSERT INTO jsn VALUES (110,'0.1');
INSERT INTO jsn VALUES (111,'100000000000000000000');
INSERT INTO jsn VALUES (112,'18446744073709551615');
INSERT INTO jsn VALUES (113,'-9223372036854775808');
INSERT INTO jsn VALUES (114,'"str \\"q\\" \\n \\u0001 \\/ é😀"');
INSERT INTO jsn VALUES (115,'{}');
INSERT INTO jsn VALUES (116,'[]');
INSERT INTO jsn VALUES (117,'{"z":1,"a":{"b":[1,[2,[3]]]},"":0}');
INSERT INTO jsn VALUES (118,JSON_OBJECT('d',CAST(123.450 AS DECIMAL(20,3)),'n',CAST(-0.001 AS DECIMAL(65,30))));
INSERT INTO jsn VALUES (119,JSON_OBJECT('dt',CAST('2024-02-29' AS DATE),'t',CAST('-12:34:56.789012' AS TIME(6)),'t0',CAST('838:59:59' AS TIME),'dtm',CAST('2024-02-29 13:14:15.123456' AS DATETIME(6)),'dtm0',CAST('2024-02-29 13:14:15' AS DATETIME)));
INSERT INTO jsn VALUES (120,JSON_ARRAY(CAST(1 AS UNSIGNED),CAST(-1 AS SIGNED),CAST(1.1 AS FLOAT),CAST(1.1 AS DOUBLE),1e0,3.14));
INSERT INTO jsn VALUES (121,JSON_OBJECT('bin',x'00ff10','bit',b'101','yr',CAST(2024 AS YEAR)));
INSERT INTO jsn VALUES (122,JSON_OBJECT('ts',TIMESTAMP'2024-02-29 13:14:15'));
INSERT INTO jsn VALUES (123,JSON_OBJECT('g',ST_GeomFromText('POINT(1 2)')));
INSERT INTO jsn VALUES (124,CONCAT('{"pad":"',REPEAT('x',70000),'","k":1}'));
INSERT INTO jsn VALUES (125,'{"float":0.30000000000000004,"i53":9007199254740993,"neg":-32769,"u32":4294967295}');
INSERT INTO jsn VALUES (126,'[1.0, 2.0e0, 1e2, 1E-7, 12345678901234567890.5]');
-- plain update / delete / pk update
INSERT INTO defs() VALUES ();
UPDATE types_t SET c_vc='upd', c_i=1 WHERE id=101;
DELETE FROM types_t WHERE id=104;
UPDATE types_t SET id=300 WHERE id=103;
UPDATE cpk SET b='k2' WHERE a=1;
UPDATE cpk SET v=11 WHERE a=1;
DELETE FROM cpk WHERE a=1;
UPDATE uk SET a=2 WHERE a=1;
DELETE FROM uk WHERE a=2;
UPDATE nopk SET b='z' WHERE a=1;
DELETE FROM nopk WHERE a=2;
TRUNCATE TABLE nopk;
-- unsigned pk
INSERT INTO ubig VALUES (9223372036854775809,4),(18446744073709551614,5);
UPDATE ubig SET v=9 WHERE id=18446744073709551615;
DELETE FROM ubig WHERE id=9223372036854775808;
-- cascades (logged by MySQL from 9.6 on)
UPDATE par SET id=100 WHERE id=1;
DELETE FROM par WHERE id=2;
-- replace, upsert, ignore, noop, multi-row
REPLACE INTO rif VALUES (1,5,'r','r','{}');
INSERT INTO rif VALUES (2,6,'x','x','{}') ON DUPLICATE KEY UPDATE a=7;
INSERT INTO rif VALUES (3,3,'t3','b3','{"a":3}'),(4,4,'t4','b4','{"a":4}');
UPDATE rif SET a=3 WHERE id=3;
UPDATE rif SET a=a+100 WHERE id IN (3,4);
-- rollback, savepoint, non-transactional engine
BEGIN; INSERT INTO rif(id,a) VALUES (70,1); ROLLBACK;
BEGIN; INSERT INTO rif(id,a) VALUES (71,1); SAVEPOINT a; INSERT INTO rif(id,a) VALUES (72,1); ROLLBACK TO a; COMMIT;
INSERT INTO myi VALUES (2,2);
INSERT INTO `wéird-T` VALUES (2,3,4);
INSERT INTO mem VALUES (1);
INSERT INTO part VALUES (3,3); UPDATE part SET v=4 WHERE id=3; ALTER TABLE part TRUNCATE PARTITION p0;
-- XA
XA START 'x1'; INSERT INTO rif(id,a) VALUES (80,8); XA END 'x1'; XA PREPARE 'x1'; XA COMMIT 'x1';
XA START 'x2'; INSERT INTO rif(id,a) VALUES (81,8); XA END 'x2'; XA PREPARE 'x2'; XA ROLLBACK 'x2';
XA START 'x3'; INSERT INTO rif(id,a) VALUES (82,8); XA END 'x3'; XA COMMIT 'x3' ONE PHASE;
-- MySQL only: partial json, compressed transaction, tagged gtid, rows_query
SET SESSION binlog_row_value_options='PARTIAL_JSON';
INSERT INTO jsn VALUES (500,CONCAT('{"a":1,"pad":"',REPEAT('x',300),'","arr":[1,2,3]}'));
UPDATE jsn SET js=JSON_SET(js,'$.a',42) WHERE id=500;
UPDATE jsn SET js=JSON_ARRAY_INSERT(js,'$.arr[0]',99) WHERE id=500;
UPDATE jsn SET js=JSON_REMOVE(js,'$.pad') WHERE id=500;
SET SESSION binlog_row_value_options='';
SET SESSION binlog_transaction_compression=ON;
BEGIN; INSERT INTO jsn VALUES (501,CONCAT('{"a":1,"pad":"',REPEAT('y',3000),'"}')); INSERT INTO jsn VALUES (502,'{}'); COMMIT;
SET SESSION binlog_transaction_compression=OFF;
SET gtid_next='AUTOMATIC:mytag'; INSERT INTO jsn VALUES (503,'3'); SET gtid_next='AUTOMATIC';
SET SESSION binlog_rows_query_log_events=ON; INSERT INTO jsn VALUES (504,'4'); SET SESSION binlog_rows_query_log_events=OFF;
SET SESSION sql_log_bin=0; INSERT INTO jsn VALUES (506,'6'); SET SESSION sql_log_bin=1;
INSERT INTO jsn VALUES (599,'"last"');
