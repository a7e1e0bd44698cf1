"""Rollouts of a policy as tables and data: what was run, its metrics, and what bounds say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from optsched.cli.printing.sheets import Column, Sheet, facts, sheet
from optsched.cli.printing.tables import PROSE
from optsched.rollout.declarations.names import known_as
from optsched.rollout.results.billing.budgets import unkept
from optsched.rollout.results.bounds.rows import BOUNDED, classes, means
from optsched.rollout.results.metrics import METRICS
from optsched.rollout.results.outputs import summary
from optsched.rollout.run import metric_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.rollout.results.bounds.rows import BoundRow
    from optsched.rollout.run import Rollout


def rollout(runs: Sequence[Rollout], bounds: Sequence[BoundRow] = ()) -> list[Sheet | str]:
    """Return what was run, and its metrics; of several seeds their range; and bounds at the end."""
    parts = _figures(runs[0], bounds) if len(runs) == 1 else _of_seeds(runs, bounds)
    words = f"No schedule is below the bounds: {classes(bounds)}."
    unkept_budget = unkept(runs[0].record, runs[0].metrics["least_budget_gpus"])
    told = [text for text in (unkept_budget, words if bounds else "") if text]
    return [*parts, *(line for text in told for line in ("", text))]


def _figures(rollout: Rollout, bounds: Sequence[BoundRow]) -> tuple[Sheet, str, Sheet]:
    """Return what was run, and its metrics, those that could be measured."""
    record = rollout.record
    ran = {
        "scenario": record.scenario.name,
        "trace": f"{record.trace.name}, {len(record.trace):,} jobs",
        "policy": known_as(record.scenario, record.policy),
    }
    columns = ("metric", Column("value", right=True), Column("what it is", fold=PROSE))
    rows = [
        (key, metric_text(value), METRICS[key])
        for key, value in rollout.metrics.items()
        if value is not None
    ]
    rows += [(name, values[0], text) for name, values, text in _bounds(bounds)]
    return facts(ran), "", sheet(columns, rows)


def _of_seeds(runs: Sequence[Rollout], bounds: Sequence[BoundRow]) -> tuple[Sheet, str, Sheet]:
    """Return what was run, and the metrics of rollouts of several seeds, with their range."""
    record = runs[0].record
    seeds = ", ".join(str(run.record.seed) for run in runs)
    policy = known_as(record.scenario, record.policy)
    ran = {"scenario": record.scenario.name, "policy": policy, "seeds": seeds}
    rows = []
    for key, meaning in METRICS.items():
        values = [value for run in runs if (value := run.metrics[key]) is not None]
        if values:
            rows.append((key, *map(metric_text, _range(values)), meaning))
    rows += [(name, *values, text) for name, values, text in _bounds(bounds)]
    mean, least, most = (Column(name, right=True) for name in ("mean", "least", "greatest"))
    columns = ("metric", mean, least, most, Column("what it is", rank=1, fold=PROSE))
    return facts(ran), "", sheet(columns, rows)


def _range(values: Sequence[float]) -> tuple[float, float, float]:
    return sum(values) / len(values), min(values), max(values)


def _bounds(bounds: Sequence[BoundRow]) -> list[tuple[str, list[str], str]]:
    """Return of each metric with a bound its name, mean, least and greatest, and what is above."""
    told = means(bounds) if bounds else {}
    rows = []
    for metric in BOUNDED if bounds else ():
        name, above = f"{metric}_bound", told[f"{metric}_above"]
        values = [value for row in bounds if (value := row.figures()[name]) is not None]
        if values:
            text = "no schedule has less"
            text += "" if above is None else f"; this is {above:.1%} above"
            rows.append((name, list(map(metric_text, _range(values))), text))
    return rows


def rollout_records(
    policy: str, runs: Sequence[Rollout], bounds: Sequence[BoundRow]
) -> list[dict[str, Any]]:
    """Return the metrics of each seed, and what bounds say of them, as data."""
    told = {row.seed: row.figures() for row in bounds}
    return [
        {"policy": policy, "seed": seed, **run.metrics, **told.get(seed, {})}
        for run in runs
        for seed in (run.record.seed,)
    ]


def rollout_document(
    policy: str, runs: Sequence[Rollout], bounds: Sequence[BoundRow] = ()
) -> dict[str, Any]:
    """Return the summary of a rollout as one object; of several, in a list."""
    rows = {row.seed: row.model_dump(mode="json", exclude={"policy", "seed"}) for row in bounds}
    beside = [{"bound": rows[run.record.seed]} if rows else {} for run in runs]
    told = [summary(run.record) | more for run, more in zip(runs, beside, strict=True)]
    if len(told) == 1:
        return told[0]
    return {"policy": policy, "seeds": [run.record.seed for run in runs], "rollouts": told}
