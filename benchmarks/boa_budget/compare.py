"""What `boa-budgeted` is billed and reaches, beside the lower envelope of the frozen policies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.boa_budget.today import CLOUD, Row, Setting, frozen, row
from optsched.reproduction.envelopes import lower_hull
from optsched.rollout.results.billing.budgets import allowance, least_bill
from optsched.rollout.scenario_files import read_scenario
from optsched.rollout.trace_source import jobs_of

if TYPE_CHECKING:
    from optsched.documents.arrays import Floats

KEPT = Path(__file__).parents[1] / "results"


def measured(again: bool = False, setting: Setting = CLOUD) -> dict[int, list[Row]]:
    """Return the rows of `boa-budgeted` by budget, from a file where they were measured before."""
    file, rows = KEPT / f"boa_budget_{setting.scenario}.json", dict[int, list[Row]]()
    if file.exists() and not again:
        kept = json.loads(file.read_text())
        rows = {int(budget): [tuple(r) for r in told] for budget, told in kept.items()}
    for budget in setting.budgets:
        label, told = f"boa-budgeted:budget={budget}", rows.setdefault(budget, [])
        for seed in setting.seeds[len(told) :]:
            told.append(row(label, seed, setting.scenario))
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(rows))
    return rows


def facts_of(seed: int, name: str = CLOUD.scenario) -> tuple[float, float, float]:
    """Return the hours from first to last arrival, the drain in GPU-hours, and the least budget.

    The least budget is proven: no schedule keeps a smaller one.
    """
    scenario = read_scenario(name)
    trace = jobs_of(scenario, None, seed)
    allowed, least_gpu_h = allowance(scenario, trace), least_bill(scenario, trace)
    assert least_gpu_h is not None, "the bounds know the scenario"
    return (*allowed, allowed.least_budget(least_gpu_h))


def envelope(chosen: Floats, setting: Setting = CLOUD) -> tuple[Floats, Floats]:
    """Return mean bills, ascending, and mean JCTs of the lower convex hull, over some seeds."""
    points = []
    for rows in frozen(setting).values():
        figures = np.array(rows)[chosen]
        points.append((float(figures[:, 1].mean()), float(figures[:, 2].mean())))
    bills, times = np.array(lower_hull(points)).T
    return bills, times


def markdown(rows: dict[int, list[Row]], setting: Setting = CLOUD) -> str:
    """Return the table for docs."""
    facts = np.array([facts_of(seed, setting.scenario) for seed in setting.seeds])
    least = facts[:, 2]
    lines = [
        f"`{setting.scenario}`, {len(setting.seeds)} seeds. Impossible: traces whose own work is "
        "billed more than the budget allows, whatever the schedule; their least budgets are "
        f"{least.min():.1f} to {least.max():.1f} GPUs. JCT / envelope: of the seeds whose bill a "
        "frozen policy reaches, in brackets how many.",
        "",
        "| budget | billed / allowance, mean | greatest | above 1.01 | impossible | until the last "
        "arrival / budget | mean JCT s | JCT / envelope |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for budget, told in rows.items():
        figures = np.array(told)
        ratio = figures[:, 1] / (budget * facts[:, 0] + facts[:, 1])
        broken = int((least > budget).sum())
        lines.append(
            f"| {budget} | {ratio.mean():.3f} | {ratio.max():.3f} | {int((ratio > 1.01).sum())} | "
            f"{broken} | {figures[:, 3].mean() / budget:.3f} | {figures[:, 2].mean():,.0f} | "
            f"{_against(figures, setting)} |"
        )
    return "\n".join(lines)


def _against(figures: Floats, setting: Setting) -> str:
    """Return JCT over that of the seed's own envelope at the same bill, with its interval."""
    ratios = []
    for seed, (_, bill, jct, _) in enumerate(figures):
        bills, times = envelope(np.array([seed]), setting)
        if bill >= bills[0]:
            ratios.append(jct / np.interp(bill, bills, times))
    if not ratios:
        return "- (0)"
    drawn = np.random.default_rng(0).choice(ratios, (2000, len(ratios))).mean(axis=1)
    low, high = np.percentile(drawn, (2.5, 97.5))
    return f"{np.mean(ratios):.3f} [{low:.3f}, {high:.3f}] ({len(ratios)})"
