#!/usr/bin/python3
"""Boosted trees on workers beside the same training in one process with as many threads.

From statement to committed model over census-like rows in SQLite, in turn; medians of wall-clock and
of processor seconds of all processes. Every model must be the same, to the last bit.
Usage: trees_workers_bench.py [--rows N] [--runs N] [--workers N]
"""
import argparse
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from measure import measure

SLUICE = os.environ.get("SLUICE", os.path.join(HERE, "../build/release/server/sluice"))
GOAL = 1.3  # times the one process's seconds


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    places = {"one process": f"engine.strategy='local', nthread={options.workers}",
              "workers": f"engine.num_workers={options.workers}, engine.max_workers={options.workers}"}
    took = {place: ([], []) for place in places}
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "census.db")
        subprocess.run([SLUICE, "sample", "census", "--rows", str(options.rows), "--into",
                        f"sqlite:{file}", "--table", "census"], check=True, stdout=subprocess.DEVNULL)
        for run in range(options.runs):
            for place, attributes in places.items():
                sql = (f"SELECT * FROM census TO TRAIN xgboost.gbtree WITH train.num_boost_round=100, max_depth=6, "
                       f"{attributes} LABEL income INTO m")
                seconds, processor = measure([SLUICE, "sql", "--source", f"sqlite:{file}", "-c", sql])
                took[place][0].append(seconds)
                took[place][1].append(processor)
        with sqlite3.connect(file) as database:
            models = {sha for sha, in database.execute("SELECT weights_sha256 FROM sluice_model_versions")}
        if len(models) != 1:
            sys.exit(f"{len(models)} models instead of one")
    print(f"{options.rows:,} rows, 100 rounds of depth 6, {options.workers} threads or workers; "
          f"medians of {options.runs}; one model")
    one = [statistics.median(values) for values in took["one process"]]
    many = [statistics.median(values) for values in took["workers"]]
    for what, here, there in zip(("wall-clock", "processor"), one, many):
        print(f"{what:10} {here:7.2f} s in one process, {there:7.2f} s on workers: "
              f"{there / here:.2f} (goal {GOAL})")


if __name__ == "__main__":
    main()
