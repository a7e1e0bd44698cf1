"""The judge of PAL, second part: whether a certificate proves its bound.

A tree of cases covers all plans: in each split a count, which is a whole number, is at most a
number or at least one more. In each case the Lagrangian value, for any prices, is a lower bound on
every plan: jobs pay for GPUs, and for what splits and cuts limit, and take on their own what is
cheapest for them (`pricing.py`). So the least value over the cases is a bound. All of it is done in
integers and fractions, and shares no code with the methods.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil, inf, isfinite
from typing import TYPE_CHECKING, NamedTuple

from optsched.casetree import tree_faults
from optsched.check import BrokenRule
from optsched.faults import shown
from optsched.pal import pricelist
from optsched.pal.costs import SCALE, MisfitCosts, ObjectiveCosts, scaled
from optsched.pal.plan import Leaf, Split, Within
from optsched.pal.pricing import Counted, Menu

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.pal.instance import PalInstance
    from optsched.pal.plan import Keeps, PalCertificate


class Turn(NamedTuple):
    """A split on the way to a node, and which of its cases the way takes."""

    split: Split
    case: int


def prove(instance: PalInstance, certificate: PalCertificate) -> list[BrokenRule]:
    """Return every reason why the certificate does not prove what it states."""
    broken = [*_statement(instance, certificate), *_rules(instance, certificate)]
    tree = list(tree_faults(certificate.nodes, len(certificate.rules)))
    broken += tree or _leaves(instance, certificate)
    return broken or list(_values(instance, certificate))


# --- form -------------------------------------------------------------------------------------


def _statement(instance: PalInstance, certificate: PalCertificate) -> Iterator[BrokenRule]:
    """Yield what is wrong with the figures that are stated."""
    bound, left_out = certificate.bound, certificate.left_out
    if certificate.kind == "prices":
        if left_out is not None:
            text = "is stated, but prices of costs prove nothing about it"
            yield BrokenRule("left-out", text)
        if bound is None or not isfinite(bound):
            text = "the certificate states none" if bound is None else f"{bound!r} is stated"
            yield BrokenRule("bound", text)
        return
    if bound is not None:
        yield BrokenRule("bound", "a proof that no plan exists has no bound")
    if left_out is None or not 0 < left_out < inf:
        text = f"a proof that no plan exists needs more than none, {left_out!r} is stated"
        yield BrokenRule("left-out", text)
    if certificate.exclusions:
        yield BrokenRule("exclusions", "only a bound can leave out what is too dear")
    if instance.admission != "all":
        yield BrokenRule("infeasible", f"admission '{instance.admission}' always allows a plan")


def _rules(instance: PalInstance, certificate: PalCertificate) -> Iterator[BrokenRule]:
    """Yield what is wrong with the rules that count."""
    jobs = {job.id: job for job in instance.jobs}
    domains = {domain.id for domain in instance.topology.domains}
    for n, rule in enumerate(certificate.rules):
        names = rule.types if isinstance(rule, Within) else (rule.job,)
        for name in dict.fromkeys(names):
            if name not in jobs:
                yield BrokenRule("known-job", f"rules[{n}]: the instance has no job '{name}'")
            elif not isinstance(rule, Within) and not jobs[name].current:
                yield BrokenRule("running-job", f"rules[{n}]: job '{name}' holds no GPUs to keep")
        if not isinstance(rule, Within):
            continue
        if rule.domain not in domains:
            text = f"rules[{n}]: the topology has no domain '{rule.domain}'"
            yield BrokenRule("known-domain", text)
        classes = {jobs[name].application_class for name in names if name in jobs}
        if rule.slowest is not None and not isfinite(rule.slowest):
            yield BrokenRule("slowest", f"rules[{n}]: {rule.slowest!r} is no slowdown")
        rows = (instance.slowdowns[name] for name in classes)
        slowdowns = [[row[gpu] for gpu in instance.free_gpus] for row in rows]
        if rule.slowest is not None and any(each != slowdowns[0] for each in slowdowns):
            listed = ", ".join(f"'{name}'" for name in sorted(classes))
            text = f"rules[{n}]: a slowdown is of one class, its types are of {listed}"
            yield BrokenRule("one-class", text)


def _leaves(instance: PalInstance, certificate: PalCertificate) -> Iterator[BrokenRule]:
    """Yield what is wrong with the prices of exclusions and of the leaves of a tree."""
    gpus, rules = len(instance.free_gpus), certificate.rules
    depths = _depths(certificate)
    named = [(f"exclusions[{n}]", leaf, 0) for n, leaf in enumerate(certificate.exclusions)]
    for n, node in enumerate(certificate.nodes):
        if isinstance(node, Leaf):
            named.append((f"nodes[{n}]", node, depths[n]))
    for name, leaf, splits in named:
        if len(leaf.gpu_prices) != gpus:
            text = f"{name} has {len(leaf.gpu_prices)} prices for {gpus} free GPUs"
            yield BrokenRule("one-price-per-gpu", text)
        if len(leaf.split_prices) != splits:
            text = f"{name} has {len(leaf.split_prices)} prices for {splits} splits"
            yield BrokenRule("one-price-per-split", text)
        for cut in leaf.cuts:
            if cut.rule >= len(rules):
                text = f"{name} cuts by rules[{shown(cut.rule)}], but there are {len(rules)}"
                yield BrokenRule("known-rule", text)
            elif not isinstance(rules[cut.rule], Within):
                text = f"{name} cuts by rules[{cut.rule}], which counts no jobs in a domain"
                yield BrokenRule("cut", text)


def _depths(certificate: PalCertificate) -> list[int]:
    depths = [0] * len(certificate.nodes)
    for n, node in enumerate(certificate.nodes):
        if isinstance(node, Split):
            for case in node.cases:
                depths[case] = depths[n] + 1
    return depths


# --- values -----------------------------------------------------------------------------------


def _values(instance: PalInstance, certificate: PalCertificate) -> Iterator[BrokenRule]:
    """Yield the leaf that proves least, if it is less than is stated."""
    if certificate.kind == "prices":
        name, stated = "bound", certificate.bound
    else:
        name, stated = "left-out", certificate.left_out
    limit = Fraction(stated or 0) * SCALE
    values = leaf_values(instance, certificate)
    low = {n: value for n, value in values.items() if value is not None and value < limit}
    if low:
        n = min(low, key=low.__getitem__)
        more = f"; {len(low)} of {len(values)} cases prove less" if len(low) > 1 else ""
        text = f"nodes[{n}] proves only {_shown(low[n])}, {stated!r} is stated{more}"
        yield BrokenRule(name, text)


def leaf_values(instance: PalInstance, certificate: PalCertificate) -> dict[int, int | None]:
    """Return the Lagrangian value of each leaf of a certificate that is well-formed.

    Returns
    -------
    dict[int, int | None]
        By number of the node, in multiples of 2**-192: a lower bound on the objective of every plan
        in that case, or on its number of jobs left out for kind "misfit". None if a job can
        neither stand anywhere nor be left out, so that there is no plan.
    """
    costs = ObjectiveCosts(instance) if certificate.kind == "prices" else MisfitCosts()
    first = certificate.nodes[0]
    if isinstance(first, Leaf) and not certificate.rules and not certificate.exclusions:
        known = {price: scaled(price) for price in set(first.gpu_prices)}
        prices = [known[price] for price in first.gpu_prices]
        least = pricelist.least(instance, costs, prices)
        return {0: None if least is None else least - sum(prices)}
    menu = Menu(instance, costs)
    counted = [_counted(menu, rule) for rule in certificate.rules]
    leaves = [node for node in certificate.nodes if isinstance(node, Leaf)]
    cuts = {cut.rule for leaf in (*certificate.exclusions, *leaves) for cut in leaf.cuts}
    room = {n: _room(instance, menu, certificate.rules[n]) for n in cuts}
    for leaf in certificate.exclusions:
        bill = _bill(leaf, [], counted, room)
        menu.exclude(*bill, limit=ceil(Fraction(certificate.bound or 0.0) * SCALE))
    values = {}
    for n, leaf, way in _cases(certificate):
        prices, charges, paid = _bill(leaf, way, counted, room)
        least = menu.least(prices, charges)
        values[n] = None if least is None else least - paid
    return values


def _cases(certificate: PalCertificate) -> Iterator[tuple[int, Leaf, list[Turn]]]:
    """Yield each leaf with the way to it from the root."""
    above: dict[int, tuple[int, Turn]] = {}
    for n, node in enumerate(certificate.nodes):
        if isinstance(node, Split):
            above |= {child: (n, Turn(node, case)) for case, child in enumerate(node.cases)}
            continue
        way, here = [], n
        while here in above:
            here, turn = above[here]
            way.append(turn)
        yield n, node, way[::-1]


def _counted(menu: Menu, rule: Within | Keeps) -> Counted:
    if isinstance(rule, Within):
        types = {menu.type_of[name] for name in rule.types}
        return menu.within(types, rule.domain, rule.slowest)
    return menu.keeps(rule.job)


def _room(instance: PalInstance, menu: Menu, rule: Within | Keeps) -> int:
    """Return how many of the counted jobs the GPUs can hold."""
    assert isinstance(rule, Within)
    jobs = [job for job in instance.jobs if job.id in rule.types]
    slowest = inf if rule.slowest is None else rule.slowest
    gpus = menu.cluster.fast(jobs[0].application_class, rule.domain, slowest)
    return gpus // min(job.gpus for job in jobs)


def _bill(
    leaf: Leaf, way: list[Turn], counted: list[Counted], room: dict[int, int]
) -> tuple[list[int], list[tuple[Counted, int]], int]:
    """Return prices of GPUs, charges for what rules count, and what is paid at most for both."""
    prices = [scaled(price) for price in leaf.gpu_prices]
    charges: dict[int, int] = {}
    paid = sum(prices)
    for (split, case), value in zip(way, leaf.split_prices, strict=True):
        price, limit = scaled(value), split.at_most
        if case:
            price, limit = -price, split.at_most + 1
        charges[split.rule] = charges.get(split.rule, 0) + price
        paid += price * limit
    for cut in leaf.cuts:
        price = scaled(cut.price)
        charges[cut.rule] = charges.get(cut.rule, 0) + price
        paid += price * room[cut.rule]
    return prices, [(counted[n], charge) for n, charge in charges.items()], paid


def _shown(value: int) -> str:
    try:
        return repr(float(Fraction(value, SCALE)))
    except OverflowError:  # prices near the greatest float
        return "less than every float"
