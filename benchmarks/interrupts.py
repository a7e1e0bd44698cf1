"""Commands that are interrupted at random moments, and how they end.

    python -m benchmarks.interrupts --times 100 --load 4

A moment is a random share of the CPU seconds that the command takes, of which imports are the
first, so that it does not depend on what else the machine does. Sent is Ctrl-C to the process
alone, Ctrl-C to the group as a terminal does, Ctrl-C twice, SIGTERM, SIGKILL, or SIGKILL to one of
its workers. A good end is the exit code of the signal with one line, or what the command has by
then with its own exit code; a second of CPU after the signal at most; and no process is left.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import resource
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import psutil

if TYPE_CHECKING:
    from collections.abc import Iterator

# With how many CPU seconds, at most, there are until the signal.
COMMANDS = {
    "solve boa/six-models --method milp": 3.0,
    "solve boa/cbd-85 --set widths=integer": 2.0,
    "solve pal/racks-256": 4.0,
    "solve pal/sia-64": 3.0,
    "solve pal/sia-64 --method milp": 4.0,
    "solve eaco/quads-60 --gap 0": 4.0,
    "solve sia/cluster-64": 2.0,
    "frontier boa/cbd-85 --from 20 --to 80 --points 400 --processes 2": 4.0,
    "rollout philly-small --policy las": 3.0,
    "compare philly-small --policy fifo,las --seeds 3 --processes 2": 4.0,
}
WAYS = ("Ctrl-C", "Ctrl-C of a terminal", "Ctrl-C twice", "SIGTERM", "SIGKILL", "worker killed")
SAYS = {130: "interrupted\n", 143: "terminated\n"}
WAIT_S = 600


class End(NamedTuple):
    """How a command ended."""

    command: str
    way: str
    moment_s: float  # CPU seconds until the signal
    cpu_s: float  # from the signal to the end
    code: int
    stdout: str
    stderr: str
    left: int  # processes that were still there

    def kind(self) -> str:
        """Return what to count it as; what is bad begins with "bad"."""
        if self.left:
            return f"bad: {self.left} processes left"
        if self.way == "SIGKILL":
            return "killed, none left"
        if self._is_pythons_own():
            return "Python's own start was interrupted"
        if self.code not in (0, 3, 4, *SAYS, -signal.SIGINT, -signal.SIGTERM):
            return f"bad: exit code {self.code}"
        if self.code in SAYS and self.stderr != SAYS[self.code]:
            return "bad: more than one line"
        if self.code not in SAYS and _without_notes(self.stderr):
            return "bad: something on standard error"
        if self.cpu_s > 1.0 and self.way != "worker killed":
            return "bad: more than a second"
        if self.code in SAYS:
            return "one line"
        if self.code < 0:
            return "ended by the signal, silently"
        return "the plan so far" if "interrupted" in self.stdout else "all it was asked for"

    def _is_pythons_own(self) -> bool:
        """Tell whether optsched had not begun: no line of a traceback is of its command line."""
        is_traceback = "Traceback" in self.stderr or "Fatal Python error" in self.stderr
        return is_traceback and "optsched/cli" not in self.stderr and self.moment_s < 0.15


def _without_notes(text: str) -> str:
    return "".join(line for line in text.splitlines() if not line.startswith("warning: a worker"))


def run(command: str, way: str, moment_s: float) -> End | None:
    """Run a command, and send a signal when it has worked so long; None if it has ended before."""
    spent = _of_children()
    process = subprocess.Popen(
        [sys.executable, "-m", "optsched", *command.split()],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    with process:
        try:
            while (begun := cpu_of(process.pid, "--processes" in command)) < moment_s:
                if process.poll() is not None:
                    process.communicate()
                    return None
                time.sleep(0.005)
            if not send(process, way):
                process.kill()
                process.communicate()
                return None
            stdout, stderr = process.communicate(timeout=WAIT_S)
            left = len(list(group(process.pid)))
        finally:
            for other in group(process.pid):
                other.kill()
    cpu_s = max(_of_children() - spent - begun, 0.0)
    return End(command, way, moment_s, cpu_s, process.returncode, stdout, stderr, left)


def _of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def cpu_of(process: int, with_children: bool) -> float:
    """Return the CPU seconds of a process, and of those that it has started."""
    seconds = 0.0
    with contextlib.suppress(psutil.Error):
        one = psutil.Process(process)
        for other in [one, *(one.children(recursive=True) if with_children else ())]:
            with contextlib.suppress(psutil.Error):
                times = other.cpu_times()
                seconds += times.user + times.system
    return seconds


def group(leader: int) -> Iterator[psutil.Process]:
    """Yield the processes of a session that have not ended."""
    for one in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if os.getsid(one.pid) == leader and one.status() != psutil.STATUS_ZOMBIE:
                yield one


def send(process: subprocess.Popen[str], way: str) -> bool:
    """Send what the way says; tell whether there was anybody to send it to."""
    if way == "worker killed":
        workers = [p for p in group(process.pid) if "spawn_main" in " ".join(p.cmdline())]
        for worker in workers[:1]:
            worker.kill()
        return bool(workers)
    number = {"SIGTERM": signal.SIGTERM, "SIGKILL": signal.SIGKILL}.get(way, signal.SIGINT)
    if way == "Ctrl-C of a terminal":
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    if way == "Ctrl-C twice":
        time.sleep(0.05)
        process.send_signal(number)
    return True


def ends(times: int, seed: int) -> Iterator[End]:
    """Yield how commands ended, until there are so many; each takes its turn, so do the ways."""
    draw, number, span_s = random.Random(seed), 0, dict(COMMANDS)
    while times:
        command = list(COMMANDS)[number % len(COMMANDS)]
        way = draw.choice(WAYS if "--processes" in command else WAYS[:-1])
        number += 1
        end = run(command, way, draw.uniform(0.0, span_s[command]))
        if end is None:
            span_s[command] *= 0.9
            continue
        times -= 1
        yield end


@contextlib.contextmanager
def load(processes: int) -> Iterator[None]:
    """Let so many processes keep the machine busy."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def main() -> int:
    """Print how commands end; the exit code tells whether any ended badly."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--load", type=int, default=4, help="busy processes beside them")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # by "&" of a shell; commands inherit it
        signal.signal(signal.SIGINT, signal.default_int_handler)
    kinds: Counter[str] = Counter()
    cpu_s = []
    with load(given.load):
        for end in ends(given.times, given.seed):
            kind = end.kind()
            kinds[kind] += 1
            cpu_s.append(end.cpu_s)
            print(f"{end.way}: {end.command}, after {end.moment_s:.2f} CPU s: {kind}", flush=True)
            if kind.startswith("bad"):
                print(f"  {end.cpu_s:.2f} CPU s, code {end.code}\n{end.stderr[-2000:]}", flush=True)
    for kind, count in sorted(kinds.items()):
        print(f"{count:5} {kind}")
    worst, median = max(cpu_s), statistics.median(cpu_s)
    print(f"CPU s from the signal to the end: median {median:.2f}, worst {worst:.2f}")
    print(f"load of the machine: {os.getloadavg()[0]:.1f}")
    return int(any(kind.startswith("bad") for kind in kinds))


if __name__ == "__main__":
    sys.exit(main())
