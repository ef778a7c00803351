-- The tables, the bookkeeping and the procedures of myload. @tables and @keys come from it.
--
-- load_N is captured, the others are not: they say what has been committed. Each change of a key
-- bears the key's next version, from 1 without a gap, also over deletes and inserts, since the
-- key's row in myload_keys is locked until the end of the transaction. A change of the key itself
-- is two changes, as a reader of the log sees it: kd of the old key, kc of the new one.
CREATE TABLE myload_keys (
    tab int, id bigint, ver bigint NOT NULL DEFAULT 0, present tinyint NOT NULL DEFAULT 0,
    PRIMARY KEY (tab, id)
) ENGINE=InnoDB;
CREATE TABLE myload_log (
    change_no bigint PRIMARY KEY, tab int NOT NULL, id bigint NOT NULL, ver bigint NOT NULL,
    op varchar(2) NOT NULL, tx bigint NOT NULL
) ENGINE=InnoDB;
CREATE TABLE myload_end (run bigint PRIMARY KEY) ENGINE=InnoDB;

DELIMITER //
-- pad is a function of padded, the change that set it.
CREATE FUNCTION myload_pad(n bigint) RETURNS mediumtext CHARACTER SET ascii DETERMINISTIC NO SQL
    RETURN REPEAT(LEFT(SHA2(n, 256), 32), IF(n % 10 = 0, 100, 1 + n % 4)) //

CREATE PROCEDURE myload_make(IN tables_ int, IN keys_ int)
BEGIN
    DECLARE t int DEFAULT 1;
    WHILE t <= tables_ DO
        SET @sql = CONCAT('CREATE TABLE load_', t, ' (id bigint', IF(t % 3 = 2, ' unsigned', ''),
            ' PRIMARY KEY, ver bigint NOT NULL, change_no bigint NOT NULL, amount decimal(20,4),'
            ' padded bigint NOT NULL, pad mediumtext CHARACTER SET ',
            IF(t % 3 = 0, 'utf16', 'utf8mb4'), ') ENGINE=InnoDB');
        PREPARE s FROM @sql;
        EXECUTE s;
        INSERT INTO myload_keys (tab, id)
            WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
            SELECT t, (a.i - 1) * 1000 + b.i FROM n a, n b WHERE (a.i - 1) * 1000 + b.i <= keys_
                AND a.i <= 1 + keys_ / 1000;
        SET t = t + 1;
    END WHILE;
END //

-- Takes the next version of a key: @ver, and @change, which are unique and grow in a run.
CREATE PROCEDURE myload_next(IN t int, IN k bigint, IN what varchar(2))
BEGIN
    UPDATE myload_keys SET ver = (@ver := ver + 1), present = what IN ('c', 'u', 'kc')
        WHERE tab = t AND id = k;
    SET @change = @change + 1;
    INSERT INTO myload_log VALUES (@change, t, k, @ver, what, @tx);
END //

CREATE PROCEDURE myload_sql(IN t int, IN text_ varchar(200))
BEGIN
    SET @sql = REPLACE(text_, '#', CONCAT('load_', t));
    PREPARE s FROM @sql;
END //

-- One change of key k: an insert when it is not there; else by `choice` (0 to 99) a delete, a change
-- of the key to `other` when that is free, or an update.
CREATE PROCEDURE myload_step(IN t int, IN k bigint, IN other bigint, IN choice int)
BEGIN
    DECLARE here, free_, dummy int DEFAULT 0;
    SET @k = k, @other = other;
    -- Both keys in one order, so that two sessions seldom wait for each other.
    SELECT COUNT(*) INTO dummy FROM (SELECT present FROM myload_keys
        WHERE tab = t AND id IN (k, other) ORDER BY id FOR UPDATE) x;
    SELECT present INTO here FROM myload_keys WHERE tab = t AND id = k FOR UPDATE;
    SELECT NOT present INTO free_ FROM myload_keys WHERE tab = t AND id = other FOR UPDATE;
    IF NOT here THEN
        CALL myload_next(t, k, 'c');
        CALL myload_sql(t, 'INSERT INTO # VALUES (?, ?, ?, ROUND(? / 7, 4), ?, myload_pad(?))');
        EXECUTE s USING @k, @ver, @change, @change, @change, @change;
    ELSEIF choice < 12 THEN
        CALL myload_next(t, k, 'd');
        CALL myload_sql(t, 'DELETE FROM # WHERE id = ?');
        EXECUTE s USING @k;
    ELSEIF choice < 20 AND free_ AND k <> other THEN
        CALL myload_next(t, k, 'kd');
        CALL myload_next(t, other, 'kc');
        CALL myload_sql(t, 'UPDATE # SET id = ?, ver = ?, change_no = ? WHERE id = ?');
        EXECUTE s USING @other, @ver, @change, @k;
    ELSEIF choice < 40 THEN
        CALL myload_next(t, k, 'u');
        CALL myload_sql(t, 'UPDATE # SET ver = ?, change_no = ?, padded = ?, pad = myload_pad(?) WHERE id = ?');
        EXECUTE s USING @ver, @change, @change, @change, @k;
    ELSE
        CALL myload_next(t, k, 'u');
        CALL myload_sql(t, 'UPDATE # SET ver = ?, change_no = ?, amount = amount + 0.0001 WHERE id = ?');
        EXECUTE s USING @ver, @change, @k;
    END IF;
