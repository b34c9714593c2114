#!/usr/bin/python3
"""Peak memory of a training job of one million and of ten million rows, from the same table shape.

The goal: the larger one within 10 % of the smaller. Usage: memory_bench.py [--rows N] [--factor 10]
"""
import argparse
import os
import resource
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import postgres

SLUICE = os.environ.get("SLUICE", os.path.join(HERE, "../build/release/server/sluice"))


def peak_megabytes(url, sql):
    """Largest resident set of the shell that runs the whole gateway, or of any process that it started."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        done = subprocess.run([SLUICE, "sql", "--source", url, "-c", sql], capture_output=True, text=True)
        if done.returncode != 0:
            os.write(2, done.stderr.encode())
        os.write(write, str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss).encode())
        os._exit(done.returncode)
    _, status = os.waitpid(child, 0)
    if status != 0:
        sys.exit(f"failed: {sql}")
    return int(os.read(read, 100)) / 1024


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--factor", type=int, default=10)
    options = parser.parse_args()
    host, port = postgres.start()
    url = f"postgresql://postgres@{host}:{port}/postgres"
    sizes = (options.rows, options.rows * options.factor)
    for rows in sizes:
        subprocess.run([SLUICE, "sample", "census", "--rows", str(rows), "--into", url, "--table",
                        f"census_{rows}"], check=True, stdout=subprocess.DEVNULL)
    print(f"{'model':18} " + " ".join(f"{rows:>13,}" for rows in sizes) + "   ratio   goal")
    for model, attributes in (("LinearClassifier", "train.epoch=1"),
                              ("DNNClassifier", "model.hidden_units=[64,32], train.epoch=1"),
                              ("DNNClassifier (2 workers)",
                               "model.hidden_units=[64,32], train.epoch=1, engine.num_workers=2, engine.num_ps=1")):
        peaks = [peak_megabytes(url, f"SELECT * FROM census_{rows} TO TRAIN {model.split()[0]} WITH "
                                     f"{attributes} LABEL income INTO m") for rows in sizes]
        print(f"{model:18} " + " ".join(f"{peak:10.1f} MB" for peak in peaks) +
              f"   {peaks[1] / peaks[0]:5.2f}   1.10", flush=True)


main()
