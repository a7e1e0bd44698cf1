"""Smith's rule with the exponent of widths by which the jobs at hand would end soonest.

Source: Bertsekas, Tsitsiklis and Wu, "Rollout algorithms for combinatorial optimization", Journal
of Heuristics 1997: of some heuristics, follow the one whose simulation ends best, and ask again at
the next decision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from optsched.rollout.checkpoints.restorable import Restorable
from optsched.rollout.policies.list_schedule import GangTimes, list_schedule, unit_us
from optsched.rollout.policies.placement_round import ClusterData
from optsched.rollout.policies.repacking.placement import Repacking
from optsched.rollout.policies.repacking.wsrpt import RepackingOptions, Wsrpt
from optsched.rollout.policies.round_based import Rounds
from optsched.rollout.policy_options import Count, Share, takes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.rollout.engine.view import View
    from optsched.rollout.scenario import Scenario

EXPONENTS = (0.3, 0.0, 0.6, 1.0)
"""Of equally good ones the first is taken; 0 is the order of srtf, 1 that of remaining GPU-time."""


class LookaheadOptions(RepackingOptions):
    """What is simulated, and how jobs are placed."""

    stay: Share = Field(
        default=0.2,
        description="A running job stands in the orders as if so much less of it remained.",
    )
    most_jobs: Count = Field(
        default=300,
        description="With more jobs at hand nothing is simulated: the order is wsrpt's.",
    )


class Lookahead(Restorable):
    """Orders jobs by remaining time x width to a power, the power by a simulation of them all."""

    def __init__(self, options: LookaheadOptions) -> None:
        self.options = options
        self._rooms: list[int] = []
        self._world: ClusterData | None = None

    def sort(self, view: View, jobs: Sequence[int]) -> list[int]:
        """Return the jobs, the most urgent first."""
        numbers, stay = sorted(jobs), self.options.stay
        left = view.remaining_us(numbers)
        if not numbers or np.isnan(left).any() or len(numbers) > self.options.most_jobs:
            return Wsrpt(EXPONENTS[0], stay).sort(view, numbers)
        widths = np.array([view.demand(job) for job in numbers])
        unit = unit_us(view.scenario)
        slower = np.array(self._factors(view, numbers, widths.tolist()))
        length = np.maximum(1, np.ceil(left * slower / unit))
        runs = np.array([bool(view.gpus_of(job)) for job in numbers])
        gpus = sum(n for n, ready in zip(view.cluster.size, view.ready, strict=True) if ready)
        gangs = GangTimes(
            [0] * len(numbers), length.astype(np.int64).tolist(), np.minimum(widths, gpus).tolist()
        )
        all_fit = sum(gangs.width) <= gpus  # then they end at the same time in any order
        orders: list[list[int]] = []
        for exponent in EXPONENTS[:1] if all_fit else EXPONENTS:
            keys = length * widths.astype(float) ** exponent * (1 - stay * runs)
            orders.append(np.lexsort((-runs.astype(int), keys)).tolist())
        if gpus and not all_fit:
            orders.sort(key=lambda order: sum(list_schedule(gangs, order, gpus)))
        return [numbers[n] for n in orders[0]]

    def steady(self, scenario: Scenario) -> None:
        """Return None: where a job stands depends on all others."""

    def _factors(self, view: View, jobs: Sequence[int], widths: Sequence[int]) -> list[float]:
        """Return by job how much slower it is on as few nodes as can hold it."""
        if self._world is None:
            cluster = view.cluster
            self._world = ClusterData(view)
            self._rooms = [
                max(sum(cluster.size[node] for node in nodes) for nodes in cluster.domains(level))
                for level in range(len(cluster.levels))
            ]
        found = []
        for job, width in zip(jobs, widths, strict=True):
            level = next((n for n, room in enumerate(self._rooms) if room >= width), -1)
            found.append(self._world.penalties(view.model(job))[level])
        return found


@takes(LookaheadOptions)
def wsrpt_lookahead(scenario: Scenario, seed: int, options: LookaheadOptions) -> Rounds:
    """Smith's rule, its exponent of widths chosen by looking ahead, moved where that pays."""
    placement = Repacking(options.horizon_s)
    return Rounds("wsrpt-lookahead", Lookahead(options), placement, backfill=True)
