#!/usr/bin/python3
"""The cost of the PostgreSQL door compared with pgbouncer in session mode, in one run: medians of 5, as ratios.

Needs pgbench, pgbouncer and psql. Direct connections, pgbouncer and the door take turns.

A session begins with a new back end in all three ways. By default pgbouncer would keep its back ends, with filled
caches and mapped memory, from one round to the next, while direct connections and the door start each round with new
ones: in rounds of three seconds that alone decided the comparison at 8 clients. Therefore server_lifetime = 0 (a
server connection is used once), and rounds are long enough for the start to count for little.
"""
import os
import re
import shutil
import statistics
import subprocess
import tempfile
import time

import gateway
import postgres

ROUNDS = 5
SECONDS = 10
ROWS = 1_000_000


def run(command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


def main():
    host, server_port = postgres.start()
    user, name = "postgres", "postgres"
    folder = tempfile.mkdtemp(prefix="door_bench_")
    os.chmod(folder, 0o777)
    bouncer_port = gateway.free_port()
    with open(f"{folder}/users", "w") as file:
        file.write(f'"{user}" ""\n')
    with open(f"{folder}/pgbouncer.ini", "w") as file:
        file.write(f"[databases]\n{name} = host={host} port={server_port} dbname={name}\n[pgbouncer]\n"
                   f"listen_addr=127.0.0.1\nlisten_port={bouncer_port}\nauth_type=trust\nauth_file={folder}/users\n"
                   f"pool_mode=session\nserver_lifetime=0\nmax_client_conn=2000\ndefault_pool_size=100\nlogfile=\nunix_socket_dir=\n"
                   f"ignore_startup_parameters=extra_float_digits\n")
    as_postgres = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    bouncer = subprocess.Popen(as_postgres + ["pgbouncer", "-q", f"{folder}/pgbouncer.ini"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, door_port = gateway.start(f"postgresql://{user}@{host}:{server_port}/{name}", "--auth", "trust")
    ways = {"direct": server_port, "pgbouncer": bouncer_port, "door": door_port}
    try:
        gateway.wait_for(bouncer_port)
        there = lambda port: ["-h", "127.0.0.1", "-p", str(port), "-U", user]
        run(["pgbench", "-i", "-q", "-s", "5"] + there(server_port) + [name])
        run(["psql", "-X"] + there(server_port) + ["-d", name, "-c", "DROP TABLE IF EXISTS door_bench",
             "-c", f"CREATE TABLE door_bench AS SELECT i, i / 7.0 AS x, 'text ' || i AS t FROM generate_series(1, {ROWS}) i"])
        rows = f"{folder}/rows"

        def transactions(port, clients):
            said = run(["pgbench", "-n", "-S", "-M", "prepared", "-c", str(clients), "-T", str(SECONDS)] + there(port) + [name],
                       env={**os.environ, "PGSSLMODE": "disable"})
            return float(re.search(r"tps = ([0-9.]+)", said).group(1))

        def seconds(port, *commands):
            begin = time.monotonic()
            run(["psql", "-X", "-q"] + there(port) + ["-d", name] + [part for c in commands for part in ("-c", c)],
                env={**os.environ, "PGSSLMODE": "disable"})
            return time.monotonic() - begin

        measures = {
            "pgbench -S prepared, 1 client (transactions/s)": lambda port: transactions(port, 1),
            "pgbench -S prepared, 8 clients (transactions/s)": lambda port: transactions(port, 8),
            "COPY of 1M rows out (s)": lambda port: seconds(port, f"\\copy door_bench to {rows}"),
            "COPY of 1M rows in (s)": lambda port: seconds(port, "BEGIN", "TRUNCATE door_bench",
                                                           f"\\copy door_bench from {rows}", "COMMIT"),
            "psql connects (s)": lambda port: seconds(port, "SELECT 1"),
        }
        print(f"{'':48} {'direct':>10} {'pgbouncer':>10} {'door':>10}   door / pgbouncer")
        for what, measure in measures.items():
            got = {way: [] for way in ways}
            for _ in range(ROUNDS):
                for way, port in ways.items():
                    got[way].append(measure(port))
            median = {way: statistics.median(values) for way, values in got.items()}
            print(f"{what:48} {median['direct']:10.4g} {median['pgbouncer']:10.4g} {median['door']:10.4g}"
                  f"   {median['door'] / median['pgbouncer']:.2f}", flush=True)
    finally:
        bouncer.terminate()
        shutil.rmtree(folder, ignore_errors=True)


main()
