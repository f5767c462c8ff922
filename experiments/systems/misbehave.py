"""Has a static backend misbehave for a while, and then behave again.

Usage: misbehave.py CONTROL MODE [--delay LENGTH] --for SECONDS

CONTROL is the address of `headroom router static --control`; MODE is one of its modes.
"""

import argparse
import json
import time
import urllib.request


def order(control, behaviour):
    request = urllib.request.Request(
        f"http://{control}/behaviour", data=json.dumps(behaviour).encode(), method="PUT")
    with urllib.request.urlopen(request, timeout=5) as answer:
        print(answer.read().decode(), end="", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("control")
    parser.add_argument("mode")
    parser.add_argument("--delay")
    parser.add_argument("--for", dest="seconds", type=float, required=True)
    options = parser.parse_args()
    behaviour = {"mode": options.mode}
    if options.delay:
        behaviour["delay"] = options.delay
    order(options.control, behaviour)
    try:
        time.sleep(options.seconds)
    finally:
        order(options.control, {"mode": "ok"})


if __name__ == "__main__":
    main()
