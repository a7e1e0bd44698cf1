"""A budget of what is billed: `boa-budgeted` beside the best of the policies as they were.

    python -m benchmarks.boa_budget                 # 8 budgets, 20 seeds: some ten CPU minutes
    python -m benchmarks.boa_budget --large         # boa-large, fewer budgets
    python -m benchmarks.boa_budget --types         # over GPU types, beside Pollux and Sia
    python -m benchmarks.boa_budget --regret        # what learning the price costs
    python -m benchmarks.boa_budget --over-time     # the same, by the hour, and its picture
    python -m benchmarks.boa_budget --freeze        # the policies of the code at hand, as they are

For each budget: GPU-hours billed over the allowance (budget x time from first to last arrival +
what jobs at their widths of least use would take after it), and mean JCT over that of the lower
envelope of the frozen policies on the same seed at the same bill; the mean over seeds, with its
95 % bootstrap interval.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from benchmarks.boa_budget import over_time, regret, types
from benchmarks.boa_budget.compare import markdown, measured
from benchmarks.boa_budget.today import CLOUD, LARGE, freeze

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--again", action="store_true", help="measure anew")
    parser.add_argument("--freeze", action="store_true", help="write today.json, where rows lack")
    parser.add_argument("--large", action="store_true", help="the scenario boa-large")
    parser.add_argument("--types", action="store_true", help="rented nodes of several GPU types")
    parser.add_argument("--regret", action="store_true", help="learnt prices beside known ones")
    parser.add_argument("--over-time", action="store_true", help="the same, hour by hour")
    chosen = parser.parse_args(arguments)
    setting = LARGE if chosen.large else CLOUD
    if chosen.freeze:
        freeze(setting)
        return 0
    if chosen.types:
        print(types.markdown(types.measured(chosen.again)))
        return 0
    if chosen.regret:
        print(regret.markdown(regret.measured(chosen.again)))
        return 0
    if chosen.over_time:
        hourly = over_time.measured(chosen.again)
        over_time.draw(hourly)
        print(over_time.markdown(hourly))
        return 0
    print(markdown(measured(chosen.again, setting), setting))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
