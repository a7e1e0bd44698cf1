"""Offers for forged certificates of BOA: drawn, and what they take by an oracle in fractions.

The formula of interruptions is that of docs/math/boa.md once more: the oracle knows nothing of the
verifier.
"""

from __future__ import annotations

from fractions import Fraction

from optsched.boa.offers import Offer
from optsched.boa.speedups import ByType, Table, TypeCurve

NAMES = ("t4", "a100")


def offers(draw, figure):
    """Return one to three offers of one or two types; `figure` draws a price, rate or time."""
    made = []
    for n in range(draw.randint(1, 3)):
        is_spot = draw.random() < 0.5
        made.append(
            Offer.model_construct(
                id=f"o{n}",
                gpu_type=draw.choice(NAMES[: n + 1]) if n else NAMES[0],
                market="spot" if is_spot else "on-demand",
                usd_per_gpu_h=figure(),
                gpus_per_node=draw.choice([1, 1, 2, 8, 100_000]),
                bills=draw.choice(["gpus", "nodes"]),
                interruptions_per_node_h=draw.choice([0.01, 0.5, 1.0, figure()]) * is_spot,
                restart_s=draw.choice([0.0, 60.0, figure()]),
                start_s=draw.choice([0.0, 0.0, 120.0, figure()]),
                stop_s=draw.choice([0.0, 0.0, 30.0, figure()]),
                least_billed_s=draw.choice([0.0, 0.0, 3600.0, figure()]),
                note="",
            )
        )
    return tuple(made)


def by_type(draw, offered, curve):
    """Return a speedup that has curves for some of the types that are offered; one at the least."""
    types = sorted({offer.gpu_type for offer in offered})
    kept = [name for name in types if draw.random() < 0.8] or types[:1]
    curves = [TypeCurve.model_construct(gpu_type=name, speedup=curve()) for name in kept]
    return ByType.model_construct(kind="by-type", curves=tuple(curves))


def options(instance, job_class, phase, speed):
    """Yield (offer, width), rent and seconds of a phase's options; `speed` is of curve and width.

    Interruptions take half a checkpoint of running time each, and a restart and a rescaling beside
    it; more than one for each checkpoint is not allowed.
    """
    if instance.offers is None:
        for k in widths(phase.speedup):
            yield k, Fraction(k), Fraction(phase.work_gpu_s) / speed(phase.speedup, k)
        return
    checkpoint = Fraction(job_class.checkpoint_s or 0)
    for offer in instance.offers:
        for curve in (c.speedup for c in phase.speedup.curves if c.gpu_type == offer.gpu_type):
            for k in widths(curve):
                nodes = -(-k // offer.gpus_per_node)
                often = Fraction(offer.interruptions_per_node_h) * nodes / 3600
                if often * checkpoint > 1:
                    continue
                waiting = Fraction(offer.restart_s) + Fraction(job_class.rescale_s)
                taken = (1 + often * waiting) / (1 - often * checkpoint / 2)
                seconds = Fraction(phase.work_gpu_s) / speed(curve, k) * taken
                paid = nodes * offer.gpus_per_node if offer.bills == "nodes" else k
                yield (offer.id, k), paid * Fraction(offer.usd_per_gpu_h), seconds


def start(instance, job_class, option):
    """Return seconds that a job loses at a start, and for which its nodes are billed at least."""
    lost = Fraction(job_class.rescale_s)
    for offer in instance.offers or ():
        if offer.id == option[0]:
            lost += Fraction(offer.start_s)
            return lost, max(lost + Fraction(offer.stop_s), Fraction(offer.least_billed_s))
    return lost, lost


def widths(speedup):
    """Return the whole widths of a curve."""
    return speedup.gpus if isinstance(speedup, Table) else range(1, speedup.max_gpus + 1)
