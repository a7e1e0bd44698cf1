"""Constants of the Philly generator that no table gives, as benchmarks/philly_fit.py prints them.

What each is fitted to is told there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from optsched.traces.generators.philly_statistics import PHILLY


@dataclass(frozen=True)
class FittedConstants:
    """What is fitted to `PhillyFigures`, or follows from them.

    Attributes
    ----------
    recovered
        Share of the jobs with failures of the infrastructure alone that run to their end: table 7
        has 17,581 pairs of job and reason, 1,629 of them infrastructure's; table 6 has 16,568
        failed jobs.
    early_minutes
        Median minutes to failure up to which a reason is early.
    longest_trial
        Most minutes to failure, by reason.
    tilt, largest_tilted
        What log2 of the gang (at most so many GPUs) adds to the normal score of minutes to
        failure, by reason.
    longest_run
        Minutes of the longest run of a job that does not fail.
    own_levels
        What share of the jobs that do not fail runs shorter than `own_minutes`, by size class.
    killed, kill_slope
        Share killed of the jobs that do not fail to their end, by size class; and how the odds
        grow with the run time.
    idle_share, idle_most, busy_concentration
        A quarter of the samples of utilisation is 0, quartiles are 0, 48.6 and 92 %
        (InternLM/AcmeTrace @6d6ac9cd, util_gpu_philly).
    helios_exponent, acme_exponent
        Shares of sizes in proportion to size ** exponent.
    helios_stretch, acme_stretch
        (a, b): m minutes of Philly become a m ** b.
    """

    recovered: float = (17_581 - 16_568) / 1_629
    early_minutes: float = 20.0
    longest_trial: tuple[float, ...] = (
        *(
            6812.0,
            16010.0,
            20010.0,
            8784.0,
            4535.0,
            21070.0,
            4083.0,
            2242.0,
            15850.0,
            13240.0,
            5202.0,
        ),
        *(18270.0, 3131.0, 6923.0, 25520.0, 3712.0, 276.7, 1.687, 10510.0),
        *(0.9595, 0.1212, 1603.0),
    )
    tilt: tuple[float, ...] = (
        *(0.425, 0.024, 0.178, 0.037, -0.096, -0.317, 0.069, 0.167),
        *(-0.094, -0.395, 0.176, 0.061, -0.579, -0.266, 1.753, 0.908),
        *(5.0, 0.0, 0.036, 0.0, 0.0, -0.076),
    )
    largest_tilted: int = 16
    longest_run: float = 23030.0
    own_levels: tuple[tuple[float, ...], ...] = (
        (
            *(0.0, 0.0246, 0.0472, 0.0676, 0.0873, 0.1277, 0.1678, 0.2077),
            *(0.2477, 0.3113, 0.3759),
            *(
                0.4405,
                0.5007,
                0.5665,
                0.6314,
                0.6966,
                0.7619,
                0.7989,
                0.8369,
                0.8759,
                0.9152,
                0.9267,
            ),
            *(0.9382, 0.9505, 0.9629, 0.971, 0.9798, 0.9895, 1.0),
        ),
        (
            *(0.0, 0.0608, 0.1087, 0.1388, 0.1388, 0.1698, 0.1933, 0.2107),
            *(0.2258, 0.2534, 0.3062),
            *(
                0.3562,
                0.4049,
                0.4436,
                0.4925,
                0.5348,
                0.6093,
                0.6746,
                0.7406,
                0.8071,
                0.8734,
                0.8882,
            ),
            *(0.9049, 0.9237, 0.9428, 0.9544, 0.9689, 0.9859, 1.0),
        ),
        (
            *(0.0, 0.0199, 0.0294, 0.0294, 0.0294, 0.0483, 0.0803, 0.1148),
            *(0.1481, 0.2145, 0.2806),
            *(
                0.3445,
                0.4074,
                0.4724,
                0.546,
                0.6208,
                0.6951,
                0.7418,
                0.7883,
                0.8339,
                0.8816,
                0.8958,
            ),
            *(0.9107, 0.9258, 0.9411, 0.9558, 0.9706, 0.9864, 1.0),
        ),
        (
            *(0.0, 0.0269, 0.0449, 0.0566, 0.0618, 0.0845, 0.1104, 0.1431),
            *(0.1787, 0.2472, 0.3112),
            *(
                0.3735,
                0.4343,
                0.5049,
                0.5721,
                0.6468,
                0.7237,
                0.7698,
                0.8147,
                0.8611,
                0.9076,
                0.9193,
            ),
            *(0.9322, 0.9457, 0.9592, 0.9683, 0.9783, 0.9898, 1.0),
        ),
    )
    killed: tuple[float, ...] = (0.1285, 0.4139, 0.4948, 0.3242)
    kill_slope: float = 0.106
    idle_share: float = 0.25
    idle_most: float = 0.02
    busy_concentration: float = 1.5
    helios_exponent: float = -1.0446
    helios_stretch: tuple[float, float] = (0.1182, 0.9913)
    acme_exponent: float = -0.8173
    acme_stretch: tuple[float, float] = (0.1453, 0.7731)

    @cached_property
    def own_minutes(self) -> tuple[tuple[float, ...], ...]:
        """Return run times of the jobs that do not fail, by size class."""
        return tuple(between((*row, self.longest_run)) for row in PHILLY.run_minutes)


FITTED = FittedConstants()


def between(row: tuple[float, ...]) -> tuple[float, ...]:
    """Return the values of a row, with three between each two, equally far in the logarithm."""
    inner = (low * (high / low) ** (part / 4) for low, high in pairwise(row) for part in range(4))
    return (*inner, row[-1])
