#!/usr/bin/python3
"""One peer: from a PostgreSQL table to a trained model, as a data scientist would write it.

Usage: train_peer.py sgd|torch|xgboost read_sql|copy HOST PORT DATABASE TRAIN_TABLE TEST_TABLE
Prints one JSON object: seconds and CPU seconds from process start to trained model (imports
included, the held-out evaluation not), AUC on the test table, peak memory.
"""
import time

START = time.perf_counter()

import io
import json
import resource
import sys

model_name, form, host, port, database, train_table, test_table = sys.argv[1:8]
NUMBERS = ["age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week"]
TEXTS = ["workclass", "education", "marital_status", "occupation", "relationship", "race", "sex",
         "native_country"]


def read(table):
    import pandas as pd
    if form == "read_sql":
        import sqlalchemy
        engine = sqlalchemy.create_engine(f"postgresql+psycopg2://postgres@{host}:{port}/{database}")
        return pd.read_sql(f"SELECT * FROM {table}", engine)
    import psycopg2
    connection = psycopg2.connect(host=host, port=port, dbname=database, user="postgres")
    buffer = io.BytesIO()
    connection.cursor().copy_expert(f"COPY (SELECT * FROM {table}) TO STDOUT (FORMAT csv, HEADER)", buffer)
    buffer.seek(0)
    return pd.read_csv(buffer, dtype={name: "category" for name in TEXTS}, keep_default_na=False,
                       na_values={name: [""] for name in NUMBERS})


def label_of(frame):
    return (frame["income"].astype(str) == ">50K").to_numpy().astype("float32")


def train_sgd(frame):
    from sklearn.compose import ColumnTransformer
    from sklearn.linear_model import SGDClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler
    frame = fill(frame)
    pipeline = make_pipeline(
        ColumnTransformer([("n", StandardScaler(), NUMBERS),
                           ("t", OneHotEncoder(handle_unknown="ignore"), TEXTS)]),
        SGDClassifier(loss="log_loss", max_iter=1, tol=None, random_state=1))
    pipeline.fit(frame, label_of(frame))
    return lambda test: pipeline.decision_function(fill(test))


def fill(frame):
    frame = frame.copy(deep=False)
    for name in TEXTS:
        if str(frame[name].dtype) == "category":
            if frame[name].isna().any():
                frame[name] = frame[name].cat.add_categories(["?"]).fillna("?")
        else:
            frame[name] = frame[name].fillna("?")
    return frame


def codes(frame, categories):
    import pandas as pd
    columns = []
    for name in TEXTS:
        columns.append(pd.Categorical(frame[name], categories=categories[name]).codes + 1)
    import numpy as np
    return np.stack(columns, axis=1).astype("int64")


def train_torch(frame):
    import numpy as np
    import pandas as pd
    import torch
    torch.set_num_threads(1)  # its fastest here
    torch.manual_seed(1)
    categories = {name: pd.Categorical(frame[name]).categories for name in TEXTS}
    ids = torch.from_numpy(codes(frame, categories))
    numbers = frame[NUMBERS].to_numpy(dtype="float32")
    mean, deviation = numbers.mean(axis=0), numbers.std(axis=0)
    dense = torch.from_numpy((numbers - mean) / deviation)
    labels = torch.from_numpy(label_of(frame))

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embeddings = torch.nn.ModuleList(
                [torch.nn.Embedding(len(categories[name]) + 1, 8) for name in TEXTS])
            self.layers = torch.nn.Sequential(
                torch.nn.Linear(len(NUMBERS) + 8 * len(TEXTS), 64), torch.nn.ReLU(),
                torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))

        def forward(self, x, c):
            parts = [x] + [table(c[:, i]) for i, table in enumerate(self.embeddings)]
            return self.layers(torch.cat(parts, dim=1)).squeeze(1)

    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    loss_of = torch.nn.BCEWithLogitsLoss()
    order = torch.randperm(len(labels))
    for begin in range(0, len(labels), 256):
        rows = order[begin:begin + 256]
        optimizer.zero_grad()
        loss_of(net(dense[rows], ids[rows]), labels[rows]).backward()
        optimizer.step()

    def score(test):
        with torch.no_grad():
            values = (test[NUMBERS].to_numpy(dtype="float32") - mean) / deviation
            return net(torch.from_numpy(values), torch.from_numpy(codes(test, categories))).numpy()
    return score


def train_xgboost(frame):
    import numpy as np
    import pandas as pd
    import xgboost
    categories = {name: pd.Categorical(frame[name]).categories for name in TEXTS}

    def matrix(part):
        return np.concatenate([part[NUMBERS].to_numpy(dtype="float32"),
                               codes(part, categories).astype("float32")], axis=1)
    data = xgboost.DMatrix(matrix(frame), label=label_of(frame))
    booster = xgboost.train({"objective": "binary:logistic", "tree_method": "hist", "max_depth": 6,
                             "eta": 0.1}, data, num_boost_round=100)
    return lambda test: booster.predict(xgboost.DMatrix(matrix(test)))


train = {"sgd": train_sgd, "torch": train_torch, "xgboost": train_xgboost}[model_name]
score = train(read(train_table))
seconds = time.perf_counter() - START
usage = resource.getrusage(resource.RUSAGE_SELF)
from sklearn.metrics import roc_auc_score
test = read(test_table)
print(json.dumps({"seconds": seconds, "cpu": usage.ru_utime + usage.ru_stime,
                  "auc": float(roc_auc_score(label_of(test), score(test))),
                  "rss_mb": usage.ru_maxrss / 1024}))
