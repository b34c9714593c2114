#!/usr/bin/python3
"""From statement to committed model over census-like rows in PostgreSQL, compared with common scripts.

For each model: Sluice and the peer's script (pandas.read_sql, and its faster COPY form) in the same
run, interleaved; wall-clock and CPU seconds, peak memory (the largest resident set of the process
that holds shell, gateway and training, and of the peer's), AUC on the same held-out table, and the
ratios of time and memory next to the goals. Needs python3-sklearn, python3-torch, python3-xgboost, python3-pandas, python3-psycopg2,
python3-sqlalchemy. Usage: train_bench.py [--rows N] [--rounds N] [--only linear|dnn|xgboost]
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import postgres

SLUICE = os.environ.get("SLUICE", os.path.join(HERE, "../build/release/server/sluice"))
# Goals: how many times the peer's wall-clock seconds; what part of the peer's memory.
MODELS = {
    "linear": ("LinearClassifier", "train.epoch=1", "sgd", {"read_sql": 12, "copy": 7}, None),
    "dnn": ("DNNClassifier", "model.hidden_units=[64,32], train.batch_size=256, train.epoch=1",
            "torch", {"read_sql": 15, "copy": 12}, None),
    "xgboost": ("xgboost.gbtree", "train.num_boost_round=100, max_depth=6, eta=0.1",
                "xgboost", {"read_sql": 2.5, "copy": None}, 0.5),
}


def shell(url, sql):
    """Wall-clock and CPU seconds, peak megabytes, and the rows that the statement returns."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        start = time.perf_counter()
        child = subprocess.Popen([SLUICE, "sql", "--source", url, "--format", "json", "-c", sql],
                                 stdout=out, stderr=errors)
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - start
        out.seek(0)
        errors.seek(0)
        if status != 0:
            sys.exit(f"{sql}\n{errors.read()}")
        rows = [json.loads(line) for line in out if line.strip()]
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=sorted(MODELS))
    options = parser.parse_args()
    host, port = postgres.start()
    url = f"postgresql://postgres@{host}:{port}/postgres"
    for table, rows, seed in (("census_train", options.rows, 1), ("census_test", options.rows // 10, 2)):
        subprocess.run([SLUICE, "sample", "census", "--rows", str(rows), "--seed", str(seed), "--into",
                        url, "--table", table], check=True, stdout=subprocess.DEVNULL)
        shell(url, f"VACUUM ANALYZE {table}")
    print(f"{options.rows:,} rows x 14 columns, medians of {options.rounds} interleaved rounds\n")
    print(f"{'model':10} {'who':22} {'wall s':>8} {'cpu s':>8} {'peak MB':>8} {'AUC':>8} {'ratio':>7} "
          f"{'goal':>6} {'memory':>7} {'goal':>5}")
    for name, (model, attributes, peer, goals, memory_goal) in MODELS.items():
        if options.only and name != options.only:
            continue
        train = f"SELECT * FROM census_train TO TRAIN {model} WITH {attributes} LABEL income INTO bench_{name}"
        ours, peers = [], {form: [] for form in goals}
        for _ in range(options.rounds):
            ours.append(shell(url, train)[:3])
            for form in goals:
                out = subprocess.run([sys.executable, f"{HERE}/peers/train_peer.py", peer, form, host,
                                      str(port), "postgres", "census_train", "census_test"],
                                     capture_output=True, text=True)
                if out.returncode != 0:
                    sys.exit(out.stderr)
                peers[form].append(json.loads(out.stdout))
        rows = shell(url, f"SELECT * FROM census_test TO EVALUATE bench_{name} LABEL income")[-1]
        wall, cpu, peak = (statistics.median(figures) for figures in zip(*ours))
        print(f"{name:10} {'sluice':22} {wall:8.2f} {cpu:8.2f} {peak:8.1f} {rows[0]['auc']:8.4f}")
        for form, results in peers.items():
            peer_wall = statistics.median(r["seconds"] for r in results)
            peer_cpu = statistics.median(r["cpu"] for r in results)
            peer_peak = statistics.median(r["rss_mb"] for r in results)
            goal = f"{goals[form]}x" if goals[form] else ""
            print(f"{name:10} {form + ' + ' + peer:22} {peer_wall:8.2f} {peer_cpu:8.2f} {peer_peak:8.1f} "
                  f"{results[0]['auc']:8.4f} {peer_wall / wall:6.1f}x {goal:>6} {peak / peer_peak:7.2f} "
                  f"{memory_goal or '':>5}")
        print(flush=True)


main()
