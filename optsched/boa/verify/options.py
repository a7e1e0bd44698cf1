"""The verifier's view of options: what a width of an offer costs, and what interruptions take.

Exact ratios of the figures that an instance states; where GPUs are of one type, the rent is the
width and nothing is taken.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from optsched.boa.instance import ByType
from optsched.boa.verify.speedup_bounds import Ratio, speedup_ratios

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.boa.instance import BoaInstance, JobClass, Phase, Speedup
    from optsched.boa.offers import Offer

# A width; with offers the id of one beside it.
Option = float | tuple[str, float]


class Start(NamedTuple):
    """Seconds that a job loses at a start, and seconds beside them for which nodes are paid."""

    lost: Ratio
    paid: Ratio


class Source(NamedTuple):
    """GPUs on which a phase of a class can run.

    Attributes
    ----------
    offer
        None where GPUs are of one type.
    price
        Of a GPU: numerator and denominator.
    """

    offer: Offer | None
    speedup: Speedup
    price: Ratio
    job_class: JobClass

    @property
    def is_interrupted(self) -> bool:
        """Whether the time of a phase is not simply its work by its speedup."""
        return self.offer is not None and self.offer.interruptions_per_node_h > 0

    @property
    def is_billed_by_node(self) -> bool:
        """Whether all GPUs of a node are paid for, used or not."""
        return self.offer is not None and self.offer.bills == "nodes"

    def rent(self, gpus: float) -> Ratio:
        """Return what a width costs."""
        top, bottom = gpus.as_integer_ratio()
        if self.offer is not None and self.is_billed_by_node:
            size = self.offer.gpus_per_node
            top, bottom = -(-top // (bottom * size)) * size, 1
        return top * self.price[0], bottom * self.price[1]

    def allows(self, gpus: float) -> bool:
        """Tell whether interruptions leave at least half of the running time at a width."""
        if self.offer is None or not self.is_interrupted:
            return True
        lost = _interruptions_per_s(self.offer, gpus) * Fraction(self.job_class.checkpoint_s or 0)
        return lost <= 1

    def speeds(self, gpus: float) -> tuple[Ratio, Ratio]:
        """Return ratios below and above the speed at a width, interruptions included."""
        low, high = speedup_ratios(self.speedup, gpus)
        if self.offer is None or not self.is_interrupted:
            return low, high
        often = _interruptions_per_s(self.offer, gpus)
        lost = often * Fraction(self.job_class.checkpoint_s or 0) / 2
        waiting = Fraction(self.offer.restart_s) + Fraction(self.job_class.rescale_s)
        kept = (1 - lost) / (1 + often * waiting)
        top, bottom = kept.as_integer_ratio()
        below = low[0] * top, low[1] * bottom
        return below, below if high is low else (high[0] * top, high[1] * bottom)

    def start(self) -> Start:
        """Return what a start here takes, rescaling included."""
        took, offer = self.job_class.rescale_s, self.offer
        if offer is None or not offer.charges_starts:
            return Start(took.as_integer_ratio(), (0, 1))
        lost = Fraction(took) + Fraction(offer.start_s)
        paid = max(Fraction(offer.stop_s), Fraction(offer.least_billed_s) - lost)
        return Start(lost.as_integer_ratio(), paid.as_integer_ratio())

    def options(self) -> Iterator[tuple[Option, int]]:
        """Yield each option here, and its width."""
        for k in self.speedup.widths:
            if self.offer is None:
                yield k, k
            elif self.allows(k):
                yield (self.offer.id, k), k


def sources(instance: BoaInstance, job_class: JobClass, phase: Phase) -> list[Source]:
    """Return where a phase of a class can run."""
    speedup = phase.speedup
    if not isinstance(speedup, ByType):
        return [Source(None, speedup, (1, 1), job_class)]
    curves = speedup.of_type
    return [
        Source(offer, curves[offer.gpu_type], offer.usd_per_gpu_h.as_integer_ratio(), job_class)
        for offer in instance.offers or ()
        if offer.gpu_type in curves
    ]


def _interruptions_per_s(offer: Offer, gpus: float) -> Fraction:
    """Return how often one of the nodes that so many GPUs stand on is taken away."""
    nodes = -(-Fraction(gpus) // offer.gpus_per_node)
    return Fraction(offer.interruptions_per_node_h) * nodes / 3600
