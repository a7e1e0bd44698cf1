"""What was measured, as records for JSON, and as tables in Markdown and for the terminal."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from benchmarks.suite.measure import Outcome

if TYPE_CHECKING:
    from benchmarks.suite.rows import Row

SCHEMA = "optsched/benchmarks/1"
HEADS = (
    "method", "CPU s", "wall s", "MiB", "objective", "bound", "gap", "asked", "CPU / ours",
    "objective / ours", "check s", "verify s", "share of the solve", "remark",
)  # fmt: skip
SLOPE_HEADS = ("work", "method", "sizes", "exponent")


def records(measured: list[tuple[Row, dict[str, Any]]]) -> list[dict[str, Any]]:
    """Join rows with their outcomes and their ratios to ours of the same work and size."""
    blank = asdict(Outcome(case="")) | {"reason": ""}
    made = []
    for row, outcome in measured:
        keys = ("work", "size", "unit", "method", "is_ours")
        made.append({key: getattr(row, key) for key in keys} | blank | outcome)
    ours = {(record["work"], record["size"]): record for record in made if record["is_ours"]}
    for record in made:
        base = ours.get((record["work"], record["size"]), blank)
        record["ratio"] = _ratio(record["cpu_s"], base["cpu_s"])
        record["objective_ratio"] = _ratio(record["objective"], base["objective"])
        record["case"] = record["case"] or base["case"] or f"{record['size']:,} {record['unit']}"
    return made


def _ratio(value: float | None, base: float | None) -> float | None:
    return None if value is None or not base else value / base


def progress(number: int, count: int, row: Row, outcome: dict[str, Any]) -> str:
    """Return a line on a row that has been measured."""
    head = f"[{number:3}/{count}] {row.name}:"
    if outcome["status"] == "skipped":
        return f"{head} skipped: {outcome['reason']}"
    gap = "" if outcome["gap"] is None else f", gap {outcome['gap']:.1e}"
    return f"{head} {seconds(outcome['cpu_s'])} CPU s{gap}"


def markdown(document: dict[str, Any]) -> str:
    """Return the whole document in Markdown."""
    parts = [_preface(document)]
    heads = ("work", "case", *HEADS)
    lines = [(r["work"], r["case"], *cells(r)) for r in document["rows"]]
    parts.append(_markdown_table(heads, lines))
    if document["slopes"]:
        parts.append("CPU seconds grow as size ** exponent, by methods of three sizes or more:")
        parts.append(_markdown_table(SLOPE_HEADS, slope_lines(document)))
    return "\n\n".join(parts) + "\n"


def _preface(document: dict[str, Any]) -> str:
    machine = document["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in document["versions"].items())
    return (
        f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gib']} GiB, "
        f"{machine['system']}; {document['date']}, {document['set']} set. {versions}. "
        "Each row ran in a process of its own, on one thread; CPU seconds below "
        "0.3 are medians of five runs. `>`: it was stopped by its limit."
    )


def _markdown_table(heads: tuple[str, ...], lines: list[tuple[str, ...]]) -> str:
    rows = [heads, ("---",) * len(heads), *lines]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "/") for cell in row) + " |" for row in rows
    )


def text(document: dict[str, Any]) -> str:
    """Return the tables for a terminal, with a line for each instance above its methods."""
    lines = [(record, ("  " + cells(record)[0], *cells(record)[1:])) for record in document["rows"]]
    widths = _widths([HEADS, *(line for _, line in lines)])
    shown, last = [_preface(document), "", _aligned(HEADS, widths)], None
    for record, line in lines:
        key = (record["work"], record["size"])
        if key != last:
            shown.append(f"{record['work']}: {record['case']}")
        last = key
        shown.append(_aligned(line, widths))
    slopes = [SLOPE_HEADS, *slope_lines(document)]
    if len(slopes) > 1:
        shown += ["", "CPU seconds grow as size ** exponent:"]
        shown += [_aligned(line, _widths(slopes)) for line in slopes]
    return "\n".join(shown)


def _widths(lines: list[tuple[str, ...]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*lines, strict=True)]


def _aligned(line: tuple[str, ...], widths: list[int]) -> str:
    """Align figures to the right; the first and the last column are text."""
    inner = zip(line[1:-1], widths[1:-1], strict=True)
    figures = [cell.rjust(width) for cell, width in inner]
    return "  ".join([line[0].ljust(widths[0]), *figures, line[-1]]).rstrip()


def cells(record: dict[str, Any]) -> tuple[str, ...]:
    """Return the cells of a row under `HEADS`."""
    remark = record["note"]
    if record["status"] == "skipped":
        remark = f"skipped: {record['reason']}"
    more = "> " if record["status"] == "feasible" and not record["is_ours"] else ""
    return (
        record["method"],
        seconds(record["cpu_s"]),
        seconds(record["wall_s"]),
        _shown(record["memory_mib"], ",.0f"),
        _shown(record["objective"], ",.9g"),
        _shown(record["bound"], ",.9g"),
        _shown(record["gap"], ".1e"),
        _shown(record["gap_asked"], ".0e"),
        "" if record["ratio"] is None else f"{more}{record['ratio']:,.3g}",
        _shown(record["objective_ratio"], ".4f"),
        seconds(record["check_s"]),
        seconds(record["verify_s"]),
        _shown(record["verify_share"], ".0%"),
        remark,
    )


def slope_lines(document: dict[str, Any]) -> list[tuple[str, ...]]:
    """Return the lines of the table of slopes."""
    return [
        (
            slope["work"],
            slope["method"],
            ", ".join(f"{size:,}" for size in slope["sizes"]) + f" {slope['unit']}",
            f"{slope['exponent']:.2f}",
        )
        for slope in document["slopes"]
    ]


def seconds(value: float | None) -> str:
    """Return seconds with two or three digits."""
    if value is None:
        return ""
    if value < 0.001:
        return "<0.001"
    return f"{value:.2g}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def _shown(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)
