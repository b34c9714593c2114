"""psycopg2 and pandas at the PostgreSQL door over SQLite; every statement is inside a transaction."""
import datetime
import decimal
import io
import sys
import threading
import warnings

import pandas
import psycopg2
import psycopg2.extras

warnings.simplefilter("ignore")
c = psycopg2.connect(sys.argv[1] + " sslmode=require")
assert c.info.ssl_in_use
with c.cursor() as cur:
    # What clients send as PostgreSQL's literals.
    cur.execute("CREATE TABLE kinds (i INTEGER PRIMARY KEY, f REAL, b BOOLEAN, t TEXT, d DATE,"
                " ts TIMESTAMP, n NUMERIC, raw BLOB)")
    row = (1, 1.5, True, "it's \\ ä", datetime.date(2026, 1, 2),
           datetime.datetime(2026, 1, 2, 3, 4, 5), decimal.Decimal("12.25"), b"\x00\xff")
    cur.execute("INSERT INTO kinds VALUES (%s, %s, %s, %s, %s, %s, %s, %s)", row)
    assert cur.rowcount == 1
    cur.execute("SELECT * FROM kinds")
    got = cur.fetchone()
    assert got[:7] == row[:7] and bytes(got[7]) == row[7], got
    cur.execute("SELECT count(*), sum(i), avg(f), max(t), NULL FROM kinds")
    assert cur.fetchone() == (1, 1, 1.5, row[3], None)
    cur.execute("INSERT INTO kinds (i, f, b, d) VALUES (2, 'no number', 7, 'no date')")
    cur.execute("SELECT f, b, d FROM kinds WHERE i = 2")  # is shown as it is
    assert cur.fetchone() == ("no number", 7, "no date")
c.rollback()
with c.cursor() as cur:
    cur.execute("SELECT count(*) FROM pg_class WHERE relname = 'kinds'")
    assert cur.fetchone() == (0,)
    cur.execute("SELECT x, y FROM points TO TRAIN xgboost.gbtree WITH train.num_boost_round=3"
                " LABEL y INTO by_psycopg2")
    assert cur.fetchone()[4] == 300
    cur.execute("SELECT x FROM points WHERE x < %s TO PREDICT USING by_psycopg2", (4,))
    assert cur.rowcount == 3 and len(cur.fetchall()) == 3
assert any("the model stays" in notice for notice in c.notices), c.notices
c.rollback()  # as SQLAlchemy and pandas always do: the model stays
frame = pandas.read_sql("SELECT x FROM points ORDER BY x LIMIT 4 TO PREDICT USING by_psycopg2", c)
assert list(frame.columns) == ["x", "y"] and len(frame) == 4, frame
assert frame["x"].dtype == "float64", frame.dtypes
assert len(pandas.read_sql("SHOW JOBS", c)) >= 1
nodes = pandas.read_sql("SHOW CLUSTER", c)
assert list(nodes["node"]) == ["this machine"] and nodes["free_cpu"][0] > 0, nodes
try:
    with c.cursor() as cur:
        cur.execute("SELECT * FROM nope")
    raise AssertionError("no error")
except psycopg2.errors.UndefinedTable as error:
    assert error.pgcode == "42P01", error.pgerror
try:
    with c.cursor() as cur:
        cur.execute("SELECT 1")
    raise AssertionError("no error")
except psycopg2.errors.InFailedSqlTransaction:
    c.rollback()
# What the session alone sees is refused, and not left out.
with c.cursor() as cur:
    cur.execute("DELETE FROM points WHERE x > 100")
    try:
        cur.execute("SELECT x, y FROM points LABEL y INTO m")
        raise AssertionError("no error")
    except psycopg2.Error as error:
        assert error.pgcode == "25001" and "COMMIT" in error.pgerror, error.pgerror
c.rollback()
with c.cursor() as cur:
    for sql in ("ATTACH 'other.db' AS o", "DELETE FROM sluice_models", "PRAGMA writable_schema = 1",
                "VACUUM INTO 'copy.db'", "SELECT load_extension('x')"):
        c.rollback()
        c.autocommit = True
        try:
            cur.execute(sql)
            raise AssertionError(sql)
        except psycopg2.errors.InsufficientPrivilege:
            pass
        c.autocommit = False
c.rollback()
with c.cursor(name="server_side") as cur:
    cur.itersize = 7
    cur.execute("SELECT x FROM points ORDER BY x")
    assert [row[0] for row in cur] == [float(i) for i in range(1, 301)]
c.rollback()
with c.cursor() as cur:
    psycopg2.extras.execute_values(cur, "INSERT INTO points (x, y) VALUES %s",
                                   [(1000 + i, i % 2) for i in range(3)])
    cur.copy_expert("COPY points (x, y) FROM STDIN WITH (FORMAT csv)", io.StringIO("7,1\n8,\n"))
    out = io.StringIO()
    cur.copy_expert("COPY (SELECT x, y FROM points WHERE y IS NULL) TO STDOUT", out)
    assert out.getvalue() == "8\t\\N\n", out.getvalue()
c.rollback()
for sql in ("SELECT x, y FROM points TO TRAIN DNNClassifier WITH model.hidden_units=[8],"
            " train.epoch=100000 LABEL y INTO m",
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"):
    threading.Timer(1.5, c.cancel).start()
    try:
        with c.cursor() as cur:
            cur.execute(sql)
        raise AssertionError("it was not cancelled")
    except psycopg2.errors.QueryCanceled:
        c.rollback()
with c.cursor(name="ours") as cur:
    cur.itersize = 128
    cur.execute("SELECT x FROM points TO PREDICT USING by_psycopg2")
    assert len(list(cur)) == 300
c.rollback()
print("ok")
