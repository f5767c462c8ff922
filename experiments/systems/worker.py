#!/usr/bin/env python3
"""Takes jobs from a list of Redis, one at a time, and loses none if it is killed.

A job moves to a list of this worker's own while it is worked on, and leaves it when it is
done; what a worker finds there when it starts was begun by the one before it.
"""
import argparse
import json
import socket
import time

FOREVER = 0


class Redis:
    """Commands over one connection (RESP 2)."""

    def __init__(self, address):
        host, port = address.rsplit(":", 1)
        self.stream = socket.create_connection((host, int(port)))
        self.lines = self.stream.makefile("rb")

    def ask(self, *words):
        words = [str(word).encode() for word in words]
        parts = [b"*%d\r\n" % len(words)] + [b"$%d\r\n%s\r\n" % (len(word), word) for word in words]
        self.stream.sendall(b"".join(parts))
        return self.answer()

    def answer(self):
        line = self.lines.readline()
        if not line:
            raise SystemExit("worker.py: the queue has gone")
        kind, rest = line[:1], line[1:].strip()
        if kind == b"-":
            raise SystemExit(f"worker.py: the queue says {rest.decode()}")
        if kind == b"*":
            return [self.answer() for _ in range(int(rest))]
        if kind != b"$":
            return rest.decode()
        if int(rest) < 0:
            return None
        return self.lines.read(int(rest) + 2)[:-2].decode()


def log(message, **fields):
    print(json.dumps({"time": time.time(), "message": message, **fields}), flush=True)


parser = argparse.ArgumentParser()
parser.add_argument("--queue", required=True, help="address of the Redis")
parser.add_argument("--name", required=True, help="of this worker, also after it has died")
parser.add_argument("--take", type=float, required=True, help="seconds of work that a job is")
options = parser.parse_args()
queue, mine = Redis(options.queue), f"taken:{options.name}"
log("worker.ready")
while True:
    job = queue.ask("LINDEX", mine, -1) or queue.ask("BLMOVE", "jobs", mine, "RIGHT", "LEFT", FOREVER)
    log("job.begun", job=job, worker=options.name)
    time.sleep(options.take)
    queue.ask("MULTI")
    queue.ask("SADD", "done", job)
    queue.ask("LREM", mine, 1, job)
    queue.ask("EXEC")
    log("job.done", job=job, worker=options.name)
