"""The tests on a busy machine, several times: which of them depend on how fast it is.

    python -m benchmarks.loaded_tests --runs 5 --load 6
    python -m benchmarks.loaded_tests --runs 5 --load 6 -- tests/cli tests/sweeps

What follows `--` goes to pytest. Told are, for each run, its seconds, its CPU seconds and what
failed; at the end how often each test did. The exit code tells whether any failed.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from typing import NamedTuple

from benchmarks.interrupts import load

_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+(?:\[.*?\](?= - |$))?)", re.MULTILINE)


class Run(NamedTuple):
    """How a run of the tests ended; `code` is that of pytest, and `summary` its last line."""

    code: int
    failed: tuple[str, ...]
    summary: str
    wall_s: float
    cpu_s: float
    output: str

    @property
    def is_good(self) -> bool:
        """Whether tests were run, and all of them passed."""
        return self.code == 0 and not self.failed


def run(arguments: list[str]) -> Run:
    """Run the tests once, in processes of their own."""
    began, spent = time.monotonic(), _of_children()
    command = [sys.executable, "-m", "pytest", "-q", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    wall_s, cpu_s = time.monotonic() - began, _of_children() - spent
    failed = tuple(dict.fromkeys(_FAILED.findall(done.stdout)))
    lines = done.stdout.strip().splitlines() or [""]
    return Run(done.returncode, failed, lines[-1], wall_s, cpu_s, done.stdout)


def main(arguments: list[str] | None = None) -> int:
    """Print how each run ended; the exit code tells whether any test failed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--load", type=int, default=6, help="busy processes beside them")
    parser.add_argument("tests", nargs="*", help="what pytest is to be told, after --")
    given = parser.parse_args(arguments)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # by "&" of a shell; tests inherit it
        signal.signal(signal.SIGINT, signal.default_int_handler)
    often, bad = Counter[str](), 0
    with load(given.load):
        for number in range(1, given.runs + 1):
            end = run(given.tests)
            bad += not end.is_good
            often.update(end.failed)
            figures = f"{end.wall_s:.0f} s, {end.cpu_s:.0f} CPU s, load {os.getloadavg()[0]:.1f}"
            print(f"run {number}: {end.summary} ({figures})", flush=True)
            if not end.is_good:
                print(end.output[-20_000:], flush=True)
    for name, times in often.most_common():
        print(f"{times:5} of {given.runs} failed: {name}")
    print(f"{given.runs - bad} of {given.runs} runs passed")
    return int(bad > 0)


def _of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
