"""How long Pollux's six models train: iterations by batch size, times seconds of a step.

Derived from the profiles of petuum/adaptdl, branch osdi21-artifact, simulator/traces (nodes of
four T4): the last row of each validation-*.csv, and the largest batch in scalability.csv.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from optsched.traces.generators.step_time import STEP_TIMES


@dataclass(frozen=True)
class Application:
    """A model: its iterations by batch size, and the most samples on a GPU at once."""

    name: str
    most_local: int
    iterations: dict[int, int]

    def iterations_at(self, batch: int) -> float:
        """Return iterations at a batch size between those measured, geometrically.

        Raises
        ------
        ValueError
            If it is outside.
        """
        sizes = sorted(self.iterations)
        if not sizes[0] <= batch <= sizes[-1]:
            raise ValueError(f"a batch size from {sizes[0]} to {sizes[-1]}")
        for low, high in pairwise(sizes):
            if batch <= high:
                share = math.log(batch / low) / math.log(high / low)
                ratio = self.iterations[high] / self.iterations[low]
                return self.iterations[low] * math.pow(ratio, share)
        raise AssertionError

    def run_s(self, gpus: int, batch: int) -> float:
        """Return seconds of a whole job on GPUs of as few nodes of four as possible."""
        samples = np.array([float(batch)])
        step = STEP_TIMES[self.name].seconds(samples, gpus, 4, self.most_local)
        return self.iterations_at(batch) * float(step[0])


def _applications(*known: Application) -> dict[str, Application]:
    return {application.name: application for application in known}


APPLICATIONS = _applications(
    Application("bert", 12, {12: 14774, 24: 7427, 48: 3732, 96: 1885, 192: 940, 384: 480}),
    Application(
        "cifar10",
        1024,
        {128: 39062, 256: 20377, 512: 10615, 1024: 5722, 2048: 3178, 4096: 2011},
    ),
    Application(
        "deepspeech2", 80, {20: 28536, 40: 14711, 80: 7683, 160: 4041, 320: 2264, 640: 1423}
    ),
    Application(
        "imagenet",
        200,
        dict(
            zip(
                (200, 400, 800, 1600, 3200, 6400, 12800),
                (576525, 292995, 150231, 78453, 42123, 23972, 14461),
                strict=True,
            )
        ),
    ),
    Application(
        "ncf",
        32768,
        dict(
            zip(
                (256, 512, 1024, 2048, 4096, 8192, 16384, 32768),
                (194174, 97094, 48625, 24308, 12172, 6122, 3069, 1548),
                strict=True,
            )
        ),
    ),
    Application(
        "yolov3",
        16,
        {8: 103444, 16: 52905, 32: 27430, 64: 14577, 128: 8075, 256: 4809, 512: 3143},
    ),
)
