"""Comparisons of policies in a report: what each measured, beside the first, and how sure it is."""

from __future__ import annotations

import shlex
from html import escape
from typing import TYPE_CHECKING

from optsched.documents.json_files import dumps
from optsched.reports import html as parts
from optsched.rollout.results.bounds.bars import bars
from optsched.rollout.results.bounds.rows import bounded, classes
from optsched.rollout.results.metrics import METRICS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.reports.sources import ComparedPolicies
    from optsched.rollout.results.comparison_files import ComparisonDocument, DifferenceRow, Figures

RATIOS = ("jct_mean_s", "jct_p99_s", "makespan_s", "queueing_delay_mean_s", "utilization",
    "gpu_hours", "cost_usd", "energy_kwh")  # fmt: skip
SUBTRACTED = ("jct_mean_s", "queueing_delay_mean_s", "makespan_s", "utilization", "goodput_gpu_h",
    "cost_usd", "energy_kwh")  # fmt: skip


def comparison(source: ComparedPolicies) -> parts.Section:
    """Return the section of a comparison."""
    told = source.comparison
    notes = (told.basis, told.unfinished, *told.warnings)
    scenario = told.scenario.get("name")
    return parts.section(
        f"Comparison on {f'{scenario}: ' if scenario else ''}{source.label}",
        parts.rows_table({"file": source.label, "seeds": ", ".join(map(str, told.seeds))}),
        *(f"<p class='note'>{escape(note)}</p>" for note in notes if note),
        f"<h3>Relative to {escape(told.first)}</h3>",
        _ratios(told),
        _bounds(told),
        _differences(told),
        _metrics(told),
        _runs(told),
        _repeat(told),
    )


def _ratios(told: ComparisonDocument) -> str:
    keys = [k for k in RATIOS if any(row.get(f"{k}_ratio") is not None for row in told.policies)]
    rows = [
        (METRICS[key], *(_with_interval(row, f"{key}_ratio") for row in told.policies))
        for key in keys
    ]
    head = ("", *(str(row["policy"]) for row in told.policies))
    over = f"Intervals (95 %) are over {len(told.seeds)} seeds." if len(told.seeds) > 1 else ""
    note = f"<p class='note'>{over}</p>" if over and any("[" in str(row) for row in rows) else ""
    return parts.table(head, rows) + note if rows else ""


def _with_interval(row: Figures, key: str) -> object:
    value, low, high = (row.get(name) for name in (key, f"{key}_low", f"{key}_high"))
    if not all(isinstance(end, float) for end in (value, low, high)) or low == high:
        return value
    return f"{value:.3f} [{low:.3f}, {high:.3f}]"


def _bounds(told: ComparisonDocument) -> str:
    """Return how far policies are above their bounds, the bounds as the last row; and a picture."""
    rows = [row for row in told.policies if isinstance(row.get("jct_mean_s_bound"), float)]
    if not rows:
        return ""
    known = bounded(rows[0])
    head = ["policy", *(text for metric in known for text in (METRICS[metric], "above"))]
    table = [
        (row["policy"], *(part for metric in known
                          for part in (row.get(metric), _share(row.get(f"{metric}_above")))))
        for row in rows
    ]  # fmt: skip
    least = dict.fromkeys(tuple(row.get(f"{metric}_bound") for metric in known) for row in rows)
    table += [("bound", *(part for value in values for part in (value, ""))) for values in least]
    words = classes(told.bounds)
    note = f"No schedule is below the bound{f' ({words})' if words else ''}, as the file has it."
    values = {str(row["policy"]): row["jct_mean_s"] for row in rows if "jct_mean_s" in row}
    above = {str(row["policy"]): row.get("jct_mean_s_above") for row in rows}
    bound = min(row["jct_mean_s_bound"] for row in rows)  # type: ignore[type-var]
    drawn = bars(values, above, bound).get_figure(root=True)  # type: ignore[arg-type]
    assert drawn is not None
    return (
        f"<h3>Above the bound</h3>{parts.table(head, table)}<p class='note'>{escape(note)}</p>"
        f"{parts.picture(drawn, 'Mean JCT of each policy, and the bound as a line')}"
    )


def _share(value: object) -> str:
    return f"{value:+.1%}" if isinstance(value, float) else "-"


def _differences(told: ComparisonDocument) -> str:
    """Return the paired differences: one row for each policy and metric."""
    chosen = [row for row in told.differences
              if row.metric in SUBTRACTED and (row.value or row.base)]  # fmt: skip
    if not chosen:
        return ""
    rows = [
        (row.policy, METRICS.get(row.metric, row.metric), row.difference, _ends(row), row.over)
        for row in chosen
    ]
    head = ("policy", "difference of", "mean", "95 % interval", "over")
    text = f"Minus {told.first}: paired differences on the same jobs"
    return f"<details open><summary>{escape(text)}</summary>{parts.table(head, rows)}</details>"


def _ends(row: DifferenceRow) -> str:
    if row.low is None or row.high is None:
        return ""
    return f"{parts.number(row.low)} to {parts.number(row.high)}"


def _metrics(told: ComparisonDocument) -> str:
    keys = [key for key in METRICS if any(row.get(key) is not None for row in told.policies)]
    rows: list[tuple[object, ...]] = [
        (METRICS[key], *(row.get(key) for row in told.policies), key) for key in keys
    ]
    head = ("what", *(str(row["policy"]) for row in told.policies), "key")
    return f"<details><summary>All metrics</summary>{parts.table(head, rows)}</details>"


def _runs(told: ComparisonDocument) -> str:
    if not told.runs:
        return ""
    keys = ("policy", "seed", "jobs", "unfinished", "jct_mean_s", "jct_p99_s", "makespan_s",
            "utilization", "cost_usd", "energy_kwh")  # fmt: skip
    kept = [key for key in keys if any(key in row for row in told.runs)]
    rows = [[row.get(key) for key in kept] for row in told.runs]
    table = parts.table([METRICS.get(key, key) for key in kept], rows)
    return f"<details><summary>Each rollout</summary>{table}</details>"


def _repeat(told: ComparisonDocument) -> str:
    """Return how to run it again, where the scenario is in the file."""
    return "".join(_lines(told)) if told.scenario else ""


def _lines(told: ComparisonDocument) -> Iterator[str]:
    name = f"{told.scenario.get('name', 'scenario')}.json".replace("/", "-")
    run = list(dict.fromkeys(str(row["policy"]) for row in told.runs))
    line = f"optsched compare {shlex.quote(name)}"
    line += "".join(f" --policy {shlex.quote(policy)}" for policy in run)
    line += f" --seed {','.join(map(str, told.seeds))}"
    line += "" if told.resample is None else f" --resample {told.resample}"
    yield f"<h3>To repeat it</h3><p>Scenario: {parts.download(dumps(told.scenario), name)}</p>"
    yield f"{parts.command(line)}{parts.code_note(*run)}"
