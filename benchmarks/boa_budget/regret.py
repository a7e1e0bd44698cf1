"""What learning the price costs against knowing it: `boa-budgeted` beside fixed prices.

A fixed price is one that the whole trace told: of those on a grid, and mixtures of two of them, the
one whose bill is that of the ledger's run. Regret is mean JCT over that of this price, minus 1.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import optsched
from optsched.reproduction.envelopes import at_cost
from optsched.rollout.scenario_files import read_scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

SCENARIO = "rented-types"
STREAMS = {
    "steady": {},
    "diurnal 0.8": {"diurnal": 0.8},
    "bursts, cv 4": {"cv": 4.0},
}
JOBS = (30, 120)
SEEDS = tuple(range(6))
LEARNT = ("boa-budgeted", "boa-budgeted:rates=history")
PRICES = tuple(round(math.exp(step / 2), 6) for step in range(-7, 4))
KEPT = Path(__file__).parents[1] / "results" / "boa_regret.json"
Rows = dict[str, list[tuple[float, float]]]


def measured(again: bool = False) -> Rows:
    """Return USD billed and mean JCT by stream, jobs and policy, for each seed."""
    rows: Rows = {}
    if KEPT.exists() and not again:
        kept = json.loads(KEPT.read_text())
        rows = {key: [tuple(row) for row in told] for key, told in kept.items()}
    for stream, jobs, policy in _cases():
        key = f"{stream}/{jobs}/{policy}"
        if key in rows:
            continue
        instance = read_scenario(SCENARIO).trace.options
        changes = {"trace.jobs": jobs, "trace.options": {**instance, **STREAMS[stream]}}
        scenario = read_scenario(SCENARIO).changed(changes)
        told = [optsched.simulate(scenario, policy, seed=seed).metrics for seed in SEEDS]
        rows[key] = [(float(m["cost_usd"] or 0), float(m["jct_mean_s"] or 0)) for m in told]
        KEPT.parent.mkdir(parents=True, exist_ok=True)
        KEPT.write_text(json.dumps(rows))
    return rows


def _cases() -> Iterator[tuple[str, int, str]]:
    for stream in STREAMS:
        for jobs in JOBS:
            for policy in (*LEARNT, *(f"boa-budgeted:price={price}" for price in PRICES)):
                yield stream, jobs, policy


def markdown(rows: Rows) -> str:
    """Return the table for docs."""
    lines = [
        f"`{SCENARIO}`, {len(SEEDS)} seeds: mean JCT of `boa-budgeted` over that of the fixed "
        "price with the same bill, which knows the whole trace; means with 95 % bootstrap "
        "intervals.",
        "",
        "| arrivals | jobs | mean JCT s | rates of the trace | rates learnt, too |",
        "|---|---:|---:|---:|---:|",
    ]
    for stream in STREAMS:
        for jobs in JOBS:
            fixed = [rows[f"{stream}/{jobs}/boa-budgeted:price={price}"] for price in PRICES]
            cells = [_regret(rows[f"{stream}/{jobs}/{policy}"], fixed) for policy in LEARNT]
            jct = np.mean([row[1] for row in rows[f"{stream}/{jobs}/{LEARNT[0]}"]])
            lines.append(f"| {stream} | {jobs} | {jct:,.0f} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _regret(learnt: list[tuple[float, float]], fixed: list[list[tuple[float, float]]]) -> str:
    """Return the mean of the ratios to fixed prices at equal bills, with its interval."""
    ratios = []
    for seed, (bill, jct) in enumerate(learnt):
        known = at_cost([rows[seed] for rows in fixed], bill)
        if known is not None:
            ratios.append(jct / known)
    if not ratios:
        return "- (0)"
    drawn = np.random.default_rng(0).choice(ratios, (2000, len(ratios))).mean(axis=1)
    low, high = np.percentile(drawn, (2.5, 97.5))
    return f"{np.mean(ratios):.3f} [{low:.3f}, {high:.3f}] ({len(ratios)})"
