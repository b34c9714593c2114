#!/usr/bin/python3
"""A DNN over a million rows of PostgreSQL in one process, with one worker and one server, and with two
workers by all-reduce, interleaved: seconds from statement to committed model, and processor time of all
processes of Sluice, which depends less on what else runs. Prints the ratios to one process beside their
goals. Further programs are compared as --also PATH. Usage: fleet_bench.py [--rows N] [--rounds N]
[--also PATH]...
"""
import argparse
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import postgres
from measure import measure

SLUICE = os.environ.get("SLUICE", os.path.join(HERE, "../build/release/server/sluice"))
ALONE = "in one process"
KINDS = {  # attributes; goals of the ratios of wall and processor time
    ALONE: ("engine.strategy=local", "", ""),
    "one worker, one server": ("engine.num_workers=1, engine.max_workers=1, engine.num_ps=1", "1.3", "1.4"),
    "two workers by all-reduce": ("engine.num_workers=2, engine.max_workers=2, engine.strategy=allreduce", "1.2", ""),
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--also", action="append", default=[])
    options = parser.parse_args()
    host, port = postgres.start()
    url = f"postgresql://postgres@{host}:{port}/postgres"
    subprocess.run([SLUICE, "sample", "census", "--rows", str(options.rows), "--into", url,
                    "--table", "census"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["psql", url, "-qc", "VACUUM ANALYZE census"], check=True)
    figures = {}
    for _ in range(options.rounds):
        for program in [SLUICE, *options.also]:
            for kind, (attributes, _, _) in KINDS.items():
                train = (f"SELECT * FROM census TO TRAIN DNNClassifier WITH model.hidden_units=[64, 32], train.epoch=1, "
                         f"train.batch_size=256, {attributes} LABEL income INTO fleet_bench")
                seen = measure([program, "sql", "--source", url, "-c", train])
                figures.setdefault((program, kind), []).append(seen)
    print(f"{options.rows:,} rows x 14 columns, batches of 256, medians of {options.rounds} interleaved rounds\n")
    print(f"{'':26} {'wall s':>8} {'ratio':>6} {'goal':>5} {'CPU s':>8} {'ratio':>6} {'goal':>5}")
    medians = {key: [statistics.median(one) for one in zip(*rounds)] for key, rounds in figures.items()}
    for (program, kind), (wall, cpu) in medians.items():
        if kind == ALONE:
            print(program)
        alone = medians[program, ALONE]
        _, wall_goal, cpu_goal = KINDS[kind]
        print(f"{kind:26} {wall:8.2f} {wall / alone[0]:6.2f} {wall_goal:>5} {cpu:8.2f} {cpu / alone[1]:6.2f} {cpu_goal:>5}")


if __name__ == "__main__":
    main()
