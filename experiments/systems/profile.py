"""Puts another profile of a service graph in force, and says which revision it became.

Usage: profile.py ADMIN FILE

ADMIN is the address of `headroom graph up --admin`. A profile with a mistake is refused;
the one before stays in force, and the mistake is shown.
"""

import argparse
import json
import sys
import urllib.error
import urllib.request


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("admin")
    parser.add_argument("file")
    options = parser.parse_args()
    with open(options.file, "rb") as file:
        request = urllib.request.Request(f"http://{options.admin}/profile", data=file.read(), method="PUT")
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            print(f"{options.file} is revision {json.load(answer)['revision']}")
    except urllib.error.HTTPError as refused:
        sys.exit(f"profile.py: {options.file} was refused: {refused.read().decode(errors='replace')}")


if __name__ == "__main__":
    main()
