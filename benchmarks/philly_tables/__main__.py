"""The figures of ATC'19 beside rollouts of generated traces on a cluster as Philly's.

    python -m benchmarks.philly_tables                     # 96,260 jobs in 75 days, seed 0
    python -m benchmarks.philly_tables --seeds 0-4         # mean and interval over seeds
    python -m benchmarks.philly_tables --seeds 0-4 --to-docs       # into docs/philly-tables.md
    python -m benchmarks.philly_tables --gpus 1600 --policy philly:relax_after=5

A rollout takes minutes. Its figures are kept in benchmarks/results/philly_tables, by what was
rolled out, so that the table can be printed again at once; after a change of the code: --again.
"""

from __future__ import annotations

import argparse
import datetime
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.philly_tables import report
from benchmarks.philly_tables.rollouts import figures
from optsched.reproduction.philly.rollouts import Setting, usual_policy
from optsched.reproduction.philly.side_by_side import of_pairs
from optsched.traces.generators.philly_statistics import PHILLY

if TYPE_CHECKING:
    from collections.abc import Sequence

PAGE = Path(__file__).parents[2] / "docs" / "philly-tables.md"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, and return the exit code."""
    chosen = _parser().parse_args(arguments)
    setting = Setting(chosen.policy, chosen.jobs, chosen.days, chosen.gpus, chosen.only_8)
    pairs = of_pairs()
    seeds = []
    for seed in chosen.seeds:
        seeds.append(pairs | figures(setting, seed, chosen.again))
        print(f"seed {seed}: {seeds[-1]['CPU s']:.0f} CPU s", file=sys.stderr)
    rows = report.rows_of(seeds)
    told = f"{setting.policy}, {setting.jobs:,} jobs in {setting.days:g} days on "
    told += f"{setting.scenario.gpus:,} GPUs, seeds {', '.join(map(str, chosen.seeds))}"
    print(told)
    print(report.text(rows))
    if chosen.to_docs:
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        report.put(PAGE, report.markdown(rows, f"`{told}` ({today})."))
    return 0


def seeds_of(text: str) -> list[int]:
    """Return the seeds of a text such as "0-4" or "1,3"."""
    seeds: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        seeds += range(int(first), int(last or first) + 1)
    return seeds


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.philly_tables", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--policy", default=usual_policy(), help="else that of philly-atc19")
    parser.add_argument("--jobs", type=int, default=PHILLY.jobs)
    parser.add_argument("--days", type=float, default=PHILLY.window_days)
    parser.add_argument("--gpus", type=int, help="about so many; else those of philly-atc19")
    parser.add_argument("--seeds", type=seeds_of, default=[0], help="such as 0-4 or 1,3")
    parser.add_argument("--only-8", action="store_true", help="no servers of 2 GPUs")
    parser.add_argument("--again", action="store_true", help="roll out, whatever is kept")
    parser.add_argument("--to-docs", action="store_true", help="put the table into the docs")
    return parser


if __name__ == "__main__":
    sys.exit(main())
