"""BOA over GPU types beside Pollux with autoscaling, Sia and fixed widths, at equal bills in USD.

A row is (seed, USD billed, mean JCT in seconds). Each rival is swept over its own parameter: the
type of its GPUs, and the band of utility, the size of the fleet, or the width. What it reaches at
a bill is its lower convex hull on the same seed, which flatters it: a mixture of two of its
settings may not exist.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import optsched
from benchmarks.boa_budget.today import BANDS
from optsched.reproduction.envelopes import lower_hull
from optsched.rollout.results.billing.budgets import allowance
from optsched.rollout.scenario_files import read_scenario
from optsched.rollout.trace_source import jobs_of

if TYPE_CHECKING:
    from collections.abc import Sequence

SCENARIO = "rented-types"
BUDGETS = (25, 30, 40, 50, 60, 80)
SEEDS = tuple(range(5))
KEPT = Path(__file__).parents[1] / "results" / "boa_types.json"
TYPES = {"t4": (48,), "rtx-2080ti": (24, 40, 64), "a100": (12,)}
Rows = dict[str, list[tuple[int, float, float]]]


def rivals() -> dict[str, tuple[str, ...]]:
    """Return the policies that BOA is compared with, each with the values of its parameters."""
    bands = [f"low={low},high={high}" for low, high in BANDS]
    kinds = ("", *(f",gpu_type={name}" for name in TYPES))
    fleets = [f"gpus={n},gpu_type={name}" for name, sizes in TYPES.items() for n in sizes]
    fixed = tuple(f"fixed-width:k={k},gpu_type={name}" for k in (1, 2, 4, 8) for name in TYPES)
    return {
        "boa": tuple(f"boa:budget={b}" for b in (*BUDGETS, 120)),
        "one-width-per-class": tuple(f"one-width-per-class:budget={b}" for b in (*BUDGETS, 120)),
        "pollux-autoscaling": tuple(f"pollux-autoscaling:{b}{k}" for b in bands for k in kinds),
        "sia": tuple(f"sia:{fleet}" for fleet in (*fleets, "gpus=20", "gpus=40")),
        "fixed-width": fixed,
    }


def measured(again: bool = False) -> Rows:
    """Return the rows of all policies, those kept in a file as they were measured before."""
    rows: Rows = {}
    if KEPT.exists() and not again:
        kept = json.loads(KEPT.read_text())
        rows = {label: [tuple(row) for row in told] for label, told in kept.items()}
    own = tuple(f"boa-budgeted:budget={b}" for b in BUDGETS)
    for label in (*own, *(label for labels in rivals().values() for label in labels)):
        if label in rows:
            continue
        rows[label] = [_row(label, seed) for seed in SEEDS]
        KEPT.parent.mkdir(parents=True, exist_ok=True)
        KEPT.write_text(json.dumps(rows))
    return rows


def _row(label: str, seed: int) -> tuple[int, float, float]:
    told = optsched.simulate(SCENARIO, label, seed=seed).metrics
    return seed, round(float(told["cost_usd"] or 0), 4), round(float(told["jct_mean_s"] or 0), 4)


def markdown(rows: Rows) -> str:
    """Return the table for docs."""
    names = list(rivals())
    lines = [
        f"`{SCENARIO}`, {len(SEEDS)} seeds. JCT of each rival over that of `boa-budgeted` at its "
        "bill, on the same seed: means with 95 % bootstrap intervals; in brackets, of how many "
        "seeds the bill is one that the rival reaches.",
        "",
        "| budget USD/h | billed / allowance, mean | greatest | mean JCT s | "
        + " | ".join(f"`{name}`" for name in names)
        + " |",
        "|---:" * (4 + len(names)) + "|",
    ]
    scenario = read_scenario(SCENARIO)
    allowed = [allowance(scenario, jobs_of(scenario, None, seed)) for seed in SEEDS]
    for budget in BUDGETS:
        own = np.array(rows[f"boa-budgeted:budget={budget}"])
        ratio = own[:, 1] / [each.gpu_hours(budget) for each in allowed]
        cells = [_against(own, rows, rivals()[name]) for name in names]
        lines.append(
            f"| {budget} | {ratio.mean():.3f} | {ratio.max():.3f} | {own[:, 2].mean():,.0f} | "
            + " | ".join(cells)
            + " |"
        )
    return "\n".join(lines)


def _against(own: np.ndarray, rows: Rows, labels: Sequence[str]) -> str:
    """Return a rival's JCT over BOA's at BOA's bill, with its interval."""
    ratios = []
    for n, (_, bill, jct) in enumerate(own):
        points = [rows[label][n][1:] for label in labels]
        bills, times = np.array(lower_hull([(float(x), float(y)) for x, y in points])).T
        if bill >= bills[0]:
            ratios.append(np.interp(bill, bills, times) / jct)
    if not ratios:
        return "- (0)"
    drawn = np.random.default_rng(0).choice(ratios, (2000, len(ratios))).mean(axis=1)
    low, high = np.percentile(drawn, (2.5, 97.5))
    return f"{np.mean(ratios):.2f} [{low:.2f}, {high:.2f}] ({len(ratios)})"
