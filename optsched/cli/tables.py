"""Results, comparisons and lists as tables for a terminal of 80 columns or a pipe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table
from rich.text import Text

from optsched.instance import known_values
from optsched.registry import problem
from optsched.results.result import figure

if TYPE_CHECKING:
    from collections.abc import Iterable

    from optsched.cli.comparison import Compared
    from optsched.instance import Instance
    from optsched.results.result import Result


def instances(named: Iterable[tuple[str, Instance]]) -> list[Table]:
    """Return a table for each problem: what each instance asks for, and its best known value."""
    known = known_values()
    tables: dict[str, Table] = {}
    for name, instance in named:
        headline = problem(instance.problem).headline(instance)
        columns = ["name", *headline, "best known", "what it is"]
        table = tables.setdefault(instance.problem, _table(*columns))
        value = _known_text(known.get(name, {}))
        description = Text(instance.description, no_wrap=True, overflow="ellipsis")
        table.add_row(name, *headline.values(), value, description)
    for table in tables.values():
        for column in table.columns[:-1]:
            column.no_wrap = True
    return list(tables.values())


def methods(name: str) -> Table:
    """Return a table of the methods of a problem."""
    table = _table("method", "kind", "what it does", "source")
    table.columns[0].no_wrap = True
    for method in problem(name).methods:
        table.add_row(method.name, method.kind, method.summary, method.source)
    return table


def rows(texts: dict[str, str]) -> Table:
    """Return a table without a heading: names and texts."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in texts.items():
        table.add_row(name, text)
    return table


def decisions(instance: Instance, result: Result) -> Table:
    """Return the plan, shortened to what fits: equal decisions in a row become one."""
    entries = problem(instance.problem).decisions(instance, result.plan)
    table = _table(*entries[0])
    for entry in entries:
        table.add_row(*entry.values())
    return table


def comparison(instance: Instance, result: Result, others: Iterable[Compared]) -> Table:
    """Return how other methods compare with a result."""
    table = _table("method", objective_name(instance), "above", "status", "seconds")
    for column in (1, 2, 4):
        table.columns[column].justify = "right"
    for other in others:
        value, above = "no plan", ""
        if other.objective is not None:
            value = f"{figure(other.objective)} {result.objective_unit}"
            above = _above(other.objective, result)
        table.add_row(other.method, value, above, str(other.status), f"{other.seconds:.3f}")
    return table


def grid(columns: Iterable[str], entries: Iterable[Iterable[str]], left: int = 0) -> Table:
    """Return a table of texts, aligned on the right but for some columns on the left."""
    table = _table(*columns)
    for column in table.columns[left:]:
        column.justify = "right"
    for entry in entries:
        table.add_row(*entry)
    return table


def objective_name(instance: Instance) -> str:
    """Return what the objective of an instance is called."""
    return problem(instance.problem).objective_name(instance)


def _above(objective: float, result: Result) -> str:
    if not result.objective:
        return ""
    return f"{100 * (objective / result.objective - 1):+.2f} %"


def _known_text(entry: dict[str, Any]) -> str:
    for kind in ("optimal", "best"):
        if kind in entry:
            return f"{figure(entry[kind])} {entry['unit']}"
    return ""


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table
