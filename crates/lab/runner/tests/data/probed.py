"""A server whose answers are known: PORT INDEX LEADER.

/count    how often it was asked
/leader   whether its index is that of the leader
/metrics  a counter that grows by 50 a second of its own clock, and one that stays at 7
/bad      status 503
/slow     after 350 ms
Ten times a second it prints a line `tick`.
"""

import http.server
import sys
import threading
import time

port, index, leader = int(sys.argv[1]), sys.argv[2], sys.argv[3]
began = time.monotonic()
asked = 0


def answer(path):
    global asked
    if path == "/count":
        asked += 1
        return '{"count": %d, "name": "web.%s"}' % (asked, index)
    if path == "/leader":
        return '{"leader": %s}' % ("true" if index == leader else "false")
    if path == "/metrics":
        grown = 50 * (time.monotonic() - began)
        return '# TYPE work_total counter\nwork_total{kind="a"} %f\nwork_total{kind="b"} 7\n' % grown
    if path == "/slow":
        time.sleep(0.35)
    return ""


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = answer(self.path).encode()
        self.send_response(503 if self.path == "/bad" else 200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def tick():
    while True:
        print("tick", flush=True)
        time.sleep(0.1)


threading.Thread(target=tick, daemon=True).start()
http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
