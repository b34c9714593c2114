#!/usr/bin/python3
"""PREDICT of one row through the PostgreSQL door, beside the same SELECT without PREDICT through the
same door: milliseconds, and processor time of gateway and server for one. Usage: one_row_bench.py
[--rows N] [--times N]
"""
import argparse
import os
import statistics
import subprocess
import sys
import time

import psycopg2

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import gateway
import postgres

SLUICE = os.environ.get("SLUICE", gateway.BINARY)
GOAL_MS = 3.0
TICKS = os.sysconf("SC_CLK_TCK")


def connect(url):
    connection = psycopg2.connect(url)
    connection.autocommit = True
    return connection.cursor()


def processor_seconds(pids):
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat") as status:
            fields = status.read().rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / TICKS


def back_ends(cursor):
    cursor.execute("SELECT pid FROM pg_stat_activity WHERE datname IS NOT NULL")
    return [row[0] for row in cursor.fetchall()]


def measure(session, watcher, process, times, rows, tail):
    """The median of the milliseconds, and the processor milliseconds of one."""
    taken = []
    pids = [process, *back_ends(watcher)]
    before = processor_seconds(pids)
    for i in range(times):
        begun = time.perf_counter()
        session.execute(f"SELECT * FROM census_rows WHERE id = {i % rows + 1} {tail}")
        assert len(session.fetchall()) == 1
        taken.append(time.perf_counter() - begun)
    used = processor_seconds(pids) - before
    return statistics.median(taken) * 1e3, used / times * 1e3


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=300)
    options = parser.parse_args()
    host, port = postgres.start()
    url = f"postgresql://postgres@{host}:{port}/postgres"
    subprocess.run([SLUICE, "sample", "census", "--rows", str(options.rows), "--into", url,
                    "--table", "census"], check=True, stdout=subprocess.DEVNULL)
    watcher = connect(url)
    watcher.execute("CREATE TABLE census_rows AS SELECT row_number() OVER () AS id, * FROM census")
    watcher.execute("ALTER TABLE census_rows ADD PRIMARY KEY (id)")
    watcher.execute("ANALYZE census_rows")
    process, door = gateway.start(url, "--auth", "trust")
    session = connect(f"postgresql://postgres@127.0.0.1:{door}/postgres?sslmode=disable")
    print(f"{options.rows:,} rows, {options.times} statements of one row each\n")
    print(f"{'':32} {'p50 ms':>8} {'goal':>5} {'processor ms':>13} {'of the SELECT':>14}")
    plain, used = measure(session, watcher, process.pid, options.times, options.rows, "")
    print(f"{'SELECT':32} {plain:8.2f} {'':5} {used:13.2f}")
    for kind in ("LinearClassifier", "DNNClassifier", "xgboost.gbtree"):
        session.execute(f"SELECT * FROM census_rows TO TRAIN {kind} LABEL income INTO m")
        tail = "TO PREDICT USING m"
        measure(session, watcher, process.pid, 5, options.rows, tail)  # the model is loaded then
        taken, used = measure(session, watcher, process.pid, options.times, options.rows, tail)
        print(f"{'PREDICT, ' + kind:32} {taken:8.2f} {GOAL_MS:5.1f} {used:13.2f} {taken / plain:13.1f}x")


main()
