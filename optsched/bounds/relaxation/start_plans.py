"""Best plans of jobs where ready nodes are worth something: a dynamic program, in floats.

As the verifier's, on a coarser grid and between its points by interpolation: what it finds are
plans, each of which is a cut for the prices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from optsched.bounds.places import Places
from optsched.bounds.relaxation.bill_prices import overhead_s, pace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.bounds.schedules import Schedules
    from optsched.documents.arrays import Bools, Floats, Integers
    from optsched.rollout.scenario import Scenario
    from optsched.traces.trace import Trace

PARTS: Final = 40
CELLS: Final = 300
NEAR: Final = np.geomspace(1 / 6, 6, 25)
"""Widths that are best for some phase at a price so many times as great are looked at."""
WIDE: Final = 16
"""GPUs: what plans may take longer than the least cost is what so many ready ones are worth."""
NEVER: Final = 1e18


class Prices(NamedTuple):
    """The price of a GPU-second that is billed, and at edges of slots what a ready GPU is worth."""

    rent: float
    edges: Floats
    worth: Floats

    def worth_at(self, moments: Floats) -> Floats:
        """Return what a ready GPU is worth at moments; nothing outside."""
        found: Floats = np.interp(moments, self.edges, self.worth, left=0.0, right=0.0)
        return found


class Alone(NamedTuple):
    """A job by itself: seconds of its parts, one after the other, by width."""

    release_s: float
    widths: Floats
    seconds: Floats
    overhead_s: float

    def still(self, rent: float) -> float:
        """Return the least cost where ready nodes are worth nothing."""
        rates = 1 + rent * self.widths
        best = self.overhead_s * rates
        for row in self.seconds:
            best = np.minimum(best, best.min() + self.overhead_s * rates) + row * rates
        return float(best.min())


class Plan(NamedTuple):
    """Seconds in the system, GPU-seconds held, and moments at which the number of GPUs changes."""

    seconds: float
    gpu_s: float
    moments: Floats
    changes: Floats

    def cost(self, prices: Prices) -> float:
        """Return the time, the rent of what is held, and what ready GPUs are worth less."""
        worth = float(self.changes @ prices.worth_at(self.moments))
        return self.seconds + prices.rent * self.gpu_s + worth


def alone(scenario: Scenario, trace: Trace, schedules: Schedules, rent: float) -> Iterator[Alone]:
    """Yield the jobs of a trace, all of which are elastic, with widths for prices near a rent."""
    places = Places(scenario)
    known: dict[tuple[str, int], tuple[Floats, Floats]] = {}
    for name, demand, run_us, submit_us in zip(
        trace.model,
        trace.gpus.tolist(),
        trace.run_us.tolist(),
        trace.submit_us.tolist(),
        strict=True,
    ):
        model = scenario.models[name]
        if (name, demand) not in known:
            widths, seconds = pace(model, demand, places)
            rates = 1 + rent * NEAR[:, None, None] * widths
            kept = np.unique((rates * seconds).argmin(axis=2))
            known[name, demand] = widths[kept], _parts(seconds[:, kept])
        widths, seconds = known[name, demand]
        overhead = overhead_s(scenario, model, schedules)
        yield Alone(submit_us / 1e6, widths, seconds * (run_us / 1e6), overhead)


def _parts(seconds: Floats) -> Floats:
    """Return phases put together, or divided, so that there are some `PARTS` of them."""
    count = len(seconds)
    if count > PARTS:
        begins = np.arange(0, count, -(-count // PARTS))
        together: Floats = np.add.reduceat(seconds, begins)
        return together
    each = -(-PARTS // count)
    return np.repeat(seconds / each, each, axis=0)


class _Tables(NamedTuple):
    """By part: who stays (width x cell), the width of a start, and the cost of one then or later.

    Attributes
    ----------
    ends
        By part, begin and end of the job included, and width the seconds behind.
    """

    step: float
    ends: Floats
    stays: list[Bools]
    starts: list[Integers]
    now: list[Floats]
    later: list[Floats]


def best_plan(job: Alone, prices: Prices) -> Plan:
    """Return the plan of the least cost, as far as the grid can tell."""
    return _plan(job, _tables(job, prices))


def _tables(job: Alone, prices: Prices) -> _Tables:
    until = 1.05 * job.still(prices.rent) + float(prices.worth.max()) * WIDE + job.overhead_s
    step = float(until / CELLS)
    ends = np.vstack([np.zeros(len(job.widths)), np.cumsum(job.seconds, axis=0)])
    cells = np.arange(CELLS)
    times: Floats = cells.astype(float) * step
    widths: Floats = job.widths[:, None]
    rates = 1 + prices.rent * job.widths

    def worth(behind: Floats) -> Floats:
        moments: Floats = job.release_s + times + (behind % step)[:, None]
        return prices.worth_at(moments)

    held = -worth(ends[-1]) * widths
    tables = _Tables(step, ends, [], [], [], [])
    at = prices.worth_at(job.release_s + times)
    for behind, ahead in zip(ends[-2::-1], ends[:0:-1], strict=True):
        shift = (ahead // step - behind // step).astype(np.int64)
        held = _moved(held, shift) + ((ahead - behind) * rates)[:, None]
        exact = (job.overhead_s - behind % step) / step
        whole = np.floor(exact).astype(np.int64)
        share = (exact - whole)[:, None]
        arrived = _moved(held, whole) * (1 - share) + _moved(held, whole + 1) * share
        started = arrived + at * widths + (job.overhead_s * rates)[:, None]
        now = started.min(axis=0)
        later = np.minimum.accumulate((now + times)[::-1])[::-1] - times
        share = (behind % step / step)[:, None]
        free = later * (1 - share) + np.append(later[1:], NEVER) * share
        changed = free - worth(behind) * widths
        tables.stays.append(held <= changed + 1e-9)
        tables.starts.append(started.argmin(axis=0))
        tables.now.append(now)
        tables.later.append(later)
        held = np.minimum(held, changed)
    for rows in tables[2:]:
        rows.reverse()
    return tables


def _moved(values: Floats, shifts: Integers) -> Floats:
    """Return rows moved to earlier cells by so many, each; what comes after the last never ends."""
    cells = np.arange(CELLS) + shifts[:, None]
    found = np.take_along_axis(values, cells.clip(0, CELLS - 1), axis=1)
    return np.where(cells < CELLS, found, NEVER)


def _plan(job: Alone, tables: _Tables) -> Plan:
    """Follow the tables from the release to the end."""
    step, moment, gpu_s, width = tables.step, 0.0, 0.0, -1
    events: list[tuple[float, float]] = []
    for part, stays in enumerate(tables.stays):
        behind = tables.ends[part]
        cell = _cell(moment - behind[width] % step, step)
        if width < 0 or not stays[width, cell]:
            if width >= 0:
                events.append((moment, -job.widths[width]))
            cell = first = _cell(moment, step)
            late = tables.now[part] > tables.later[part] + 1e-9
            while late[cell] and cell + 1 < CELLS:
                cell += 1
            moment = max(moment, cell * step) if cell > first else moment
            width = int(tables.starts[part][cell])
            events.append((moment, job.widths[width]))
            moment += job.overhead_s
            gpu_s += job.overhead_s * job.widths[width]
        moment += job.seconds[part, width]
        gpu_s += job.seconds[part, width] * job.widths[width]
    events.append((moment, -job.widths[width]))
    moments, changes = np.array(events).T
    return Plan(moment, gpu_s, job.release_s + moments, changes)


def _cell(moment: float, step: float) -> int:
    return min(CELLS - 1, max(0, round(moment / step)))
