"""The whole mixed frontier in one sort, side by side with HiGHS's LP for a single budget.

    python benchmarks/boa_frontier.py            # both parts
    python benchmarks/boa_frontier.py --quick    # a tenth of the sizes

Part 1: seconds and peak memory for the frontier of 1,000,000 phases x 16 widths, on curves as
measured (with noise, so partly off the hull) and on concave ones (every width is a vertex).
Part 2: 100,000 phases x 8 widths, against the LP for one budget in two forms. The choice form has
one variable per (phase, width) and one row per phase; the delta form one variable in [0, 1] per
hull step and the budget row alone. HiGHS gets ready arrays; only its `run` is timed. All runs
alternate; medians and ratios are printed.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import time

import highspy
import numpy as np
from generators import WIDTHS, curves

from optsched.boa.exact.budget_frontier import frontier_of_arrays, hull_steps


def timed(function, *arguments):
    started = time.perf_counter()
    value = function(*arguments)
    return time.perf_counter() - started, value


def highs(cost, lower, upper, row_lower, row_upper, start, index, value, **options):
    """Solve an LP given by rows; return the seconds inside `run` and the objective."""
    solver = highspy.Highs()
    solver.silent()
    for name, setting in {"threads": 1, **options}.items():
        assert solver.setOptionValue(name, setting) == highspy.HighsStatus.kOk
    count, rows = len(cost), len(row_lower)
    integrality = np.zeros(count, np.int32)
    matrix = start.astype(np.int32), index.astype(np.int32), value
    solver.passModel(
        count, rows, len(value), 2, 1, 0.0, cost, lower, upper, row_lower, row_upper,
        *matrix, integrality,
    )  # fmt: skip
    seconds, _ = timed(solver.run)
    assert solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return seconds, solver.getInfo().objective_function_value


def choice_form(load, widths, speedup, budget):
    phases, columns = speedup.shape
    time_, infinity = (load[:, None] / speedup).ravel(), highspy.kHighsInf
    gpus = (load[:, None] * widths / speedup).ravel()
    count = phases * columns
    start = np.r_[np.arange(0, count + 1, columns), 2 * count]
    return highs(
        time_, np.zeros(count), np.full(count, infinity),
        np.r_[np.ones(phases), -infinity], np.r_[np.ones(phases), budget],
        start, np.r_[np.arange(count), np.arange(count)], np.r_[np.ones(count), gpus],
        solver="ipm", run_crossover="off",
    )  # fmt: skip


def delta_form(load, widths, speedup, budget):
    parts = hull_steps(load, widths, speedup)
    jobs, gpus = (np.concatenate([getattr(p, name) for p in parts]) for name in ("jobs", "gpus"))
    first_jobs, first_gpus = (
        sum(getattr(p, f"first_{n}") for p in parts) for n in ("jobs", "gpus")
    )
    count = len(jobs)
    seconds, saved = highs(
        -jobs, np.zeros(count), np.ones(count),
        np.array([-highspy.kHighsInf]), np.array([budget - first_gpus]),
        np.array([0, count]), np.arange(count), gpus,
    )  # fmt: skip
    return seconds, saved + first_jobs


def large(phases):
    print(f"whole frontier of {phases:,} phases x {len(WIDTHS)} widths")
    for label, noise in (("as measured (5 % noise)", 0.05), ("concave", 0.0)):
        load, speedup = curves(phases, WIDTHS, noise)
        runs = [timed(frontier_of_arrays, load, WIDTHS, speedup) for _ in range(3)]
        seconds = statistics.median(run[0] for run in runs)
        steps = len(runs[0][1].price)
        del runs
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"  {label:<24} {seconds:6.2f} s   {steps:>11,} steps   peak {peak:.2f} GiB")


def against_lp(phases, repeats):
    widths = WIDTHS[[0, 1, 3, 5, 7, 11, 13, 15]]
    load, speedup = curves(phases, widths, 0.0)
    whole = frontier_of_arrays(load, widths, speedup)
    budget = float((whole.gpus[0] + whole.gpus[-1]) / 2)
    print(f"{phases:,} phases x {len(widths)} widths: all budgets in one sort, against one budget")
    names = ["frontier", "delta form", "choice form"]
    rows = {name: [] for name in names}
    for _ in range(repeats):
        seconds, whole = timed(frontier_of_arrays, load, widths, speedup)
        outcomes = [(seconds, float(whole.jobs_at(budget)))]
        outcomes += [form(load, widths, speedup, budget) for form in (delta_form, choice_form)]
        for name, outcome in zip(names, outcomes, strict=True):
            rows[name].append(outcome)
    for name in names:
        seconds = statistics.median(s for s, _ in rows[name])
        ratio = statistics.median(
            s / f for (s, _), (f, _) in zip(rows[name], rows["frontier"], strict=True)
        )
        error = rows[name][0][1] / rows["frontier"][0][1] - 1
        print(f"  {name:<12} {seconds:8.3f} s   {ratio:7.1f} x   objective differs by {error:.0e}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the sizes")
    scale = 10 if parser.parse_args().quick else 1
    large(1_000_000 // scale)
    against_lp(100_000 // scale, repeats=3)


if __name__ == "__main__":
    main()
