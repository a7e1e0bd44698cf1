"""A budget of what is billed: `boa-budgeted` beside the best of the policies as they were.

    python -m benchmarks.boa_budget                 # 8 budgets, 20 seeds: some ten CPU minutes
    python -m benchmarks.boa_budget --to-docs       # into docs/rollouts.md
    python -m benchmarks.boa_budget --freeze        # the policies of the code at hand, as they are

For each budget: GPU-hours billed over the allowance (budget x time from first to last arrival +
what jobs at their widths of least use would take after it), and mean JCT over that of the lower
envelope of the frozen policies at the same mean bill, with 95 % bootstrap intervals over seeds.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.boa_budget.compare import markdown, measured
from benchmarks.boa_budget.today import freeze
from benchmarks.philly_tables.report import put

if TYPE_CHECKING:
    from collections.abc import Sequence

PAGE = Path(__file__).parents[2] / "docs" / "rollouts.md"
BEGIN = "<!-- begin: python -m benchmarks.boa_budget --to-docs -->"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--again", action="store_true", help="measure anew")
    parser.add_argument("--freeze", action="store_true", help="write today.json, where rows lack")
    parser.add_argument("--to-docs", action="store_true", help="put the table on the page")
    chosen = parser.parse_args(arguments)
    if chosen.freeze:
        freeze()
        return 0
    table = markdown(measured(chosen.again))
    print(table)
    if chosen.to_docs:
        put(PAGE, table, BEGIN)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
