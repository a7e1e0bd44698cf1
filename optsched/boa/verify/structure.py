"""The verifier of BOA: whether figures are sound, and a plan has the form that it must have."""

from __future__ import annotations

import operator
from collections import Counter
from fractions import Fraction
from math import inf
from typing import TYPE_CHECKING

from optsched.boa.instance import BoaInstance, ByType, JobClass, Phase, Power, Speedup, Table
from optsched.boa.verify.options import sources
from optsched.verification import BrokenRule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.boa.plan import BoaPlan, WidthSequence


def figure_faults(instance: BoaInstance) -> Iterator[BrokenRule]:
    """Yield figures of an instance for which no rounding is known to go the right way.

    None in an instance that was validated; but a verifier takes nobody's word for that.
    """
    numbers = True
    for job_class in instance.classes:
        figures = [job_class.arrival_rate_per_h, job_class.rescale_s]
        figures += [phase.work_gpu_s for phase in job_class.phases]
        sound = all(0 <= figure < inf for figure in figures)
        if not (sound and all(_has_curves(instance, job_class, p) for p in job_class.phases)):
            numbers = False
            text = f"class '{job_class.id}' has figures that are no rates, times or speedups"
            yield BrokenRule("figures", text)
    yield from _offer_faults(instance)
    limits = [instance.budget_gpus, instance.budget_usd_per_h, instance.price_usd_per_gpu_h]
    given = [figure for figure in (*limits, instance.target_mean_jct_s) if figure is not None]
    if not all(0 < figure < inf for figure in given):
        yield BrokenRule("limit", f"{given} has figures that are no positive numbers")
    twice = len(instance.classes) - len({job_class.id for job_class in instance.classes})
    if twice or (numbers and not instance.arrival_rate_per_s > 0):
        yield BrokenRule("classes", "need ids of their own, and one a positive arrival rate")


def _offer_faults(instance: BoaInstance) -> Iterator[BrokenRule]:
    """Yield figures of offers that are no prices or rates, and what cannot stand beside offers."""
    if instance.offers is None:
        return
    for offer in instance.offers:
        figures = [offer.interruptions_per_node_h, offer.restart_s]
        figures += [offer.start_s, offer.stop_s, offer.least_billed_s]
        sound = all(0 <= figure < inf for figure in figures) and offer.gpus_per_node >= 1
        sound = sound and offer.bills in ("gpus", "nodes")
        if not (sound and 0 < offer.usd_per_gpu_h < inf):
            yield BrokenRule("figures", f"offer '{offer.id}' has figures that are no price or rate")
    if len({offer.id for offer in instance.offers}) < len(instance.offers):
        yield BrokenRule("figures", "offers need ids of their own")
    if instance.widths == "continuous" or (instance.budget_gpus or instance.price_usd_per_gpu_h):
        yield BrokenRule("limit", "offers have whole widths, and a budget in USD/h")


def _has_curves(instance: BoaInstance, job_class: JobClass, phase: Phase) -> bool:
    """Tell whether the curves of a phase are sound, and some option is left to it."""
    speedup = phase.speedup
    if not isinstance(speedup, ByType):
        return instance.offers is None and _is_curve(speedup)
    if instance.offers is None or not all(_is_curve(curve.speedup) for curve in speedup.curves):
        return False
    checkpoint = job_class.checkpoint_s
    if checkpoint is not None and not 0 < checkpoint < inf:
        return False
    figures = [f for o in instance.offers for f in (o.interruptions_per_node_h, o.usd_per_gpu_h)]
    if not all(0 <= figure < inf for figure in figures):
        return False
    if not all(offer.gpus_per_node >= 1 for offer in instance.offers):
        return False
    is_once = len(speedup.of_type) == len(speedup.curves)
    return is_once and any(
        s.allows(s.speedup.widths[0]) for s in sources(instance, job_class, phase)
    )


def _is_curve(speedup: Speedup) -> bool:
    """Tell whether widths and speedups are what the roundings below rest on."""
    if isinstance(speedup, Table):
        gpus = speedup.gpus
        if not 0 < len(gpus) == len(speedup.speedup):
            return False
        ascend = gpus[0] >= 1 and all(map(operator.le, gpus, gpus[1:]))
        return ascend and all(0 < value < inf for value in speedup.speedup)
    share = speedup.exponent if isinstance(speedup, Power) else speedup.parallel_fraction
    return 0 <= share <= 1 and speedup.max_gpus >= 1


