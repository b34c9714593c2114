"""The tables of quality_bench.py: read from files or generated, and loaded into either database."""
import csv
import functools
import sqlite3

import generated_tables

CENSUS = ("age workclass fnlwgt education education_num marital_status occupation relationship race "
          "sex capital_gain capital_loss hours_per_week native_country income").split()
CENSUS_NUMBERS = {"age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week"}


def read_census(path):
    rows = []
    with open(path) as lines:
        for line in lines:
            cells = [cell.strip().rstrip(".") for cell in line.split(",")]
            if len(cells) == len(CENSUS):
                rows.append([None if cell == "?" else int(cell) if name in CENSUS_NUMBERS else cell
                             for name, cell in zip(CENSUS, cells)])
    return CENSUS, ["INTEGER" if n in CENSUS_NUMBERS else "TEXT" for n in CENSUS], rows


def type_of(cells):
    try:
        whole = all(float(cell).is_integer() and "." not in cell for cell in cells)
    except ValueError:
        return "TEXT"
    return "INTEGER" if whole else "DOUBLE PRECISION"


def read_csv(path, types=None):
    with open(path, newline="") as lines:
        reader = csv.reader(lines)
        names = next(reader)
        rows = [row for row in reader if row]
    types = types or [type_of([row[i] for row in rows]) for i in range(len(names))]
    made = {"INTEGER": int, "DOUBLE PRECISION": float, "TEXT": str}
    rows = [[made[t](c) for c, t in zip(row, types)] for row in rows]
    return names, types, rows


def tables(folder):
    yield "census_train", read_census(f"{folder}/census/adult.data")
    yield "census_test", read_census(f"{folder}/census/adult.test")
    yield "iris_train", read_csv(f"{folder}/iris/train.csv")
    yield "iris_test", read_csv(f"{folder}/iris/test.csv")
    names, types, rows = read_csv(f"{folder}/housing/train.csv")
    yield "housing_train", (names, types, rows[:400])
    yield "housing_test", (names, types, rows[400:] + read_csv(f"{folder}/housing/test.csv")[2])
    names, types, rows = read_csv(f"{folder}/titanic/train.csv")
    yield "titanic_train", (names, types, rows[:700])
    yield "titanic_test", (names, types, rows[700:])
    for name in "bank", "letter", "diamonds", "bike", "spam":
        train = read_csv(f"{folder}/{name}/train.csv")
        yield f"{name}_train", train
        yield f"{name}_test", read_csv(f"{folder}/{name}/test.csv", train[1])


@functools.lru_cache(maxsize=None)
def generated(kind):
    """names, types, training rows, test rows, the truth's figure"""
    return generated_tables.KINDS[kind][0]()


def all_tables(folder, only):
    for name, table in tables(folder):
        if only is None or name.startswith(f"{only}_"):
            yield name, table
    for kind in generated_tables.KINDS:
        if only is None or kind == only:
            names, types, train, test, _ = generated(kind)
            yield f"{kind}_train", (names, types, train)
            yield f"{kind}_test", (names, types, test)


def load_in_order(cursor, name, columns, types, rows):
    """PostgreSQL stores an inserted row wherever there is room; CREATE TABLE AS keeps the order."""
    defined = ", ".join(f'"{c}" {t}' for c, t in zip(columns, types))
    cursor.execute(f"CREATE TEMPORARY TABLE unordered (place integer, {defined})")
    one = "(" + ", ".join(["%s"] * (len(columns) + 1)) + ")"
    numbered = [[place, *row] for place, row in enumerate(rows)]
    for begin in range(0, len(rows), 500):
        part = numbered[begin:begin + 500]
        cursor.execute("INSERT INTO unordered VALUES " + ", ".join([one] * len(part)),
                       [cell for row in part for cell in row])
    listed = ", ".join(f'"{c}"' for c in columns)
    cursor.execute(f"CREATE TABLE {name} AS SELECT {listed} FROM unordered ORDER BY place")
    cursor.execute("DROP TABLE unordered")


def load_sqlite(url, named):
    database = sqlite3.connect(url[len("sqlite:"):])
    cursor = database.cursor()
    for name, (columns, types, rows) in named:
        defined = ", ".join(f'"{c}" {t}' for c, t in zip(columns, types))
        cursor.execute(f"CREATE TABLE {name} ({defined})")
        one = "(" + ", ".join("?" * len(columns)) + ")"
        cursor.executemany(f"INSERT INTO {name} VALUES {one}", rows)
    database.commit()
    database.close()


def load(url, folder, only=None):
    if url.startswith("sqlite:"):
        load_sqlite(url, all_tables(folder, only))
        return
    import psycopg2
    database = psycopg2.connect(url)
    cursor = database.cursor()
    for name, (columns, types, rows) in all_tables(folder, only):
        load_in_order(cursor, name, columns, types, rows)
    database.commit()
    database.close()
