#!/usr/bin/python3
"""Linear, FM, DNN, DeepFM and DCN over the same clicks: AUC on held-out rows beside what was reached
before, and the processor's time of each training beside the DNN's in the same round.

One epoch in batches of 512 in one process, SQLite, the rounds interleaved, medians. Ends with 1 when a
figure is missed. Usage: families_bench.py FOLDER [--rows N] [--rounds N] [--only NAME ...]
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SLUICE = os.environ.get("SLUICE", os.path.join(HERE, "../build/release/server/sluice"))
HIDDEN = "model.hidden_units=[64,32]"
# Of each: the type, its attributes, the AUC that a prototype reached, the most time beside the DNN.
MODELS = {
    "linear": ("LinearClassifier", "", 0.6663, None),
    "dnn": ("DNNClassifier", HIDDEN, 0.6826, None),
    "fm": ("FMClassifier", "model.k=16", 0.6673, None),
    "deepfm": ("DeepFMClassifier", "model.k=16, " + HIDDEN, 0.6845, 1.3),
    "dcn": ("DCNClassifier", "model.k=16, model.cross_layers=2, " + HIDDEN, 0.6851, None),
}


def processor_seconds():
    """Of all children so far: hardly depends on what else runs."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def run(arguments):
    done = subprocess.run([SLUICE, *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return done.stdout


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", choices=list(MODELS))
    options = parser.parse_args()
    database = os.path.join(options.folder, f"clicks_{options.rows}.db")
    url = "sqlite:" + database
    if not os.path.exists(database):
        # One seed: it says what is true, too.
        run(["sample", "clicks", "--rows", str(options.rows * 6 // 5), "--seed", "1", "--into", url,
             "--table", "all_clicks"])
        for table, rows in (("clicks", f"rowid <= {options.rows}"),
                            ("clicks_test", f"rowid > {options.rows}")):
            run(["sql", "--source", url, "-c",
                 f"CREATE TABLE {table} AS SELECT * FROM all_clicks WHERE {rows}"])
    chosen = {name: MODELS[name] for name in options.only or MODELS}
    seconds = {name: [] for name in chosen}
    auc = {}
    for _ in range(options.rounds):
        for name, (kind, attributes, _, _) in chosen.items():
            more = ", " + attributes if attributes else ""
            start = processor_seconds()
            run(["sql", "--source", url, "-c",
                 f"SELECT * FROM clicks TO TRAIN {kind} WITH train.epoch=1, train.batch_size=512, "
                 f"engine.strategy=local, engine.seed=1, split.kind=none{more} LABEL label INTO b_{name}"])
            seconds[name].append(processor_seconds() - start)
            rows = run(["sql", "--source", url, "--format", "json", "-c",
                        f"SELECT * FROM clicks_test TO EVALUATE b_{name} LABEL label"])
            auc[name] = json.loads(rows.splitlines()[0])["auc"]
    missed = False
    print(f"{options.rows:,} rows, 1 epoch, batches of 512, medians of {options.rounds} rounds")
    print(f"{'model':8} {'AUC':>8} {'before':>8} {'CPU s':>8} {'of DNN':>8} {'most':>6}")
    for name, (_, _, before, most) in chosen.items():
        # In each round by the DNN of that round: what else the machine does falls out.
        ratio = (statistics.median(a / b for a, b in zip(seconds[name], seconds["dnn"]))
                 if "dnn" in chosen else None)
        low = options.rows == 300_000 and round(auc[name], 4) < before
        slow = most is not None and ratio is not None and ratio > most
        missed = missed or low or slow
        print(f"{name:8} {auc[name]:8.4f} {before:8.4f} {statistics.median(seconds[name]):8.2f} "
              f"{ratio if ratio is not None else float('nan'):8.2f} {most or '':>6}"
              f"{'  AUC missed' if low else ''}{'  time missed' if slow else ''}", flush=True)
    sys.exit(1 if missed else 0)


main()
