"""Asks a door for many handshakes of TLS and leaves after each; some leave in the middle of it."""

import socket
import ssl
import struct
import sys

context = ssl.create_default_context()
context.check_hostname = False
context.verify_mode = ssl.CERT_NONE


def ask():
    client = socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=30)
    client.sendall(struct.pack("!II", 8, 80877103))
    assert client.recv(1) == b"S"
    return client


def first_words():
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing)
    try:
        tls.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


for i in range(100):
    client = ask()
    if i % 4 == 0:
        client.sendall(first_words())
    elif i % 4 == 1:
        client.sendall(b"\x16\x03\x01\x00\x05no...")
    else:
        context.wrap_socket(client, server_hostname="a").close()
    client.close()
print("ok")
