"""Prices of GPU time whose lines follow the trade of mean JCT for GPU-hours, found in floats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from optsched.bounds.places import Places, speedup_at

if TYPE_CHECKING:
    from optsched.bounds.schedules import Schedules
    from optsched.documents.arrays import Floats
    from optsched.rollout.scenario import Model, Scenario
    from optsched.traces.trace import Trace

GRID: Final = 96
LINES: Final = 16
MOST_STEPS: Final = 2_000_000
PPM: Final = 1e6


def bill_prices(scenario: Scenario, trace: Trace, schedules: Schedules) -> list[int]:
    """Return prices in millionths; none where no job is elastic, or where it would take too long.

    Of a grid those whose lines are the greatest at GPU-hours from the least to what jobs have that
    are as fast as they can be, evenly spaced in their logarithm.
    """
    elastic = {name: m for name, m in scenario.models.items() if m.phases}
    jobs: dict[tuple[str, int], list[float]] = {}
    for name, demand, run in zip(
        trace.model, trace.gpus.tolist(), trace.run_us.tolist(), strict=True
    ):
        if name in elastic:
            jobs.setdefault((name, demand), []).append(run / 1e6)
    places = Places(scenario)
    paces = {key: pace(elastic[key[0]], key[1], places) for key in jobs}
    if not jobs or sum(len(jobs[key]) * paces[key][1].size for key in jobs) > MOST_STEPS:
        return []
    prices = np.r_[0.0, np.geomspace(1e-4, 1e3, GRID)]
    lines = np.zeros(len(prices))
    for (name, demand), runs in jobs.items():
        overhead = overhead_s(scenario, elastic[name], schedules)
        for n, price in enumerate(prices):
            lines[n] += _line(np.array(runs), *paces[name, demand], overhead, price)
    spent = np.diff(lines) / np.diff(prices)
    targets = np.geomspace(max(spent.min(), 1e-9), max(spent.max(), 1e-9), LINES)
    best = {int(np.argmax(lines - prices * target)) for target in targets}
    return sorted({round(prices[n] * PPM) for n in best})


def overhead_s(scenario: Scenario, model: Model, schedules: Schedules) -> float:
    """Return the least overhead of a change of width: a move after it leaves only its own."""
    costs, own = scenario.costs, model.rescale_s
    moved = costs.restore_s + costs.checkpoint_s if schedules.moves else np.inf
    return float(min(costs.rescale_s if own is None else own, moved))


def pace(model: Model, demand: int, places: Places) -> tuple[Floats, Floats]:
    """Return widths, and by phase and width the seconds for all of a job's work of a second."""
    widths = sorted({demand, *(k for p in model.phases for k in p.curve.widths)})
    widths = [k for k in widths if k <= places.gpus] or [demand]
    place = {k: float(places.speed(model, k)) or 1e-9 for k in widths}
    rows = [
        [p.work_gpu_s / (float(speedup_at(p.curve, k)) * place[k]) for k in widths]
        for p in model.phases
    ]
    whole = sum(p.work_gpu_s / float(speedup_at(p.curve, demand)) for p in model.phases)
    return np.array(widths, float), np.array(rows) / whole


def _line(runs: Floats, widths: Floats, seconds: Floats, overhead: float, price: float) -> float:
    """Return the least time and priced GPU time of jobs of one model, all together."""
    rate = 1 + price * widths
    best = np.tile(overhead * rate, (len(runs), 1))
    for number, row in enumerate(seconds):
        if number:
            best = np.minimum(best, best.min(axis=1)[:, None] + overhead * rate)
        best += runs[:, None] * (row * rate)
    return float(best.min(axis=1).sum())
