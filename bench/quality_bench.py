#!/usr/bin/python3
"""The quality of the models on real tables, compared with scikit-learn and XGBoost on the same rows, and
whether SQLite and PostgreSQL give the same figures.

Reads the tables of a folder laid out as: census/adult.{data,test}, TABLE/{train,test}.csv for iris,
housing, titanic, bank, letter, diamonds, bike and spam, which are loaded in the order of the files.
Networks on small tables vary far more between seeds than between libraries, so medians of five seeds
on each side are shown for them. "equal" means a difference of no more than one or two rows: 0.0005 of
an AUC or an accuracy, a ten-thousandth of an RMSE. The peers are set up as by a careful user:
standardised, one-hot, early stopping.
Then generated tables with a known truth (generated_tables.py), by the short form: the goal is to be
within 2 % of the figure that the truth itself reaches on the test rows.
--seconds: auto.seconds of the short form, for use while other programs take processor time.
The test rows of the small tables (iris, housing, titanic) are too few to tell: their named types are
judged on ten random fifths, every fifth for one training on each side, by the mean of the differences
with its standard error. "equal" then is within two standard errors.
--splits N: only these comparisons, on N random fifths each, and of the chosen models, too. With --before
PROGRAM, another build of sluice takes the place of the peers.
--markdown: the rows of the table in docs/benchmarks.md. The last line counts the goals that were missed.
Usage: quality_bench.py FOLDER [--sqlite-only] [--only TABLE] [--model TYPE] [--seconds N]
                               [--splits N [--before PROGRAM]] [--markdown]
"""
import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import generated_tables
import postgres
from quality_peers import LABELS, LEFT_OUT, have_peers, peer_figure
from quality_tables import generated, load, load_sqlite, tables

SLUICE = os.environ.get("SLUICE", os.path.join(HERE, "../build/release/server/sluice"))


