"""Texts of pages that are made of registries, limits and measured figures, as Markdown."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from typer.main import get_command
from typer.testing import CliRunner

import optsched
from benchmarks.suite import tables
from optsched.cli.main import app
from optsched.cluster.importers import FORMATS as TOPOLOGIES
from optsched.documents.limits import LIMITS, MIB
from optsched.registry import PROBLEMS, problem
from optsched.reproduction import registry as reproduced
from optsched.reproduction.estimates import Estimate
from optsched.reproduction.texts import interval_text, published_text
from optsched.reproduction.texts import number as figure_text
from optsched.reproduction.verdicts import Published
from optsched.rollout import METRICS
from optsched.rollout.policy_options import described
from optsched.rollout.registry import ENTRIES
from optsched.rollout.scenario_files import scenario_names
from optsched.traces import FORMATS as TRACES
from optsched.traces import GENERATORS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from optsched.rollout.declarations.entry import Entry

CLAIM_HEADS = (
    "claim",
    "published",
    "ours",
    "95 % interval",
    "seeds",
    "exact",
    "bound",
    "verdict",
    "why",
)
FIGURES = Path(__file__).parents[1] / "figures"


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table in Markdown."""
    rows = list(rows)
    columns = zip(*rows, strict=True)
    marks = ["---:" if all(map(is_figure, column)) else "---" for column in columns]
    lines = [heads, marks, *rows]
    cells = ([str(cell).replace("|", "\\|") for cell in line] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in cells) + "\n"


def is_figure(cell: object) -> bool:
    """Tell whether a cell holds a number, or nothing."""
    return re.fullmatch(r"[<>+-]? ?[\d.,]*(e[+-]\d+)?( %)?", str(cell)) is not None


def code(text: str) -> str:
    """Return text as code."""
    return f"`{text}`"


def prose(text: str) -> str:
    """Return a description with its fields and options as code, and no star taken for italics."""
    field = r"(--set )?[a-z_]+(\.\*)?(\.[a-z_]+)?=[\d.]*\d"
    return re.sub(field, lambda found: code(found[0]), text)


def methods(name: str) -> str:
    """Return the methods of a problem."""
    rows = [(code(m.name), m.kind, m.summary, m.source) for m in problem(name).methods]
    return table(("method", "kind", "what it does", "source"), rows)


def instances(name: str = "") -> str:
    """Return the bundled instances of a problem, with what is known of each."""
    known = optsched.known_values()
    rows = []
    for full in optsched.names():
        if full.startswith(name):
            best = known.get(full, {})
            value = best.get("optimal", best.get("best"))
            shown = "" if value is None else f"{value:,.6g}\N{NO-BREAK SPACE}{best['unit']}"
            rows.append((code(full), shown, prose(optsched.read(full).description)))
    return table(("instance", "best known", "what it is"), rows)


def scenarios() -> str:
    """Return the bundled scenarios."""
    names = scenario_names()
    rows = [(code(name), prose(optsched.read_scenario(name).description)) for name in names]
    return table(("scenario", "what it is"), rows)


def policies() -> str:
    """Return the policies: what they do, what they need, and their source."""
    rows = []
    for entry in ENTRIES:
        needs = ", ".join(need.name for need in entry.needs)
        link = f"[{code(entry.name)}](#policy-{entry.name})"
        rows.append((link, prose(entry.summary), needs, entry.source))
    return table(("policy", "what it does", "needs", "source"), rows)


def policy_needs() -> str:
    """Return what the words in the table of policies stand for."""
    needs = {need.name: need for entry in ENTRIES for need in entry.needs}
    return "\n\n".join(f"{name}\n: {n.text}; else {n.otherwise}." for name, n in needs.items())


def policy_pages() -> str:
    """Return a section for each policy: all that it declares of itself, and its options."""
    return "\n\n".join(map(_policy_page, ENTRIES))


def _policy_page(entry: Entry) -> str:
    told = [f"(policy-{entry.name})=\n## {entry.name}", f"{_sentence(entry.summary)}"]
    facts = {"Source": entry.source, "Faithful": entry.faithful}
    facts |= {"Needs": "; ".join(f"{need.text}, or it {entry.becomes}" for need in entry.needs)}
    facts |= {"Refused with": ", ".join(map(code, entry.refused_with))}
    told += [f"*{word}:* {_sentence(fact)}" for word, fact in facts.items() if fact]
    if entry.differs:
        told.append("*Differs:*\n\n" + "\n".join(f"- {prose(text)}" for text in entry.differs))
    rows = [(code(name), *rest) for name, *rest in described(entry.maker().options)]
    told.append(table(("option", "type", "default", "what it is"), rows))
    return "\n\n".join([*told, f"`{entry.example}`"])


def _sentence(text: str) -> str:
    """Return a text as a sentence of its own."""
    return prose(text[:1].upper() + text[1:] + ("" if text.endswith(".") else "."))


def metrics() -> str:
    """Return the metrics of a rollout."""
    return table(("metric", "what it is"), [(code(key), text) for key, text in METRICS.items()])


