#!/usr/bin/python3
"""Nine networks written in PyTorch, trained by Sluice and by PyTorch itself (eager, one thread).

Of each: the milliseconds of a step of 256 rows (forward, backward and Adam: the phases learning and
optimizer of the job's profile, over its steps, beside the median of PyTorch's steps); the same of the
processor's time, which hardly depends on what else runs (what four further epochs take, so that reading
and decoding the rows is part of it, which it is not of PyTorch's); the seconds from statement to model
(a form that was compiled before, beside the script with its imports); and AUC on the same held-out rows.
Then the largest process of a training on two workers and a server, beside that
of the built-in DNN of the same layers. Needs python3-torch and python3-pandas. Ends with 1 when a
figure is missed. Usage: user_model_bench.py FOLDER [--rows N] [--rounds N] [--only NAME ...]
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "peers"))
import user_models

SLUICE = os.environ.get("SLUICE", os.path.join(HERE, "../build/release/server/sluice"))
BATCH = 256
GOALS = {"MLP": 3, "DCNv2": 1.8}  # how many times PyTorch's step; of all others 1
MOST_MEMORY = 1.2


def run(url, sql):
    done = subprocess.run([SLUICE, "sql", "--source", url, "--format", "json", "-c", sql], capture_output=True,
                          text=True)
    if done.returncode != 0:
        sys.exit(f"{sql}\n{done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.strip()]


def train(name, more=""):
    return (f"SELECT * FROM census TO TRAIN user.{name} WITH train.epoch=1, train.batch_size={BATCH}, "
            f"engine.seed=1, split.kind=none{more} LABEL income INTO u_{name}")


def step_ms(url, job, rows):
    names = ", ".join(f"'seconds_{phase}'" for phase in ("learning", "optimizer"))
    spent = run(url, f"SELECT sum(value) AS seconds FROM sluice_job_metrics WHERE job_id = {job} AND name IN ({names})")
    return 1000 * spent[0]["seconds"] / (rows / BATCH)


def processor_seconds(url, sql):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run(url, sql)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def step_cpu_ms(url, name, rows):
    local = train(name, ", engine.strategy=local")
    further = processor_seconds(url, local.replace("train.epoch=1", "train.epoch=5")) - processor_seconds(url, local)
    return 1000 * further / (4 * rows / BATCH)


def peak_megabytes(url, sql):
    """Largest resident set of the shell that runs the whole gateway, or of any process that it started."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        done = subprocess.run([SLUICE, "sql", "--source", url, "-c", sql], capture_output=True, text=True)
        os.write(2, done.stderr.encode() if done.returncode else b"")
        os.write(write, str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss).encode())
        os._exit(done.returncode)
    if os.waitpid(child, 0)[1] != 0:
        sys.exit(f"failed: {sql}")
    return int(os.read(read, 100)) / 1024


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", choices=list(user_models.MODELS))
    options = parser.parse_args()
    file = os.path.join(options.folder, f"user_models_{options.rows}.db")
    url = "sqlite:" + file
    if not os.path.exists(file):
        for table, rows, seed in (("census", options.rows, 1), ("census_test", options.rows // 5, 2)):
            subprocess.run([SLUICE, "sample", "census", "--rows", str(rows), "--seed", str(seed), "--into", url,
                            "--table", table], check=True, stdout=subprocess.DEVNULL)
    names = options.only or list(user_models.MODELS)
    missed = False
    print(f"{options.rows:,} rows, 1 epoch, batches of {BATCH}, medians of {options.rounds} rounds")
    print(f"{'model':8} {'step ms':>8} {'torch':>8} {'ratio':>6} {'goal':>5} {'cpu ms':>8} {'torch':>8} {'ratio':>6} {'model s':>8} {'script':>8} "
          f"{'ratio':>6} {'AUC':>7} {'torch':>7}")
    for name in names:
        run(url, f"CREATE OR REPLACE MODEL TYPE user.{name} LANGUAGE pytorch AS $${user_models.source_of(name)}$$")
        run(url, train(name))  # compiles it
        ours, steps, cpu, theirs = [], [], [], []
        for _ in range(options.rounds):
            start = time.perf_counter()
            result = run(url, train(name, ", engine.strategy=local"))
            ours.append(time.perf_counter() - start)
            steps.append(step_ms(url, result[-1]["job"], options.rows))
            cpu.append(step_cpu_ms(url, name, options.rows))
            done = subprocess.run(["/usr/bin/python3", f"{HERE}/peers/user_model_peer.py", name, file, "census"],
                                  capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit(done.stderr)
            theirs.append(json.loads(done.stdout))
        auc = run(url, f"SELECT * FROM census_test TO EVALUATE u_{name} LABEL income")[0]["auc"]
        step, other = statistics.median(steps), statistics.median(t["step_ms"] for t in theirs)
        seconds, script = statistics.median(ours), statistics.median(t["seconds"] for t in theirs)
        processor, its = statistics.median(cpu), statistics.median(t["step_cpu_ms"] for t in theirs)
        goal = GOALS.get(name, 1)
        slow = other / step < goal
        missed = missed or slow
        print(f"{name:8} {step:8.3f} {other:8.3f} {other / step:6.2f} {goal:5} {processor:8.3f} {its:8.3f} {its / processor:6.2f} {seconds:8.2f} {script:8.2f} "
              f"{script / seconds:6.1f} {auc:7.4f} {theirs[0]['auc']:7.4f}{'  missed' if slow else ''}", flush=True)
    if "MLP" in names:
        fleet = ", engine.num_workers=2, engine.num_ps=1"
        own = peak_megabytes(url, train("MLP", fleet))
        built_in = peak_megabytes(url, train("MLP", fleet + ", model.hidden_units=[64,32]").replace(
            "user.MLP", "DNNClassifier"))
        missed = missed or own > MOST_MEMORY * built_in
        print(f"largest process of two workers and a server: {own:.1f} MB, DNNClassifier {built_in:.1f} MB: "
              f"{own / built_in:.2f}, at most {MOST_MEMORY}")
    sys.exit(1 if missed else 0)


main()
