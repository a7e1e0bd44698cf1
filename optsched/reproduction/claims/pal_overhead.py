"""What a decision of PAL takes, against the size of the cluster: no row is read off these times."""

from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from optsched.cluster.profile import Profile
from optsched.reproduction.claims.pal_rollouts import EXACT, GREEDY
from optsched.reproduction.studies import Level, Study, Task
from optsched.reproduction.verdicts import Basis
from optsched.rollout.engine.engine import Engine
from optsched.rollout.registry import make
from optsched.rollout.scenario_files import read_scenario
from optsched.rollout.trace_source import jobs_of

if TYPE_CHECKING:
    from optsched.reproduction.estimates import Figures
    from optsched.rollout.engine.decision import Decision, Policy
    from optsched.rollout.engine.view import View

SIZES = (64, 256, 1024, 4096)
"""GPUs of the clusters, in nodes of 4; which ones the paper has could not be read."""
FEWER = SIZES[:2]
ROUNDS = 6
POLICIES = {GREEDY: "PAL", EXACT: "exact"}


class Timed:
    """A policy whose decisions are timed, in CPU seconds."""

    def __init__(self, policy: Policy) -> None:
        self.policy, self.name = policy, policy.name
        self.seconds: list[float] = []

    def decide(self, view: View) -> Decision:
        """Let the policy decide."""
        begun = time.process_time()
        decision = self.policy.decide(view)
        self.seconds.append(time.process_time() - begun)
        return decision

    def __getattr__(self, name: str) -> Any:
        return getattr(self.policy, name)


def cell_of(policy: str, gpus: int) -> str:
    """Return the name of a policy on a cluster."""
    return f"{policy} at {gpus} GPUs"


def decisions(task: Task) -> Figures:
    """Time the first decisions of a policy on a cluster, both named by the cell."""
    policy, _, size = task.cell.removesuffix(" GPUs").rpartition(" at ")
    _timed(policy, SIZES[0], 1, task.seed)  # loads what is loaded once
    first, *others = _timed(policy, int(size), ROUNDS, task.seed)
    return {"first_ms": 1000 * first, "next_ms": 1000 * float(np.mean(others))}


def _timed(policy: str, gpus: int, rounds: int, seed: int) -> list[float]:
    """Return the CPU seconds of the first decisions, with a job for each GPU from the start."""
    scenario = read_scenario("pal-64")
    assert scenario.profile is not None
    names = [f"n{gpu // 4}/{gpu % 4}" for gpu in range(gpus)]
    profile = Profile.drawn(scenario.profile.slowdown, names, source=scenario.profile.source)
    scenario = scenario.changed(
        {"nodes": gpus // 4, "trace.jobs": gpus, "profile": profile.model_dump(mode="json")}
    )
    trace = jobs_of(scenario, None, seed)
    trace = dataclasses.replace(trace, submit_us=np.zeros_like(trace.submit_us))
    timed = Timed(make(policy, scenario, seed))
    engine = Engine(scenario, trace, timed, seed)
    while len(timed.seconds) < rounds and engine.step():
        pass
    return timed.seconds


def cells(level: Level) -> list[str]:
    """Return all policies on all clusters."""
    sizes = FEWER if level is Level.QUICK else SIZES
    return [cell_of(policy, gpus) for policy in POLICIES for gpus in sizes]


STUDY = Study(
    "pal-overhead",
    Basis.GENERATED,
    "clusters of 64 to 4,096 GPUs (--quick: 64 and 256) with slowdowns drawn from those of pal-64, "
    "rounds of 360 s, FIFO, and a job for each GPU from the start on; exact: to a gap of 0.1 %, or "
    "to the policy's limit of programs",
    cells,
    decisions,
    dict.fromkeys(Level, 1),
    is_timed=True,
)
