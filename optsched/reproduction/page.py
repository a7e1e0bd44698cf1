"""Claims and what was measured as one page that needs no network."""

from __future__ import annotations

from collections import Counter
from html import escape
from typing import TYPE_CHECKING

from optsched.reports import html as parts
from optsched.reproduction.pictures import overview
from optsched.reproduction.registry import STUDIES, SYSTEMS
from optsched.reproduction.texts import exact_text, interval_text, number, published_text
from optsched.results.result import versions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.reproduction.claim import Row
    from optsched.reproduction.estimates import Estimate
    from optsched.reproduction.reproduction import Reproduction

RULES = {
    "reproduced": "our 95 % interval holds the published figure or lies within 10 % of it",
    "consistent": "the same, on generated or fitted stand-ins for the authors' data",
    "smaller, larger": "the same sign, outside",
    "refuted": "the other way, or 0 is in our interval",
    "setting unpublished": "not all is known that the figure was measured in; ours stands beside "
    "it, and nothing is said of it",
    "no figure at hand": "the figure could not be read, or nothing can be measured yet",
}
HEAD = ("claim", "published", "ours", "95 % interval", "seeds", "exact", "bound", "verdict", "why")


def page(found: Reproduction) -> str:
    """Return the page; the same bytes for the same content and times of decisions."""
    sections = [_summary(found)]
    sections += [_system(found, name) for name in found.systems]
    sections.append(parts.section("Made with", parts.rows_table(versions())))
    return parts.page("Published figures, measured again", sections, {})


def _summary(found: Reproduction) -> parts.Section:
    counts = ", ".join(f"{count} {name}" for name, count in found.verdicts.items())
    files = {f"file of {name}": f"SHA-256 {digest}" for name, digest in found.files.items()}
    told = {"systems": ", ".join(found.systems), "level": str(found.level),
            "first seed": str(found.seed), **files,
            "SHA-256 of the content": found.digest}  # fmt: skip
    rules = parts.rows_table(RULES)
    return parts.section(
        "Summary",
        f"<p class='lead'>{escape(counts)}.</p>",
        parts.rows_table(told),
        f"<details><summary>Verdicts</summary>{rules}</details>",
        parts.command(_command(found)),
    )


def _command(found: Reproduction) -> str:
    """Return the command that makes the same page."""
    line = f"optsched reproduce {' '.join(found.systems)}"
    line += "" if found.level == "default" else f" --{found.level}"
    line += f" --seed {found.seed}" if found.seed else ""
    line += "".join(f" --data {name}=FILE" for name in found.files)
    return f"{line} -o FOLDER"


def _system(found: Reproduction, system: str) -> parts.Section:
    rows = [row for row in found.rows if row.claim.system == system]
    first = [row for row in rows if not row.claim.is_detail]
    rest = [row for row in rows if row.claim.is_detail]
    shown = parts.table(HEAD, map(_cells, first), is_prose=True)
    contents = [shown, *_drawn(found, rows, system)]
    if rest:
        table = parts.table(HEAD, map(_cells, rest), is_prose=True)
        counts = Counter(str(row.verdict) for row in rest)
        told = ", ".join(f"{count} {name}" for name, count in counts.items())
        text = f"{len(rest)} more rows: {told}"
        contents.append(f"<details><summary>{escape(text)}</summary>{table}</details>")
    contents.append(_settings(rows))
    return parts.section(SYSTEMS[system].TITLE, *contents)


def _drawn(found: Reproduction, rows: list[Row], system: str) -> Iterator[str]:
    """Yield the pictures of a system: published beside ours, then those of its module."""
    for drawn in (*overview(rows), *SYSTEMS[system].drawings(found.measured)):
        yield f"<h3>{escape(drawn.text)}</h3>{parts.picture(drawn.figure, drawn.text)}"
        if drawn.rows:
            table = parts.table(drawn.head, drawn.rows)
            yield f"<details><summary>Numbers of the picture</summary>{table}</details>"


def _settings(rows: list[Row]) -> str:
    """Return what was rolled out, and what of it is assumed."""
    told: dict[str, str] = {}
    for row in rows:
        if row.claim.study is not None:
            study = STUDIES[row.claim.study]
            assumed = f" Assumed: {row.claim.assumed}." if row.claim.assumed else ""
            told[study.name] = f"{study.world}.{assumed}"
    return f"<h3>Settings</h3>{parts.rows_table(told)}" if told else ""


def _cells(row: Row) -> tuple[object, ...]:
    claim, ours = row.claim, row.ours
    published = published_text(claim.published)
    if claim.published is not None and claim.published.note:
        published += f" ({claim.published.note})"
    return (
        f"{claim.what}, {claim.unit} ({claim.where})", published, _figure(ours),
        interval_text(ours), "" if ours is None else str(ours.seeds), _exact(row),
        _figure(row.bound), str(row.verdict), row.why,
    )  # fmt: skip


def _exact(row: Row) -> str:
    exact, beside = row.exact, row.beside_exact
    if exact is None:
        return ""
    seeds = 0 if row.ours is None else row.ours.seeds
    return exact_text(seeds, exact.value, exact.seeds, None if beside is None else beside.value)


def _figure(value: Estimate | None) -> str:
    return "" if value is None else number(value.value)
