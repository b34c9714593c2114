"""psycopg 3 at the PostgreSQL door over SQLite: what a notebook does with it."""
import datetime
import decimal
import sys
import threading

import psycopg

with psycopg.connect(sys.argv[1] + " sslmode=require", autocommit=True) as c:
    assert c.info.pgconn.ssl_in_use and c.info.server_version == 150000
    notices = []
    c.add_notice_handler(lambda d: notices.append((d.severity, d.message_primary)))
    row = c.execute("SELECT x, y FROM points TO TRAIN xgboost.gbtree WITH train.num_boost_round=%s"
                    " LABEL y INTO by_psycopg3", (3,)).fetchone()
    assert row[0] == "by_psycopg3" and row[4:6] == (300, 3), row
    assert notices and all(severity == "NOTICE" for severity, _ in notices), notices

    columns = c.execute("SELECT column_name, data_type, is_nullable FROM information_schema.columns WHERE table_schema ="
                        " 'public' AND table_name = %s ORDER BY ordinal_position", ("points",)).fetchall()
    assert columns == [("id", "bigint", "NO"), ("x", "double precision", "YES"), ("y", "bigint", "YES")], columns
    assert c.execute("SELECT 'points'::regclass::oid = oid FROM pg_class WHERE relname = 'points'").fetchone()[0]
    # Parameters of each kind, and results in text and in binary.
    c.execute("CREATE TABLE kinds (i INTEGER, f REAL, b BOOLEAN, t TEXT, d DATE, ts TIMESTAMP,"
              " n NUMERIC(10, 2), raw BLOB)")
    row = (1, 1.5, True, "ä", datetime.date(2026, 1, 2), datetime.datetime(2026, 1, 2, 3, 4, 5),
           decimal.Decimal("12.25"), b"\x00\xff")
    c.execute("INSERT INTO kinds VALUES (%s, %s, %b, %s, %s, %s, %s, %s)", row)
    for binary in (False, True):
        cur = c.cursor(binary=binary)
        assert cur.execute("SELECT * FROM kinds").fetchone() == row, binary
        assert cur.execute("SELECT count(*), i + 1, avg(f), t || 'x', NULL FROM kinds"
                           ).fetchone() == (1, 2, 1.5, "äx", None)
    assert c.execute("SELECT i FROM kinds WHERE i = %s AND t = %s", (1, "ä")).fetchone() == (1,)
    assert c.execute("UPDATE kinds SET f = %s RETURNING f", (2.5,)).fetchall() == [(2.5,)]

    # Several statements in flight; ours in the middle.
    with c.pipeline():
        a = c.execute("SELECT 1")
        b = c.execute("SELECT x FROM points ORDER BY x LIMIT 2 TO PREDICT USING by_psycopg3")
        d = c.execute("SELECT 2")
        assert a.fetchall() == [(1,)] and len(b.fetchall()) == 2 and d.fetchall() == [(2,)]
    with c.cursor() as cur:
        cur.executemany("INSERT INTO kinds (i, t) VALUES (%s, %s)", [(i, "many") for i in range(500)])
    assert c.execute("SELECT count(*) FROM kinds WHERE t = 'many'").fetchone() == (500,)
    try:
        with c.pipeline():
            c.execute("DELETE FROM kinds")
            c.execute("SELECT nope FROM kinds")
        raise AssertionError("no error")
    except psycopg.errors.UndefinedColumn as error:
        assert error.diag.statement_position == "8", error.diag.statement_position
    assert c.execute("SELECT count(*) FROM kinds").fetchone() == (501,), "a pipeline is one transaction"

    for _ in range(8):
        models = c.execute("SHOW MODELS", prepare=True).fetchall()
        assert c.execute("SELECT x FROM points WHERE x = %s", (3,), prepare=True).fetchone() == (3.0,)
    assert models[0][0] == "by_psycopg3", models
    cur = c.execute("SELECT x FROM points WHERE x < %s ORDER BY x TO PREDICT USING by_psycopg3", (4,))
    assert [r[0] for r in cur.fetchall()] == [1.0, 2.0, 3.0]
    try:
        c.execute("SELECT * FROM points LABEL yy INTO m")
        raise AssertionError("no error")
    except psycopg.errors.UndefinedColumn as error:
        assert error.diag.statement_position == "28", error.diag.statement_position
        assert "'y'" in error.diag.message_hint, error.diag.message_hint

    # Transactions in transactions; an error fails the inner one only.
    with c.transaction():
        c.execute("INSERT INTO kinds (i) VALUES (-1)")
        try:
            with c.transaction():
                c.execute("INSERT INTO kinds (i) VALUES (-2)")
                c.execute("SELECT nope")
        except psycopg.errors.UndefinedColumn:
            pass
    assert c.execute("SELECT i FROM kinds WHERE i < 0").fetchall() == [(-1,)]
    for sql, error in (("INSERT INTO points (id) VALUES (1)", psycopg.errors.UniqueViolation),
                       ("INSERT INTO needs VALUES (NULL)", psycopg.errors.NotNullViolation),
                       ("INSERT INTO refers VALUES (777)", psycopg.errors.ForeignKeyViolation),
                       ("INSERT INTO refers VALUES (-1)", psycopg.errors.CheckViolation),
                       ("SELEC 1", psycopg.errors.SyntaxError)):
        try:
            c.execute(sql)
            raise AssertionError(sql)
        except error:
            pass

    with c.cursor() as cur:
        with cur.copy("COPY (SELECT x FROM points ORDER BY x LIMIT 3) TO STDOUT") as copy:
            assert b"".join(bytes(part) for part in copy) == b"1\n2\n3\n"
        with cur.copy("COPY kinds (i, t) FROM STDIN") as copy:
            for i in range(1000):
                copy.write_row((7000 + i, "copied\t"))
        assert cur.execute("SELECT count(*) FROM kinds WHERE t = 'copied\t'").fetchone() == (1000,)
    with c.transaction(), c.cursor(name="over_ours") as cur:
        cur.execute("SELECT x FROM points WHERE x <= %s ORDER BY x TO PREDICT USING by_psycopg3",
                    (7,))
        assert [r[0] for r in cur.fetchmany(3)] == [1.0, 2.0, 3.0]
        assert len(cur.fetchall()) == 4
    c.execute("PREPARE score (int) AS SELECT x FROM points WHERE x <= $1 ORDER BY x"
              " TO PREDICT USING by_psycopg3")
    assert len(c.execute("EXECUTE score(2 + 3)").fetchall()) == 5
    c.execute("DEALLOCATE score")

    # Two sessions on one file: one waits for the other's lock, without a thread.
    with psycopg.connect(sys.argv[1]) as other:
        other.execute("INSERT INTO kinds (i) VALUES (-5)")
        threading.Timer(0.5, other.commit).start()
        c.execute("INSERT INTO kinds (i) VALUES (-6)")
        assert c.execute("SELECT count(*) FROM kinds WHERE i < -4").fetchone() == (2,)

    threading.Timer(1.5, c.cancel).start()
    try:
        c.execute("SELECT x, y FROM points TO TRAIN DNNClassifier WITH model.hidden_units=[8],"
                  " train.epoch=100000 LABEL y INTO m")
        raise AssertionError("it was not cancelled")
    except psycopg.errors.QueryCanceled:
        pass
    assert c.execute("SELECT 1").fetchone() == (1,)
print("ok")
