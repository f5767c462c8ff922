"""Runs a command of headroom, shows what it says, and fails if its sentences, which are
what it says first, name none of what they should.

Usage: blamed.py NAME[,NAME...] -- ARGUMENT...
"""

import argparse
import os
import subprocess
import sys


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    command = [os.environ.get("HEADROOM", "headroom"), *options.command]
    ran = subprocess.run(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=120)
    said = ran.stdout.decode(errors="replace")
    print(said, end="", flush=True)
    if ran.returncode != 0:
        sys.exit(f"blamed.py: {' '.join(options.command)} ended with {ran.returncode}")
    sentences = said.split("\n\n")[0]
    if not any(name in sentences for name in options.names.split(",")):
        sys.exit(f"blamed.py: nothing was said of {options.names}")


if __name__ == "__main__":
    main()
