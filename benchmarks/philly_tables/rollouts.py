"""One rollout per seed, each kept as a small JSON file, so that tables can be printed again."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.philly_tables.jobs import of_jobs
from benchmarks.philly_tables.places import of_places
from benchmarks.philly_tables.waiting import of_waiting
from optsched import read_scenario
from optsched.documents.json_files import dumps
from optsched.instances import philly_parts
from optsched.rollout.engine.engine import Engine
from optsched.rollout.registry import make
from optsched.traces import generate
from optsched.traces.generators.philly_statistics import PHILLY

if TYPE_CHECKING:
    from optsched.rollout import Scenario
    from optsched.rollout.results.record import Record

RESULTS = Path(__file__).parents[1] / "results" / "philly_tables"


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

    def file(self, seed: int) -> Path:
        """Return where the figures of a seed are kept: another file for any other setting."""
        text = json.dumps(asdict(self)) + self.scenario.model_dump_json()
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        return RESULTS / f"{digest}-seed-{seed}.json"


def rolled(setting: Setting, seed: int) -> Record:
    """Return a rollout."""
    scenario = setting.scenario
    options = scenario.trace.options | {"days": setting.days}
    trace = generate("philly-atc19", setting.jobs, seed, **options)
    policy = make(setting.policy, scenario, seed)
    return Engine(scenario, trace, policy, seed, keep_intervals=True).run()


def figures_of(record: Record) -> dict[str, float]:
    """Return all figures of a rollout."""
    return {**of_waiting(record), **of_jobs(record), **of_places(record)}


def figures(setting: Setting, seed: int, again: bool = False) -> dict[str, float]:
    """Return the figures of a seed, from its file if there is one."""
    path = setting.file(seed)
    if path.is_file() and not again:
        found: dict[str, float] = json.loads(path.read_text())
        return found
    begun = time.process_time()
    made = figures_of(rolled(setting, seed))
    made["CPU s"] = time.process_time() - begun
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dumps(made))
    return made
