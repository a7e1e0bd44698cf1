"""Speeds of phases at any width, and the shares of run times that phases take."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import TYPE_CHECKING

from optsched.boa.speedup_curves import speedup_at

if TYPE_CHECKING:
    from optsched.boa.instance import Phase, Speedup


def width_speed(speedup: Speedup, gpus: int) -> float:
    """Return the speedup of a phase at any width.

    Between the measured widths of a table it is interpolated. Above the greatest width the GPUs
    beyond it add nothing; below the smallest the speedup falls in proportion to the width.
    """
    least, most = speedup.widths[0], speedup.widths[-1]
    if gpus < least:
        return speedup_at(speedup, least) * gpus / least
    return speedup_at(speedup, min(gpus, most))


def phase_marks(phases: tuple[Phase, ...], demand: int) -> tuple[Fraction, ...]:
    """Return the share of a job's run time that is over at the end of each phase; the last is 1.

    Phase p takes t_p / sum t of the run time at the gang asked for, t_p = work_gpu_s / speedup.
    """
    times = [Fraction(p.work_gpu_s) / Fraction(width_speed(p.curve, demand)) for p in phases]
    total = sum(times, Fraction(0))
    return tuple(done / total for done in itertools.accumulate(times)) or (Fraction(1),)
