"""Keeps a program running: starts it again whenever it dies, and tells its process id.

Usage: keep.py --pid FILE [--pause SECONDS] -- PROGRAM ARGUMENT...

`headroom` as the program is the one that runs the experiment. SIGTERM ends both.
"""

import argparse
import os
import signal
import subprocess
import sys
import time


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pid", required=True)
    parser.add_argument("--pause", type=float, default=1.0)
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    command = options.command
    if command[0] == "headroom":
        command = [os.environ.get("HEADROOM", "headroom"), *command[1:]]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    while True:
        child = subprocess.Popen(command)
        try:
            # Whoever reads it shall never see half of it.
            with open(options.pid + ".new", "w") as file:
                file.write(f"{child.pid}\n")
            os.replace(options.pid + ".new", options.pid)
            status = child.wait()
        finally:
            # Told to end while the program runs: it ends first.
            if child.poll() is None:
                child.terminate()
                child.wait()
        print(f"keep.py: {command[0]} ended with {status}; again in {options.pause:g} s", file=sys.stderr, flush=True)
        time.sleep(options.pause)


if __name__ == "__main__":
    main()
