"""Accounts for every request of a run: what the load saw against the router's access log.

Usage: account.py --run FOLDER --log FILE

Each answer that a load got must have its line in the log, with the same status; and each
line beyond those must be of a request that the load gave up on. Prints a row for each step
and load, and ends with status 1 if anything is left over on either side, over all steps: a
busy router may stamp a step's first request with a time just before the step. Loads are
told apart by their Host, which begins with the load's name.
"""

import argparse
import bisect
import calendar
import collections
import json
import pathlib
import re
import sys
import time

# The writer of the log may be a moment behind the answers.
PATIENCE = 10.0
# A request's line bears the time at which the router had its head: later than the load's
# step began, but for what two readings of the clock differ by.
EARLY_NS = 1_000_000

LINE = re.compile(r'^(?P<load>\w+)-\S* - \[(?P<second>[^.\]]+)\.(?P<fraction>\d{9})Z\] "[^"]*" (?P<status>\S+) ')


def lines_of(path):
    """Load, time and status of each line."""
    with open(path) as log:
        for number, line in enumerate(log, 1):
            found = LINE.match(line)
            if found is None:
                sys.exit(f"{path}:{number}: not a line of an access log: {line[:200]!r}")
            second = calendar.timegm(time.strptime(found["second"], "%Y-%m-%dT%H:%M:%S"))
            yield found["load"], second * 10**9 + int(found["fraction"]), found["status"]


def account(loads, log):
    """A row for each result, and what does not add up."""
    began = collections.defaultdict(list)
    for load in loads:
        began[load["name"]].append(load["began_unix_ns"] - EARLY_NS)
    logged = collections.defaultdict(collections.Counter)
    for name, at, status in lines_of(log):
        logged[name, bisect.bisect(began[name], at) - 1][status] += 1
    rows, wrong = [], []
    seen = collections.Counter()
    all_answers, all_lines = (collections.defaultdict(collections.Counter) for _ in range(2))
    all_given_up = collections.Counter()
    for (name, _), lines in logged.items():
        all_lines[name] += lines
    for load in loads:
        name, step = load["name"], load["step"]
        lines = logged.get((name, seen[name]), collections.Counter())
        seen[name] += 1
        answers = collections.Counter(load["statuses"])
        refused = sum(error["count"] for error in load["errors"] if error["phase"] == "connect")
        given_up = sum(error["count"] for error in load["errors"]) - refused
        beyond = lines - answers
        all_answers[name] += answers
        all_given_up[name] += given_up
        others = {status: count for status, count in sorted(answers.items()) if status != "200"}
        rows.append((step, name, answers["200"], others or "", given_up, dict(beyond) or "", refused))
    for name, lines in all_lines.items():
        without_line, beyond = all_answers[name] - lines, lines - all_answers[name]
        if without_line:
            wrong.append(f"{name} got answers that the log does not have: {dict(without_line)}")
        if beyond.total() > all_given_up[name]:
            wrong.append(f"the log has lines of {name} that nobody waited for: {dict(beyond)}, given up {all_given_up[name]}")
    return rows, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", required=True, type=pathlib.Path)
    parser.add_argument("--log", required=True, type=pathlib.Path)
    options = parser.parse_args()
    loads = [json.loads(path.read_text()) for path in (options.run / "loads").glob("*.json")]
    loads.sort(key=lambda load: load["began_unix_ns"])
    if not loads:
        sys.exit(f"{options.run}/loads has no results to account for")
    until = time.monotonic() + PATIENCE
    while True:
        rows, wrong = account(loads, options.log)
        if not wrong or time.monotonic() > until:
            break
        time.sleep(0.2)
    print(f"{'step':24} {'load':8} {'200':>7} {'other':16} {'given up':>8} {'logged as':16} {'not connected':>13}")
    for step, name, good, others, given_up, beyond, refused in rows:
        print(f"{step:24} {name:8} {good:7} {others!s:16} {given_up:8} {beyond!s:16} {refused:13}")
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
