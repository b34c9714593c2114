"""Tables with a known truth, for quality_bench.py: each yields its training and test rows, and the
figure that the true labelling function reaches on the test rows. The same on every run."""
import math
import random
import time


def logistic(z):
    return 1 / (1 + math.exp(-max(-40.0, min(40.0, z))))


def auc(scores, labels):
    order = sorted(range(len(scores)), key=lambda i: scores[i])
    ranks = [0.0] * len(scores)
    begin = 0
    while begin < len(order):
        end = begin
        while end < len(order) and scores[order[end]] == scores[order[begin]]:
            end += 1
        for i in order[begin:end]:
            ranks[i] = (begin + end - 1) / 2
        begin = end
    positives = sum(labels)
    total = sum(rank for rank, label in zip(ranks, labels) if label)
    return (total - positives * (positives - 1) / 2) / (positives * (len(labels) - positives))


def rmse(predicted, labels):
    return math.sqrt(sum((p - y) ** 2 for p, y in zip(predicted, labels)) / len(labels))


def split(rows, truths, test, figure, label=-1):
    """Splits off the last `test` rows for testing."""
    labels = [row[label] for row in rows[-test:]]
    return rows[:-test], rows[-test:], figure(truths[-test:], labels)


def rare():
    """One row in 500 is positive."""
    source = random.Random(1)
    rows, truths = [], []
    for _ in range(150_000):
        x = [source.gauss(0, 1) for _ in range(6)]
        shop = source.choice("abcdefgh")
        z = -8.6 + 1.6 * x[0] - 1.2 * x[1] + 0.8 * x[2] + 0.9 * (shop in "ab")
        truths.append(logistic(z))
        rows.append([*(round(v, 4) for v in x), shop, int(source.random() < truths[-1])])
    names = [*(f"x{i}" for i in range(6)), "shop", "y"]
    types = ["DOUBLE PRECISION"] * 6 + ["TEXT", "INTEGER"]
    return names, types, *split(rows, truths, 60_000, auc)


TOPICS = ("sport", "money", "travel")


def topics():
    """Messages with several topics each; each topic makes some words likelier."""
    source = random.Random(2)
    common = [f"word{i}" for i in range(600)]
    own = {topic: [f"{topic}{i}" for i in range(40)] for topic in TOPICS}
    rows, truths = [], []
    for _ in range(14_000):
        there = [int(source.random() < 0.3) for _ in TOPICS]
        words, odds = [], [math.log(0.3 / 0.7)] * len(TOPICS)
        for t, topic in enumerate(TOPICS):
            for word in own[topic]:
                rate = 0.08 if there[t] else 0.02
                said = source.random() < rate
                odds[t] += math.log(0.08 / 0.02 if said else 0.92 / 0.98)
                words += [word] * said
        words += source.sample(common, source.randint(3, 10))
        source.shuffle(words)
        rows.append([" ".join(words), *there])
        truths.append(odds)
    names, types = ["message", *TOPICS], ["TEXT"] + ["INTEGER"] * len(TOPICS)
    test = 2_000
    figure = sum(auc([truth[t] for truth in truths[-test:]], [row[1 + t] for row in rows[-test:]])
                 for t in range(len(TOPICS))) / len(TOPICS)
    return names, types, rows[:-test], rows[-test:], figure


def drift():
    """Consecutive hours; the test hours come after them, on a level that keeps rising."""
    source = random.Random(3)
    rows, truths = [], []
    for i in range(20_000):
        day, hour = divmod(i, 24)
        x = source.gauss(0, 1)
        truth = (20 + 0.001 * i + 5 * math.sin(2 * math.pi * hour / 24) +
                 3 * ((day + 2) % 7 in (5, 6)) + 2 * x)
        at = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(1577836800 + i * 3600))  # from 2020-01-01
        truths.append(truth)
        rows.append([at, round(x, 4), round(truth + source.gauss(0, 2), 4)])
    return ["at", "x", "y"], ["TEXT", "DOUBLE PRECISION", "DOUBLE PRECISION"], *split(
        rows, truths, 2_000, rmse)


def ids():
    """A million customers; a few hundred of them occur often, and differ."""
    source = random.Random(4)
    effects = {i: source.gauss(0, 1.5) for i in range(300)}
    rows, truths = [], []
    for _ in range(250_000):
        often = source.random() < 0.6
        customer = source.randrange(300) if often else source.randrange(300, 1_000_000)
        x = [source.gauss(0, 1) for _ in range(3)]
        truths.append(logistic(effects.get(customer, 0) + x[0] - 0.7 * x[1]))
        rows.append([customer * 7919 % 1_000_003, *(round(v, 4) for v in x),
                     int(source.random() < truths[-1])])
    return ["customer_id", "x0", "x1", "x2", "y"], ["INTEGER"] + ["DOUBLE PRECISION"] * 3 + [
        "INTEGER"], *split(rows, truths, 50_000, auc)


def wide():
    """500 columns, of which five matter."""
    source = random.Random(5)
    rows, truths = [], []
    for _ in range(16_000):
        x = [source.gauss(0, 1) for _ in range(500)]
        z = 1.5 * x[3] - 1.2 * x[77] + x[200] - 0.8 * x[301] + 1.5 * (x[444] > 0.5)
        truths.append(logistic(z))
        rows.append([*(round(v, 3) for v in x), int(source.random() < truths[-1])])
    return [*(f"c{i}" for i in range(500)), "y"], ["DOUBLE PRECISION"] * 500 + ["INTEGER"], *split(
        rows, truths, 5_000, auc)


# name: generator, label, metric
KINDS = {"rare": (rare, "y", "auc"), "topics": (topics, None, "auc"), "drift": (drift, "y", "rmse"),
         "ids": (ids, "y", "auc"), "wide": (wide, "y", "auc")}
