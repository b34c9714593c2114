#!/usr/bin/python3
"""From a table of clicks in PostgreSQL to a trained DeepFM, as a data scientist would write it.

Usage: deep_fm_peer.py HOST PORT DATABASE TRAIN_TABLE TEST_TABLE BATCH. Prints one JSON object: seconds from
process start to trained model (imports included, the held-out evaluation not), AUC on the test table.
"""
import time

START = time.perf_counter()

import json
import resource
import sys

import numpy as np
import pandas as pd
import sqlalchemy
import torch

host, port, database, train_table, test_table, batch = sys.argv[1:7]
NUMBERS = [f"i{i}" for i in range(1, 14)]
TEXTS = [f"c{i}" for i in range(1, 27)]
K = 8
torch.set_num_threads(1)  # its fastest here, beside PostgreSQL on two cores
torch.manual_seed(1)


def read(table):
    engine = sqlalchemy.create_engine(f"postgresql+psycopg2://postgres@{host}:{port}/{database}")
    return pd.read_sql(f"SELECT * FROM {table}", engine)


def numbers_of(frame):
    return np.log1p(frame[NUMBERS].fillna(0).to_numpy(dtype="float32"))


class DeepFM(torch.nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.tables = torch.nn.ModuleList([torch.nn.Embedding(n, K + 1, sparse=True) for n in sizes])
        for table in self.tables:
            torch.nn.init.normal_(table.weight, std=0.01)
        self.line = torch.nn.Linear(len(NUMBERS), 1)
        self.deep = torch.nn.Sequential(torch.nn.Linear(len(NUMBERS) + K * len(sizes), 64), torch.nn.ReLU(),
                                        torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))

    def forward(self, dense, ids):
        rows = torch.stack([table(ids[:, i]) for i, table in enumerate(self.tables)], 1)
        v = rows[:, :, 1:]
        pairs = 0.5 * (v.sum(1).pow(2) - v.pow(2).sum(1)).sum(1)
        alone = rows[:, :, 0].sum(1) + self.line(dense).squeeze(1)
        return pairs + alone + self.deep(torch.cat([dense, v.flatten(1)], 1)).squeeze(1)


frame = read(train_table)
categories = {name: pd.Categorical(frame[name]).categories for name in TEXTS}


def ids_of(rows):
    return torch.from_numpy(np.stack([pd.Categorical(rows[name], categories=categories[name]).codes + 1
                                      for name in TEXTS], axis=1).astype("int64"))


raw = numbers_of(frame)
mean, deviation = raw.mean(axis=0), raw.std(axis=0)
dense, ids = torch.from_numpy((raw - mean) / deviation), ids_of(frame)
labels = torch.from_numpy(frame["label"].to_numpy(dtype="float32"))
net = DeepFM([len(categories[name]) + 1 for name in TEXTS])
sparse = torch.optim.SparseAdam(list(net.tables.parameters()), lr=1e-3)
other = torch.optim.Adam([*net.line.parameters(), *net.deep.parameters()], lr=1e-3)
loss_of = torch.nn.BCEWithLogitsLoss()
order = torch.randperm(len(labels))
for begin in range(0, len(labels), int(batch)):
    rows = order[begin:begin + int(batch)]
    sparse.zero_grad()
    other.zero_grad()
    loss_of(net(dense[rows], ids[rows]), labels[rows]).backward()
    sparse.step()
    other.step()
seconds = time.perf_counter() - START
usage = resource.getrusage(resource.RUSAGE_SELF)
test = read(test_table)
truth = test["label"].to_numpy() == 1
with torch.no_grad():
    given = torch.from_numpy((numbers_of(test) - mean) / deviation), ids_of(test)
    scores = pd.Series(np.concatenate([net(given[0][i:i + 8192], given[1][i:i + 8192]).numpy()
                                       for i in range(0, len(test), 8192)]))
ranks, positive = scores.rank(), truth.sum()
auc = (ranks[truth].sum() - positive * (positive + 1) / 2) / (positive * (len(truth) - positive))
print(json.dumps({"seconds": seconds, "cpu": usage.ru_utime + usage.ru_stime, "auc": float(auc)}))
