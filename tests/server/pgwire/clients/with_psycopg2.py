"""psycopg2 and pandas at the PostgreSQL door; every statement is inside a transaction."""
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
    cur.execute("SELECT * FROM points LABEL y INTO by_psycopg2")
    assert cur.fetchone()[4] == 300
    cur.execute("SELECT x FROM points WHERE x < %s TO PREDICT USING by_psycopg2", (4,))
    assert cur.rowcount == 3 and len(cur.fetchall()) == 3
assert any("the model stays" in notice for notice in c.notices), c.notices
c.rollback()  # as SQLAlchemy and pandas always do: the model stays
frame = pandas.read_sql("SELECT x FROM points ORDER BY x LIMIT 4 TO PREDICT USING by_psycopg2", c)
assert list(frame.columns) == ["x", "y"] and len(frame) == 4, frame
assert len(pandas.read_sql("SHOW JOBS", c)) >= 1
nodes = pandas.read_sql("SHOW CLUSTER", c)
assert list(nodes["node"]) == ["this machine"] and nodes["free_cpu"][0] > 0, nodes
try:
    with c.cursor() as cur:
        cur.execute("SELECT * FROM nope LABEL y INTO m")
    raise AssertionError("no error")
except psycopg2.errors.UndefinedTable as error:
    assert error.pgcode == "42P01" and 'LINE 1' in error.pgerror, error.pgerror
try:
    with c.cursor() as cur:
        cur.execute("SHOW MODELS")
    raise AssertionError("no error")
except psycopg2.errors.InFailedSqlTransaction:
    c.rollback()
with c.cursor(name="server_side") as cur:
    cur.execute("SELECT generate_series(1, 5)")
    assert len(cur.fetchall()) == 5
with c.cursor() as cur:
    psycopg2.extras.execute_values(cur, "INSERT INTO points (x, y) VALUES %s",
                                   [(1000 + i, i % 2) for i in range(3)])
c.rollback()
threading.Timer(1.5, c.cancel).start()
try:
    with c.cursor() as cur:
        cur.execute("SELECT * FROM points TO TRAIN DNNClassifier WITH model.hidden_units=[8], train.epoch=100000"
                    " LABEL y INTO m")
    raise AssertionError("it was not cancelled")
except psycopg2.errors.QueryCanceled:
    c.rollback()
with c.cursor(name="ours") as cur:
    cur.itersize = 128
    cur.execute("SELECT x FROM points TO PREDICT USING by_psycopg2")
    assert len(list(cur)) == 300
c.rollback()
print("ok")
