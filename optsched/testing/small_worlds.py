"""Small worlds for tests of policies: each a scenario and a trace, with what some cluster has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from optsched.rollout.scenario import Scenario
from optsched.traces.trace import Failure, trace_of

if TYPE_CHECKING:
    from optsched.traces.trace import Trace

JOBS = 24
MODELS = ("resnet", "bert", "vgg", "lstm")
QUEUES = ("vision", "language", "speech")


@dataclass(frozen=True)
class World:
    """A scenario and the jobs of a rollout.

    Attributes
    ----------
    is_needed
        Whether a policy that breaks a rule there is wrong. Else it is not made for such clusters,
        which is no fault.
    """

    name: str
    scenario: Scenario
    trace: Trace
    is_needed: bool = True


def bundled_worlds() -> tuple[World, ...]:
    """Return the worlds in which every policy is tried.

    Policies are told nothing of run times, so that none can know them. In the first two a policy
    must keep every rule; the others have elastic jobs on rented nodes, GPUs that jobs share, and
    quotas of queues.

    Examples
    --------
    >>> from optsched.testing import bundled_worlds
    >>> [world.name for world in bundled_worlds()]
    ['gangs', 'failures', 'elastic', 'sharing', 'quotas']
    """
    costs = {"start_s": 2.0, "restore_s": 3.0, "checkpoint_every_s": 50.0}
    retries = {"delay_s": 5.0, "limits": {"GPU out of memory": 2}}
    speedup = {"kind": "amdahl", "parallel_fraction": 0.9, "max_gpus": 8}
    elastic: dict[str, Any] = {
        name: {"phases": [{"work_gpu_s": 100.0, "speedup": speedup}], "rescale_s": 1.0}
        for name in MODELS
    }
    shared = {name: {"utilisation": 0.4, "memory_gb": 5.0} for name in MODELS}
    rented = {"rented": {"provision_s": 4.0, "at_start": 1}, "budget_gpus": 8.0}
    return (
        World("gangs", _scenario(), drawn_trace(1)),
        World("failures", _scenario(costs=costs, retries=retries), drawn_trace(2, failing=True)),
        World("elastic", _scenario(models=elastic, **rented), drawn_trace(3), is_needed=False),
        World("sharing", _scenario(
            models=shared, sharing={"max_jobs_per_gpu": 2, "memory_gb": 16.0}, power=POWER
        ), drawn_trace(4), is_needed=False),
        World("quotas", _scenario(quotas={"vision": 8, "language": 8}), drawn_trace(5),
              is_needed=False),
    )  # fmt: skip


POWER = {"gpu": {"bare_w": 50, "context_w": 60, "peak_w": 250}, "node": {"base_w": 400}}


def world_of(scenario: str) -> World:
    """Return the world of a scenario, its file or the name of a bundled one, with its own trace."""
    from optsched.rollout.trace_source import jobs_of, scenario_of

    where = scenario_of(scenario)
    return World(where.name or scenario, where, jobs_of(where))


def _scenario(**parts: Any) -> Scenario:
    return Scenario(
        name="testing", nodes=3, gpus_per_node=4, epoch_s=30.0, estimates={"kind": "none"},
        trace={"generator": "none", "jobs": 1}, **parts,
    )  # fmt: skip


def drawn_trace(seed: int, jobs: int = JOBS, failing: bool = False) -> Trace:
    """Draw jobs that come faster than 12 GPUs serve them: some wait, none for ever."""
    random = np.random.default_rng(seed)
    status = random.choice(["passed", "killed", "failed"], jobs, p=[0.7, 0.1, 0.2])
    if not failing:
        status[:] = "passed"
    failures = [(Failure("GPU out of memory", 7_000_000),) if word == "failed" else ()
                for word in status]  # fmt: skip
    columns: dict[str, Any] = {
        "submit_s": np.cumsum(random.exponential(3, jobs)).round(3),
        "gpus": random.choice([1, 2, 2, 4, 4, 8], jobs),
        "run_s": random.lognormal(4, 1, jobs).round(3) + 1,
        "model": random.choice(MODELS, jobs),
        "queue": random.choice(QUEUES, jobs),
        "status": status,
        "failures": failures,
    }
    return trace_of(f"testing-{seed}", "optsched.testing", columns)
