-- The tables, the bookkeeping and the one function of pgload. :tables and :keys come from it.
--
-- load_N is captured. Schema pgload is not: it says what has been committed. Each change of a key
-- bears the key's next version, from 1 without a gap, also over deletes and inserts, since the
-- key's row in pgload.keys is locked until the end of the transaction. A change of the key itself
-- is two changes, as a reader of the log sees it: kd of the old key, kc of the new one.
CREATE SCHEMA pgload;
CREATE SEQUENCE pgload.change;
CREATE TABLE pgload.keys (
    tab integer, key bigint, ver bigint NOT NULL DEFAULT 0, present boolean NOT NULL DEFAULT false,
    PRIMARY KEY (tab, key)
);
CREATE TABLE pgload.log (
    change bigint PRIMARY KEY, tab integer NOT NULL, key bigint NOT NULL, ver bigint NOT NULL,
    op text NOT NULL, xid bigint NOT NULL DEFAULT (pg_current_xact_id()::text::bigint % 4294967296)
);
INSERT INTO pgload.keys (tab, key) SELECT t, k FROM generate_series(1, :tables) t, generate_series(1, :keys) k;

-- pad is a function of padded, the change that set it, and is sometimes large enough to be stored
-- out of line: then an update that leaves it alone does not send it.
SELECT format('CREATE TABLE public.load_%s (id bigint PRIMARY KEY, ver bigint NOT NULL, change bigint NOT NULL, '
              'amount numeric(20, 4), padded bigint NOT NULL, pad text)', t),
       format('ALTER TABLE public.load_%s ALTER COLUMN pad SET STORAGE EXTERNAL', t),
       CASE WHEN t % 3 = 0 THEN format('ALTER TABLE public.load_%s REPLICA IDENTITY FULL', t) END
FROM generate_series(1, :tables) t \gexec

CREATE FUNCTION pgload.pad(change bigint) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT repeat(md5(change::text), CASE WHEN change % 10 = 0 THEN 100 ELSE 1 + change % 4 END::integer)
$$;

-- Takes the next version of a key.
CREATE FUNCTION pgload.next(t integer, k bigint, op text, OUT ver bigint, OUT change bigint)
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE pgload.keys SET ver = keys.ver + 1, present = op IN ('c', 'u', 'kc')
        WHERE tab = t AND key = k RETURNING keys.ver INTO next.ver;
    change := nextval('pgload.change');
    INSERT INTO pgload.log (change, tab, key, ver, op) VALUES (next.change, t, k, next.ver, next.op);
END
$$;

-- One change of key k: an insert when it is not there; else by `choice` (0 to 99) a delete, a change
-- of the key to `other` when that is free, or an update.
CREATE FUNCTION pgload.step(t integer, k bigint, other bigint, choice integer) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    here boolean;
    free boolean := false;
    n record;
    old record;
    tab text := format('public.load_%s', t);
BEGIN
    -- Both keys in one order, so that two sessions seldom wait for each other.
    PERFORM FROM pgload.keys WHERE keys.tab = t AND key IN (k, other) ORDER BY key FOR UPDATE;
    SELECT present INTO here FROM pgload.keys WHERE keys.tab = t AND key = k;
    SELECT NOT present INTO free FROM pgload.keys WHERE keys.tab = t AND key = other;
    IF NOT here THEN
        n := pgload.next(t, k, 'c');
        EXECUTE format('INSERT INTO %s VALUES ($1, $2, $3, $4, $3, pgload.pad($3))', tab)
            USING k, n.ver, n.change, n.change::numeric / 7;
    ELSIF choice < 12 THEN
        n := pgload.next(t, k, 'd');
        EXECUTE format('DELETE FROM %s WHERE id = $1', tab) USING k;
    ELSIF choice < 20 AND free AND k <> other THEN
        old := pgload.next(t, k, 'kd');
        n := pgload.next(t, other, 'kc');
        EXECUTE format('UPDATE %s SET id = $2, ver = $3, change = $4 WHERE id = $1', tab)
            USING k, other, n.ver, n.change;
    ELSIF choice < 40 THEN
        n := pgload.next(t, k, 'u');
        EXECUTE format('UPDATE %s SET ver = $2, change = $3, padded = $3, pad = pgload.pad($3) WHERE id = $1', tab)
            USING k, n.ver, n.change;
    ELSE
        n := pgload.next(t, k, 'u');
        EXECUTE format('UPDATE %s SET ver = $2, change = $3, amount = amount + 0.0001 WHERE id = $1', tab)
            USING k, n.ver, n.change;
    END IF;
END
$$;
