"""Traces like the eight Sia-Philly workloads of PAL's artifact.

Source: hal-uw/blox-pal, branch artifact @8a59070, workload-traces/philly/workload-1 to -8: 1,280
jobs pooled, run time = iterations x the iteration time of workload/workload.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from pydantic import Field

from optsched.instance import CheckedDocument, Positive
from optsched.traces.generators.random_draws import (
    bursty_gaps,
    log_quantiles,
    over_span,
    pick,
    stratified,
    streams,
)
from optsched.traces.trace import Trace, trace_of


@dataclass(frozen=True)
class SiaWorkloads:
    """Figures of the eight workloads together.

    Attributes
    ----------
    jobs_per_workload
        How many arrive in 5 hours.
    gap_median, gap_cv
        Gaps between arrivals: median over mean, and coefficient of variation.
    levels
        Of the quantiles of run times.
    """

    jobs_per_workload: int = 160
    gap_median: float = 67.5 / 111.8
    gap_cv: float = 1.15
    levels: tuple[float, ...] = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)


WORKLOADS = SiaWorkloads()


class ModelJobs(NamedTuple):
    """Jobs of one model: how many on each gang, and their run times at the workloads' levels."""

    model: str
    jobs: dict[int, int]
    run_s: tuple[float, ...]


JOB_CLASSES = (
    ModelJobs("vgg19", {1: 522}, (18, 21, 62, 286, 629, 811, 1_027)),
    ModelJobs("PointNet", {6: 143, 8: 123, 12: 127, 16: 107}, (17, 20, 58, 269, 558, 757, 994)),
    ModelJobs("resnet50", {4: 83}, (232, 2_526, 6_510, 9_706, 15_274, 22_385, 33_737)),
    ModelJobs(
        "resnet50",
        {24: 7, 32: 10, 48: 10},
        (9_871, 18_623, 24_431, 36_830, 92_839, 204_981, 510_859),
    ),
    ModelJobs("DCGAN", {6: 33, 8: 28, 12: 23}, (23, 181, 211, 279, 497, 1_023, 1_387)),
    ModelJobs("BERT", {6: 8, 8: 10, 12: 8, 16: 8}, (137, 651, 688, 961, 1_705, 2_305, 4_480)),
    ModelJobs(
        "GPT2",
        {6: 7, 8: 5, 12: 7, 16: 11},
        (2_196, 13_668, 14_983, 20_428, 47_676, 56_150, 104_131),
    ),
)


class SiaTraceOptions(CheckedDocument):
    """Options of the generator sia-like."""

    hours: Positive = Field(
        default=5.0, description="From the first of 160 arrivals to the last; in proportion else."
    )
    max_gpus: int | None = Field(default=None, ge=1, description="Larger gangs are not drawn.")


def sia_like(jobs: int, seed: int, options: SiaTraceOptions) -> Trace:
    """Return jobs like those of the Sia-Philly workloads."""
    most = options.max_gpus
    cells = [
        (kind, gpus, count)
        for kind in range(len(JOB_CLASSES))
        for gpus, count in JOB_CLASSES[kind].jobs.items()
        if most is None or gpus <= most
    ]
    rng = streams(seed, ("arrivals", "classes", "work"))
    chosen = pick(
        stratified(rng["classes"], np.zeros(jobs, dtype=np.int64)), [cell[2] for cell in cells]
    )
    kind = np.array([cell[0] for cell in cells], dtype=np.int64)[chosen]
    place = stratified(rng["work"], kind)
    gaps = bursty_gaps(rng["arrivals"], jobs, WORKLOADS.gap_median, WORKLOADS.gap_cv)
    span = options.hours * 3600 * jobs / WORKLOADS.jobs_per_workload
    columns = {
        "submit_s": np.rint(over_span(gaps, span)),
        "gpus": np.array([cell[1] for cell in cells], dtype=np.int64)[chosen],
        "run_s": log_quantiles(place, WORKLOADS.levels, [row.run_s for row in JOB_CLASSES], kind),
        "model": [JOB_CLASSES[n].model for n in kind],
    }
    source = "hal-uw/blox-pal @8a59070, Sia-Philly workloads (shares and quantiles)"
    return trace_of(f"sia-like, {jobs} jobs, seed {seed}", source, columns)
