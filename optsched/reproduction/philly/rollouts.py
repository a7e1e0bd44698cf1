"""Rollouts of Philly's virtual clusters, and all figures of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from optsched.instances import philly_parts
from optsched.reproduction.philly.jobs import of_jobs
from optsched.reproduction.philly.places import of_places
from optsched.reproduction.philly.waiting import of_waiting
from optsched.rollout.engine.engine import Engine
from optsched.rollout.registry import make
from optsched.rollout.scenario_files import read_scenario
from optsched.traces import generate
from optsched.traces.generators.philly_statistics import PHILLY

if TYPE_CHECKING:
    from optsched.rollout import Scenario
    from optsched.rollout.results.record import Record


def usual_policy() -> str:
    """Return Philly's scheduler with the options that the scenario names."""
    policies = read_scenario("philly-atc19").policies
    return next(policy for policy in policies if policy.partition(":")[0] == "philly")


@dataclass(frozen=True)
class Setting:
    """What a rollout is of, but for the seed.

    Attributes
    ----------
    gpus
        About so many; None: those of the scenario.
    """

    policy: str
    jobs: int = PHILLY.jobs
    days: float = PHILLY.window_days
    gpus: int | None = None
    only_8: bool = False

    @property
    def scenario(self) -> Scenario:
        """The scenario philly-atc19, or one of its kind."""
        bundled = read_scenario("philly-atc19")
        if self.gpus is None and not self.only_8:
            return bundled
        sizes = (8,) if self.only_8 else (8, 2)
        nodes = philly_parts.groups(self.gpus or philly_parts.GPUS, sizes)
        quotas = philly_parts.quotas(philly_parts.total(nodes))
        return bundled.changed({"nodes": nodes, "quotas": quotas})


def rolled(setting: Setting, seed: int) -> Record:
    """Return a rollout."""
    scenario = setting.scenario
    options = {**scenario.trace.options, "days": setting.days}
    trace = generate("philly-atc19", setting.jobs, seed, **options)
    policy = make(setting.policy, scenario, seed)
    return Engine(scenario, trace, policy, seed, keep_intervals=True).run()


def figures_of(record: Record) -> dict[str, float]:
    """Return all figures of a rollout."""
    return {**of_waiting(record), **of_jobs(record), **of_places(record)}
