"""What learning the price has cost by each hour: `boa-budgeted` beside the price it should know.

The known price is, for each seed, the one whose bill for the whole trace is that of the learner,
told from the first hour on: found by bisection, and mixed of the two prices whose bills are nearest
above and below, for a bill is no smooth function of the price. The curves are
`optsched.rollout.regret`.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import optsched
from benchmarks.boa_budget.regret import SCENARIO, STREAMS
from optsched.rollout import regret
from optsched.rollout.scenario_files import read_scenario

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from optsched.documents.arrays import Floats
    from optsched.rollout.run import Rollout
    from optsched.rollout.scenario import Scenario

JOBS = 480  # 24 hours, a day of the stream that has one
SEEDS = tuple(range(8))
HOURS = (1.0, 2.0, 4.0, 8.0, 12.0, 16.0, 20.0, 24.0, math.inf)
LEARNER = "boa-budgeted"
STEPS = 14  # halvings of the logarithm of the price
PRICES = (1e-3, 1e2)  # s of JCT per USD, times 3,600: nobody saves, and everybody
KEPT = Path(__file__).parents[1] / "results" / "boa_regret_over_time.json"
PICTURE = Path(__file__).parents[2] / "pictures" / "boa_regret.png"
Rows = dict[str, list[list[list[float]]]]  # by stream: for each seed JCT s and USD, by hour


def measured(again: bool = False) -> Rows:
    """Return extra JCT and extra USD by stream, for each seed and hour."""
    rows: Rows = {}
    if KEPT.exists() and not again:
        rows = json.loads(KEPT.read_text())
    for stream, options in STREAMS.items():
        told = rows.setdefault(stream, [])
        own = read_scenario(SCENARIO).trace.options
        changes = {"trace.jobs": JOBS, "trace.options": {**own, **options}}
        for seed in SEEDS[len(told) :]:
            told.append(_beyond(read_scenario(SCENARIO).changed(changes), seed))
            KEPT.parent.mkdir(parents=True, exist_ok=True)
            KEPT.write_text(json.dumps(rows))
    return rows


def _beyond(scenario: Scenario, seed: int) -> list[list[float]]:
    """Return the extra JCT and USD of the learner on one seed, by hour; then the known figures."""
    learner = optsched.simulate(scenario, LEARNER, seed=seed)
    told = _known(scenario, seed, _bill(learner))
    share = 1.0
    if len(told) > 1:
        share = (_bill(learner) - _bill(told[1])) / (_bill(told[0]) - _bill(told[1]))
    total = np.zeros((2, len(HOURS)))
    known = np.zeros(2)
    for part, rollout in zip((share, 1 - share), told, strict=False):
        beyond = regret(learner.record, rollout.record, HOURS)
        total += part * np.array([beyond.jct_s, beyond.usd])
        known += part * np.array([float(rollout.metrics["jct_mean_s"] or 0), _bill(rollout)])
    return [*total.tolist(), known.tolist()]


def _bill(rollout: Rollout) -> float:
    return float(rollout.metrics["cost_usd"] or 0)


def _known(scenario: Scenario, seed: int, usd: float) -> list[Rollout]:
    """Return rollouts at the two fixed prices whose bills are nearest above and below a sum.

    One of them where no price has a bill on the other side: a bill is no smooth function of it.
    """
    low, high = map(math.log, PRICES)
    sides: dict[bool, Rollout] = {}
    for _ in range(STEPS):
        price = (low + high) / 2
        label = f"{LEARNER}:price={math.exp(price):.6g}"
        rollout = optsched.simulate(scenario, label, seed=seed)
        is_above = _bill(rollout) > usd
        best = sides.get(is_above)
        if best is None or abs(_bill(rollout) - usd) < abs(_bill(best) - usd):
            sides[is_above] = rollout
        low, high = (price, high) if is_above else (low, price)
    return [sides[key] for key in (True, False) if key in sides]


def markdown(rows: Rows) -> str:
    """Return the table for docs."""
    heads = [f"{hour:g} h" if math.isfinite(hour) else "end" for hour in HOURS]
    lines = [
        f"`{SCENARIO}`, {JOBS} jobs, {len(SEEDS)} seeds: seconds per job that has come, and USD, "
        "that `boa-budgeted` has cost by then beyond the price for good with the same bill at the "
        "end; means with 95 % bootstrap intervals.",
        "",
        f"| arrivals | beyond | {' | '.join(heads)} | known price |",
        "|---|---|" + "---:|" * (len(HOURS) + 1),
    ]
    for stream, told in rows.items():
        for n, unit in enumerate(("s per job", "USD")):
            cells = [_cell(column) for column in np.array([row[n] for row in told]).T]
            known = np.mean([row[2][n] for row in told])
            lines.append(f"| {stream} | {unit} | {' | '.join(cells)} | {known:,.0f} |")
    return "\n".join(lines)


def _cell(values: Floats) -> str:
    mean, low, high = interval(values)
    return f"{mean:,.0f} [{low:,.0f}, {high:,.0f}]"


def interval(values: Floats) -> tuple[float, float, float]:
    """Return the mean of values over seeds, and the ends of its 95 % bootstrap interval."""
    drawn = np.random.default_rng(0).choice(values, (2000, len(values))).mean(axis=1)
    low, high = np.percentile(drawn, (2.5, 97.5))
    return float(np.mean(values)), float(low), float(high)


def picture(rows: Rows) -> Figure:
    """Return the curves of extra JCT and extra money, with their intervals as bands."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10.5, 4), layout="constrained")
    hours = [hour for hour in HOURS if math.isfinite(hour)]
    for n, (ax, text) in enumerate(
        zip(axes, ("extra seconds per job that has come", "extra USD billed"), strict=True)
    ):
        for stream, told in rows.items():
            columns = np.array([row[n] for row in told]).T[: len(hours)]
            mean, low, high = np.array([interval(column) for column in columns]).T
            ax.plot(hours, mean, marker=".", label=stream)
            ax.fill_between(hours, low, high, alpha=0.15)
        ax.axhline(0, color="grey", linewidth=0.8)
        ax.set(xlabel="hours since the first arrival", ylabel=text)
    axes[0].legend(frameon=False)
    figure.suptitle(f"{SCENARIO}: what learning the price has cost", fontsize=11)
    return figure


def draw(rows: Rows) -> None:
    """Write the picture that docs show."""
    figure = picture(rows)
    figure.savefig(PICTURE, dpi=110, metadata={"Software": None}, pil_kwargs={"optimize": True})
