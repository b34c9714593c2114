"""psqlODBC, by pyodbc, at the PostgreSQL door, over either database."""
import sys
import threading

import pyodbc

LOGIN = dict(part.split("=") for part in sys.argv[1].split())
c = pyodbc.connect("Driver={{PostgreSQL Unicode}};Server={host};Port={port};Database={dbname};Uid={user};"
                   "SSLmode=require".format(**LOGIN), autocommit=True)
cur = c.cursor()
tables = [row.table_name for row in cur.tables(schema="public", tableType="TABLE")]
assert "points" in tables, tables
columns = {row.column_name: row.type_name for row in cur.columns(table="points", schema="public")}
assert columns["x"] == "float8", columns
row = cur.execute("SELECT x, y FROM points TO TRAIN xgboost.gbtree WITH train.num_boost_round=3"
                  " LABEL y INTO by_odbc").fetchone()
assert row.model == "by_odbc" and row.rows == 300, row
rows = cur.execute("SELECT x FROM points WHERE x <= ? ORDER BY x TO PREDICT USING by_odbc", 3.0).fetchall()
assert [r.x for r in rows] == [1.0, 2.0, 3.0], rows
cur.execute("CREATE TABLE by_odbc_kinds (i BIGINT PRIMARY KEY, f DOUBLE PRECISION, t TEXT)")
cur.executemany("INSERT INTO by_odbc_kinds VALUES (?, ?, ?)", [(1, 0.5, "ä"), (2, None, "b")])
assert [tuple(r) for r in cur.execute("SELECT * FROM by_odbc_kinds ORDER BY i")] == [(1, 0.5, "ä"), (2, None, "b")]
assert [r.column_name for r in cur.primaryKeys("by_odbc_kinds", schema="public")] == ["i"]
cur.execute("DROP TABLE by_odbc_kinds")
try:
    cur.execute("SELECT * FROM points LABEL yy INTO m")
    raise AssertionError("no error")
except pyodbc.Error as error:
    # psqlODBC says ODBC's own states, and the server's words.
    assert error.args[0] in ("42703", "42S22") and "no column 'yy'" in error.args[1], error.args
threading.Timer(1.0, cur.cancel).start()
try:
    cur.execute("SELECT * FROM points TO TRAIN DNNClassifier WITH model.hidden_units=[8], train.epoch=100000"
                " LABEL y INTO m")
    raise AssertionError("it was not cancelled")
except pyodbc.Error as error:
    assert error.args[0] == "57014", error.args
assert c.cursor().execute("SELECT 1").fetchone()[0] == 1
print("ok")
