"""`python -m harvestman.sim.cost`: CPU time of the simulated web per request, everything included.

The crawler must be the bottleneck, so the server may cost 0.1 ms. It runs in a process of its own; its CPU time is read
from the operating system before and after a load of requests, on kept and on fresh connections.
"""

from __future__ import annotations

import multiprocessing
import socket
import sys
import tempfile
from multiprocessing.connection import Connection as Pipe
from pathlib import Path

import psutil

from harvestman.sim.plan import Plan
from harvestman.sim.server import run
from harvestman.sim.web import Web

WINDOW = 50
HEAD = "Accept-Encoding: gzip, deflate, br, zstd\r\nUser-Agent: cost/1 (+http://localhost/)\r\nAccept: */*\r\n"


def _server(plan: Plan, log: Path, pipe: Pipe) -> None:
    run(plan, 0, 0, log, lambda port, _: pipe.send(port))


def _ask(sock: socket.socket, host: str, path: str) -> None:
    sock.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n{HEAD}\r\n".encode())


def _read(sock: socket.socket) -> int:
    """Reads one answer to its end; the bytes of its body."""
    head, _, body = sock.recv(1 << 20).partition(b"\r\n\r\n")
    size = int(head.partition(b"Content-Length: ")[2].partition(b"\r\n")[0])
    have = len(body)
    while have < size:
        have += len(sock.recv(1 << 20))
    return size


def _load(web: Web, port: int, count: int, per_connection: int) -> int:
    """`count` requests, always to `WINDOW` hosts at a time as a crawler makes them; the bytes of all bodies."""
    total = 0
    for first in range(0, count, WINDOW * per_connection):
        hosts = [web.hosts[(first // per_connection + number) % len(web.hosts)] for number in range(WINDOW)]
        socks = [socket.create_connection((host.address, port)) for host in hosts]
        for turn in range(per_connection):
            for sock, host in zip(socks, hosts, strict=True):
                _ask(sock, f"{host.name}:{port}", web.path(host, turn * 7 % web.plan.pages))
            total += sum(map(_read, socks))
        for sock in socks:
            sock.close()
    return total


def _measure(plan: Plan, count: int) -> None:
    ours, theirs = multiprocessing.Pipe()
    with tempfile.TemporaryDirectory() as folder:
        server = multiprocessing.Process(target=_server, args=(plan, Path(folder, "log"), theirs))
        server.start()
        try:
            port, web, process = ours.recv(), Web(plan), psutil.Process(server.pid)
            for per_connection in (20, 5, 1):
                before = process.cpu_times()
                size = _load(web, port, count, per_connection)
                after = process.cpu_times()
                spent = after.user + after.system - before.user - before.system
                print(f"{per_connection:3} requests a connection: {spent / count * 1e6:6.1f} us, {size // count} bytes")
        finally:
            server.terminate()
            server.join()


def main() -> int:
    _measure(Plan(hosts=2000, pages=50, profile="clean"), 20_000)
    return 0


if __name__ == "__main__":
    sys.exit(main())
