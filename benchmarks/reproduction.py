"""Published figures beside ours, off a run of `optsched reproduce`, as tables of docs.

    optsched reproduce -o FOLDER                            # ten minutes on two cores
    python -m benchmarks.reproduction FOLDER                # prints the tables
    python -m benchmarks.reproduction FOLDER --to-docs      # into docs/reproduce.md

Claims without a published figure and details are left to the page of the run.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.philly_tables.report import put
from optsched.reproduction.estimates import Estimate
from optsched.reproduction.registry import SYSTEMS
from optsched.reproduction.texts import exact_text, interval_text, number, published_text
from optsched.reproduction.verdicts import Published, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PAGE = Path(__file__).parents[1] / "docs" / "reproduce.md"
MARK = "<!-- begin: python -m benchmarks.reproduction FOLDER --to-docs -->"
HEAD = "| claim | published | ours | 95 % interval | seeds | exact | bound | verdict |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables of a run, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="what `optsched reproduce -o FOLDER` wrote")
    parser.add_argument("--to-docs", action="store_true", help=f"write them into {PAGE.name}")
    chosen = parser.parse_args(arguments)
    found = json.loads((chosen.folder / "reproduction.json").read_text(encoding="utf-8"))
    tables = markdown(found)
    print(tables)
    if chosen.to_docs:
        put(PAGE, tables, MARK)
    return 0


def markdown(found: dict[str, Any]) -> str:
    """Return how many rows have each verdict, and a table for each system."""
    first = [row for row in found["rows"] if not row["is_detail"]]
    told = {each: sum(row["verdict"] == each for row in first) for each in Verdict}
    counts = ", ".join(f"{count} {each}" for each, count in told.items() if count)
    head = f"Level {found['level']}, seed {found['seed']}. {len(first)} rows: {counts}."
    return "\n".join((head, *_tables(first)))


def _tables(rows: list[dict[str, Any]]) -> Iterator[str]:
    for system, module in SYSTEMS.items():
        yield from ("", f"### {module.TITLE}", "", HEAD, "|---|---:|---:|---|---:|---:|---:|---|")
        for row in rows:
            told = row["ours"], row["published_low"]
            if row["system"] == system and None not in told:
                yield f"| {' | '.join(_cells(row))} |"


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    published = Published(row["published_low"], row["published_high"])
    ours = Estimate(row["ours"], row["low"], row["high"], row["seeds"])
    return (
        f"{row['what']}, {row['unit']} ({row['where']})", published_text(published),
        number(ours.value), interval_text(ours), str(ours.seeds),
        exact_text(ours.seeds, row["exact"], row["exact_seeds"], row["beside_exact"]),
        _figure(row["bound"]), row["verdict"],
    )  # fmt: skip


def _figure(value: float | None) -> str:
    return "" if value is None else number(value)


if __name__ == "__main__":
    sys.exit(main())
