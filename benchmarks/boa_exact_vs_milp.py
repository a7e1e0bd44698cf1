"""`exact` side by side with the Pyomo formulation and HiGHS, on cbd-85 with rescaling.

    python benchmarks/boa_exact_vs_milp.py             # every budget of the table
    python benchmarks/boa_exact_vs_milp.py --quick     # three of them

Both methods solve to a relative gap of 1e-6 from the same instance in memory, in turn, in the same
process. The seconds are those of `optsched.solve` as a whole: building, solving, reading the plan
off, checking it, and certifying the bound. `HiGHS` is the part of the milp method inside HiGHS.
"""

from __future__ import annotations

import argparse
import statistics
import time

import optsched
from optsched.mip import highs

BUDGETS = (20.5, 21, 22, 24, 26, 28, 30, 35, 40, 48, 60, 80)


class Stopwatch:
    """Adds up the seconds inside a function."""

    def __init__(self, function):
        self.function, self.seconds = function, 0.0

    def __call__(self, *arguments, **options):
        started = time.perf_counter()
        outcome = self.function(*arguments, **options)
        self.seconds += time.perf_counter() - started
        return outcome


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="three budgets only")
    budgets = (22, 30, 48) if parser.parse_args().quick else BUDGETS
    base = optsched.read("boa/cbd-85")
    optsched.solve(base.changed({"budget_gpus": 100}), "milp")  # import everything
    print("budget   mean JCT, s     exact, s    milp, s   of it HiGHS, s      ratio")
    ratios = []
    for budget in budgets:
        instance = base.changed({"budget_gpus": budget})
        exact = [optsched.solve(instance) for _ in range(3)]
        inside = highs.solve = Stopwatch(highs.solve)
        milp = optsched.solve(instance, "milp")
        highs.solve = inside.function
        assert milp.status == exact[0].status == "optimal"
        assert abs(milp.objective / exact[0].objective - 1) < 2e-6
        seconds = statistics.median(result.seconds for result in exact)
        ratios.append(milp.seconds / seconds)
        print(
            f"{budget:6}   {exact[0].objective:11.4f}   {seconds:10.3f} {milp.seconds:10.2f}"
            f"       {inside.seconds:10.2f}   {ratios[-1]:6.1f} x"
        )
    print(f"least ratio {min(ratios):.1f}, median {statistics.median(ratios):.1f}")


if __name__ == "__main__":
    main()
