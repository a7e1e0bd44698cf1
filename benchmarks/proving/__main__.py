"""Whether `exact` proves all that HiGHS on the plain model proves in the same CPU time.

    python -m benchmarks.proving                    # every problem, about an hour
    python -m benchmarks.proving --only eaco --match 'equal-*' --seconds 2

Instances are those that made `exact` end with an open gap, and usual ones. Each is solved by
`exact` and by `milp` (the formulation in models/, by HiGHS) in this process, one after the other;
both include the verifier. Proven means: an optimum within the gap, or that no plan exists, stated
within so many CPU seconds. What goes on at ten times that by the clock is interrupted (building
a model for HiGHS knows no limit). Exit code 1 if `milp` proves what `exact` does not.
"""

from __future__ import annotations

import argparse
import fnmatch
import importlib
import signal
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import optsched

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from optsched.instance import Instance

PROBLEMS = ("boa", "pal", "eaco")  # rounds of choice: python -m benchmarks.proving.sia
WALL = 10  # limits are of the clock, and other work may run beside this


class Solved(NamedTuple):
    """What a method reached, and in how many CPU seconds."""

    is_proven: bool
    gap: float | None
    cpu_s: float
    message: str


def solved(instance: Instance, method: str, seconds: float, gap: float) -> Solved:
    """Solve an instance by a method within so many CPU seconds."""
    begun = time.process_time()
    try:
        with interrupted_after(1.1 * WALL * seconds):
            result = optsched.solve(instance, method, time_limit_s=WALL * seconds, gap=gap)
    except optsched.TooLarge as error:
        return Solved(False, None, 0.0, str(error))
    cpu_s = time.process_time() - begun
    is_proven = result.status in ("optimal", "infeasible") and cpu_s <= seconds
    return Solved(is_proven, result.gap, cpu_s, result.message)


@contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    """Do as Ctrl-C does, once, after so many seconds."""
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def instances(names: list[str]) -> Iterator[tuple[str, Callable[[], Instance]]]:
    """Yield the instances of some problems by name."""
    for problem in names:
        module = importlib.import_module(f"benchmarks.proving.{problem}")
        for name, make in module.instances():
            yield f"{problem}: {name}", make


def main() -> int:
    """Print a line for each instance, and a sum; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", choices=PROBLEMS, help="a problem")
    parser.add_argument("--match", default="*", help="names of instances, as of files")
    parser.add_argument("--seconds", type=float, default=5.0, help="CPU seconds of each solve")
    parser.add_argument("--gap", type=float, default=1e-6)
    options = parser.parse_args()
    counts, missed, exact_s, milp_s = [0, 0, 0], [], 0.0, 0.0
    for name, make in instances(options.only or list(PROBLEMS)):
        if not fnmatch.fnmatch(name.split(": ")[1], options.match):
            continue
        instance = make()
        ours = solved(instance, "exact", options.seconds, options.gap)
        plain = solved(instance, "milp", options.seconds, options.gap)
        counts = [counts[0] + 1, counts[1] + ours.is_proven, counts[2] + plain.is_proven]
        exact_s, milp_s = exact_s + ours.cpu_s, milp_s + plain.cpu_s
        if plain.is_proven and not ours.is_proven:
            missed.append(name)
        told = [f"{s.cpu_s:8.3f} s {'proven' if s.is_proven else 'open':6}" for s in (ours, plain)]
        print(f"{name:45} exact {told[0]}  milp {told[1]}  {ours.message}", flush=True)
    print(
        f"{counts[0]} instances: exact proves {counts[1]} in {exact_s:.0f} CPU s, "
        f"milp {counts[2]} in {milp_s:.0f} CPU s; milp alone: {', '.join(missed) or 'none'}"
    )
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
