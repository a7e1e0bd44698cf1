"""Rollouts of boa-cloud by policies as they were, frozen in today.json: what later ones must beat.

A row is (seed, GPU-hours billed, mean JCT in seconds, GPUs billed on average until the last
arrival). `python -m benchmarks.boa_budget --freeze` writes the file again, by the policies of the
code at hand: only with the commit that the file names is it what it says.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import optsched
from optsched.documents.json_files import dumps, load, write_text

FILE = Path(__file__).parent / "today.json"
SCENARIO = "boa-cloud"
BUDGETS = (22, 24, 27, 30, 33, 36, 40, 45)
SEEDS = tuple(range(20))
BANDS = ((0.35, 0.65), (0.45, 0.7), (0.55, 0.8), (0.6, 0.85), (0.7, 0.95))
Row = tuple[int, float, float, float]


class Setting(NamedTuple):
    """A scenario, what is measured on it, and the file of the policies as they were."""

    scenario: str
    budgets: tuple[int, ...]
    seeds: tuple[int, ...]
    file: Path


CLOUD = Setting(SCENARIO, BUDGETS, SEEDS, FILE)
LARGE = Setting("boa-large", (60, 90, 120, 160), SEEDS, FILE.parent / "today_large.json")


def policies(setting: Setting = CLOUD) -> dict[str, tuple[str, ...]]:
    """Return the policies by name, each with the values of its own parameter."""
    if setting is LARGE:  # of those that have not changed since, and end within seconds
        return {
            "boa": tuple(f"boa:budget={b}" for b in ("120", "140", "180", "240")),
            "fixed-width": tuple(f"fixed-width:k={k}" for k in (2, 4, 8)),
        }
    fixed = tuple(str(budget) for budget in (24, 28, 32, 36, 40, 44, 48))
    budgets = tuple(str(budget) for budget in BUDGETS)
    return {
        "boa": tuple(f"boa:budget={b}" for b in (*budgets, "50")),
        "one-width-per-class": tuple(f"one-width-per-class:budget={b}" for b in budgets),
        "pollux-autoscaling": tuple(f"pollux-autoscaling:low={a},high={b}" for a, b in BANDS),
        "equi": tuple(f"equi:gpus={gpus}" for gpus in fixed),
        "marginal-greedy": tuple(f"marginal-greedy:gpus={gpus}" for gpus in fixed[::2]),
        "fixed-width": tuple(f"fixed-width:k={k}" for k in (1, 2, 4, 8)),
        "sia": tuple(f"sia:gpus={gpus}" for gpus in fixed[::2]),
        "boa-budgeted": tuple(f"boa-budgeted:budget={b}" for b in budgets[::2]),
    }


def row(policy: str, seed: int, scenario: str = SCENARIO) -> Row:
    """Return the figures of one rollout."""
    told = optsched.simulate(scenario, policy, seed=seed).metrics
    figures = (told[key] for key in ("rented_gpu_hours", "jct_mean_s", "steady_rented_gpus_mean"))
    billed, jct, steady = (round(float(figure or 0.0), 4) for figure in figures)
    return seed, billed, jct, steady


def freeze(setting: Setting = CLOUD) -> None:
    """Run all policies on the seeds that they lack, and write the file; its rows are kept."""
    file, name = setting.file, setting.scenario
    known = load(file) if file.exists() else {"scenario": name, "rows": {}}
    for labels in policies(setting).values():
        for label in labels:
            rows = known["rows"].setdefault(label, [])
            for seed in setting.seeds[len(rows) :]:
                rows.append(list(row(label, seed, name)))
                write_text(file, dumps(known))
            print(label, flush=True)


def frozen(setting: Setting = CLOUD) -> dict[str, list[Row]]:
    """Return the rows of the file, by policy."""
    rows = load(setting.file)["rows"]
    return {label: [tuple(r) for r in told] for label, told in rows.items()}
