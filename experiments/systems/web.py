#!/usr/bin/env python3
"""A small web server whose capacity is known, as an example of a system to measure.

One worker answers requests one after the other, each in SERVICE seconds; requests that
come meanwhile wait in line. So it answers at most 1 / SERVICE requests a second, and
slows down before that, as every queue does. It waits instead of computing, so that even
a small machine can find its limit.
"""
import argparse
import asyncio

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\nok\n"
# Requests that may wait in line; more are sent away.
LINE = 10_000
BUSY = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"


class Worker:
    """Knows when it will be free again."""

    def __init__(self, service):
        self.service = service
        self.free_at = 0.0
        self.waiting = 0

    async def work(self):
        """Waits for one's turn, and for the work itself. False: the line is full."""
        if self.waiting >= LINE:
            return False
        self.waiting += 1
        loop = asyncio.get_running_loop()
        self.free_at = max(self.free_at, loop.time()) + self.service
        done = loop.create_future()
        loop.call_at(self.free_at, lambda: done.done() or done.set_result(None))
        try:
            await done
        finally:
            self.waiting -= 1
        return True


async def serve(worker, reader, writer):
    try:
        while True:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(ANSWER if await worker.work() else BUSY)
            await writer.drain()
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
        pass
    finally:
        writer.close()


async def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--service", type=float, default=0.002, help="seconds for a request")
    args = parser.parse_args()
    worker = Worker(args.service)
    server = await asyncio.start_server(
        lambda reader, writer: serve(worker, reader, writer),
        "127.0.0.1",
        args.port,
        backlog=1024,
    )
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
