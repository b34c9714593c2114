"""A PostgreSQL server of the test's own, which the pods reach at this machine's address in the cluster."""
import contextlib
import os
import shutil
import socket
import subprocess
import tempfile

import psycopg2

HOST = "10.250.0.254"
BIN = "/usr/lib/postgresql/15/bin"
PASSWORD = "only-of-this-test"


class Database:
    """Its logins are `gateway`, an ordinary role, and `ann`, who trains; both have the password."""

    def __init__(self, folder, port):
        self.folder, self.port = folder, port
        self._connections = {}  # one of each database, kept: tests look several times a second

    @classmethod
    def start(cls):
        folder = tempfile.mkdtemp(prefix="sluice-nodes-pg.", dir="/var/tmp")
        shutil.chown(folder, "postgres")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self = cls(folder, free.getsockname()[1])
        self._as_postgres(f"{BIN}/initdb", "-D", self._data, "-U", "postgres", "-A", "trust", "-E", "UTF8")
        with open(f"{self._data}/pg_hba.conf", "a") as rules:
            rules.write("host all all 10.0.0.0/8 scram-sha-256\n")
        options = f"-p {self.port} -c listen_addresses=127.0.0.1,{HOST} -c fsync=off -c max_connections=200"
        self._as_postgres(f"{BIN}/pg_ctl", "-D", self._data, "-w", "-l", f"{self.folder}/log", "-o",
                          f"{options} -c unix_socket_directories={self.folder}", "start")
        with contextlib.suppress(OSError), open(f"{self._data}/postmaster.pid") as process, \
                open(f"/proc/{process.readline().strip()}/autogroup", "w") as session:
            session.write("-10")  # many other sessions run beside it
        self.run(f"CREATE ROLE gateway LOGIN PASSWORD '{PASSWORD}';"
                 f"CREATE ROLE ann LOGIN PASSWORD '{PASSWORD}';"
                 "CREATE DATABASE db OWNER ann;"
                 "GRANT CREATE ON DATABASE db TO gateway", "postgres")
        return self

    def close(self):
        self._as_postgres(f"{BIN}/pg_ctl", "-D", self._data, "-m", "immediate", "stop")
        shutil.rmtree(self.folder)

    @property
    def _data(self):
        return f"{self.folder}/data"

    @property
    def url(self):
        """The gateway's, for the pods."""
        return self.url_of("gateway")

    def url_of(self, role):
        return f"postgresql://{role}:{PASSWORD}@{HOST}:{self.port}/db"

    def run(self, script, database="db"):
        """Rows, as lists of text; as a superuser, beside the gateway."""
        for last in (False, True):
            try:
                return self._run_on_kept(script, database)
            except (psycopg2.OperationalError, psycopg2.InterfaceError):  # a server that was restarted
                self._connections.pop(database, None)
                if last:
                    raise

    def _run_on_kept(self, script, database):
        if database not in self._connections:
            self._connections[database] = psycopg2.connect(host="127.0.0.1", port=self.port, user="postgres",
                                                           dbname=database)
            self._connections[database].autocommit = True
        rows = []
        with self._connections[database].cursor() as cursor:
            for statement in filter(None, map(str.strip, script.split(";"))):
                cursor.execute(statement)
                if cursor.description:
                    rows += [["" if value is None else str(value) for value in row] for row in cursor]
        return rows

    def prepare(self, script):
        """Runs what `sluice setup` prints, as an administrator does."""
        subprocess.run(["psql", "-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres", "-d", "db", "-Xq",
                        "-v", "ON_ERROR_STOP=1"], input=script, text=True, check=True)

    def value(self, query):
        rows = self.run(query)
        return rows[0][0] if rows else None

    @staticmethod
    def _as_postgres(*command):
        done = subprocess.run(["runuser", "-u", "postgres", "--", *command], stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL, cwd="/",
                              env={**os.environ, "LC_ALL": "C.UTF-8"})
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
