"""Fit of Helios and Acme's Seren: run times, GPU-hours and GPU time by status."""

from __future__ import annotations

import dataclasses

import numpy as np
from scipy.optimize import brentq, least_squares

from optsched.traces import STATUSES, seen_us
from optsched.traces.generators import other_clusters, synthetic, workload_models
from optsched.traces.generators.synthetic import ClusterOptions


def exponent(mean_gpus):
    """Return the exponent of sizes that gives mean GPUs."""
    sizes = np.array(workload_models.POWERS_OF_TWO)
    return brentq(lambda e: np.average(sizes, weights=workload_models.powers(e)) - mean_gpus, -4, 1)


def figures(world, jobs, seed=0):
    """Return median, mean, GPU-hours, and % of GPU time of killed and of failed jobs."""
    trace = synthetic.cluster_trace(world, jobs, seed, ClusterOptions())
    seconds = seen_us(trace) / 1e6
    time = seconds * trace.gpus
    share = 100 * np.bincount(trace.status, time, len(STATUSES)) / time.sum()
    return np.array([np.median(seconds), seconds.mean(), time.mean() / 3600, *share[1:]])


def fit(make, published, jobs=60_000):
    """Return the constants of a cluster, and how near its figures are."""
    world = dataclasses.replace(
        make(), size_shares=workload_models.powers(exponent(published.mean_gpus))
    )
    wanted = np.array([
        published.median_run_s, published.mean_run_s, published.gpu_hours, *published.gpu_time[1:],
    ])  # fmt: skip

    def at(values):
        factor, power, gang, trials, slope = values
        return dataclasses.replace(
            world,
            stretch=(float(np.exp(factor)), float(power)),
            gang_stretch=float(gang),
            trial_factor=float(np.exp(trials)),
            kill_slope=float(slope),
        )

    def off(values):
        return np.log(np.maximum(figures(at(values), jobs), 1e-9) / wanted)

    start = [np.log(published.stretch[0]), published.stretch[1], published.gang_stretch,
             np.log(published.trial_factor), published.kill_slope]  # fmt: skip
    bounds = ([-8, 0.3, -1, -8, 0.0], [4, 2.5, 2, 4, 6])
    found = least_squares(off, start, bounds=bounds, diff_step=0.02, xtol=1e-4).x
    constants = {
        "size_exponent": round(float(exponent(published.mean_gpus)), 4),
        "stretch": (round(float(np.exp(found[0])), 5), round(float(found[1]), 4)),
        "gang_stretch": round(float(found[2]), 4),
        "trial_factor": round(float(np.exp(found[3])), 5),
        "kill_slope": round(float(found[4]), 4),
    }
    return constants, f"wanted {wanted.round(2)}, found {figures(at(found), jobs, 1).round(2)}"


def fits():
    """Yield the constants of Helios and of Seren."""
    for make, published in (
        (workload_models.helios, other_clusters.HELIOS),
        (workload_models.acme, other_clusters.SEREN),
    ):
        yield fit(make, published)
