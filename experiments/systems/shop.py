#!/usr/bin/env python3
"""A small order service, as an example of a system to measure.

POST /orders takes an order, GET /counts says how many were placed, paid and shipped.
Every order is paid and shipped by one of WORKERS workers. Each log line is a JSON object.
"""
import argparse
import json
import queue
import random
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

WORKERS = 4
lock = threading.Lock()
counts = {"placed": 0, "paid": 0, "shipped": 0}
waiting = queue.Queue()


def log(message, **fields):
    line = json.dumps({"time": time.time(), "message": message, **fields})
    with lock:
        print(line, flush=True)


def reached(state, order, **fields):
    log(f"order.{state}", order=order, **fields)
    with lock:
        counts[state] += 1


def work(worker):
    chance = random.Random(worker)
    while True:
        order = waiting.get()
        time.sleep(chance.uniform(0.010, 0.020))
        reached("paid", order, worker=f"worker-{worker}")
        time.sleep(chance.uniform(0.001, 0.003))
        reached("shipped", order, worker=f"worker-{worker}")


def take_stock():
    """Recurring work that grows with the number of orders."""
    while True:
        time.sleep(0.2)
        log("stock-taking.begin")
        time.sleep(counts["placed"] * 0.00002)
        log("stock-taking.end")


class Shop(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with lock:
            order = f"order-{counts['placed']}"
            counts["placed"] += 1
        log("order.placed", order=order)
        waiting.put(order)
        self.answer({"order": order})

    def do_GET(self):
        with lock:
            now = dict(counts)
        self.answer(now)

    def answer(self, body):
        body = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass  # its own lines are enough


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int, required=True)
port = parser.parse_args().port
for number in range(WORKERS):
    threading.Thread(target=work, args=(number,), daemon=True).start()
threading.Thread(target=take_stock, daemon=True).start()
Server(("127.0.0.1", port), Shop).serve_forever()
