"""A graph, and before its first service a TCP router at a known address.

Usage: relayed.py --listen ADDR --admin ADDR FILE [ARGUMENT...]

FILE and further arguments are those of `headroom graph up --processes`. In a network
namespace of its own the first service has an address that nobody knows before it runs;
for a comparison, services that have none are reached through a router as well.

Where this machine does not permit namespaces, it says so and waits to be ended: what was
expected of them is inconclusive then, and the run goes on.
"""

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

READY_WITHIN_S = 60


def started(arguments, errors=None):
    return subprocess.Popen([os.environ.get("HEADROOM", "headroom"), *arguments], stderr=errors)


def entry(admin, graph):
    """Where the first service listens, as soon as the graph runs; None if it ended."""
    until = time.monotonic() + READY_WITHIN_S
    while time.monotonic() < until:
        if graph.poll() is not None:
            return None
        try:
            with urllib.request.urlopen(f"http://{admin}/topology", timeout=5) as answer:
                topology = json.load(answer)
        except OSError:
            time.sleep(0.05)
            continue
        for instance in topology["instances"]:
            if instance["service"] == topology["entry"]:
                return instance["address"]
        time.sleep(0.05)
    sys.exit(f"relayed.py: the graph did not run within {READY_WITHIN_S} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--listen", required=True)
    parser.add_argument("--admin", required=True)
    options, more = parser.parse_known_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    errors = tempfile.TemporaryFile()
    graph = started(["graph", "up", *more, "--processes", "--listen", "127.0.0.1:0", "--admin", options.admin], errors)
    children = [graph]
    host, port = options.listen.rsplit(":", 1)
    try:
        address = entry(options.admin, graph)
        if address is None:
            errors.seek(0)
            why = errors.read().decode(errors="replace")
            if "make network namespaces" not in why:
                sys.exit(f"relayed.py: the graph ended: {why}")
            # Loads can connect, and get no answer: nothing is measured of them.
            with socket.create_server((host, int(port))):
                print(f"relayed.py: not done, and waiting: {why}", flush=True)
                signal.pause()
        router = started(["router", "tcp", "--listen", host, "--route", f"{port}={address}", "--threads", "1"])
        children.append(router)
        print(f"relayed.py: {options.listen} leads to {address}", flush=True)
        router.wait()
    finally:
        for child in reversed(children):
            if child.poll() is None:
                child.terminate()
                child.wait()


if __name__ == "__main__":
    main()
