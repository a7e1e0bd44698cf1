"""A rollout under one policy, and the same jobs through SimPy: what they took, and how often."""

from __future__ import annotations

import time
from dataclasses import dataclass
from math import inf
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks.policies.worlds import Size, made
from benchmarks.suite.measure import Clock, Outcome, measured_once, peak_mib
from benchmarks.suite.rollout import in_container
from optsched.rollout.engine.engine import Engine
from optsched.rollout.registry import make

if TYPE_CHECKING:
    from optsched.rollout.engine.decision import Decision, Policy
    from optsched.rollout.engine.view import View

ASKED_S = 0.1
"""How often the CPU clock is asked: a call of the system, which takes longer than many steps."""


@dataclass
class Rolled(Outcome):
    """What a rollout took.

    Attributes
    ----------
    jobs, days
        How many came, and in which time.
    decisions
        Calls of the policy.
    limit_s, ended
        CPU seconds that it might take, and the share of the jobs that had ended when it stopped.
    gap_median, gap_worst, unverified
        Of the rounds of an exact policy.
    round_median_s, round_worst_s
        CPU seconds of calls of an exact policy that solve something, verification included.
    """

    jobs: int = 0
    days: float = 0.0
    decisions: int = 0
    limit_s: float = 0.0
    ended: float = 1.0
    gap_median: float | None = None
    gap_worst: float | None = None
    unverified: int = 0
    round_median_s: float | None = None
    round_worst_s: float | None = None


class Timed:
    """A policy, and the CPU seconds of each of its calls in which something was solved."""

    def __init__(self, policy: Policy) -> None:
        self.seconds: list[float] = []
        self._decide = policy.decide
        policy.decide = self._timed  # type: ignore[method-assign]

    def _timed(self, view: View) -> Decision:
        begun = time.process_time()
        decision = self._decide(view)
        if decision.solves:
            self.seconds.append(time.process_time() - begun)
        return decision


def under(
    policy: str, kind: str, size: dict[str, Any], limit_s: float, *, in_rounds: bool = False
) -> Rolled:
    """Roll a trace out under a policy, for so many CPU seconds at most.

    Parameters
    ----------
    in_rounds
        Whether the policy is called at rounds alone, and not when jobs come and end, too.
    """
    world, trace = made(kind, Size(**size))
    if in_rounds:
        world = world.changed({"decide_on": []})
    days = float(trace.submit_us[-1]) / 8.64e10
    found = Rolled("", jobs=len(trace), days=days, limit_s=limit_s)
    clock = Clock()
    called = make(policy, world)
    timed = Timed(called) if in_rounds else None
    engine = Engine(world, trace, called, seed=0)
    ends = time.process_time() + limit_s
    asked = -inf  # at once, so that a limit of 0 is one
    while engine.step():
        if time.perf_counter() - asked < ASKED_S:
            continue
        asked = time.perf_counter()
        if time.process_time() > ends:
            found.status = "stopped"
            break
    record = engine.record()
    found.cpu_s, found.wall_s, found.memory_mib = clock.cpu_s, clock.wall_s, peak_mib()
    found.ended, found.decisions = engine.share, len(record.epochs)
    solves = [solve for epoch in record.epochs for solve in epoch.solves]
    if solves:
        gaps = sorted(solve.gap for solve in solves if solve.gap == solve.gap)
        found.unverified = sum(solve.verified is not True for solve in solves)
        if gaps:
            found.gap_median, found.gap_worst = gaps[len(gaps) // 2], gaps[-1]
    if timed is not None and timed.seconds:
        found.round_median_s, found.round_worst_s = median(timed.seconds), max(timed.seconds)
    return found


def simpy(size: dict[str, Any]) -> Rolled:
    """Run the same jobs through one SimPy container: no nodes, no places, no policy."""
    _, trace = made("gangs", Size(**size))
    found = Rolled("", jobs=len(trace), days=float(trace.submit_us[-1]) / 8.64e10)
    measured_once(found, in_container, trace, size["nodes"])
    return found
