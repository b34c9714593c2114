"""A gateway with a PostgreSQL door for the benchmarks, ended when the program ends."""
import atexit
import os
import shutil
import socket
import subprocess
import tempfile
import time

BINARY = "build/release/server/sluice"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(port):
    for _ in range(100):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise SystemExit(f"nothing listens on port {port}")


def start(source, *options):
    """Returns (process, port of the PostgreSQL door)."""
    folder = tempfile.mkdtemp(prefix="sluice-bench-")
    port = free_port()
    with open(os.path.join(folder, "log"), "w") as log:
        process = subprocess.Popen([BINARY, "serve", "--source", source, "--grpc", "127.0.0.1:0", "--pg",
                                    f"127.0.0.1:{port}", *options],
                                   stdout=subprocess.DEVNULL, stderr=log, env={**os.environ, "HOME": folder})

    def stop():
        process.terminate()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)
    atexit.register(stop)
    wait_for(port)
    return process, port
