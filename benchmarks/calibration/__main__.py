"""Fit what no table gives of the generators, and print it: minutes of CPU.

    python -m benchmarks.calibration philly     # generators/philly_constants.py
    python -m benchmarks.calibration others     # generators/other_clusters.py
    python -m benchmarks.calibration bounds     # what the sources say against each other

1. Sizes. Mean GPUs of the public trace; failed trials per job that rise with the size (figure 8),
   table 7's demand columns given; the gangs above 4 GPUs split as table 2's delays.
2. Trials. Medians, 90th and 95th percentiles and shares of time by reason are table 7's. How many
   minutes all trials run together is fitted to the GPU time of failed jobs: table 7's own is 8.57
   GPU-hours a job, half of what jobs have in all.
3. Run times. The quantiles of figure 2 hold for all jobs, so those of jobs that do not fail are
   what remains after those that fail. How times lie between the quantiles gives GPU-hours per job.
4. Kills. Least largest distance to the cells of tables 3 and 6 (a linear program), by size; the
   slope of the odds in the quantile of run time then gives 13.5 % of jobs.
5. Virtual clusters. Shares of jobs and of GPU-hours, by odds that change with a job's GPU-hours;
   and, by size class, how the public trace's jobs of the class are divided.
"""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks.calibration import (
    bounds,
    kills,
    other_clusters,
    run_times,
    trials,
    virtual_clusters,
)
from optsched.traces.generators import workload_models
from optsched.traces.generators.philly_constants import FITTED
from optsched.traces.generators.philly_statistics import SIZE_CLASSES

TRIAL_MINUTES = 6.3e6
GPU_HOURS = 19.9
"""Per job: 17 % above the public trace; figure 2 and table 7 pull it up."""


def put(constants):
    """Use constants from now on."""
    vars(FITTED).update(constants)
    for name in ("size_shares", "run_minutes", "own_minutes"):
        vars(FITTED).pop(name, None)
    workload_models.trials_per_pair.cache_clear()


def philly(jobs=400_000):
    """Yield the constants of Philly, step by step, and remarks."""
    shares = tuple(round(float(share), 4) for share in run_times.class_shares())
    put({"class_shares": shares})
    yield {"class_shares": shares}, f"figure 2: at least {run_times.least_gpu_hours(shares):.2f}"
    found = trials.fit(TRIAL_MINUTES)
    put(found)
    yield found, ""
    drawn = run_times.failing(workload_models.philly(), jobs)
    table = FITTED.run_minutes
    bend = run_times.bend_for(GPU_HOURS, drawn, table)
    levels, run, off = run_times.own_levels(drawn, table, bend)
    parts = run_times.gpu_hours(drawn, run)
    total = sum(part.sum() for part in parts)
    found = {
        "run_bend": round(float(bend), 2),
        "own_levels": tuple(tuple(round(float(x), 4) for x in row) for row in levels),
    }
    put(found)
    yield (
        found,
        (
            f"not monotone by {np.round(off, 4)}; {total:.2f} GPU-hours a job, failed jobs' "
            f"{100 * parts[0].sum() / total:.1f} %"
        ),
    )
    sizes = workload_models.class_of(drawn[0])
    not_failed = np.bincount(sizes, ~drawn[1].failed, len(SIZE_CLASSES)) / jobs
    found, distance = kills.fit(FITTED.own_levels, FITTED.own_minutes, parts, not_failed)
    put(found)
    yield found, f"the worst cell of tables 3 and 6 is off by {distance:.2f} of its tolerance"
    for fit in (virtual_clusters.fit, virtual_clusters.fit_by_size):
        found, remark = fit()
        put(found)
        yield found, remark


def main():
    """Print the constants."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("philly", "others", "bounds"))
    what = parser.parse_args().what
    if what == "bounds":
        print("\n".join(bounds.lines()))
        return
    for constants, remark in philly() if what == "philly" else other_clusters.fits():
        if remark:
            print(f"    # {remark}")
        for name, value in constants.items():
            print(f"    {name} = {value},")


if __name__ == "__main__":
    main()