def structure_faults(instance: BoaInstance, plan: BoaPlan) -> Iterator[BrokenRule]:
    """Yield what is wrong with the form of a plan; its figures make sense only without that."""
    known = {c.id: c for c in instance.classes}
    planned = Counter(c.id for c in plan.classes)
    for name in planned:
        if name not in known:
            yield BrokenRule("known-class", f"the instance has no class '{name}'")
        if planned[name] > 1:
            yield BrokenRule("one-plan-per-class", f"class '{name}' is planned more than once")
    for name in known:
        if name not in planned:
            yield BrokenRule("every-class", f"class '{name}' has no plan")
    for class_plan in plan.classes:
        if class_plan.id in known:
            yield from _sequences(instance, known[class_plan.id], class_plan.sequences)


def _sequences(
    instance: BoaInstance, job_class: JobClass, sequences: tuple[WidthSequence, ...]
) -> Iterator[BrokenRule]:
    where = f"class '{job_class.id}'"
    if instance.widths == "integer" and len(sequences) > 1:
        text = f"{where} has {len(sequences)} width sequences; widths 'integer' allow one"
        yield BrokenRule("one-width-per-phase", text)
    for sequence in sequences:
        if sequence.share < 0:
            yield BrokenRule("share-not-negative", f"{where}: share {sequence.share}")
        if len(sequence.gpus) != len(job_class.phases):
            count = len(job_class.phases)
            text = f"{where} has {count} phases, but {len(sequence.gpus)} widths are given"
            yield BrokenRule("one-width-per-phase", text)
            continue
        offers = sequence.offers
        given = None if offers is None else len(offers)
        if given != (None if instance.offers is None else len(sequence.gpus)):
            text = f"{where}: each phase needs an offer where there are offers, and none otherwise"
            yield BrokenRule("known-offer", text)
            continue
        for e, (phase, gpus) in enumerate(zip(job_class.phases, sequence.gpus, strict=True)):
            if offers is not None:
                yield from _offered_width(instance, job_class, e, offers[e], gpus)
                continue
            speedup = phase.curve
            if gpus in (speedup.measured if isinstance(speedup, Table) else speedup.widths):
                continue
            fault = _width_fault(speedup, gpus, instance.widths == "continuous")
            if fault:
                yield BrokenRule("allowed-width", f"{where}, phase {e}: {gpus} GPUs, but {fault}")
    if len(sequences) == 1 and sequences[0].share == 1:
        return
    total = sum((Fraction(sequence.share) for sequence in sequences), Fraction(0))
    if total != 1:
        yield BrokenRule("shares-sum-to-one", f"{where}: the shares sum to {number(total)}")


def _offered_width(
    instance: BoaInstance, job_class: JobClass, e: int, offer: str, gpus: float
) -> Iterator[BrokenRule]:
    """Yield why a phase cannot run at a width of an offer, if it cannot."""
    where = f"class '{job_class.id}', phase {e}"
    found = sources(instance, job_class, job_class.phases[e])
    source = next((s for s in found if s.offer is not None and s.offer.id == offer), None)
    if source is None:
        yield BrokenRule("known-offer", f"{where} does not run on '{offer}', or it is no offer")
    elif gpus not in source.speedup.widths:
        fault = _width_fault(source.speedup, gpus, continuous=False)
        yield BrokenRule("allowed-width", f"{where}: {gpus} GPUs of '{offer}', but {fault}")
    elif not source.allows(gpus):
        text = f"{where}: on {gpus} GPUs of '{offer}' interruptions eat more than half of the time"
        yield BrokenRule("allowed-width", text)


def _width_fault(speedup: Speedup, gpus: float, continuous: bool) -> str | None:
    """Tell why a width that is not among the whole ones is not possible, if it is not."""
    widths = speedup.widths
    if not continuous:
        listed = f"from {widths[0]} to {widths[-1]}" if isinstance(widths, range) else f"{widths}"
        return f"only the widths {listed} are possible"
    if widths[0] <= gpus <= widths[-1]:
        return None
    return f"widths from {widths[0]} to {widths[-1]} are possible"


def number(value: Fraction) -> str:
    """Write a value as the nearest float, for messages; also one beyond all floats."""
    try:
        return repr(float(value))
    except OverflowError:
        return (
            f"{'-' if value < 0 else ''}10**{len(str(abs(value.numerator // value.denominator)))}"
        )
