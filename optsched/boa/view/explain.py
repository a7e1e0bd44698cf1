"""Why a BOA instance has no plan, and what its limit costs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from optsched.boa.plan import BoaCertificate, BoaPlan
from optsched.boa.verify import feasibility
from optsched.boa.verify.certificate import least_use
from optsched.explanation.explanation import Lever, Price, Remedy, Rule
from optsched.results.result import figure

if TYPE_CHECKING:
    from collections.abc import Iterator, Set

    from optsched.boa.instance import BoaInstance
    from optsched.results.result import Result

LIMIT = "limit"
LOOSER = 1.01  # a target that is one per cent higher


def rules(instance: BoaInstance) -> list[Rule]:
    """Return the limit, and what each class asks for; classes that ask for least come first."""
    named = [(_least(instance, c.id), c.id) for c in instance.classes if c.arrival_rate_per_h]
    rented = f"{instance.rent_unit} on average"
    unit = rented if instance.target_mean_jct_s is None else "s of mean JCT"
    rows = [
        Rule(f"class:{name}", f"class '{name}' needs at least {figure(least)} {unit}")
        for least, name in sorted(named)
    ]
    return [*rows, Rule(LIMIT, _limit_text(instance))]


def without(instance: BoaInstance, dropped: Set[str]) -> BoaInstance | None:
    """Return the instance without some rules; None if nothing arrives any more, or all may."""
    if LIMIT in dropped:
        return None
    kept = [c for c in instance.classes if f"class:{c.id}" not in dropped]
    if not any(c.arrival_rate_per_h for c in kept):
        return None
    return instance.model_copy(update={"classes": tuple(kept)})


def binding(instance: BoaInstance, result: Result) -> Iterator[str]:
    """Yield how much of the limit the plan uses."""
    assert isinstance(result.plan, BoaPlan)
    figures = feasibility.performance(instance, result.plan)
    use = f"{figure(figures.mean_rent)} {instance.rent_unit} on average"
    if instance.target_mean_jct_s is not None:
        use = f"a mean JCT of {figure(figures.mean_jct_s)} s"
    certificate = result.certificate
    if isinstance(certificate, BoaCertificate) and certificate.price == 0:
        yield f"{_limit_text(instance)} does not bind: the plan takes {use}, more is of no use"
    elif instance.widths == "integer":
        yield f"{_limit_text(instance)} binds: the plan takes {use}, a better one takes more"
    else:
        yield f"{_limit_text(instance)} binds: the plan takes {use}"


def prices(instance: BoaInstance, result: Result) -> Iterator[Price]:
    """Yield what a little more of the limit saves: no plan can save more, whatever its widths are.

    Source: the price mu of EPEW'24, arXiv 2406.15560, per job instead of all jobs in the system.
    """
    certificate = result.certificate
    if not isinstance(certificate, BoaCertificate) or certificate.bound is None:
        return
    rate = float(instance.arrival_rate_per_s)
    note = "for small changes, and at most"
    for change, worth in _worths(instance, certificate.price, rate):
        yield Price(change, worth, result.objective_unit, "certificate", note=note)


def _worths(instance: BoaInstance, price: float, rate: float) -> Iterator[tuple[str, float]]:
    if instance.target_mean_jct_s is not None:
        yield "1 s more of mean JCT", price * rate
        one_per_cent = (LOOSER - 1) * instance.target_mean_jct_s
        yield "1 % more of mean JCT", price * rate * one_per_cent
        return
    if instance.offers is not None:
        yield "1 more USD/h in the budget", price / rate
        return
    yield "1 more GPU in the budget", price / rate
    if instance.price_usd_per_gpu_h is not None:
        yield "1 more USD/h in the budget", price / rate / instance.price_usd_per_gpu_h


def levers(instance: BoaInstance, result: Result) -> Iterator[Lever]:
    """Yield changes of the limit, and of what a plan may be."""
    if instance.target_mean_jct_s is not None:
        yield _lever("1 % more of mean JCT", instance, "target_mean_jct_s", LOOSER, 0.0)
    elif instance.budget_usd_per_h is not None and instance.price_usd_per_gpu_h is not None:
        price = instance.price_usd_per_gpu_h
        yield _lever("1 more USD/h in the budget", instance, "budget_usd_per_h", 1.0, 1.0)
        yield _lever("1 more GPU in the budget", instance, "budget_usd_per_h", 1.0, price)
    elif instance.budget_usd_per_h is not None:
        yield _lever("1 more USD/h in the budget", instance, "budget_usd_per_h", 1.0, 1.0)
        yield _lever("1 % more of the budget", instance, "budget_usd_per_h", LOOSER, 0.0)
    else:
        yield _lever("1 more GPU in the budget", instance, "budget_gpus", 1.0, 1.0)
        yield _lever("1 % more of the budget", instance, "budget_gpus", LOOSER, 0.0)
    if instance.widths == "integer":
        mixed = instance.model_copy(update={"widths": "mixed"})
        yield Lever("jobs of a class may differ in width", mixed)
    for offer in instance.offers or ():
        if offer.interruptions_per_node_h:
            calm = offer.model_copy(update={"interruptions_per_node_h": 0.0})
            offers = tuple(calm if other is offer else other for other in instance.offers or ())
            steady = instance.model_copy(update={"offers": offers})
            yield Lever(f"no interruptions of '{offer.id}'", steady)
    if any(offer.charges_starts for offer in instance.offers or ()):
        at_once = {"start_s": 0.0, "stop_s": 0.0, "least_billed_s": 0.0}
        offers = tuple(offer.model_copy(update=at_once) for offer in instance.offers or ())
        ready = instance.model_copy(update={"offers": offers})
        yield Lever("nodes that are there at once, and billed only while a job runs", ready)
    if any(c.rescale_s for c in instance.classes):
        free = tuple(c.model_copy(update={"rescale_s": 0.0}) for c in instance.classes)
        quick = instance.model_copy(update={"classes": free})
        yield Lever("changes of width that take no time", quick)


def remedies(instance: BoaInstance, conflict: Set[str]) -> Iterator[Remedy]:
    """Yield the limit, if it is in the conflict."""
    if LIMIT not in conflict:
        return
    texts = {
        "target_mean_jct_s": "a target of {:,.6g} s mean JCT",
        "budget_usd_per_h": "a budget of {:,.6g} USD/h",
        "budget_gpus": "a budget of {:,.6g} GPUs on average",
    }
    key = next(key for key in texts if getattr(instance, key) is not None)
    now = float(getattr(instance, key))
    yield Remedy(now, 0.05 * now, partial(_with_limit, instance, key), texts[key].format)


def _with_limit(instance: BoaInstance, key: str, value: float) -> BoaInstance:
    changed: dict[str, Any] = {key: value}
    return instance.changed(changed)


def _lever(text: str, instance: BoaInstance, key: str, times: float, plus: float) -> Lever:
    changed: dict[str, Any] = {key: times * getattr(instance, key) + plus}
    return Lever(text, instance.changed(changed))


def _limit_text(instance: BoaInstance) -> str:
    if instance.target_mean_jct_s is not None:
        return f"the target of {instance.target_mean_jct_s:,.6g} s mean JCT"
    amount = f"{float(feasibility.limit(instance)):,.6g} {instance.rent_unit}"
    text = f"the budget of {amount} on average"
    if instance.offers is None and instance.budget_usd_per_h is not None:
        text += f" ({instance.budget_usd_per_h:,.6g} USD/h)"
    return text


def _least(instance: BoaInstance, name: str) -> float:
    """Return the least use of a class alone, in the unit of the limit."""
    alone = without(instance, {f"class:{c.id}" for c in instance.classes if c.id != name})
    assert alone is not None
    return float(least_use(alone) / feasibility.limit_divisor(alone))
