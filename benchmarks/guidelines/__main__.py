"""The guidelines of ATC'19, each beside Philly's scheduler on the same traces.

    python -m benchmarks.guidelines                       # loads 0.5, 0.7, 0.9; seeds 0 to 4
    python -m benchmarks.guidelines --loads 0.9 --seeds 0-9
    python -m benchmarks.guidelines --to-docs             # into docs/guidelines.md

Effects are differences between policies that ran the same jobs with the same failures, over seeds,
with 95 % bootstrap intervals (`optsched.rollout.results.intervals`). What was measured is kept in
benchmarks/results/guidelines; after a change of the code: --again. A load takes a CPU minute.
"""

from __future__ import annotations

import argparse
import datetime
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.guidelines.measure import measured
from benchmarks.guidelines.report import markdown
from benchmarks.philly_tables.__main__ import seeds_of
from benchmarks.philly_tables.report import put

if TYPE_CHECKING:
    from collections.abc import Sequence

PAGE = Path(__file__).parents[2] / "docs" / "guidelines.md"
BEGIN = "<!-- begin: python -m benchmarks.guidelines --to-docs -->"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables, and return the exit code."""
    chosen = _parser().parse_args(arguments)
    by_load = {}
    for load in chosen.loads:
        by_load[load] = []
        for seed in chosen.seeds:
            by_load[load].append(measured(load, chosen.jobs, seed, chosen.again))
            print(f"load {load:g}, seed {seed}", file=sys.stderr)
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    seeds = f"{len(chosen.seeds)} seeds"
    tables = markdown(by_load, f"{chosen.jobs:,} jobs on 320 GPUs, {seeds} ({today}).")
    print(tables)
    if chosen.to_docs:
        put(PAGE, tables, BEGIN)
    return 0


def _loads(text: str) -> list[float]:
    return [float(part) for part in text.split(",")]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--loads", type=_loads, default=[0.5, 0.7, 0.9])
    parser.add_argument("--seeds", type=seeds_of, default=list(range(5)))
    parser.add_argument("--jobs", type=int, default=3000)
    parser.add_argument("--again", action="store_true", help="measure anew")
    parser.add_argument("--to-docs", action="store_true", help="put the tables on the page")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
