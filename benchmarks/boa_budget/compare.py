"""What `boa-budgeted` is billed and reaches, beside the lower envelope of the frozen policies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.boa_budget.today import BUDGETS, SCENARIO, SEEDS, Row, frozen, row
from optsched.reproduction.envelopes import lower_hull
from optsched.rollout.policies.budgets.arrival_rates import cheapest
from optsched.rollout.policies.width_curves import Curves
from optsched.rollout.scenario_files import read_scenario
from optsched.rollout.trace_source import jobs_of
from optsched.traces.trace import US

if TYPE_CHECKING:
    from optsched.documents.arrays import Floats

KEPT = Path(__file__).parents[1] / "results" / "boa_budget.json"


def measured(again: bool = False) -> dict[int, list[Row]]:
    """Return the rows of `boa-budgeted` by budget, from a file if they were measured before."""
    if KEPT.exists() and not again:
        kept = json.loads(KEPT.read_text())
        return {int(budget): [tuple(r) for r in rows] for budget, rows in kept.items()}
    rows = {b: [row(f"boa-budgeted:budget={b}", seed) for seed in SEEDS] for b in BUDGETS}
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    KEPT.write_text(json.dumps(rows))
    return rows


def least_use(seed: int) -> tuple[float, float, float]:
    """Return the hours from first to last arrival, the least GPU-hours of all jobs, and the drain.

    The drain is what jobs at their widths of least use from their arrival on take after the last.
    """
    scenario = read_scenario(SCENARIO)
    trace, curves = jobs_of(scenario, None, seed), Curves(scenario)
    last, least, drain = int(trace.submit_us[-1]), 0.0, 0.0
    jobs = zip(trace.model, trace.gpus.tolist(), trace.run_us.tolist(), trace.submit_us.tolist(),
               strict=True)  # fmt: skip
    for model, demand, run_us, submit in jobs:
        seconds = gpu_s = 0.0
        for work, curve in zip(curves.works(model, demand), curves.of(model, demand), strict=True):
            gpus = cheapest(curve.gpus, curve.speed)
            seconds += work * run_us / US / curve.speed_at(gpus)
            gpu_s += gpus * work * run_us / US / curve.speed_at(gpus)
        least += gpu_s
        drain += gpu_s * min(1.0, max(0.0, (submit - last) / US + seconds) / seconds)
    return (last - int(trace.submit_us[0])) / US / 3600, least / 3600, drain / 3600


def envelope(chosen: Floats) -> tuple[Floats, Floats]:
    """Return mean bills, ascending, and mean JCTs of the lower convex hull, over some seeds."""
    points = []
    for rows in frozen().values():
        figures = np.array(rows)[chosen]
        points.append((float(figures[:, 1].mean()), float(figures[:, 2].mean())))
    bills, times = np.array(lower_hull(points)).T
    return bills, times


def markdown(rows: dict[int, list[Row]]) -> str:
    """Return the table for docs."""
    facts = np.array([least_use(seed) for seed in SEEDS])
    lines = [
        f"`{SCENARIO}`, {len(SEEDS)} seeds. Least: traces whose own work takes more than the "
        "budget on average at the very least.",
        "",
        "| budget | billed / allowance, mean | greatest | above 1.01 | least | until the last "
        "arrival / budget | mean JCT s | JCT / envelope |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for budget, told in rows.items():
        figures = np.array(told)
        ratio = figures[:, 1] / (budget * facts[:, 0] + facts[:, 2])
        broken = int((facts[:, 1] > budget * facts[:, 0]).sum())
        lines.append(
            f"| {budget} | {ratio.mean():.3f} | {ratio.max():.3f} | {int((ratio > 1.01).sum())} | "
            f"{broken} | {figures[:, 3].mean() / budget:.3f} | {figures[:, 2].mean():,.0f} | "
            f"{_against(figures)} |"
        )
    return "\n".join(lines)


def _against(figures: Floats) -> str:
    """Return JCT over that of the seed's own envelope at the same bill, with its interval."""
    ratios = []
    for seed, (_, bill, jct, _) in enumerate(figures):
        bills, times = envelope(np.array([seed]))
        ratios.append(jct / np.interp(bill, bills, times))
    drawn = np.random.default_rng(0).choice(ratios, (2000, len(ratios))).mean(axis=1)
    low, high = np.percentile(drawn, (2.5, 97.5))
    return f"{np.mean(ratios):.3f} [{low:.3f}, {high:.3f}]"
