#!/usr/bin/python3
"""PREDICT of a million rows into a new table, beside CREATE TABLE AS of the same rows, interleaved:
seconds, and processor time of Sluice and of the server, which depend less on what else runs. Prints
the ratio beside its goal. Further programs are compared as --also PATH. Usage: predict_bench.py
[--rows N] [--rounds N] [--model TYPE] [--also PATH]...
"""
import argparse
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import postgres
from measure import measure

SLUICE = os.environ.get("SLUICE", os.path.join(HERE, "../build/release/server/sluice"))
GOAL = 1.6
TICKS = os.sysconf("SC_CLK_TCK")


def ask(url, *statements):
    command = ["psql", url, "-qAt"]
    for sql in statements:
        command += ["-c", sql]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def ended_children(pid):
    """Processor seconds of the back ends of the server `pid` that have ended."""
    with open(f"/proc/{pid}/stat") as status:
        fields = status.read().rsplit(")", 1)[1].split()
    return (int(fields[13]) + int(fields[14])) / TICKS


def measure_both(server, command):
    """Seconds, and processor seconds of the command and of the back ends that served it."""
    before = ended_children(server)
    seconds, client = measure(command)
    time.sleep(0.2)  # the back ends end after their client
    return seconds, client, ended_children(server) - before


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--model", default="DNNClassifier WITH model.hidden_units=[64, 32],")
    parser.add_argument("--also", action="append", default=[])
    options = parser.parse_args()
    host, port = postgres.start()
    url = f"postgresql://postgres@{host}:{port}/postgres"
    subprocess.run([SLUICE, "sample", "census", "--rows", str(options.rows), "--into", url,
                    "--table", "census"], check=True, stdout=subprocess.DEVNULL)
    ask(url, "VACUUM ANALYZE census")
    folder = ask(url, "SHOW data_directory")
    with open(f"{folder}/postmaster.pid") as lines:
        server = int(lines.readline())
    train = (f"SELECT * FROM census TO TRAIN {options.model} train.epoch=1 LABEL income "
             "INTO predict_bench")
    predict = "SELECT * FROM census TO PREDICT scored.income USING predict_bench"
    subprocess.run([SLUICE, "sql", "--source", url, "-c", train], check=True, capture_output=True)
    kinds = {path: ("scored", [path, "sql", "--source", url, "-c", predict])
             for path in [SLUICE, *options.also]}
    kinds["CREATE TABLE AS"] = (
        "copied", ["psql", url, "-qc", "CREATE TABLE copied AS SELECT * FROM census"])
    figures = {}
    for _ in range(options.rounds):
        for name, (table, command) in kinds.items():
            ask(url, f"DROP TABLE IF EXISTS {table}", "CHECKPOINT")
            figures.setdefault(name, []).append(measure_both(server, command))
    print(f"{options.rows:,} rows x 15 columns, medians of {options.rounds} interleaved rounds\n")
    print(f"{'':40} {'wall s':>8} {'client s':>9} {'server s':>9} {'ratio':>6} {'goal':>5}")
    floor = statistics.median(one[0] for one in figures["CREATE TABLE AS"])
    for name, rounds in figures.items():
        wall, client, back_ends = (statistics.median(one) for one in zip(*rounds))
        ratio = f"{wall / floor:6.2f} {GOAL:5.1f}" if name != "CREATE TABLE AS" else ""
        print(f"{name[-40:]:40} {wall:8.2f} {client:9.2f} {back_ends:9.2f} {ratio}")


if __name__ == "__main__":
    main()