END //

-- A transaction of n changes, which now and then takes some of them back, or all.
CREATE PROCEDURE myload_tx(IN tables_ int, IN keys_ int, IN n int)
BEGIN
    DECLARE i int DEFAULT 0;
    DECLARE EXIT HANDLER FOR 1205, 1213
    BEGIN
        ROLLBACK;
        SET @failed = @failed + 1;
    END;
    SET @tx = @tx + 1;
    START TRANSACTION;
    WHILE i < n DO
        IF n > 1 AND i = n DIV 2 AND RAND() < 0.1 THEN
            SAVEPOINT half;
            CALL myload_step(FLOOR(1 + RAND() * tables_), FLOOR(1 + RAND() * keys_),
                             FLOOR(1 + RAND() * keys_), FLOOR(RAND() * 100));
            ROLLBACK TO SAVEPOINT half;
        END IF;
        CALL myload_step(FLOOR(1 + RAND() * tables_), FLOOR(1 + RAND() * keys_),
                         FLOOR(1 + RAND() * keys_), FLOOR(RAND() * 100));
        SET i = i + 1;
    END WHILE;
    IF RAND() < 0.05 THEN
        ROLLBACK;
        SET @rolled_back = @rolled_back + 1;
    ELSE
        COMMIT;
        SET @committed = @committed + 1;
    END IF;
END //

-- Inserts the first n keys of each table, in one transaction.
CREATE PROCEDURE myload_first(IN tables_ int, IN n int)
BEGIN
    DECLARE t, k int DEFAULT 1;
    SET @tx = @tx + 1;
    START TRANSACTION;
    WHILE t <= tables_ DO
        SET k = 1;
        WHILE k <= n DO
            CALL myload_step(t, k, k, 99);
            SET k = k + 1;
        END WHILE;
        SET t = t + 1;
    END WHILE;
    COMMIT;
    SET @committed = @committed + 1;
END //

-- run: unique. Ends after `seconds`, after `transactions`, or when the run is in myload_end. pause:
-- seconds after each transaction. large: every 200th transaction has that many changes.
CREATE PROCEDURE myload_run(IN run_ bigint, IN tables_ int, IN keys_ int, IN seconds double,
                            IN transactions int, IN pause double, IN large int, IN first_ int)
BEGIN
    DECLARE done int DEFAULT 0;
    DECLARE until_ datetime(6) DEFAULT NOW(6) + INTERVAL seconds * 1000000 MICROSECOND;
    SET @tx = run_ * 10000000, @change = run_ * 100000000, @committed = 0, @rolled_back = 0, @failed = 0;
    IF first_ > 0 THEN
        CALL myload_first(tables_, first_);
    END IF;
    WHILE done < transactions AND SYSDATE(6) < until_
          AND NOT EXISTS (SELECT * FROM myload_end WHERE run = run_) DO
        SET done = done + 1;
        CALL myload_tx(tables_, keys_, IF(large > 0 AND done % 200 = 0, large, FLOOR(1 + RAND() * 8)));
        IF pause > 0 THEN
            DO SLEEP(pause);
        END IF;
    END WHILE;
    SELECT @committed, @rolled_back, @failed;
END //
DELIMITER ;
CALL myload_make(@tables, @keys);
