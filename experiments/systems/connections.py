"""Says how many connections the services of a graph have opened to each other, and fails
if one edge opened more than it may.

Usage: connections.py ADMIN --most N

ADMIN is the address of `headroom graph up --admin`.
"""

import argparse
import re
import sys
import urllib.request

OPENED = re.compile(r'^headroom_graph_client_connections_opened_total\{(.*)\} (\S+)', re.MULTILINE)
SHOWN = 5
EDGE = re.compile(r'edge="([^"]*)"')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("admin")
    parser.add_argument("--most", type=int, required=True)
    options = parser.parse_args()
    with urllib.request.urlopen(f"http://{options.admin}/metrics", timeout=10) as answer:
        page = answer.read().decode()
    opened = {}
    for labels, count in OPENED.findall(page):
        edge = EDGE.search(labels)[1]
        opened[edge] = opened.get(edge, 0) + int(float(count))
    if not opened:
        sys.exit("connections.py: the metrics say nothing of connections")
    worst = max(opened, key=opened.get)
    shown = ", ".join(f"{edge} {count}" for edge, count in sorted(opened.items())[:SHOWN])
    print(f"connections opened by {len(opened)} edges: at most {opened[worst]} ({shown}{', …' if len(opened) > SHOWN else ''})")
    if opened[worst] > options.most:
        sys.exit(f"connections.py: {worst} opened {opened[worst]} connections; at most {options.most} were expected")


if __name__ == "__main__":
    main()
