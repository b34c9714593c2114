"""psycopg 3 at the PostgreSQL door: what a notebook does with it."""
import datetime
import decimal
import ipaddress
import sys
import threading

import psycopg
from psycopg.types.range import DateRange, NumericRange

conninfo = sys.argv[1]
with psycopg.connect(conninfo + " sslmode=require", autocommit=True) as c:
    assert c.info.pgconn.ssl_in_use
    notices = []
    c.add_notice_handler(lambda d: notices.append((d.severity, d.message_primary)))

    # TRAIN answers with a row, and says what it does.
    row = c.execute("SELECT * FROM points LABEL y INTO by_psycopg3").fetchone()
    assert row[0] == "by_psycopg3" and row[4] == 300, row
    assert any("was chosen" in text for _, text in notices), notices
    assert all(severity == "NOTICE" for severity, _ in notices), notices

    # Binary results, of every kind that a select brings along.
    cur = c.cursor(binary=True)
    cur.execute("SELECT x, 'ä'||x AS t, date '2026-01-02' AS d, x::int AS i, x > 1 AS b,"
                " x::numeric AS n, ARRAY[x] AS a, NULL::text AS z FROM points ORDER BY x LIMIT 2"
                " TO PREDICT USING by_psycopg3")
    first = cur.fetchone()
    assert first[:8] == (1.0, "ä1", datetime.date(2026, 1, 2), 1, False, decimal.Decimal(1), [1.0],
                         None), first
    assert [d.name for d in cur.description][-1] == "y"

    # Several statements in flight; ours in the middle.
    with c.pipeline():
        a = c.execute("SELECT 1")
        b = c.execute("SELECT x FROM points ORDER BY x LIMIT 2 TO PREDICT USING by_psycopg3")
        d = c.execute("SELECT 2")
        assert a.fetchall() == [(1,)] and len(b.fetchall()) == 2 and d.fetchall() == [(2,)]

    # A prepared statement of ours, run again and again.
    for _ in range(8):
        models = c.execute("SHOW MODELS", prepare=True).fetchall()
    assert [m[0] for m in models] == ["by_psycopg3"], models

    # Parameters.
    cur = c.execute("SELECT x FROM points WHERE x < %s ORDER BY x TO PREDICT USING by_psycopg3", (4,))
    assert [r[0] for r in cur.fetchall()] == [1.0, 2.0, 3.0]
    cur = c.execute("SELECT * FROM points WHERE 'it''s' = %s TO TRAIN xgboost.gbtree"
                    " WITH train.num_boost_round=%s LABEL y INTO with_parameters", ("it's", 3))
    assert cur.fetchone()[5] == 3

    # In binary, of types that the gateway does not know: the database says what they are.
    cur = c.execute("SELECT x FROM points WHERE x::numeric <@ %b AND %b = inet '10.0.0.1' AND"
                    " date '2026-05-05' <@ %b ORDER BY x TO PREDICT USING by_psycopg3",
                    (NumericRange(decimal.Decimal(2), decimal.Decimal(4)),
                     ipaddress.ip_address("10.0.0.1"),
                     DateRange(datetime.date(2026, 5, 1), datetime.date(2026, 6, 1))))
    assert [r[0] for r in cur.fetchall()] == [2.0, 3.0]

    # An error has its state, its place and what would be right.
    try:
        c.execute("SELECT * FROM points LABEL yy INTO m")
        raise AssertionError("no error")
    except psycopg.errors.UndefinedColumn as error:
        assert error.diag.statement_position == "28", error.diag.statement_position
        assert "'y'" in error.diag.message_hint, error.diag.message_hint
    assert c.execute("SELECT 1").fetchone() == (1,)

    # Inside a transaction: rows that nobody else sees yet, and a result that goes with it.
    try:
        with c.transaction():
            c.execute("CREATE TABLE fresh AS SELECT * FROM points LIMIT 50")
            assert c.execute("SELECT * FROM fresh LABEL y INTO of_fresh").fetchone()[4] == 50
            c.execute("SELECT x FROM fresh TO PREDICT fresh_scored.y USING of_fresh")
            assert c.execute("SELECT count(*) FROM fresh_scored").fetchone() == (50,)
            raise RuntimeError("undo")
    except RuntimeError:
        pass
    assert c.execute("SELECT to_regclass('fresh_scored')").fetchone() == (None,)
    assert len(c.execute("SHOW MODEL of_fresh").fetchall()) == 1

    # What belongs to the database is the database's.
    with c.cursor() as cur:
        with cur.copy("COPY (SELECT generate_series(1, 3)) TO STDOUT") as copy:
            assert b"".join(bytes(part) for part in copy) == b"1\n2\n3\n"
        cur.execute("CREATE TABLE copied (a int)")
        with cur.copy("COPY copied FROM STDIN") as copy:
            copy.write(b"1\n2\n")
        assert cur.execute("SELECT count(*) FROM copied").fetchone() == (2,)
    with c.transaction(), c.cursor(name="server_side") as cur:
        cur.execute("SELECT generate_series(1, 5)")
        assert len(cur.fetchall()) == 5
    with c.transaction(), c.cursor(name="over_ours") as cur:
        cur.execute("SELECT x FROM points WHERE x <= %s ORDER BY x TO PREDICT USING by_psycopg3",
                    (7,))
        assert [r[0] for r in cur.fetchmany(3)] == [1.0, 2.0, 3.0]
        assert len(cur.fetchall()) == 4

    # Prepared in SQL.
    c.execute("PREPARE score (int) AS SELECT x FROM points WHERE x <= $1 ORDER BY x"
              " TO PREDICT USING by_psycopg3")
    assert len(c.execute("EXECUTE score(2 + 3)").fetchall()) == 5
    c.execute("DEALLOCATE score")
    with c.pipeline():
        c.execute("PREPARE again (int) AS SELECT x FROM points WHERE x <= $1 TO PREDICT USING by_psycopg3")
        assert len(c.execute("EXECUTE again(3)").fetchall()) == 3

    # Ctrl-C in a notebook.
    threading.Timer(1.5, c.cancel).start()
    try:
        c.execute("SELECT * FROM points TO TRAIN DNNClassifier WITH model.hidden_units=[8], train.epoch=100000"
                  " LABEL y INTO m")
        raise AssertionError("it was not cancelled")
    except psycopg.errors.QueryCanceled:
        pass
    assert c.execute("SELECT 1").fetchone() == (1,)
print("ok")
