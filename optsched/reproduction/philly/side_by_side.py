"""Table 4: one job of two GPUs, alone and beside others, on two servers of a scenario.

The columns as read here (the paper's own paragraph was not at hand): SameServer and DiffServer, the
job alone on one and on two servers; IntraServer, on two, each of which has another job of two GPUs;
InterServer, on two, with another job that is on both of them as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optsched import read_scenario
from optsched.instances.philly_parts import SIDE_BY_SIDE
from optsched.rollout import NOTHING, Decision
from optsched.rollout.engine.engine import Engine
from optsched.traces.trace import trace_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.rollout import Scenario, View
    from optsched.rollout.results.record import Record

RESNET_50 = 0.577
"""Of its GPUs' time it computes alone on one server: SameServer. All else follows from physics."""
HOUR = 3600.0
SERVER = 8
ONE, OTHER = range(SERVER), range(SERVER, 2 * SERVER)
PLACES: dict[str, list[Sequence[int]]] = {
    "SameServer": [ONE[:2]],
    "DiffServer": [(ONE[0], OTHER[0])],
    "IntraServer": [(ONE[0], OTHER[0]), ONE[2:4], OTHER[2:4]],
    "InterServer": [(ONE[0], OTHER[0]), (ONE[2], OTHER[2])],
}
"""GPUs of the job, and of those beside it."""


class InPlaces:
    """Puts the jobs, which come together, on given GPUs."""

    name = "in-places"

    def __init__(self, places: Sequence[Sequence[int]]) -> None:
        self.places = places

    def decide(self, view: View) -> Decision:
        """Start what has come."""
        place = {job: tuple(self.places[job]) for job in view.arrived}
        return Decision(place=place) if place else NOTHING


def of_pairs() -> dict[str, float]:
    """Return the cells of table 4 by their names in `targets`."""
    scenario = read_scenario("philly-atc19").changed(
        {"nodes": 2, "gpus_per_node": SERVER, "quotas": {}, "costs": {}, **SIDE_BY_SIDE}
    )
    return {f"table 4, {name}": busy(scenario, places) for name, places in PLACES.items()}


def busy(scenario: Scenario, places: Sequence[Sequence[int]]) -> float:
    """Return how much of its GPUs the first of some jobs uses, in %, beside the others."""
    record = rolled(scenario, places)
    return 100 * float(record.jobs.effective_gpu_us[0]) / float(record.jobs.allocated_gpu_us[0])


def rolled(scenario: Scenario, places: Sequence[Sequence[int]]) -> Record:
    """Return a rollout of jobs on given GPUs; those beside the first run until it has ended."""
    number = len(places)
    columns = {
        "submit_s": np.zeros(number),
        "gpus": [len(gpus) for gpus in places],
        "run_s": [HOUR] + [10 * HOUR] * (number - 1),
        "utilization": [RESNET_50] * number,
    }
    trace = trace_of("table 4", "ATC'19, table 4", columns)
    return Engine(scenario, trace, InPlaces(places), seed=0).run()
