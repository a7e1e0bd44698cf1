"""Options as arrays: what a phase can rent, at which rent, and how fast it runs there.

An option is an offer and a width, and is written as one number: `OFFER_STEP` times the number of
the offer, plus the width. Where GPUs are of one type, it is the width, and the rent is the width.
Rent is counted in `BoaInstance.rent_unit`. Interruptions lower the speed (docs/math/boa.md,
Interruptions).
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from optsched.boa.speedup_curves import curves, shape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.boa.instance import BoaInstance, JobClass, Phase
    from optsched.boa.offers import Offer, OfferedCurve
    from optsched.documents.arrays import Floats

OFFER_STEP = 2**20  # more than any width

Ratio = tuple[int, int]  # numerator and denominator; fractions would be reduced at every step


class OptionCurves(NamedTuple):
    """Phases with the same options.

    Attributes
    ----------
    rows
        Which of the given phases they are.
    options, rents
        Shape (options,): ascending numbers, and the rent of each.
    speedup
        Shape (rows, options), interruptions included.
    """

    rows: list[int]
    options: Floats
    rents: Floats
    speedup: Floats


def option_curves(
    instance: BoaInstance, phases: list[tuple[JobClass, Phase]]
) -> list[OptionCurves]:
    """Return the options of phases, each with its class, and the speedups there."""
    if instance.offers is None:
        parts = curves(phase.curve for _, phase in phases)
        return [OptionCurves(rows, gpus, gpus, speedup) for rows, gpus, speedup in parts]
    alike: dict[Any, list[int]] = {}
    offered = [instance.offered(job_class, phase) for job_class, phase in phases]
    for row, found in enumerate(offered):
        key = tuple((curve.number, curve.most_gpus, shape(curve.speedup)) for curve in found)
        alike.setdefault(key, []).append(row)
    return [
        _joined(instance, rows, [offered[row] for row in rows], [phases[row][0] for row in rows])
        for rows in alike.values()
    ]


def options_of(instance: BoaInstance, job_class: JobClass, phase: Phase) -> OptionCurves:
    """Return the options of one phase; its speedups have the shape (1, options)."""
    return option_curves(instance, [(job_class, phase)])[0]


def rents(instance: BoaInstance, options: Floats) -> Floats:
    """Return the rent of each option."""
    if instance.offers is None:
        return options
    figures = [(offer.usd_per_gpu_h, _paid_together(offer)) for offer in instance.offers]
    number, gpus = np.divmod(options, OFFER_STEP)
    prices, together = np.array(figures)[number.astype(np.intp)].T
    found: Floats = np.ceil(gpus / together) * together * prices
    return found


def exact_option(
    instance: BoaInstance, job_class: JobClass, phase: Phase, option: int
) -> tuple[OfferedCurve, int, Ratio, Ratio]:
    """Return the curve of an option, its width, its rent, and what interruptions leave of speed."""
    number, gpus = divmod(option, OFFER_STEP)
    [curve] = [c for c in instance.offered(job_class, phase) if c.number == number]
    return curve, gpus, *exact_terms(job_class, curve.offer, gpus)


def exact_terms(job_class: JobClass, offer: Offer | None, gpus: int) -> tuple[Ratio, Ratio]:
    """Return the rent at a width, and what interruptions leave of the speed there."""
    if offer is None:
        return (gpus, 1), (1, 1)
    together = _paid_together(offer)
    paid = -(-gpus // together) * together
    rent = (paid * Fraction(offer.usd_per_gpu_h)).as_integer_ratio()
    nodes = -(-gpus // offer.gpus_per_node)
    often = Fraction(offer.interruptions_per_node_h) * nodes / 3600
    lost = often * Fraction(job_class.checkpoint_s or 0.0) / 2
    waited = often * (Fraction(offer.restart_s) + Fraction(job_class.rescale_s))
    return rent, ((1 - lost) / (1 + waited)).as_integer_ratio()


def start_seconds(
    instance: BoaInstance, classes: Sequence[JobClass], options: Floats
) -> tuple[Floats, Floats]:
    """Return how long a start at each option takes, and how long its nodes are paid for beside it.

    In seconds, shapes (classes, options); docs/math/boa.md, Orders of nodes.
    """
    lost: Floats = np.repeat([[c.rescale_s] for c in classes], len(options), axis=1)
    if instance.offers is None:
        return lost, np.zeros_like(lost)
    figures = [(offer.start_s, offer.stop_s, offer.least_billed_s) for offer in instance.offers]
    ready, stop, least = np.array(figures)[(options // OFFER_STEP).astype(np.intp)].T
    lost = lost + ready
    return lost, np.maximum(stop, least - lost)


def exact_start(
    instance: BoaInstance, job_class: JobClass, option: int
) -> tuple[Fraction, Fraction]:
    """Return `start_seconds` of one class and option, exactly."""
    lost = Fraction(job_class.rescale_s)
    if instance.offers is None:
        return lost, Fraction(0)
    offer = instance.offers[option // OFFER_STEP]
    lost += Fraction(offer.start_s)
    return lost, max(Fraction(offer.stop_s), Fraction(offer.least_billed_s) - lost)


def _paid_together(offer: Offer) -> int:
    """Return how many GPUs are paid for if one of them is."""
    return offer.gpus_per_node if offer.bills == "nodes" else 1


def _joined(
    instance: BoaInstance,
    rows: list[int],
    offered: list[list[OfferedCurve]],
    classes: list[JobClass],
) -> OptionCurves:
    """Join the curves of phases with the same options, offer by offer."""
    options, speedups = [], []
    for found in zip(*offered, strict=True):
        [(_, gpus, speedup)] = curves(curve.speedup for curve in found)
        gpus = gpus[gpus <= found[0].most_gpus]
        options.append(gpus + OFFER_STEP * found[0].number)
        speedup = speedup[:, : len(gpus)]
        if found[0].offer is not None and found[0].offer.interruptions_per_node_h:
            speedup = speedup * _kept(found[0].offer, classes, gpus)
        speedups.append(speedup)
    joined = np.concatenate(options)
    return OptionCurves(rows, joined, rents(instance, joined), np.concatenate(speedups, axis=1))


def _kept(offer: Offer, classes: list[JobClass], gpus: Floats) -> Floats:
    """Return what interruptions leave of the speed, shape (classes, widths)."""
    often = offer.interruptions_per_node_h * np.ceil(gpus / offer.gpus_per_node) / 3600
    losses = [((c.checkpoint_s or 0.0) / 2, offer.restart_s + c.rescale_s) for c in classes]
    lost, waited = np.array(losses)[:, :, None].transpose(1, 0, 2)
    kept: Floats = (1 - often * lost) / (1 + often * waited)
    return kept
