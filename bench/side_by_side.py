"""What benchmarks that compare programs share: runs on given processors, and tables."""

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TARGET = os.path.join(ROOT, os.environ.get("CARGO_TARGET_DIR", "target"), "release")
HEADROOM = os.path.join(TARGET, "headroom")
PROGRAM = os.path.basename(sys.argv[0])
# Servers stand where only root's PATH looks.
PATH = os.environ["PATH"] + ":/usr/sbin"


def pinned(cpu):
    return lambda: os.sched_setaffinity(0, {cpu})


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Run:
    """One run of a generator on its processor: what it printed and what it used."""

    def __init__(self, command, cpu):
        environment = {**os.environ, "GOMAXPROCS": "1", "TOKIO_WORKER_THREADS": "1"}
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=errors,
                                       env=environment, preexec_fn=pinned(cpu))
            began = time.monotonic()
            self.rss_mib = 0.0
            watcher = threading.Thread(target=self.watch_memory, args=(process.pid,))
            watcher.start()
            _, status, usage = os.wait4(process.pid, 0)
            self.seconds = time.monotonic() - began
            watcher.join()
            process.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0)
            errors.seek(0)
            self.out, self.errors = out.read().decode(errors="replace"), errors.read().decode(errors="replace")
        self.exit = process.returncode
        self.cpu = usage.ru_utime + usage.ru_stime
        # Ours exits 3 when it finds that it was the limit itself.
        if self.exit not in (0, 3):
            say(f"{' '.join(command[:3])} … ended with {self.exit}: {(self.errors or self.out).strip()[-300:]}")

    def watch_memory(self, pid):
        """Keeps the peak of its memory. That of `wait4` would begin with this script's own."""
        try:
            while True:
                with open(f"/proc/{pid}/status") as status:
                    peak = re.search(r"VmHWM:\s+(\d+) kB", status.read())
                if not peak:
                    return  # It has ended.
                self.rss_mib = int(peak[1]) / 1024
                time.sleep(0.1)
        except OSError:
            return


def say(what):
    print(f"bench/{PROGRAM}: {what}", file=sys.stderr, flush=True)


def there(tools):
    return {name: command for name, command in tools.items() if shutil.which(command[0])}


def table(title, columns, rows):
    print(f"\n### {title}\n\n| | {' | '.join(columns)} |\n|---|{'---|' * len(columns)}")
    for name, cells in rows.items():
        print(f"| {name} | {' | '.join(cells)} |")
    sys.stdout.flush()


def build(*packages):
    """Builds release binaries; each of `packages` is a list of arguments."""
    for more in packages:
        subprocess.run(["cargo", "build", "--release", "--quiet", "--locked", *more], cwd=ROOT, check=True)


def need_processors(*cpus):
    if not set(cpus) <= os.sched_getaffinity(0):
        raise SystemExit(f"bench/{PROGRAM}: needs the processors {', '.join(map(str, cpus))}, one for each side")
    load = os.getloadavg()[0]
    if load > 0.5:
        say(f"this machine is busy (load average {load:.1f}): trust ratios, not figures")
