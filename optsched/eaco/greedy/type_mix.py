"""Job types side by side: what they may do, how fast they are, and the phases of a group."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from optsched.eaco.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

HAIR = 1e-12
"""Relative: products of floats that are nearer are compared exactly."""


class TypeMix(NamedTuple):
    """Job types side by side on GPUs of one type, at full power.

    Attributes
    ----------
    may_share
        Whether their number, memory, utilisation and rates allow it; true of one alone.
    rates
        By type.
    gpu_w
        Watts of each GPU; 0 if the jobs cannot run together.
    """

    may_share: bool
    is_known: bool
    rates: dict[str, Fraction]
    speeds: dict[str, float]
    utilisation: float
    gpu_w: float

    def bears(self, kind: str, max_slowdown: float) -> bool:
        """Tell whether jobs of a type are slowed down by no more than a factor; exact."""
        share = self.speeds[kind] * max_slowdown
        if abs(share - 1.0) > HAIR:  # no rounding of two floats goes as far
            return share > 1.0
        return self.rates[kind] * Fraction(max_slowdown) >= 1


def phases_of(
    mix_of: Callable[[list[str]], TypeMix],
    types: Sequence[str],
    works: Sequence[float],
    factor: float = 1.0,
) -> Iterator[tuple[float, TypeMix]]:
    """Yield the phases of a group: seconds, and how its jobs get on.

    Parameters
    ----------
    mix_of
        What jobs of some types do side by side.
    types, works
        By job its type, and the seconds that it would take alone at full power.
    factor
        On all rates.
    """
    left, mix = dict(enumerate(works)), mix_of(list(types))
    while left:
        now = mix_of([types[n] for n in left])
        mix = now if now.is_known else mix
        rates = {n: factor * mix.speeds[types[n]] for n in left}
        seconds = min(left[n] / rates[n] for n in left)
        yield seconds, mix
        left = {n: left[n] - seconds * rates[n] for n in left}
        left = {n: rest for n, rest in left.items() if rest > SETTINGS.done_share * works[n]}
