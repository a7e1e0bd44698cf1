"""Fit what no table gives of the Philly generator; prints traces/generators/philly_constants.py.

    python benchmarks/philly_fit.py            # about a minute of CPU

1. Trials. Table 7 gives medians, 90th and 95th percentiles of minutes to failure, shares of time
   and shares of GPU time. Reading its GPU time (sum over its rows: 49,486,648) as GPU-minutes, the
   largest time of each reason follows from its share of time, if all trials together run 13.5
   million minutes; the tilt of times towards large gangs from its share of GPU time. 13.5 million
   is where the largest times of the late reasons (18,000 to 25,000 minutes) are plausible.
2. Run times. The quantiles of figure 2 hold for all jobs, so those of jobs that do not fail are
   what remains after the jobs that fail, size by size. The longest run time, the same for all
   sizes, gives failed jobs 17.76 % of GPU time.
3. Kills. The means of table 3 over all statuses, taken as means by GPU time, tell the share of GPU
   time that killed jobs have in each size; least squares with their share in all (37.69 %). The
   slope of the odds in the quantile of run time then gives 13.5 % of jobs.
4. Presets. Shares of sizes 1, 2, 4 ... 128 in proportion to size ** exponent give mean GPUs;
   a x minutes ** b gives mean and median run time.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from scipy.optimize import brentq, least_squares
from scipy.special import ndtri

from optsched.traces.generators import failed_attempts, synthetic, workload_models
from optsched.traces.generators.philly_constants import FITTED, between
from optsched.traces.generators.philly_statistics import PHILLY, REASONS, SIZE_CLASSES
from optsched.traces.generators.random_draws import log_quantiles, stratified, streams
from optsched.traces.generators.synthetic import ClusterOptions
from optsched.traces.generators.workload_models import NO_REASON, class_of
from optsched.traces.summary import seen_us

TRIAL_MINUTES = 13.5e6
TRIAL_GPU_MINUTES = 49_486_648.0
JOBS = 1_500_000
GRID = (np.arange(4000) + 0.5) / 4000
CLASSES = range(len(SIZE_CLASSES))


def log_mean(low, high):
    """Mean of a value whose logarithm is uniform."""
    return (high - low) / np.log(high / low)


def longest_trial(row):
    """Return the largest minutes to failure that give the reason its share of time."""
    wanted = row.time_share / 100 * TRIAL_MINUTES / row.trials
    known = 0.5 * log_mean(row.p50 / 10, row.p50) + 0.4 * log_mean(row.p50, row.p90 * 1.0001)
    known += 0.05 * log_mean(row.p90, row.p95 * 1.0001)
    least = row.p95 * 1.01

    def excess(most):
        return known + 0.05 * log_mean(row.p95, most) - wanted

    return least if excess(least) > 0 else brentq(excess, least, 1e6)


def tilt(row, longest, count=400_000):
    """How much log2 of the gang (at most 16) adds to the normal score of a trial's minutes."""
    if row.gpu_time_share == 0:
        return 0.0
    rng = np.random.default_rng(0)
    size = np.array(PHILLY.sizes)
    column = np.minimum(class_of(size), 2)
    among = np.bincount(column, weights=PHILLY.size_shares)
    shares = np.array(row.demand)[column] * PHILLY.size_shares / among[column]
    gpus = np.repeat(size, np.rint(shares / shares.sum() * count).astype(int))
    score = ndtri(stratified(rng, class_of(gpus)))
    table = [(row.p50 / 10, row.p50, row.p90, row.p95, longest)]
    place = (np.arange(len(gpus)) + 0.5) / len(gpus)
    minutes = log_quantiles(place, PHILLY.trial_levels, table, np.zeros(len(gpus), dtype=int))
    wanted = row.gpu_time_share / 100 * TRIAL_GPU_MINUTES / row.trials

    def excess(value):
        order = np.argsort(score + value * np.log2(np.minimum(gpus, FITTED.largest_tilted)))
        return gpus[order] @ minutes / len(gpus) - wanted

    return brentq(excess, -1, 5, xtol=0.002) if excess(5) > 0 > excess(-1) else 5.0


def failing(world):
    """Many jobs' sizes, reasons, trials and endings, as the generator draws them."""
    rng = streams(0, synthetic.STREAMS)
    gpus = synthetic.draw_sizes(rng["sizes"], world, JOBS, None)
    reason = failed_attempts.draw_reasons(rng["reasons"], world, gpus, 1.0, 1.0)
    drawn = failed_attempts.draw_trials(rng["trials"], world, gpus, reason)
    failed = failed_attempts.draw_failed(rng["endings"], reason)
    return gpus, reason, drawn, failed


def remaining(seen, share, row):
    """Levels and run times of the jobs that do not fail, and what is not monotone.

    At the times of the row, and three times between each two of them.
    """
    logs = np.log(row)
    grid = np.log(between(row))
    left = np.interp(grid, logs, PHILLY.levels)
    left = left - share * np.searchsorted(np.sort(np.log(seen)), grid) / len(seen)
    rising = np.maximum.accumulate(np.clip(left, 0, None))
    levels = np.clip(rising / (1 - share), 0, 1)
    return np.r_[0, levels[1:-1], 1], np.exp(grid), (rising - left).max()


def own_quantiles(world, longest_run, drawn, rounds=4):
    """Quantiles of jobs that do not fail; those that recover run such a time too."""
    gpus, reason, failed_trials, failed = drawn
    size, fails = class_of(gpus), reason < NO_REASON
    lost, longest = failed_trials.per_job(JOBS)
    table = [(*row, longest_run) for row in PHILLY.run_minutes]
    levels, own = PHILLY.levels, table
    for _ in range(rounds):
        place = stratified(np.random.default_rng(1), size)
        run = log_quantiles(place, levels, own, size)
        seen = lost + np.where(failed, 0, longest + run)
        rows = [
            remaining(seen[fails & (size == c)], fails[size == c].mean(), table[c]) for c in CLASSES
        ]
        levels, own, off = zip(*rows, strict=True)
    print("# not monotone by at most", np.round(off, 4))
    return levels, own, run