def run(url, sql, program=None):
    done = subprocess.run([program or SLUICE, "sql", "--source", url, "--format", "json", "-c", sql],
                          capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{sql}\n{done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.strip()]


# name, train statement after the select, metric, goal (absolute; None: the peer's figure), peer
JOBS = [
    ("census", "TO TRAIN LinearClassifier LABEL income", "auc", 0.904, "logistic"),
    ("census", "TO TRAIN DNNClassifier WITH model.hidden_units=[64,32], train.epoch=5 LABEL income",
     "auc", 0.910, "mlp"),
    ("census", "TO TRAIN DNNLinearCombinedClassifier WITH model.dnn_hidden_units=[64,32], train.epoch=5 "
     "LABEL income", "auc", 0.910, None),
    ("census", "TO TRAIN xgboost.gbtree WITH train.num_boost_round=100, max_depth=6, eta=0.1 LABEL income",
     "auc", 0.926, "xgboost"),
    ("census", "LABEL income", "auc", 0.92, None),
    ("iris", "TO TRAIN DNNClassifier WITH model.hidden_units=[10,20], train.epoch=100 LABEL class",
     "accuracy", None, "mlp"),
    ("iris", "TO TRAIN LinearClassifier LABEL class", "accuracy", None, "logistic"),
    ("iris", "TO TRAIN xgboost.gbtree WITH train.num_boost_round=20 LABEL class", "accuracy", None,
     "xgboost"),
    ("iris", "LABEL class", "accuracy", None, "xgboost"),
    ("housing", "TO TRAIN LinearRegressor LABEL medv", "rmse", None, "ridge"),
    ("housing", "TO TRAIN DNNRegressor WITH model.hidden_units=[64,32] LABEL medv", "rmse", None, "mlp"),
    ("housing", "TO TRAIN xgboost.gbtree WITH train.num_boost_round=100, max_depth=6, eta=0.1 LABEL medv",
     "rmse", None, "xgboost"),
    ("housing", "LABEL medv", "rmse", None, "xgboost"),
    ("titanic", "TO TRAIN LinearClassifier LABEL survived", "auc", None, "logistic"),
    ("titanic", "TO TRAIN DNNClassifier WITH model.hidden_units=[64,32] LABEL survived", "auc", None, "mlp"),
    ("titanic", "TO TRAIN xgboost.gbtree WITH train.num_boost_round=50, max_depth=4, eta=0.1 LABEL survived",
     "auc", None, "xgboost"),
    ("titanic", "LABEL survived", "auc", None, "xgboost"),
    ("bank", "TO TRAIN LinearClassifier LABEL y", "auc", 0.905, "logistic"),
    ("bank", "TO TRAIN DNNClassifier LABEL y", "auc", 0.927, "mlp"),
    ("bank", "TO TRAIN DNNLinearCombinedClassifier LABEL y", "auc", 0.927, None),
    ("bank", "LABEL y", "auc", 0.934, "xgboost"),
    ("letter", "TO TRAIN LinearClassifier LABEL letter", "accuracy", 0.770, "logistic"),
    ("letter", "TO TRAIN DNNClassifier LABEL letter", "accuracy", 0.90, "mlp"),
    ("letter", "LABEL letter", "accuracy", 0.955, "xgboost"),
    ("diamonds", "TO TRAIN LinearRegressor LABEL price", "rmse", 1150, "ridge"),
    ("diamonds", "TO TRAIN DNNRegressor LABEL price", "rmse", 600, "mlp"),
    ("diamonds", "LABEL price", "rmse", 545, "xgboost"),
    ("bike", "TO TRAIN LinearRegressor LABEL cnt", "rmse", 139, "ridge"),
    ("bike", "TO TRAIN DNNRegressor LABEL cnt", "rmse", 60, "mlp"),
    ("bike", "LABEL cnt", "rmse", 41, "xgboost"),
    ("spam", "TO TRAIN LinearClassifier LABEL class", "auc", 0.99, "logistic"),
    ("spam", "TO TRAIN DNNClassifier LABEL class", "auc", 0.99, "mlp"),
    ("spam", "LABEL class", "auc", 0.99, "xgboost"),
]

def selected(columns, data):
    if data not in LEFT_OUT:
        return "*"
    return ", ".join(f'"{c}"' for c in columns[data] if c not in LEFT_OUT[data])


SEEDS = range(1, 6)


def of_many_seeds(data, peer):
    return peer == "mlp" and data in ("iris", "housing", "titanic")


def short_form(attributes, seconds):
    """The WITH clause of a statement without a model type."""
    if seconds is not None:
        attributes = [*attributes, f"auto.seconds={seconds}"]
    return f" WITH {', '.join(attributes)}" if attributes else ""


def our_figure(url, number, data, clause, metric, peer, columns):
    if of_many_seeds(data, peer):
        clauses = [clause.replace(" LABEL", f", engine.seed={seed} LABEL") for seed in SEEDS]
        assert " WITH " in clause
    else:
        clauses = [clause]
    figures = []
    for one in clauses:
        run(url, f"SELECT {selected(columns, data)} FROM {data}_train {one} INTO quality_{number}")
        row = run(url, f"SELECT * FROM {data}_test TO EVALUATE quality_{number}")[0]
        figures.append(row[metric])
    return statistics.median(figures)


def their_figure(peer, data, metric, folder):
    seeds = SEEDS if of_many_seeds(data, peer) else [1]
    found = dict(tables(folder))
    names, _, train = found[f"{data}_train"]
    test = found[f"{data}_test"][2]
    return statistics.median(peer_figure(peer, data, metric, names, train, test, seed) for seed in seeds)


def verdict(metric, figure, bar):
    if bar != bar:
        return "nothing to compare with"
    better = bar - figure if metric == "rmse" else figure - bar
    slack = 1e-4 * bar if metric == "rmse" else 5e-4
    return "reached" if better >= 0 else "equal" if better >= -slack else "BELOW"


class Report:
    """One line a cell: our figures by database, the peer's, the goal, and whether it is reached."""

    def __init__(self, urls, markdown):
        self.markdown = markdown
        self.missed = []
        if markdown:
            print("| table | model | metric | " + " | ".join(urls) + " | peer | goal | |")
            print("|" + "---|" * (len(urls) + 6))
        else:
            print(f"{'table':8} {'model':34} {'metric':9} " + " ".join(f"{n:>11}" for n in urls) +
                  f" {'peer':>9} {'goal':>7}  verdict")

    def tell(self, data, model, metric, figures, peer, bar, note="", said=None):
        said = said or verdict(metric, figures[0], bar)
        if said == "BELOW":
            self.missed.append(f"{data} {model}")
        if any(f != figures[0] for f in figures):
            said += ", databases differ"
        if self.markdown:
            cells = [data, model, metric, *(f"{f:.4f}" for f in figures),
                     "" if peer != peer else f"{peer:.4f}", "" if bar != bar else f"{bar:.4f}",
                     said + note]
            print("| " + " | ".join(cells) + " |", flush=True)
        else:
            print(f"{data:8} {model:34} {metric:9} " + " ".join(f"{f:11.6f}" for f in figures) +
                  f" {peer:9.4f} {bar:7.4f}  {said}{note}", flush=True)

    def end(self):
        print(f"\n{len(self.missed)} goals missed" +
              (": " + "; ".join(self.missed) if self.missed else ""))


def tell_generated(kind, urls, seconds, report):
    _, label, metric = generated_tables.KINDS[kind]
    truth = generated(kind)[4]
    labels = generated_tables.TOPICS if label is None else [label]
    figures = []
    for url in urls.values():
        own = []
        for one in labels:
            others = ", ".join(other for other in labels if other != one)
            clause = short_form([f"features.exclude=[{others}]"] if others else [], seconds)
            run(url, f"SELECT * FROM {kind}_train LABEL {one}{clause} INTO quality_{kind}")
            row = run(url, f"SELECT * FROM {kind}_test TO EVALUATE quality_{kind}"
                           f"{'' if others == '' else ' LABEL ' + one}")[0]
            own.append(row[metric])
        figures.append(statistics.mean(own))
    bar = truth * (1.02 if metric == "rmse" else 0.98)
    report.tell(kind, "(chosen)", metric, figures, truth, bar, " (beside the truth)")


SMALL = ("iris", "housing", "titanic")
FIFTHS = 10


def random_fifth(rows, seed):
    """training rows, in their order, and test rows"""
    places = list(range(len(rows)))
    random.Random(seed).shuffle(places)
    held = set(places[:len(rows) // 5])
    return ([row for i, row in enumerate(rows) if i not in held],
            [row for i, row in enumerate(rows) if i in held])


def split_figure(program, data, clause, metric, names, types, train, test):
    with tempfile.TemporaryDirectory() as scratch:
        url = f"sqlite:{scratch}/split.db"
        load_sqlite(url, [(f"{data}_train", (names, types, train)), (f"{data}_test", (names, types, test))])
        run(url, f"SELECT * FROM {data}_train {clause} INTO m", program)
        return run(url, f"SELECT * FROM {data}_test TO EVALUATE m LABEL {LABELS[data]}", program)[0][metric]


def over_splits(found, data, clause, metric, peer, splits, before=None):
    """mean of our figures, of the others', of their differences (positive: better), its standard error,
    and what that says; the others are the peer, or the build of sluice `before`"""
    names, types, rows = found[f"{data}_train"]
    rows = rows + found[f"{data}_test"][2]
    ours, theirs = [], []
    for seed in range(1, splits + 1):
        train, test = random_fifth(rows, seed)
        ours.append(split_figure(SLUICE, data, clause, metric, names, types, train, test))
        theirs.append(split_figure(before, data, clause, metric, names, types, train, test) if before
                      else peer_figure(peer, data, metric, names, train, test, seed))
    sign = -1 if metric == "rmse" else 1
    better = [sign * (a - b) for a, b in zip(ours, theirs)]
    error = statistics.stdev(better) / len(better) ** 0.5
    mean = statistics.mean(better)
    slack = max(2 * error, 1e-4 * abs(statistics.mean(theirs)))
    said = "better" if mean > slack else "BELOW" if mean < -slack else "equal"
    return statistics.mean(ours), statistics.mean(theirs), mean, error, said


def tell_splits(folder, options):
    found = dict(tables(folder))
    other = "before" if options.before else "peer"
    print(f"{'table':8} {'model':34} {'metric':9} {'sluice':>9} {other:>9} {'better by':>10} {'error':>8}")
    for data, clause, metric, _, peer in JOBS:
        if (data not in SMALL or peer is None or options.only and data != options.only
                or options.model and options.model not in clause):
            continue
        words = clause.split()
        if words[0] != "TO":
            clause += short_form([], options.seconds)
        ours, theirs, mean, error, said = over_splits(found, data, clause, metric, peer, options.splits,
                                                      options.before)
        print(f"{data:8} {words[2] if words[0] == 'TO' else '(chosen)':34} {metric:9} "
              f"{ours:9.4f} {theirs:9.4f} {mean:10.4f} {error:8.4f}  {said}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--sqlite-only", action="store_true")
    parser.add_argument("--only")
    parser.add_argument("--model")
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--splits", type=int)
    parser.add_argument("--before")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    if options.splits:
        if options.splits < 2 or not (options.before or have_peers()):
            sys.exit("--splits takes two or more, and the peers or --before")
        tell_splits(options.folder, options)
        return
    scratch = tempfile.mkdtemp()
    urls = {"sqlite": f"sqlite:{scratch}/quality.db"}
    if not options.sqlite_only:
        host, port = postgres.start()
        urls["postgresql"] = f"postgresql://postgres@{host}:{port}/postgres"
    for url in urls.values():
        load(url, options.folder, options.only)
    found = dict(tables(options.folder))
    columns = {name[:-len("_train")]: table[0] for name, table in found.items()
               if name.endswith("_train")}
    peers = have_peers()
    report = Report(urls, options.markdown)
    for number, (data, clause, metric, goal, peer) in enumerate(JOBS):
        if options.only and data != options.only or options.model and options.model not in clause:
            continue
        if not clause.startswith("TO "):
            clause += short_form([], options.seconds)
        figures = [our_figure(url, number, data, clause, metric, peer, columns)
                   for url in urls.values()]
        theirs = their_figure(peer, data, metric, options.folder) if peer and peers else None
        theirs = float("nan") if theirs is None else theirs
        bar = goal if goal is not None else theirs
        words = clause.split()
        model, note, said = words[2] if words[0] == "TO" else "(chosen)", "", None
        if data in SMALL and words[0] == "TO" and peer and peers:
            _, _, better, error, said = over_splits(found, data, clause, metric, peer, FIFTHS)
            note = f" over {FIFTHS} random fifths (by {better:.4f}, standard error {error:.4f})"
        report.tell(data, model, metric, figures, theirs, bar, note, said)
    if not options.model:
        for kind in generated_tables.KINDS:
            if options.only in (None, kind):
                tell_generated(kind, urls, options.seconds, report)
    report.end()


main()
