#!/usr/bin/python3
"""The cost of many sessions and small statements at the PostgreSQL door, next to the goals, in one run.

Needs python3-psycopg.
"""
import asyncio
import os
import random
import statistics
import subprocess
import threading
import time

import psycopg

import gateway
import postgres

IDLE = 1000
AT_ONCE = 200
RUNNING = 32
CANCELS = 100
JOBS = 20
ROUNDS = 5
ROWS = 1_000_000
IRIS = ("SELECT * FROM iris TO TRAIN DNNClassifier WITH model.n_classes=3, model.hidden_units=[10,20], train.epoch=10"
        " LABEL class INTO iris_model")


def show(what, figure, goal, unit):
    print(f"{what:58} {figure:9.4g} {unit:5} goal {goal:6.4g}   {figure / goal:.2f}", flush=True)


def memory(process):
    with open(f"/proc/{process.pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS:")) / 1024


def processor_seconds(process):
    with open(f"/proc/{process.pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def median_seconds(action):
    seconds = []
    for _ in range(ROUNDS):
        begin = time.monotonic()
        action()
        seconds.append(time.monotonic() - begin)
    return statistics.median(seconds)


def idle_sessions(process, address):
    before = memory(process)
    sessions = [psycopg.connect(address) for _ in range(IDLE)]
    show(f"{IDLE} idle sessions: memory", memory(process) - before, 200, "MB")
    begin = processor_seconds(process)
    time.sleep(5)
    show(f"{IDLE} idle sessions: share of a core", (processor_seconds(process) - begin) / 5 * 100, 1, "%")
    for session in sessions:
        session.close()


async def all_in(address):
    sessions = await asyncio.gather(*(psycopg.AsyncConnection.connect(address) for _ in range(AT_ONCE)))
    for session in sessions:
        await session.close()


def cancels(address):
    """Runs statements that would take minutes; cancels each after a while, and begins another."""
    seconds = []
    left = threading.Semaphore(CANCELS)

    def client(number):
        with psycopg.connect(address, autocommit=True) as session:
            while left.acquire(blocking=False):
                asked = []

                def cancel():
                    asked.append(time.monotonic())
                    session.cancel()
                timer = threading.Timer(random.uniform(1, 4), cancel)
                timer.start()
                try:
                    session.execute("SELECT * FROM iris TO TRAIN DNNClassifier WITH model.n_classes=3,"
                                    f" train.epoch=100000 LABEL class INTO cancelled_{number}")
                except psycopg.errors.QueryCanceled:
                    seconds.append(time.monotonic() - asked[0])
                timer.join()
    clients = [threading.Thread(target=client, args=(number,)) for number in range(RUNNING)]
    for thread in clients:
        thread.start()
    for thread in clients:
        thread.join()
    return sorted(seconds)


def cancelled_jobs(address):
    """CANCEL JOB from another session, until the job's process has heard it and written it down."""
    seconds = []
    with psycopg.connect(address, autocommit=True) as session, psycopg.connect(address, autocommit=True) as other:
        session.execute("SET sluice.async = on")
        for number in range(JOBS):
            answer = session.execute("SELECT * FROM iris TO TRAIN DNNClassifier WITH model.n_classes=3,"
                                     f" train.epoch=100000 LABEL class INTO asynchronous_{number}")
            job = dict(zip((column.name for column in answer.description), answer.fetchone()))["job"]
            time.sleep(random.uniform(1, 2))
            begin = time.monotonic()
            other.execute(f"CANCEL JOB {job}")
            while other.execute("SELECT state FROM sluice.jobs WHERE id = %s", (job,)).fetchone()[0] == "RUNNING":
                time.sleep(0.01)
            seconds.append(time.monotonic() - begin)
    return sorted(seconds)


def first_notice(address):
    with psycopg.connect(address, autocommit=True) as session:
        heard = []
        session.add_notice_handler(lambda notice: heard.append(time.monotonic()))
        begin = time.monotonic()
        session.execute("SELECT * FROM many TO TRAIN LinearClassifier WITH train.epoch=1 LABEL y INTO of_many")
        return heard[0] - begin


def train_many(address, before="", model="of_many"):
    with psycopg.connect(address) as session:
        if before:
            session.execute(before)
        session.execute(f"SELECT * FROM many TO TRAIN LinearClassifier WITH train.epoch=1 LABEL y INTO {model}")


def main():
    host, port = postgres.start("max_connections=1200")
    direct = f"host={host} port={port} dbname=postgres user=postgres"
    with psycopg.connect(direct, autocommit=True) as server:
        server.execute("CREATE ROLE needs_password; CREATE ROLE reader LOGIN PASSWORD 'secret' IN ROLE needs_password")
        server.execute("CREATE TABLE iris AS SELECT i % 3 AS class, i % 7 + i % 3 AS a, i % 5 / 2.0 AS b, i % 11 AS c,"
                       " i % 3 * 1.5 + i % 4 AS d FROM generate_series(1, 110) i")
        columns = ", ".join(f"(i * {13 + 2 * k} % 9973) / 100.0 AS n{k}" for k in range(7))
        words = ", ".join(f"'word ' || i * {7 + 2 * k} % {5 + k} AS w{k}" for k in range(6))
        server.execute(f"CREATE TABLE many AS SELECT {columns}, {words}, (i % 9973 > 5000)::int AS y"
                       f" FROM generate_series(1, {ROWS}) i")
        server.execute("GRANT SELECT ON iris, many TO reader; ANALYZE")
    url = f"postgresql://postgres@{host}:{port}/postgres"
    process, door = gateway.start(url, "--auth", "trust")
    address = f"host=127.0.0.1 port={door} dbname=postgres user=postgres"
    train_many(address)

    idle_sessions(process, address)
    at_once = median_seconds(lambda: asyncio.run(all_in(address)))
    show(f"{AT_ONCE} clients at once: all in", at_once, 3, "s")
    print(f"{'  directly':58} {median_seconds(lambda: asyncio.run(all_in(direct))):9.4g} s")
    seconds = cancels(address)
    assert len(seconds) == CANCELS
    show(f"cancel, p99, {RUNNING} statements running", seconds[-1 - CANCELS // 100], 1, "s")
    show(f"CANCEL JOB from another session, longest of {JOBS}", cancelled_jobs(address)[-1], 1, "s")
    show("first notice of a TRAIN of a million rows", statistics.median(first_notice(address) for _ in range(ROUNDS)) * 1000,
         300, "ms")
    psql = ["psql", "-X", "-q", "-h", "127.0.0.1", "-U", "postgres", "-d", "postgres", "-o", "/dev/null", "-c"]
    quiet = {"check": True, "stderr": subprocess.DEVNULL, "env": {**os.environ, "PGSSLMODE": "disable"}}
    nothing = median_seconds(lambda: subprocess.run([*psql, "SELECT 1", "-p", str(door)], **quiet))
    iris = median_seconds(lambda: subprocess.run([*psql, IRIS, "-p", str(door)], **quiet))
    show("TRAIN of iris by psql, without psql's own start", (iris - nothing) * 1000, 30, "ms")

    straight = median_seconds(lambda: train_many(address))
    session = median_seconds(lambda: train_many(address, "CREATE TEMPORARY TABLE mine (a int)"))
    show("a million rows through the session, of directly", session / straight, 1.4, "x")

    for auth in ("password", "scram"):
        _, port_of = gateway.start(url, "--auth", auth, *(["--verifiers", url] if auth == "scram" else []))
        login = f"host=127.0.0.1 port={port_of} dbname=postgres user=reader password=secret sslmode=require"
        begin = f"host={host} port={port} dbname=postgres user=reader password=secret sslmode=disable"
        connect = median_seconds(lambda: psycopg.connect(login).close())
        plain = median_seconds(lambda: psycopg.connect(begin).close())
        show(f"connect by TLS, {auth}: over direct without TLS", (connect - plain) * 1000, 15, "ms")
        train_many(login, model="of_reader")
        seconds = median_seconds(lambda: train_many(login, model="of_reader"))
        if auth == "password":
            by_password = seconds
        else:
            show("a million rows by ticket, of by password", seconds / by_password, 1.15, "x")


main()
