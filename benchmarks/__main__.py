"""One command that measures all claims about speed, beside what a user would pick instead.

    python -m benchmarks                    # everything, below 20 minutes
    python -m benchmarks --quick            # small sizes, below 2 minutes
    python -m benchmarks --only "Sia's round" --only POP-4
    python -m benchmarks --list
    python -m benchmarks --to-docs          # everything, and docs/performance.md shows it

Each row is measured in a process of its own; a table is printed, and written as benchmarks.json and
benchmarks.md. Peers are optional (pip install -e '.[peers]'): without them their rows are skipped.
Rollouts take generated jobs as in Philly, or those of philly_jobs_pollux.csv by --philly FILE.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.suite import tables
from benchmarks.suite.catalogue import catalogue
from benchmarks.suite.machine import commit, machine, versions
from benchmarks.suite.run import run
from benchmarks.suite.slopes import slopes

if TYPE_CHECKING:
    from benchmarks.suite.rows import Row

RESULTS = Path(__file__).parent / "results"
FIGURES = Path(__file__).parents[1] / "docs" / "figures"  # of which docs/performance.md is made
BAD_INPUT, INTERRUPTED = 2, 130


def main(arguments: list[str] | None = None) -> int:
    """Run what the command line asks for, and return the exit code."""
    options = _parser().parse_args(arguments)
    if options.to_docs and (options.only or options.quick or options.list):
        print("--to-docs takes all rows: leave out --only, --quick and --list", file=sys.stderr)
        return BAD_INPUT
    rows = catalogue(quick=options.quick, philly=options.philly)
    chosen = [_limited(row, options.limit) for row in rows if _is_chosen(row, options.only)]
    if not chosen:
        known = "; ".join(dict.fromkeys(row.work for row in rows))
        print(
            f"no row has {' or '.join(options.only)} in its name; works: {known}", file=sys.stderr
        )
        return BAD_INPUT
    if options.list:
        print("\n".join(row.name for row in chosen))
        return 0
    measured: list[tuple[Row, dict[str, Any]]] = []
    code, started = 0, time.perf_counter()
    try:
        for row, outcome in run(chosen):
            measured.append((row, outcome))
            print(tables.progress(len(measured), len(chosen), row, outcome), file=sys.stderr)
    except KeyboardInterrupt:
        print(f"interrupted after {len(measured)} of {len(chosen)} rows", file=sys.stderr)
        code = INTERRUPTED
    print(f"{time.perf_counter() - started:.0f} s in all", file=sys.stderr)
    document = document_of(measured, "quick" if options.quick else "full")
    write(document, options.output)
    if options.to_docs and not code:
        write_figures(document, FIGURES)
    print(tables.text(document))
    return code


def document_of(measured: list[tuple[Row, dict[str, Any]]], name: str) -> dict[str, Any]:
    """Return everything that is to be written."""
    made = tables.records(measured)
    return {
        "schema": tables.SCHEMA,
        "set": name,
        "date": datetime.date.today().isoformat(),
        "commit": commit(),
        "machine": machine(),
        "versions": versions(),
        "rows": made,
        "slopes": slopes(made),
    }


def write(document: dict[str, Any], folder: Path) -> None:
    """Write the document as JSON and Markdown."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "benchmarks.json").write_text(json.dumps(document, indent=1) + "\n")
    (folder / "benchmarks.md").write_text(tables.markdown(document))


def write_figures(document: dict[str, Any], folder: Path) -> None:
    """Write the document where the page on performance is made of it."""
    (folder / "benchmarks.json").write_text(json.dumps(document, indent=1) + "\n")


def _is_chosen(row: Row, names: list[str]) -> bool:
    return not names or any(name.lower() in row.name.lower() for name in names)


def _limited(row: Row, limit_s: float | None) -> Row:
    """Lower the limit of a row."""
    if limit_s is None or row.limit_s <= limit_s:
        return row
    options = row.options
    if "limit_s" in options:
        options = options | {"limit_s": min(options["limit_s"], limit_s)}
    return replace(row, limit_s=limit_s, options=options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, below 2 minutes")
    parser.add_argument(
        "--only",
        metavar="NAME",
        action="append",
        default=[],
        help="rows with this in their name (see --list); may be given several times",
    )
    parser.add_argument("--list", action="store_true", help="names of the rows, and no more")
    parser.add_argument(
        "--output", metavar="FOLDER", type=Path, default=RESULTS, help="where the files go"
    )
    parser.add_argument(
        "--limit", metavar="SECONDS", type=float, help="least of this and a row's own limit"
    )
    parser.add_argument(
        "--to-docs", action="store_true", help="all rows: put them on the page on performance, too"
    )
    parser.add_argument("--philly", metavar="FILE", help="philly_jobs_pollux.csv[.gz]")
    return parser


if __name__ == "__main__":
    sys.exit(main())
