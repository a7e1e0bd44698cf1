"""The verifier of EaCO's certificates: trees of branch and bound (VIPR: Cheung et al., IPCO 2017).

The tree covers all plans: in each split a count, which is a whole number, is at most a number or at
least one more. At each leaf the Lagrangian value is, for any prices, a lower bound on every plan:
jobs pay for being placed, groups for GPUs, locations and watts, and for what splits and cuts limit;
what no group can save on these terms is the bound. A group with a reduced cost so high that, beside
the prices that hold everywhere, it alone makes up for the bound, is left out at all leaves. All of
it is done in integers and fractions, and shares no code with the methods.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from optsched.certificates.bound_tree import (
    Paths,
    Statement,
    at_leaves,
    cut_faults,
    split_price_faults,
    tree_faults,
)
from optsched.eaco.plan import Leaf, NodesUsed, Rounded, Together, Unpackable
from optsched.eaco.verify.equal_jobs import equal_jobs
from optsched.eaco.verify.group_enumeration import group_counts
from optsched.eaco.verify.lagrangian import LagrangianBound
from optsched.eaco.verify.limits import LIMITS, TooManyTermsError, WorkBudget, bits_for
from optsched.eaco.verify.measured_sets import are_filtered
from optsched.eaco.verify.node_packing import packing_faults
from optsched.verification import BrokenRule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.certificates.bound_tree import PathStep
    from optsched.eaco.instance import EacoInstance
    from optsched.eaco.plan import EacoCertificate, Prices


def prove(
    instance: EacoInstance, certificate: EacoCertificate, most_terms: int = LIMITS.terms
) -> list[BrokenRule]:
    """Return every reason why the certificate does not prove what it states.

    Parameters
    ----------
    most_terms
        A proof that takes more is given up, and not accepted.
    """
    try:
        certificate = type(certificate).model_validate(certificate.model_dump(warnings=False))
    except ValueError as error:
        return [BrokenRule("form", f"the certificate is not of its form: {error}")]
    if certificate.kind == "below_idle_power":
        return list(_below_idle_power(instance, certificate))
    broken = [*_stated(certificate).faults(), *_rules(instance, certificate)]
    tree = list(tree_faults(certificate.nodes, len(certificate.rules)))
    broken += tree or _forms(instance, certificate)
    if broken:
        return broken
    try:
        return list(_values(instance, certificate, WorkBudget(most_terms)))
    except TooManyTermsError:
        text = (
            f"it takes more than {most_terms:,} terms, or {LIMITS.groups_kept:,} groups in memory"
        )
        return [BrokenRule("terms", text)]


def terms(instance: EacoInstance, certificate: EacoCertificate) -> int:
    """Return about how many terms `prove` adds up, `terms_per_group` for each group looked at.

    It is worked out from counts alone. Where groups are filtered, it takes as many to be left as
    usual certificates leave; elsewhere tolerances and memory may leave fewer than are counted.
    """
    leaves = sum(isinstance(node, Leaf) for node in certificate.nodes)
    classes = len(equal_jobs(instance))
    each = leaves * (classes + len(certificate.nodes)) + len(certificate.rules)
    if certificate.kind == "below_idle_power":
        return 1
    filtered = are_filtered(instance)
    has_prices = certificate.everywhere is not None or leaves == len(certificate.nodes)
    if certificate.kind == "prices" and filtered and has_prices:
        kept = LIMITS.usually_kept * classes if leaves > 1 else 2 * classes
        return LIMITS.terms_per_group * (each + (1 + leaves) * kept)
    groups, options = group_counts(instance)
    kept = options // 10 if has_prices else options
    return LIMITS.terms_per_group * (each + groups + options + leaves * kept)


# --- form -------------------------------------------------------------------------------------


def _below_idle_power(instance: EacoInstance, certificate: EacoCertificate) -> Iterator[BrokenRule]:
    """Yield why the power cap is not below the idle floor."""
    cap, floor = instance.power_cap_w, instance.idle_floor_w
    if cap is None or Fraction(cap) >= floor:
        text = f"the cap is {cap!r} W, the cluster asleep draws {float(floor)!r} W"
        yield BrokenRule("floor", text)
    if certificate != type(certificate)(kind="below_idle_power"):
        yield BrokenRule("floor", "prices, nodes and bounds prove nothing about the idle floor")


def _rules(instance: EacoInstance, certificate: EacoCertificate) -> Iterator[BrokenRule]:
    """Yield what is wrong with the rules that count."""
    jobs = {job.id for job in instance.jobs}
    nodes = {entry.id for entry in instance.nodes}
    levels = {level.id for gpu in instance.gpu_types for level in gpu.levels} | {"", None}
    places = {place.id for place in instance.running} | {"", None}
    for n, rule in enumerate(certificate.rules):
        for name in () if isinstance(rule, NodesUsed) else dict.fromkeys(rule.jobs):
            if name not in jobs:
                yield BrokenRule("known-job", f"rules[{n}]: the instance has no job '{name}'")
        if not isinstance(rule, Rounded) and rule.nodes is not None and rule.nodes not in nodes:
            yield BrokenRule("known-nodes", f"rules[{n}]: there are no nodes '{rule.nodes}'")
        if isinstance(rule, Together) and rule.level not in levels:
            text = f"rules[{n}]: there is no power level '{rule.level}'"
            yield BrokenRule("known-level", text)
        if isinstance(rule, Together) and rule.location not in places:
            text = f"rules[{n}]: nothing runs at a location '{rule.location}'"
            yield BrokenRule("known-location", text)


def _forms(instance: EacoInstance, certificate: EacoCertificate) -> Iterator[BrokenRule]:
    """Yield what is wrong with the prices of a tree."""
    depths, known = Paths(certificate.nodes).depths, {nodes.id for nodes in instance.nodes}
    if certificate.everywhere is not None:
        yield from _lengths(instance, certificate, certificate.everywhere, "everywhere")
    for n, node in enumerate(certificate.nodes):
        if isinstance(node, Leaf):
            yield from _lengths(instance, certificate, node.prices, f"nodes[{n}]")
            yield from split_price_faults(f"nodes[{n}]", node.split_prices, depths[n])
        elif isinstance(node, Unpackable) and node.nodes not in known:
            yield BrokenRule("known-nodes", f"nodes[{n}]: there are no nodes '{node.nodes}'")


def _lengths(
    instance: EacoInstance, certificate: EacoCertificate, prices: Prices, where: str
) -> Iterator[BrokenRule]:
    """Yield where prices are not those of the instance."""
    for what, given, needed in (
        ("sets of equal jobs", len(prices.jobs), len(equal_jobs(instance))),
        ("entries in nodes", len(prices.gpus), len(instance.nodes)),
        ("locations", len(prices.locations), len(instance.running)),
    ):
        if given != needed:
            text = f"{where} has {given} prices for {needed} {what}"
            yield BrokenRule("one-price-each", text)
    if prices.watt and instance.power_cap_w is None:
        yield BrokenRule("watt", f"{where} prices watts, but there is no power cap")
    otherwise = "whose count nothing limits"
    yield from cut_faults(where, prices.cuts, certificate.rules, Rounded, otherwise)


# --- values -----------------------------------------------------------------------------------


def _stated(certificate: EacoCertificate) -> Statement:
    return Statement(certificate.kind == "prices", certificate.bound, certificate.left_out)


def _values(
    instance: EacoInstance, certificate: EacoCertificate, budget: WorkBudget
) -> Iterator[BrokenRule]:
    """Yield the leaves that prove less than is stated."""
    statement, nodes, rules = _stated(certificate), certificate.nodes, certificate.rules
    bits = bits_for(_size(certificate, statement.figure))
    lagrangian = LagrangianBound(
        instance, rules, is_infeasibility=not statement.is_of_costs, bits=bits, budget=budget
    )
    everywhere = certificate.everywhere
    if everywhere is None and isinstance(nodes[0], Leaf):
        everywhere = nodes[0].prices
    lagrangian.gather(everywhere, statement.figure)
    budget.spend(len(nodes) + sum(Paths(nodes).depths))
    broken: list[BrokenRule] = []

    def value(n: int, leaf: Leaf | Unpackable, path: list[PathStep]) -> int | None:
        if isinstance(leaf, Unpackable):
            broken.extend(packing_faults(instance, leaf.nodes, rules, path, n))
            return None
        return lagrangian.value(leaf, path)

    values = at_leaves(nodes, value)
    yield from broken
    yield from statement.value_faults(values, lagrangian.limit, 1 << bits)


def _size(certificate: EacoCertificate, stated: float) -> float:
    """Return the greatest figure that a proof adds up, to which its rounding has to be small."""
    prices = [node.prices for node in certificate.nodes if isinstance(node, Leaf)]
    return max([abs(stated), *(abs(price) for each in prices for price in each.jobs)])
