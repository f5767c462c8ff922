#!/usr/bin/env python3
"""The TCP router beside nginx (stream) and HAProxy (mode tcp): same backend, same load,
each pinned to one processor, one after the other and in turn.

    cargo build --release -p routing --example tcp_router
    bench/tcp-router/run.py [ROUNDS] [SECONDS]

Needs nginx with its stream module, haproxy and wrk. Prints the median over the rounds of
the processor time that the proxy itself used: for an exchange of 1 KiB over 64 kept
connections, for a connection with one such exchange, and for a gigabyte carried.
"""

import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 5
SECONDS = int(sys.argv[2]) if len(sys.argv) > 2 else 3
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXAMPLE = os.path.join(TOP, "target/release/examples/tcp_router")
BACKEND, BULK = 18480, 64 << 20
PROXIES = {"ours": 18481, "ours, copying": 18482, "nginx": 18483, "haproxy": 18484}
TICK = os.sysconf("SC_CLK_TCK")

NGINX_BACKEND = """daemon off; worker_processes 1; pid %(folder)s/backend.pid; error_log /dev/null;
events { worker_connections 4096; }
http { access_log off; keepalive_requests 1000000000; sendfile on;
  server { listen 127.0.0.1:18480 backlog=4096; root %(folder)s; } }
"""
NGINX_STREAM = """load_module /usr/lib/nginx/modules/ngx_stream_module.so;
daemon off; worker_processes 1; pid %(folder)s/stream.pid; error_log /dev/null;
events { worker_connections 4096; }
stream { server { listen 127.0.0.1:18483 backlog=4096 so_keepalive=on; tcp_nodelay on;
  proxy_pass 127.0.0.1:18480; } }
"""
HAPROXY = """global
  nbthread 1
  maxconn 8000
defaults
  mode tcp
  timeout connect 30s
  timeout client 300s
  timeout server 300s
frontend f
  bind 127.0.0.1:18484 backlog 4096
  default_backend b
backend b
  server s 127.0.0.1:18480
"""


def start(command, cpu):
    return subprocess.Popen(
        ["taskset", "-c", str(cpu), *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def family(pid):
    """A process and its children: nginx works in one of those."""
    with open(f"/proc/{pid}/task/{pid}/children") as children:
        return [pid, *(child for one in children.read().split() for child in family(int(one)))]


def cpu_seconds(pid):
    total = 0.0
    for one in family(pid):
        # Nanoseconds on a processor, of each thread.
        for task in os.listdir(f"/proc/{one}/task"):
            with open(f"/proc/{one}/task/{task}/schedstat") as stat:
                total += int(stat.read().split()[0]) / 1e9
    return total


def wrk(port, *headers):
    command = ["taskset", "-c", "1", "wrk", "-t1", "-c64", f"-d{SECONDS}s"]
    for header in headers:
        command += ["-H", header]
    text = subprocess.run(
        [*command, f"http://127.0.0.1:{port}/1k"], capture_output=True, text=True, check=True
    ).stdout
    if re.search(r"Socket errors|Non-2xx", text):
        print(text, file=sys.stderr)
    return int(re.search(r"(\d+) requests in", text)[1])


def bulk(port):
    """Reads a long answer over one connection; gigabytes."""
    taken, buffer = 0, bytearray(1 << 20)
    with socket.create_connection(("127.0.0.1", port)) as stream:
        for _ in range(16):
            stream.sendall(b"GET /bulk HTTP/1.1\r\nHost: x\r\n\r\n")
            left = BULK
            while left > 0:
                count = stream.recv_into(buffer)
                assert count > 0
                left -= count
                taken += count
            # The head makes the answer longer than its body: what is left of it comes now.
            stream.settimeout(0.05)
            try:
                while (count := stream.recv_into(buffer)) > 0:
                    taken += count
            except TimeoutError:
                pass
            stream.settimeout(None)
    return taken / 1e9


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        with open(f"{folder}/1k", "wb") as file:
            file.write(b"Z" * 1024)
        with open(f"{folder}/bulk", "wb") as file:
            file.write(os.urandom(1 << 20) * (BULK >> 20))
        for name, text in [
            ("backend", NGINX_BACKEND),
            ("stream", NGINX_STREAM),
            ("haproxy", HAPROXY),
        ]:
            with open(f"{folder}/{name}.conf", "w") as file:
                file.write(text % {"folder": folder} if "%(" in text else text)
        target = f"127.0.0.1:{BACKEND}"
        processes = {
            "backend": start(["nginx", "-c", f"{folder}/backend.conf"], 1),
            "ours": start([EXAMPLE, "127.0.0.1:18481", target, "1"], 0),
            "ours, copying": start([EXAMPLE, "127.0.0.1:18482", target, "1", "copy"], 0),
            "nginx": start(["nginx", "-c", f"{folder}/stream.conf"], 0),
            "haproxy": start(["haproxy", "-db", "-f", f"{folder}/haproxy.conf"], 0),
        }
        try:
            measure(processes)
        finally:
            for process in processes.values():
                process.terminate()
            for process in processes.values():
                process.wait()


def measure(processes):
    time.sleep(1)
    loads = {
        "1 KiB exchange, µs": lambda port: wrk(port) / 1e6,
        "connection, µs": lambda port: wrk(port, "Connection: close") / 1e6,
        "bulk, s/GB": bulk,
    }
    found = {}
    for round_ in range(ROUNDS):
        for what, load in loads.items():
            order = list(PROXIES) if round_ % 2 == 0 else list(PROXIES)[::-1]
            for name in order:
                pid = processes[name].pid
                before = cpu_seconds(pid)
                done = load(PROXIES[name])
                found.setdefault((what, name), []).append((cpu_seconds(pid) - before) / done)
    for what in loads:
        for name in PROXIES:
            values = found[what, name]
            middle = statistics.median(values)
            print(f"{what:20} {name:14} {middle:8.3f}  ({min(values):.3f} to {max(values):.3f})")


main()
