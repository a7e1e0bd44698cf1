"""Prices of GPU time that make starts of nodes count: cutting planes in a trust region.

The Lagrangian dual of plans of jobs and rents of nodes is concave, and each plan is a cut. Its
greatest value near the best prices so far is the next guess (boxstep; Marsten, Hogan, Blankenship,
Operations Research 23, 1975).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy import sparse

from optsched.bounds.certificate import StartsCertificate
from optsched.bounds.relaxation.start_plans import Prices, alone, best_plan
from optsched.bounds.verify.ready_nodes import PPM, US
from optsched.mip import highs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.bounds.relaxation.start_plans import Alone, Plan
    from optsched.bounds.schedules import Schedules
    from optsched.documents.arrays import Floats
    from optsched.rollout.scenario import Scenario
    from optsched.traces.trace import Trace

MOST_SLOTS: Final = 2000
STEPS: Final = 20
CLOSE: Final = 5e-4
"""Where so small a share of the value is to be gained at most, it is near enough."""


class _Dual:
    """The value of prices at a bill: least costs of jobs, less the rent of what is billed."""

    def __init__(self, jobs: Sequence[Alone], edges: Floats, start_s: float, gpu_s: float) -> None:
        self.jobs, self.edges, self._start_s, self._gpu_s = jobs, edges, start_s, gpu_s
        self._cuts: dict[tuple[int, float, float, bytes], tuple[int, Plan]] = {}

    def value(self, prices: Prices) -> float:
        """Return what prices prove, but for the grid, and keep the plans as cuts."""
        plans = [best_plan(job, prices) for job in self.jobs]
        for number, plan in enumerate(plans):
            key = (number, plan.seconds, plan.gpu_s, plan.moments.tobytes())
            self._cuts[key] = number, plan
        return sum(plan.cost(prices) for plan in plans) - prices.rent * self._gpu_s

    def best(self, near: Prices, radius: float) -> tuple[float, Prices]:
        """Return the prices near others at which the cuts allow most, and how much that is.

        Columns: the least cost of each job, the rent, and what a ready GPU is worth by edge.
        """
        jobs, edges = len(self.jobs), len(self.edges)
        slot, reach = float(self.edges[1] - self.edges[0]), radius * near.rent * self._start_s
        cuts, costs = self._rows()
        unit = np.eye(edges)
        starts = [np.zeros((edges, jobs)), np.full((edges, 1), -self._start_s), unit]
        rents = [np.zeros((edges - 1, jobs)), np.full((edges - 1, 1), -slot), np.diff(unit, axis=0)]
        more = [sparse.coo_array(np.hstack(row)) for row in (starts, rents)]
        matrix = sparse.vstack([cuts, *more])
        inside = np.r_[0.0, np.full(edges - 2, np.inf), 0.0]
        least = np.r_[near.rent * (1 - radius / 4), np.maximum(0.0, near.worth - reach)]
        most = np.r_[near.rent * (1 + radius / 4), np.minimum(inside, near.worth + reach)]
        cost = np.r_[-np.ones(jobs), self._gpu_s, np.zeros(edges)]
        upper = np.r_[costs, np.zeros(2 * edges - 1)]
        program = highs.Program(
            cost=cost,
            offset=0.0,
            lower=np.r_[np.zeros(jobs), least],
            upper=np.r_[np.full(jobs, np.inf), most],
            integer=np.zeros(len(cost), bool),
            matrix=matrix.tocsr(),
            row_lower=np.full(len(upper), -np.inf),
            row_upper=upper,
        )
        found = highs.solve(program).x
        if found is None:
            return -np.inf, near
        worth = found[jobs + 1 :].clip(0.0, found[jobs] * self._start_s)
        return -float(cost @ found), Prices(float(found[jobs]), self.edges, worth)

    def _rows(self) -> tuple[sparse.coo_array[Any], Floats]:
        """Return rows and their upper ends: a job's least cost is that of a plan or less."""
        jobs, edges, cuts = len(self.jobs), self.edges, list(self._cuts.values())
        sizes = [len(plan.moments) for _, plan in cuts]
        exact = np.concatenate([plan.moments for _, plan in cuts])
        exact = (exact - edges[0]) / (edges[1] - edges[0])
        whole = np.floor(exact).astype(np.int64).clip(0, len(edges) - 2)
        share = (exact - whole).clip(0.0, 1.0)
        changes = np.concatenate([plan.changes for _, plan in cuts])
        every, events = np.arange(len(cuts)), np.repeat(np.arange(len(cuts)), sizes)
        rows = np.r_[every, every, events, events]
        columns = np.r_[[job for job, _ in cuts], np.full(len(cuts), jobs)]
        columns = np.r_[columns, jobs + 1 + whole, jobs + 2 + whole]
        values = np.r_[np.ones(len(cuts)), [-plan.gpu_s for _, plan in cuts]]
        values = np.r_[values, -changes * (1 - share), -changes * share]
        shape = (len(cuts), jobs + 1 + len(edges))
        table = sparse.coo_array((values, (rows, columns)), shape=shape)
        return table, np.array([plan.seconds for _, plan in cuts])


def starts_certificate(
    scenario: Scenario, trace: Trace, schedules: Schedules, price_ppm: int, gpu_hours: float
) -> StartsCertificate | None:
    """Return prices for a bill, from that of the line of GPU time there on; it has no bound yet.

    None where no nodes start, or a job is not elastic.
    """
    rented = scenario.rented
    if rented is None or not rented.provision_s or not price_ppm or not len(trace):
        return None
    if any(not scenario.models[name].phases for name in trace.model):
        return None
    rent = price_ppm / PPM
    jobs = list(alone(scenario, trace, schedules, rent))
    first, last = jobs[0].release_s, max(j.release_s + 1.2 * j.still(rent) for j in jobs)
    slot = max(rented.provision_s, (last - first) / MOST_SLOTS)
    slot = round(slot * US) / US
    edges: Floats = first + slot * np.arange(int((last - first) / slot) + 3, dtype=float)
    dual = _Dual(jobs, edges, rented.provision_s, gpu_hours * 3600)
    found = _climbed(dual, Prices(rent, edges, np.zeros(len(edges))))
    return _rounded(found, int(trace.submit_us.min()), round(slot * US), rented.provision_s)


def _climbed(dual: _Dual, at: Prices) -> Prices:
    """Return prices of nearly the greatest value."""
    best, radius = dual.value(at), 0.5
    for _ in range(STEPS):
        most, there = dual.best(at, radius)
        if most - best <= CLOSE * best:
            break
        value = dual.value(there)
        if value <= best:
            radius *= 0.6
            continue
        radius = min(1.0, radius * 1.5) if value - best > (most - best) / 2 else radius
        best, at = value, there
    return at


def _rounded(found: Prices, since_us: int, slot_us: int, start_s: float) -> StartsCertificate:
    """Return prices in whole numbers that are no more than a start, and rise no faster than it."""
    ppm = round(found.rent * PPM)
    most = ppm * max(0, round(start_s * US) - 1) // PPM
    worth = [min(most, int(value * US)) for value in found.worth.tolist()]
    worth[0] = worth[-1] = 0
    for edge in range(1, len(worth)):
        worth[edge] = min(worth[edge], worth[edge - 1] + ppm * slot_us // PPM)
    return StartsCertificate(
        price_ppm=ppm, since_us=since_us, slot_us=slot_us, worth_us=worth, jct_mean_s=0.0
    )
