-- A column of every type, a table with REPLICA IDENTITY FULL, one without a key, and one with a
-- value that is stored out of line.
CREATE EXTENSION hstore;
CREATE TYPE weather AS ENUM ('rain', 'cloud', 'sun');
CREATE TYPE place AS (street text, number int);
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE TABLE every_type (
    id bigserial PRIMARY KEY,
    flag bool, i2 int2, i4 int4, i8 int8, f4 float4, f8 float8,
    num numeric, num_10_2 numeric(10, 2), num_5 numeric(5, 0), price money,
    txt text, vc varchar(20), fixed char(5), bin bytea,
    day date, tod time, tod3 time(3), todtz timetz,
    ts timestamp, ts3 timestamp(3), tstz timestamptz, span interval,
    uid uuid, js json, jsb jsonb,
    ints int[], words text[], nums numeric(10, 2)[], stamps timestamp[],
    mood weather, host inet, net cidr, mac macaddr, mac8 macaddr8,
    spot point, pairs hstore, markup xml, b1 bit(1), b8 bit(8), bv varbit(16),
    r4 int4range, rtz tstzrange, vec tsvector,
    pos positive, home place, ref oid, note text, nothing text
);
CREATE TABLE whole (id int PRIMARY KEY, name text, amount numeric(8, 2));
ALTER TABLE whole REPLICA IDENTITY FULL;
CREATE TABLE keyless (n int, t text);
CREATE TABLE large (id int PRIMARY KEY, body text, n int);
ALTER TABLE large ALTER COLUMN body SET STORAGE EXTERNAL;
