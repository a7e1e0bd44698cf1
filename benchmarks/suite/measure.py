"""Seconds and memory of one row, inside its process."""

from __future__ import annotations

import resource
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPEATED_BELOW_S = 0.3
REPEATS = 5


@dataclass
class Outcome:
    """What one row found and took; fields that do not apply are None.

    Attributes
    ----------
    case
        The instance in words, sizes included.
    objective, bound, gap
        Recomputed from the plan; of a peer, the bound is what its solver claims.
    gap_asked
        Where it was told to stop.
    status
        "optimal": within the gap asked for; "feasible": stopped by the limit; "done": there is
        nothing to prove.
    cpu_s, wall_s, memory_mib
        Of the solve, without making the instance; memory is the peak of the whole process then.
    verify_share
        How much of the solve the verifier took, which confirms what the solve states.
    check_s, verify_s
        CPU seconds of the verifier once more: rules, and proof of the bound.
    """

    case: str
    status: str = "done"
    cpu_s: float | None = None
    wall_s: float | None = None
    memory_mib: float | None = None
    objective: float | None = None
    bound: float | None = None
    gap: float | None = None
    gap_asked: float | None = None
    check_s: float | None = None
    verify_s: float | None = None
    verify_share: float | None = None
    note: str = ""


class Clock:
    """CPU and wall seconds since it was made."""

    def __init__(self) -> None:
        self._cpu, self._wall = time.process_time(), time.perf_counter()

    @property
    def cpu_s(self) -> float:
        """Seconds of this process on all its threads."""
        return time.process_time() - self._cpu

    @property
    def wall_s(self) -> float:
        """Seconds that have passed."""
        return time.perf_counter() - self._wall


def measured(outcome: Outcome, function: Any, *arguments: Any, **options: Any) -> Any:
    """Call a function, write down what it took, and return its value.

    Calls that take less than `REPEATED_BELOW_S` are repeated; the medians are taken.
    """
    value = measured_once(outcome, function, *arguments, **options)
    if max(outcome.cpu_s, outcome.wall_s) >= REPEATED_BELOW_S:
        return value
    cpu, wall = [outcome.cpu_s], [outcome.wall_s]
    for _ in range(REPEATS - 1):
        value = measured_once(outcome, function, *arguments, **options)
        cpu.append(outcome.cpu_s)
        wall.append(outcome.wall_s)
    outcome.cpu_s, outcome.wall_s = statistics.median(cpu), statistics.median(wall)
    return value


def measured_once(outcome: Outcome, function: Any, *arguments: Any, **options: Any) -> Any:
    """Call a function that would find less to do the second time, and write down what it took."""
    clock = Clock()
    value = function(*arguments, **options)
    outcome.cpu_s, outcome.wall_s = clock.cpu_s, clock.wall_s
    outcome.memory_mib = peak_mib()
    return value


def peak_mib() -> float:
    """Return the peak memory of this process so far."""
    try:
        status = Path("/proc/self/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) / 1024
    except (OSError, IndexError, ValueError):
        scale = 1024 if sys.platform != "darwin" else 2**20
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / scale


def examined(outcome: Outcome, instance: Any, result: Any) -> Outcome:
    """Take the figures of a result of ours, and check the plan and prove the bound beside it."""
    import optsched

    outcome.status = str(result.status)
    outcome.objective, outcome.bound, outcome.gap = result.objective, result.bound, result.gap
    outcome.gap_asked, outcome.note = result.gap_limit, result.message
    outcome.verify_share = result.verification_s / result.seconds if result.seconds else None
    if result.plan is not None:
        clock = Clock()
        optsched.check(instance, result.plan)
        outcome.check_s = clock.cpu_s
    if result.certificate is not None:
        clock = Clock()
        optsched.verify(instance, result)
        outcome.verify_s = clock.cpu_s
    return outcome


def checked(outcome: Outcome, instance: Any, plan: Any, gap: float, bound: float | None) -> Outcome:
    """Examine the plan of a peer: check it, and recompute its objective and gap."""
    import optsched
    from optsched.registry import problem
    from optsched.verification import relative_gap

    outcome.gap_asked = gap
    if plan is None:
        outcome.status, outcome.note = "feasible", "no plan within the limit"
        return outcome
    clock = Clock()
    optsched.check(instance, plan)
    outcome.check_s = clock.cpu_s
    outcome.objective = problem(instance.problem).objective(instance, plan)
    if bound is not None:
        outcome.bound = min(bound, outcome.objective)
        outcome.gap = relative_gap(outcome.objective, outcome.bound)
        outcome.status = "optimal" if outcome.gap <= max(gap, 1e-9) * 1.01 else "feasible"
    return outcome
