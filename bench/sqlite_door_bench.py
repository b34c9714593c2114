#!/usr/bin/python3
"""The PostgreSQL door over SQLite compared with its peers, in one run: medians of 5, as ratios.

Needs psql, sqlite3, python3-psycopg, bench/list_rows and a PostgreSQL (bench/postgres.py). Door and peers take turns.
The peer of sqlite3's shell is list_rows, which prints rows as they come, in the shell's list mode; psql first keeps them all.
"""
import os
import shutil
import socket
import sqlite3
import statistics
import struct
import subprocess
import tempfile
import time

import psycopg

import gateway
import postgres

LIST_ROWS = "build/release/bench/list_rows"
ROUNDS = 5
TABLES = 200
ROWS = 100_000
INSERTS = 10_000
REPEATS = 20
IRIS = ("SELECT * FROM iris TO TRAIN xgboost.gbtree WITH objective='multi:softprob', num_class=3, train.num_boost_round=10"
        " LABEL class INTO m")


def schema():
    return "".join(f"CREATE TABLE t{i} (id INTEGER PRIMARY KEY, a TEXT NOT NULL, b DOUBLE PRECISION, c TIMESTAMP,"
                   f" d NUMERIC(10, 2), other INTEGER REFERENCES t{max(i - 1, 0)} (id)); CREATE INDEX t{i}_a ON t{i} (a);"
                   for i in range(TABLES))


