"""A PostgreSQL server for the benchmarks: the one in SLUICE_BENCH_POSTGRES (host:port), or a new one,
tuned as for the reference figures (large buffers, no synchronous commit) and stopped at exit."""
import atexit
import os
import shutil
import socket
import subprocess
import tempfile

BIN = "/usr/lib/postgresql/15/bin"


def start(*settings):
    """Returns (host, port). Callers create the databases. `settings`: additional "name=value" settings."""
    given = os.environ.get("SLUICE_BENCH_POSTGRES")
    if given:
        host, port = given.rsplit(":", 1)
        return host, int(port)
    folder = tempfile.mkdtemp(prefix="sluice-bench-")
    as_owner = []
    if os.getuid() == 0:
        shutil.chown(folder, "postgres")
        as_owner = ["runuser", "-u", "postgres", "--"]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    quiet = {"stdout": subprocess.DEVNULL, "check": True}
    subprocess.run([*as_owner, f"{BIN}/initdb", "-D", f"{folder}/pg", "-U", "postgres", "-A", "trust",
                    "-E", "UTF8", "--locale=C.UTF-8"], **quiet)
    # Members of one role have to give a password; all other roles are trusted.
    with open(f"{folder}/pg/pg_hba.conf", "r+") as rules:
        others = rules.read()
        rules.seek(0)
        rules.write("host all +needs_password 127.0.0.1/32 scram-sha-256\n" + others)
    options = (f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder} "
               "-c shared_buffers=3GB -c synchronous_commit=off -c work_mem=64MB -c max_wal_size=8GB"
               + "".join(f" -c {setting}" for setting in settings))

    def stop():
        subprocess.run([*as_owner, f"{BIN}/pg_ctl", "-D", f"{folder}/pg", "-m", "immediate", "stop"],
                       stdout=subprocess.DEVNULL)
        shutil.rmtree(folder, ignore_errors=True)
    atexit.register(stop)
    subprocess.run([*as_owner, f"{BIN}/pg_ctl", "-D", f"{folder}/pg", "-w", "-l", f"{folder}/log",
                    "-o", options, "start"], **quiet)
    return "127.0.0.1", port