def trace_formats() -> str:
    """Return the formats of traces."""
    rows = [(code(name), entry.summary) for name, entry in TRACES.items()]
    return table(("`--input-format`", "what it reads"), rows)


def generators() -> str:
    """Return the generators of traces."""
    rows = [(code(name), entry.summary, entry.source) for name, entry in GENERATORS.items()]
    return table(("generator", "jobs", "source"), rows)


def topology_formats() -> str:
    """Return the names of the formats of topologies."""
    return ", ".join(map(code, TOPOLOGIES)) + "\n"


def limits() -> str:
    """Return the limits of files, as the code has them."""
    rows = []
    for field in fields(LIMITS):
        value = getattr(LIMITS, field.name)
        shown = f"{value // MIB} MiB" if field.name.endswith("_bytes") else f"{value:,}"
        rows.append((code(field.name), shown))
    return table(("limit", "value"), rows)


def benchmarks(name: str) -> str:
    """Return the tables of a file that ``python -m benchmarks --to-docs`` wrote."""
    document = json.loads((FIGURES / f"{name}.json").read_text("utf-8"))
    parts = [_measured_on(document)]
    works = dict.fromkeys(record["work"] for record in document["rows"])
    for work in works:
        records = [record for record in document["rows"] if record["work"] == work]
        parts.append(f"### {work}\n\n{_work_table(records)}")
    if document["slopes"]:
        parts.append("### How times grow\n\nCPU seconds grow as the size to the power of:\n")
        parts.append(table(tables.SLOPE_HEADS, tables.slope_lines(document)))
    return "\n\n".join(parts)


def reproduction() -> str:
    """Return the rows that ``optsched reproduce all -o FOLDER`` measured, as tables."""
    document = json.loads((FIGURES / "reproduction.json").read_text("utf-8"))
    parts = [f"Level {document['level']}, first seed {document['seed']}."]
    for system in document["systems"]:
        rows = [row for row in document["rows"] if row["system"] == system]
        shown = [_claim(row) for row in rows if not row["is_detail"]]
        parts += [f"### {reproduced.SYSTEMS[system].TITLE}", table(CLAIM_HEADS, shown)]
        details = Counter(row["verdict"] for row in rows if row["is_detail"])
        if details:
            told = ", ".join(f"{count} {name}" for name, count in details.items())
            parts.append(f"{sum(details.values())} more rows: {told}.")
    return "\n\n".join(parts)


def _claim(row: dict[str, Any]) -> tuple[str, ...]:
    low, high = row["published_low"], row["published_high"]
    published = None if low is None else Published(low, high)
    ours = (
        None
        if row["ours"] is None
        else Estimate(*(row[k] for k in ("ours", "low", "high", "seeds")))
    )
    figures = (row["ours"], row["exact"], row["bound"])
    told, exact, bound = ("" if value is None else figure_text(value) for value in figures)
    return (
        f"{row['what']}, {row['unit']}", published_text(published), told, interval_text(ours),
        str(row["seeds"] or ""), exact, bound, row["verdict"], row["why"],
    )  # fmt: skip


def _measured_on(document: dict[str, Any]) -> str:
    units = {"cores": " cores", "memory_gib": " GiB"}
    machine = ", ".join(
        f"{value}{units.get(key, '')}" if isinstance(value, int | float) else value
        for key, value in document["machine"].items()
    )
    versions = ", ".join(f"{name} {number}" for name, number in document["versions"].items())
    commit = f", commit {document['commit']}" if document.get("commit") else ""
    return f"Measured on {document['date']}{commit}, on {machine}. {versions}".strip()


def _work_table(records: list[dict[str, Any]]) -> str:
    """Return the rows of one work, without columns that are empty in all; a case is told once."""
    heads = ("case", *tables.HEADS)
    lines = [(record["case"], *tables.cells(record)) for record in records]
    kept = [n for n in range(len(heads)) if any(line[n] for line in lines)]
    cases = ["", *(record["case"] for record in records)]
    told = [
        ("" if case == before else case, *line[1:])
        for line, (before, case) in zip(lines, pairwise(cases), strict=True)
    ]
    return table([heads[n] for n in kept], [[line[n] for n in kept] for line in told])


def commands() -> str:
    """Return what ``--help`` says of every command, under a heading each."""
    group = get_command(app)
    return "\n".join(_helps(group, click.Context(group, info_name="optsched")))


def _helps(command: click.Command, context: click.Context) -> Iterator[str]:
    words = [*context.command_path.split()[1:], "--help"]
    helped = CliRunner().invoke(app, words, prog_name="optsched").output
    yield f"## {context.command_path}\n\n```text\n{helped.strip()}\n```\n"
    for name, child in getattr(command, "commands", {}).items():
        if not child.hidden:
            yield from _helps(child, click.Context(child, info_name=name, parent=context))


def problem_names() -> str:
    """Return the problems and their titles."""
    rows = [(code(name), problem(name).title) for name in PROBLEMS]
    return table(("problem", "question"), rows)
