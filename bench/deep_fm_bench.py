#!/usr/bin/python3
"""DeepFM over clicks in PostgreSQL, statement to committed model, beside pandas.read_sql + PyTorch.

One epoch each; the peer in batches of 4,096 with SparseAdam, its faster way. The goal: 12 times as fast,
at an AUC on the same held-out rows of at most 0.003 less. Ends with 1 when it is missed. Needs
python3-torch, python3-pandas, python3-psycopg2, python3-sqlalchemy.
Usage: deep_fm_bench.py [--rows N] [--rounds N] [--attributes "model.k=8, ..."]
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import postgres

SLUICE = os.environ.get("SLUICE", os.path.join(HERE, "../build/release/server/sluice"))
GOAL, NEAR = 12, 0.003


def run(url, sql):
    done = subprocess.run([SLUICE, "sql", "--source", url, "--format", "json", "-c", sql], capture_output=True,
                          text=True)
    if done.returncode != 0:
        sys.exit(f"{sql}\n{done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.strip()]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--peer-batch", type=int, default=4096)
    parser.add_argument("--attributes", default="train.batch_size=512")
    options = parser.parse_args()
    host, port = postgres.start()
    url = f"postgresql://postgres@{host}:{port}/postgres"
    # One seed: it says what is true, too.
    subprocess.run([SLUICE, "sample", "clicks", "--rows", str(options.rows * 21 // 20), "--seed", "1", "--into", url,
                    "--table", "all_clicks"], check=True, stdout=subprocess.DEVNULL)
    for table, rows in (("clicks", f"<= {options.rows}"), ("clicks_test", f"> {options.rows}")):
        run(url, f"CREATE TABLE {table} AS SELECT label, {', '.join(f'i{i}' for i in range(1, 14))}, "
                 f"{', '.join(f'c{i}' for i in range(1, 27))} FROM "
                 f"(SELECT *, row_number() OVER () AS place FROM all_clicks) AS numbered WHERE place {rows}")
        run(url, f"VACUUM ANALYZE {table}")
    run(url, "DROP TABLE all_clicks")
    train = ("SELECT * FROM clicks TO TRAIN DeepFMClassifier WITH model.k=8, model.hidden_units=[64,32], "
             f"train.epoch=1, split.kind=none, engine.seed=1, {options.attributes} LABEL label INTO bench_deep_fm")
    ours, peers = [], []
    for _ in range(options.rounds):
        start = time.perf_counter()
        run(url, train)
        ours.append(time.perf_counter() - start)
        done = subprocess.run(["/usr/bin/python3", f"{HERE}/peers/deep_fm_peer.py", host, str(port), "postgres",
                               "clicks", "clicks_test", str(options.peer_batch)], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(done.stderr)
        peers.append(json.loads(done.stdout))
    auc = run(url, "SELECT * FROM clicks_test TO EVALUATE bench_deep_fm LABEL label")[0]["auc"]
    seconds, script = statistics.median(ours), statistics.median(p["seconds"] for p in peers)
    print(f"{options.rows:,} rows x 39 columns, 1 epoch, medians of {options.rounds}")
    print(f"{'sluice':22} {seconds:8.2f} s  AUC {auc:.4f}")
    print(f"{'read_sql + torch':22} {script:8.2f} s  AUC {peers[0]['auc']:.4f}  {script / seconds:.1f}x (goal {GOAL}x)")
    sys.exit(0 if script / seconds >= GOAL and auc >= peers[0]["auc"] - NEAR else 1)


main()
