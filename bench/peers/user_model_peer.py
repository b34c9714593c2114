#!/usr/bin/python3
"""PyTorch's own part of user_model_bench.py: eager, one thread, Adam, batches of 256.

Usage: user_model_peer.py MODEL SQLITE_FILE TABLE. Prints one JSON object: seconds from process start to
the model trained for an epoch, milliseconds of a step (the median, and the mean of the processor's), AUC on TABLE_test.
"""
import time

START = time.perf_counter()

import json
import os
import sqlite3
import statistics
import sys
from collections import namedtuple

import pandas as pd
import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import user_models

BATCH = 256
Feature = namedtuple("Feature", "name kind width buckets length")
name, file, table = sys.argv[1:4]
torch.set_num_threads(1)
torch.manual_seed(1)
frame = pd.read_sql(f"SELECT * FROM {table}", sqlite3.connect(file))
labels = torch.from_numpy((frame.pop("income") == ">50K").to_numpy().astype("float32"))
numbers = [c for c in frame if frame[c].dtype != object]
texts = [c for c in frame if frame[c].dtype == object]
categories = {c: frame[c].value_counts().index for c in texts}  # the most frequent first, as Sluice has them
mean, deviation = frame[numbers].mean(), frame[numbers].std()


def tensors(rows):
    x = {c: torch.from_numpy(((rows[c] - mean[c]) / deviation[c]).fillna(0).to_numpy().astype("float32"))
         .unsqueeze(1) for c in numbers}
    for c in texts:
        codes = pd.Categorical(rows[c], categories=categories[c]).codes.astype("int64")
        x[c] = torch.from_numpy(codes).where(torch.from_numpy(codes >= 0), torch.tensor(len(categories[c])))
    return x


features = ([Feature(c, "numeric", 1, 0, 0) for c in numbers] +
            [Feature(c, "category", 1, len(categories[c]) + 1, 0) for c in texts])
space = {}
exec(user_models.source_of(name), space)
net = space[name](features)
x = tensors(frame)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
loss_of = torch.nn.BCEWithLogitsLoss()
order = torch.randperm(len(labels))
steps, processor = [], []
for begin in range(0, len(labels), BATCH):
    rows = order[begin:begin + BATCH]
    batch, truth = {c: values[rows] for c, values in x.items()}, labels[rows]
    start, used = time.perf_counter(), time.process_time()
    optimizer.zero_grad()
    loss_of(net(batch), truth).backward()
    optimizer.step()
    steps.append(time.perf_counter() - start)
    processor.append(time.process_time() - used)
seconds = time.perf_counter() - START
test = pd.read_sql(f"SELECT * FROM {table}_test", sqlite3.connect(file))
truth = (test.pop("income") == ">50K").to_numpy()
net.eval()
with torch.no_grad():
    scores = pd.Series(net(tensors(test)).numpy())
ranks, positive = scores.rank(), truth.sum()
auc = (ranks[truth].sum() - positive * (positive + 1) / 2) / (positive * (len(truth) - positive))
print(json.dumps({"seconds": seconds, "step_ms": 1000 * statistics.median(steps),
                  "step_cpu_ms": 1000 * statistics.mean(processor), "auc": float(auc)}))
