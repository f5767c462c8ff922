#!/usr/bin/env python3
"""A driver for the order service: makes orders over HTTP and counts their states.

It speaks JSON lines with Headroom on standard input and output; see docs/drivers.md.
"""
import http.client
import json
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

printing = threading.Lock()
connections = threading.local()
address = None


def say(**message):
    with printing:
        print(json.dumps(message), flush=True)


def call(method, path):
    """One request over a connection that each thread keeps."""
    if not hasattr(connections, "kept"):
        connections.kept = http.client.HTTPConnection(address, timeout=10)
    try:
        connections.kept.request(method, path)
        answer = connections.kept.getresponse()
        body = answer.read()
    except OSError:
        connections.kept.close()
        raise
    if answer.status != 200:
        raise OSError(f"{method} {path}: status {answer.status}")
    return json.loads(body)


def watch():
    """Tells how many orders are in each state, whenever that changes."""
    last = None
    while True:
        try:
            counts = call("GET", "/counts")
        except OSError as error:
            print(f"count: {error}", file=sys.stderr, flush=True)
        else:
            if counts != last:
                say(counts={"order": counts})
                last = counts
        time.sleep(0.05)


def make(id, count, rate, in_flight, **_):
    errors = {}

    def order(number, start):
        if rate:  # the time to send is fixed, however slow the answers are
            time.sleep(max(0, start + number / rate - time.monotonic()))
        try:
            call("POST", "/orders")
        except OSError as error:
            errors[str(error)] = errors.get(str(error), 0) + 1

    with ThreadPoolExecutor(max_workers=min(in_flight, 64)) as pool:
        start = time.monotonic()
        for number in range(count):
            pool.submit(order, number, start)
    failed = sum(errors.values())
    say(id=id, done=True, made=count - failed, failed=failed, errors=errors)


for line in sys.stdin:
    message = json.loads(line)
    if message["op"] == "hello":
        address = urlsplit(message["talk_to"]).netloc
        say(ok=True, entities={"order": ["placed", "paid", "shipped"]})
        threading.Thread(target=watch, daemon=True).start()
    elif message["op"] == "make":
        del message["op"]
        threading.Thread(target=make, kwargs=message, daemon=True).start()
    elif message["op"] == "close":
        break
