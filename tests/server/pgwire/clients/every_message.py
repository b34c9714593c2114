"""Messages of every kind in every state, cut, doubled and with lengths that cannot be. Arguments: port, database, seed."""
import random
import socket
import struct
import sys
import time

import psycopg

port, database = int(sys.argv[1]), sys.argv[2]
rnd = random.Random(int(sys.argv[3]))
SESSIONS = 80
TRAIN = ("SELECT a, y FROM (SELECT i % 7 AS a, i % 2 AS y FROM generate_series(1, 2000) AS i) AS s TO TRAIN DNNClassifier"
         " WITH train.epoch=300 LABEL y INTO hostile")
PREDICT = "SELECT i % 7 AS a FROM generate_series(1, 3000) AS i TO PREDICT USING known"
STATEMENTS = [
    "SELECT 1", TRAIN, PREDICT, "SHOW JOBS", "SELECT nope", "BEGIN", "COMMIT", "ROLLBACK", "COPY copied FROM STDIN",
    "COPY copied TO STDOUT", "SELECT i FROM generate_series(1, 20000) AS i", "PREPARE p AS " + PREDICT, "EXECUTE p",
    "DEALLOCATE ALL", "DISCARD ALL", "DECLARE c CURSOR FOR " + PREDICT, "FETCH 10 FROM c", "COPY (" + PREDICT + ") TO STDOUT",
    "SET client_encoding = 'LATIN1'", "SET client_encoding = 'SJIS'", "SET client_encoding = 'UTF8'",
    "SET standard_conforming_strings = off", "SELECT 1; " + PREDICT + "; SELECT 2", "EXPLAIN " + TRAIN, "", ";", "SELECT 'x",
    "TO TRAIN", "SELECT 1 TO PREDICT", "CREATE TEMPORARY TABLE IF NOT EXISTS t (a int)", "SELECT a FROM t TO PREDICT USING known",
    "SAVEPOINT s", "ROLLBACK TO s", "SELECT pg_terminate_backend(pg_backend_pid())"]
LENGTHS = [0, 1, 3, 4, 5, 2**30, 2**31 - 1, 2**31, 2**32 - 1]


def message(kind, body=b""):
    return kind + struct.pack("!I", len(body) + 4) + body


def startup(**settings):
    body = struct.pack("!I", 196608) + b"".join(f"{name}\0{value}\0".encode() for name, value in settings.items()) + b"\0"
    return struct.pack("!I", len(body) + 4) + body


def of_the_protocol():
    sql = rnd.choice(STATEMENTS).encode() + b"\0"
    name, other = (rnd.choice([b"\0", b"a\0", b"b\0"]) for _ in range(2))
    values = rnd.choice([b"\0\0", struct.pack("!Hi", 1, -1), struct.pack("!Hi", 1, 4) + b"1234", struct.pack("!Hi", 1, 1000) + b"x"])
    formats = rnd.choice([b"\0\0", struct.pack("!HH", 1, 1), struct.pack("!HHH", 2, 0, 1)])
    return rnd.choice([
        lambda: message(b"Q", sql),
        lambda: message(b"P", name + sql + b"\0\0"),
        lambda: message(b"B", name + other + formats + values + formats),
        lambda: message(b"D", rnd.choice([b"S", b"P", b"x"]) + name),
        lambda: message(b"E", name + struct.pack("!i", rnd.choice([0, 1, 5, -1, 2**31 - 1]))),
        lambda: message(b"C", rnd.choice([b"S", b"P", b"x"]) + name),
        lambda: message(b"S"), lambda: message(b"S"), lambda: message(b"H"), lambda: message(b"c"),
        lambda: message(b"d", b"1\n" * rnd.randrange(1, 50)), lambda: message(b"f", b"no\0"),
        lambda: message(rnd.choice([b"F", b"p", b"R", b"Z", b"\0", b"~", b"h"]), rnd.randbytes(rnd.randrange(30)))])()


def hostile():
    sent = of_the_protocol()
    spoilt = rnd.randrange(12)
    if spoilt == 0:
        return sent + sent
    if spoilt == 1:
        return sent[:rnd.randrange(1, len(sent) + 1)]
    if spoilt == 2:
        return sent[:1] + struct.pack("!I", rnd.choice(LENGTHS)) + sent[5:]
    if spoilt == 3:
        at = rnd.randrange(len(sent))
        return sent[:at] + rnd.randbytes(1) + sent[at + 1:]
    return sent


def read_all(client, seconds):
    client.settimeout(seconds)
    try:
        while client.recv(65536):
            pass
    except OSError:
        pass


def session():
    client = socket.create_connection(("127.0.0.1", port))
    begins = rnd.randrange(10)
    if begins == 0:
        client.send(rnd.randbytes(rnd.randrange(1, 2000)))
    elif begins == 1:
        client.send(startup(user="postgres", database=database)[:rnd.randrange(1, 30)])
    else:
        client.send(startup(user="postgres", database=database, application_name="hostile"))
    if begins > 2:
        read_all(client, 0.2)
    try:
        for _ in range(rnd.randrange(1, 40)):
            client.send(hostile())
            if rnd.randrange(4) == 0:
                read_all(client, 0.01)
        if rnd.randrange(2):
            client.send(message(b"c") + message(b"S"))
            read_all(client, 0.3)
    except OSError:
        pass
    if rnd.randrange(2):  # goes without a word
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return client


with psycopg.connect(host="127.0.0.1", port=port, user="postgres", dbname=database, autocommit=True) as other:
    other.execute("CREATE TABLE copied (a int)")
    other.execute("SELECT i % 7 AS a, i % 2 AS y FROM generate_series(1, 200) AS i TO TRAIN LinearClassifier"
                  " WITH train.epoch=1 LABEL y INTO known")
    held = []
    for number in range(SESSIONS):
        held.append(session())
        if len(held) > 12:
            held.pop(rnd.randrange(len(held))).close()
        if number % 10 == 0:
            assert other.execute("SELECT 41 + 1").fetchone() == (42,)
    for client in held:
        client.close()
    left = "something"
    for _ in range(300):
        left = other.execute("SELECT query FROM pg_stat_activity WHERE application_name = 'hostile' AND datname = %s",
                             (database,)).fetchall() + other.execute(
                                 "SELECT statement FROM sluice.jobs WHERE state = 'RUNNING'").fetchall()
        if not left:
            break
        time.sleep(0.1)
    assert not left, left
    assert len(other.execute("SELECT 3 AS a TO PREDICT USING known").fetchall()) == 1
print("ok")