def gpu_minutes(drawn, run):
    """By size class: GPU-minutes of jobs that fail to the end, of lost trials, of work."""
    gpus, _, failed_trials, failed = drawn
    lost, longest = failed_trials.per_job(JOBS)
    size = class_of(gpus)

    def total(minutes):
        return np.bincount(size, minutes * gpus) / JOBS

    extra = np.where(failed, 0, lost + longest)
    return total(np.where(failed, lost, 0)), total(extra), total(np.where(failed, 0, run))


def killed_targets(failed, others):
    """GPU-time share of killed jobs by size: table 3's last column and 37.69 % of all."""
    columns = np.array(PHILLY.utilization)
    total = failed + others
    ratio = failed / total

    def off(killed):
        share = np.array([1 - killed - ratio, killed, ratio])
        means = (share * columns).sum(axis=0) - PHILLY.utilization_all
        overall = 100 * (killed @ total) / total.sum() - PHILLY.status_gpu_time[1]
        return [*means, overall]

    fitted = least_squares(off, [0.3] * 4, bounds=(0.02, 0.9))
    print("# killed of GPU time by size", fitted.x.round(3), "off by", np.round(off(fitted.x), 2))
    return fitted.x * total


def killed_shares(slope, own, wanted, extra, work, not_failed):
    """Shares of the jobs that do not fail by size, and of all jobs."""
    shares = []
    for c in CLASSES:
        minutes = log_quantiles(GRID, *own, np.full(len(GRID), c))
        weight = minutes / minutes.sum()

        def excess(share, c=c, weight=weight):
            logit = slope * np.log(GRID / (1 - GRID)) + synthetic.kill_offset(share, slope)
            return work[c] * (weight @ (1 / (1 + np.exp(-logit)))) + extra[c] * share - wanted[c]

        shares.append(brentq(excess, 1e-6, 1 - 1e-6))
    return shares, float(np.dot(shares, not_failed))


def exponent(mean_gpus):
    """Return the exponent of sizes that gives mean GPUs."""
    sizes = np.array(workload_models.POWERS_OF_TWO)
    return brentq(lambda e: np.average(sizes, weights=workload_models.powers(e)) - mean_gpus, -4, 1)


def stretch(world, mean_s, median_s, jobs=200_000):
    """Return (a, b) that give mean and median run time, failed trials included."""

    def seconds(power):
        stretched = dataclasses.replace(world, stretch=(1.0, power))
        return seen_us(synthetic.cluster_trace(stretched, jobs, 0, ClusterOptions())) / 60e6

    def excess(power):
        seen = seconds(power)
        return seen.mean() / np.median(seen) - mean_s / median_s

    power = brentq(excess, 0.4, 1.5, xtol=0.001)
    return float(median_s / 60 / np.median(seconds(power))), power


def presets():
    """Print the constants of Helios and of Acme's Seren."""
    figures_of = {"helios": (3.72, 6_652, 206), "acme": (5.68, 1_414, 122)}
    for make, (name, (gpus, mean_s, median_s)) in zip(
        (workload_models.helios, workload_models.acme), figures_of.items(), strict=True
    ):
        power = exponent(gpus)
        world = dataclasses.replace(make(), size_shares=workload_models.powers(power))
        print(f"{name}_exponent =", round(power, 4))
        print(f"{name}_stretch =", tuple(round(x, 4) for x in stretch(world, mean_s, median_s)))


def main():
    """Print the constants."""
    longest = [longest_trial(row) for row in REASONS]
    print("longest_trial =", tuple(float(f"{most:.4g}") for most in longest))
    tilts = [tilt(row, most) for row, most in zip(REASONS, longest, strict=True)]
    print("tilt =", tuple(round(float(value), 3) for value in tilts))
    vars(FITTED).update(longest_trial=tuple(longest), tilt=tuple(tilts))
    world = workload_models.philly()
    drawn = failing(world)

    def failed_excess(longest_run, rounds=2):
        *_, run = own_quantiles(world, longest_run, drawn, rounds)
        parts = gpu_minutes(drawn, run)
        share = parts[0].sum() / sum(part.sum() for part in parts)
        return 100 * share - PHILLY.status_gpu_time[2]

    longest_run = brentq(failed_excess, 15_000, 25_000, xtol=100)
    *own, run = own_quantiles(world, longest_run, drawn)
    failed, extra, work = gpu_minutes(drawn, run)
    print("longest_run =", float(f"{longest_run:.4g}"))
    print("# mean GPU-minutes", (failed + extra + work).sum())
    print("own_levels =", tuple(tuple(round(float(x), 4) for x in row) for row in own[0]))
    wanted = killed_targets(failed, extra + work)
    not_failed = np.bincount(class_of(drawn[0]), ~drawn[3]) / JOBS
    jobs = PHILLY.status_jobs[1] / PHILLY.jobs

    def kills(slope):
        return killed_shares(slope, own, wanted, extra, work, not_failed)

    slope = brentq(lambda s: kills(s)[1] - jobs, 0.1, 4, xtol=0.001)
    print("kill_slope =", round(slope, 3))
    print("killed =", tuple(round(float(share), 4) for share in kills(slope)[0]))
    vars(FITTED).update(own_levels=own[0], own_minutes=own[1])
    presets()


if __name__ == "__main__":
    main()
