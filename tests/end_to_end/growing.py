"""A server that grows with every question, or does not: PORT grows|flat.

/value    a number, 100 at first
/slow     after 50 ms at first
Each answer of /value also takes a mebibyte of memory for good, and writes the first and the
last line of a turn that lasts 20 ms at first.
"""

import datetime
import http.server
import json
import sys
import time

port, grows = int(sys.argv[1]), sys.argv[2] == "grows"
asked = {"/value": 0, "/slow": 0, "/": 0}
held = []


def size(path):
    return asked[path] if grows else 0


def say(message):
    now = datetime.datetime.now(datetime.timezone.utc).isoformat()
    print(json.dumps({"timestamp": now, "message": message}), flush=True)


def turn():
    say("turn.starting")
    time.sleep(0.02 + 0.002 * size("/value"))
    say("turn.finished")


def answer(path):
    asked[path] += 1
    if path == "/value":
        if grows:
            held.append(b"x" * (1 << 20))
        turn()
        return '{"value": %d}' % (100 + 5 * size(path))
    if path == "/slow":
        time.sleep(0.05 + 0.005 * size(path))
    return ""


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = answer(self.path).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