def psql(port, database, script, quiet=True):
    """Seconds for a psql script, without those for starting and connecting psql."""
    def seconds(text):
        begin = time.monotonic()
        subprocess.run(["psql", "-XAt", "-h", "127.0.0.1", "-p", str(port), "-U", "postgres", "-d", database] +
                       (["-q"] if quiet else []), input=text, text=True, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return time.monotonic() - begin
    return max(seconds(script) - seconds("SELECT 1;\n"), 1e-6)


def shell(command):
    begin = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - begin


class Wire:
    """A client without costs of its own: its bytes are prepared, and it checks only the last answer."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        words = b"user\0postgres\0database\0bench\0\0"
        self.send(struct.pack("!ii", len(words) + 8, 196608) + words)

    def send(self, data):
        self.socket.sendall(data)
        tail = b""
        while not (len(tail) >= 6 and tail[-6:-1] == b"Z\0\0\0\5"):
            tail = (tail[-6:] + self.socket.recv(1 << 20))

    @staticmethod
    def message(kind, body):
        return kind + struct.pack("!i", len(body) + 4) + body

    def query(self, sql):
        self.send(self.message(b"Q", sql.encode() + b"\0"))


def bind_and_execute(values):
    body = b"\0s\0" + struct.pack("!hh", 0, len(values))
    for value in values:
        text = str(value).encode()
        body += struct.pack("!i", len(text)) + text
    return Wire.message(b"B", body + struct.pack("!h", 0)) + Wire.message(b"E", b"\0" + struct.pack("!i", 0))


def main():
    host, server_port = postgres.start()
    folder = tempfile.mkdtemp(prefix="sqlite_door_bench_")
    file = f"{folder}/bench.db"
    db = sqlite3.connect(file)
    db.executescript(schema())
    db.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, x REAL, name TEXT, n INTEGER)")
    db.executemany("INSERT INTO rows VALUES (?, ?, ?, ?)", ((i, i / 7, f"name {i}", i % 97) for i in range(ROWS)))
    db.execute("CREATE TABLE iris (sepal_length REAL, sepal_width REAL, petal_length REAL, petal_width REAL, class INTEGER)")
    db.executemany("INSERT INTO iris VALUES (?, ?, ?, ?, ?)",
                   ((4.6 + i % 50 / 30 + i // 50, 3 + i % 7 / 10, 1.4 + i // 50 * 2 + i % 5 / 10, 0.2 + i // 50, i // 50)
                    for i in range(150)))
    db.execute("CREATE TABLE written (id INTEGER, x REAL, name TEXT)")
    db.commit()
    db.close()
    _, port = gateway.start(f"sqlite:{file}", "--auth", "trust")
    server = psycopg.connect(f"host={host} port={server_port} user=postgres dbname=postgres", autocommit=True)
    server.execute("DROP DATABASE IF EXISTS sqlite_door_bench")
    server.execute("CREATE DATABASE sqlite_door_bench")
    with psycopg.connect(f"host={host} port={server_port} user=postgres dbname=sqlite_door_bench", autocommit=True) as c:
        for statement in schema().split(";")[:-1]:
            c.execute(statement)
        c.execute("CREATE TABLE written (id BIGINT, x DOUBLE PRECISION, name TEXT)")
        c.execute(f"CREATE TABLE rows AS SELECT i AS id, i / 7.0::float8 AS x, 'name ' || i AS name, i % 97 AS n"
                  f" FROM generate_series(0, {ROWS - 1}) i")
    values = [(i, i / 7, f"name {i}") for i in range(INSERTS)]
    pipeline = b"".join(bind_and_execute(row) for row in values) + Wire.message(b"S", b"")

    def describes(command):
        return [("door over SQLite", lambda: psql(port, "bench", command * REPEATS) / REPEATS),
                ("PostgreSQL", lambda: psql(server_port, "sqlite_door_bench", command * REPEATS) / REPEATS)]

    def insert_pipelined():
        wire = Wire(port)
        wire.send(Wire.message(b"P", b"s\0INSERT INTO written VALUES ($1, $2, $3)\0" + struct.pack("!hiii", 3, 20, 701, 25)) +
                  Wire.message(b"S", b""))
        begin = time.monotonic()
        wire.query("BEGIN")
        wire.send(pipeline)
        wire.query("COMMIT")
        return time.monotonic() - begin

    def insert_psycopg(at_port, database):
        with psycopg.connect(f"host=127.0.0.1 port={at_port} user=postgres dbname={database}") as c, c.cursor() as cur:
            begin = time.monotonic()
            cur.executemany("INSERT INTO written VALUES (%s, %s, %s)", values)
            c.commit()
            return time.monotonic() - begin

    def insert_sqlite3():
        c = sqlite3.connect(file)
        begin = time.monotonic()
        for row in values:
            c.execute("INSERT INTO written VALUES (?, ?, ?)", row)
        c.commit()
        seconds = time.monotonic() - begin
        c.close()
        return seconds

    def wire_select():
        wire = Wire(port)
        begin = time.monotonic()
        wire.query("SELECT * FROM rows")
        return time.monotonic() - begin

    as_psql = ["psql", "-XAtq", "-h", "127.0.0.1", "-p", str(port), "-U", "postgres", "-d", "bench"]
    measures = [
        (f"\\d of {TABLES} tables, ms", 1e3, describes("\\d\n")),
        (f"\\d t of {TABLES} tables, ms", 1e3, describes("\\d t100\n")),
        (f"SELECT of {ROWS:,} rows, ms", 1e3,
         [("list_rows at the door", lambda: shell([LIST_ROWS, f"host=127.0.0.1 port={port} user=postgres dbname=bench",
                                                   "SELECT * FROM rows"])),
          ("sqlite3's shell", lambda: shell(["sqlite3", file, "SELECT * FROM rows"])),
          ("list_rows at PostgreSQL",
           lambda: shell([LIST_ROWS, f"host=127.0.0.1 port={server_port} user=postgres dbname=sqlite_door_bench",
                          "SELECT * FROM rows"])),
          ("psql at the door", lambda: shell(as_psql + ["-c", "SELECT * FROM rows"])),
          ("psql at PostgreSQL", lambda: shell(["psql", "-XAtq", "-h", "127.0.0.1", "-p", str(server_port), "-U", "postgres",
                                                "-d", "sqlite_door_bench", "-c", "SELECT * FROM rows"])),
          ("the door's bytes alone", wire_select)]),
        ("iris TRAIN by psql, ms", 1e3, [("door over SQLite", lambda: psql(port, "bench", (IRIS + ";\n") * 5) / 5)]),
        (f"INSERT of {INSERTS:,} prepared rows, ms", 1e3,
         [("door, pipelined", insert_pipelined), ("python3's sqlite3", insert_sqlite3),
          ("door, psycopg executemany", lambda: insert_psycopg(port, "bench")),
          ("PostgreSQL, psycopg executemany", lambda: insert_psycopg(server_port, "sqlite_door_bench"))]),
    ]
    try:
        for what, unit, ways in measures:
            got = {name: [] for name, _ in ways}
            for name, measure in ways:
                measure()  # warm
            for _ in range(ROUNDS):
                for name, measure in ways:
                    got[name].append(measure())
            median = {name: statistics.median(seconds) * unit for name, seconds in got.items()}
            first, *others = median
            print(f"{what:42} {first} {median[first]:.1f}" +
                  "".join(f"; {name} {median[name]:.1f} ({median[first] / median[name]:.2f}x)" for name in others), flush=True)
    finally:
        server.execute("DROP DATABASE sqlite_door_bench")
        shutil.rmtree(folder, ignore_errors=True)


main()
