"""Results, comparisons and lists of instances and methods as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from optsched.cli.printing.sheets import Column, Sheet, facts, sheet
from optsched.instance import known_values
from optsched.registry import problem
from optsched.results.result import figure

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from optsched.comparison import Compared
    from optsched.instance import Instance
    from optsched.results.result import Result
    from optsched.sweeps.points import Frontier

PROSE = " "


def instances(named: Iterable[tuple[str, Instance]]) -> list[Sheet]:
    """Return a table for each problem: what each instance asks for, and its best known value."""
    known = known_values()
    rows: dict[str, list[dict[str, str]]] = {}
    for name, instance in named:
        headline = problem(instance.problem).headline(instance)
        row = {"name": name, **headline, "best known": _known_text(known.get(name, {}))}
        rows.setdefault(instance.problem, []).append(row | {"what it is": instance.description})
    return [_listed(entries) for entries in rows.values()]


def instance_records(named: Iterable[tuple[str, Instance]]) -> list[dict[str, Any]]:
    """Return what `instances` shows as data, a row for each instance."""
    known, rows = known_values(), []
    for name, instance in named:
        value = known.get(name, {})
        best = value.get("optimal", value.get("best"))
        rows.append({
            "name": name, "problem": instance.problem, "best_known": best,
            "unit": value.get("unit"), "is_proven": "optimal" in value,
            **{key.replace(" ", "_"): int(text) if text.isdecimal() else text
               for key, text in problem(instance.problem).headline(instance).items()},
            "description": instance.description, "source": instance.source,
        })  # fmt: skip
    return rows


def _listed(entries: list[dict[str, str]]) -> Sheet:
    """Return a list of instances; where the width does not suffice, what they are goes first."""
    last = len(entries[0]) - 1
    ranks = {0: 0, last: last + 1, last - 1: 0}
    columns = [
        Column(name, rank=ranks.get(n, n), fold=PROSE if n == last else "")
        for n, name in enumerate(entries[0])
    ]
    return sheet(columns, (entry.values() for entry in entries))


def methods(names: Iterable[str]) -> Sheet:
    """Return a table of the methods of problems."""
    rows = [tuple(record.values()) for record in method_records(names)]
    one = len({row[0] for row in rows}) == 1
    columns = (Column("problem"), Column("method"), Column("kind", rank=1),
               Column("what it does", fold=PROSE), Column("source", fold=PROSE))  # fmt: skip
    return sheet(columns[1:], (row[1:] for row in rows)) if one else sheet(columns, rows)


def method_records(names: Iterable[str]) -> list[dict[str, str]]:
    """Return the methods of problems as data."""
    return [
        {"problem": name, "name": method.name, "kind": method.kind, "summary": method.summary,
         "source": method.source}
        for name in names
        for method in (*problem(name).methods, *problem(name).installed_methods())
    ]  # fmt: skip


def decisions(instance: Instance, result: Result) -> Sheet:
    """Return the plan, shortened to what fits: equal decisions in a row become one."""
    return records(problem(instance.problem).decisions(instance, result.plan))


def records(entries: list[dict[str, str]]) -> Sheet:
    """Return a table of entries of the same keys; lists of names are folded after a comma."""
    listed = (
        Column(name, fold=", " if any(", " in entry[name] for entry in entries) else "")
        for name in entries[0]
    )
    return sheet(listed, (entry.values() for entry in entries))


def comparison(instance: Instance, result: Result, others: Iterable[Compared]) -> Sheet:
    """Return how other methods compare with a result."""
    rows = []
    for other in others:
        value, above = "no plan", ""
        if other.objective is not None:
            value = f"{figure(other.objective)} {result.objective_unit}"
            above = _above(other.objective, result)
        rows.append((other.method, value, above, str(other.status), f"{other.seconds:.3f}"))
    name = objective_name(instance)
    columns = ("method", Column(name, right=True), Column("above", right=True), "status",
               Column("seconds", right=True, rank=1))  # fmt: skip
    return sheet(columns, rows)


def grid(columns: Iterable[str], entries: Iterable[Iterable[str]], left: int = 0) -> Sheet:
    """Return a table of texts, aligned on the right but for some columns on the left."""
    return sheet((Column(name, right=n >= left) for n, name in enumerate(columns)), entries)


def listed(columns: Iterable[str], entries: Iterable[Iterable[str]], title: str = "") -> Sheet:
    """Return a list of names and prose: the first column stays whole, the others are folded."""
    made = (Column(name, fold=PROSE if n else "") for n, name in enumerate(columns))
    return sheet(made, entries, title)


def frontier(curve: Frontier) -> tuple[Sheet, Sheet]:
    """Return headlines, and what methods reached at some values: as many as fit on a screen."""
    values = curve.values
    count = min(len(values), 20)
    chosen = {values[round(n * (len(values) - 1) / max(count - 1, 1))] for n in range(count)}
    rows: dict[float, list[str]] = {}
    for point in curve.points:
        if point.value in chosen:
            reached = str(point.status)
            if point.objective is not None:
                reached = figure(point.objective)
            rows.setdefault(point.value, []).append(reached)
    entries = ([f"{value:,.6g}", *texts] for value, texts in rows.items())
    return facts(curve.summary()), grid([curve.parameter, *curve.methods], entries)


def objective_name(instance: Instance) -> str:
    """Return what the objective of an instance is called."""
    return problem(instance.problem).objective_name(instance)


def _above(objective: float, result: Result) -> str:
    if not result.objective:
        return ""
    return f"{100 * (objective / result.objective - 1):+.2f} %"


def _known_text(entry: Mapping[str, Any]) -> str:
    for kind in ("optimal", "best"):
        if kind in entry:
            return f"{figure(entry[kind])} {entry['unit']}"
    return ""
