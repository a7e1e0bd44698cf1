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
from math import inf, isfinite
from typing import TYPE_CHECKING

from optsched.certificates.bound_tree import tree_faults
from optsched.documents.faults import shown
from optsched.eaco.plan import Leaf, NodesUsed, Rounded, Split, Together, Unpackable
from optsched.eaco.verify.directed_rounding import bits_for
from optsched.eaco.verify.equal_rate_groups import has_equal_rates
from optsched.eaco.verify.group_enumeration import BITS, equal_jobs, group_counts
from optsched.eaco.verify.lagrangian import LagrangianValue
from optsched.eaco.verify.node_packing import PathStep, packing_faults
from optsched.eaco.verify.work_limit import (
    MOST_KEPT,
    MOST_TERMS,
    PER_GROUP,
    Effort,
    TooManyTermsError,
)
from optsched.verification import BrokenRule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.eaco.instance import EacoInstance
    from optsched.eaco.plan import EacoCertificate, Prices

USUALLY_KEPT = (
    100  # groups for each set of equal jobs, after the reduced-cost filter for several leaves
)


def prove(
    instance: EacoInstance, certificate: EacoCertificate, most_terms: int = MOST_TERMS
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
    broken = [*_statement(certificate), *_rules(instance, certificate)]
    tree = list(tree_faults(certificate.nodes, len(certificate.rules)))
    broken += tree or _forms(instance, certificate)
    if broken:
        return broken
    try:
        return list(_values(instance, certificate, Effort(most_terms)))
    except TooManyTermsError:
        text = f"it takes more than {most_terms:,} terms, or {MOST_KEPT:,} groups in memory"
        return [BrokenRule("terms", text)]


def terms(instance: EacoInstance, certificate: EacoCertificate) -> int:
    """Return about how many terms `prove` adds up, `PER_GROUP` for each group that it looks at.

    It is worked out from counts alone. Where groups are filtered, it takes as many to be left as
    usual certificates leave; elsewhere tolerances and memory may leave fewer than are counted.
    """
    leaves = sum(isinstance(node, Leaf) for node in certificate.nodes)
    classes = len(equal_jobs(instance))
    each = leaves * (classes + len(certificate.nodes)) + len(certificate.rules)
    if certificate.kind == "below_idle_power":
        return 1
    is_filtered = all(has_equal_rates(instance, gpu) for gpu in instance.gpu_types)
    has_prices = certificate.everywhere is not None or leaves == len(certificate.nodes)
    if certificate.kind == "prices" and is_filtered and has_prices:
        kept = USUALLY_KEPT * classes if leaves > 1 else 2 * classes
        return PER_GROUP * (each + (1 + leaves) * kept)
    groups, options = group_counts(instance)
    kept = options // 10 if has_prices else options
    return PER_GROUP * (each + groups + options + leaves * kept)


# --- form -------------------------------------------------------------------------------------


def _below_idle_power(instance: EacoInstance, certificate: EacoCertificate) -> Iterator[BrokenRule]:
    """Yield why the power cap is not below the idle floor."""
    cap, floor = instance.power_cap_w, instance.idle_floor_w
    if cap is None or Fraction(cap) >= floor:
        text = f"the cap is {cap!r} W, the cluster asleep draws {float(floor)!r} W"
        yield BrokenRule("floor", text)
    if certificate != type(certificate)(kind="below_idle_power"):
        yield BrokenRule("floor", "prices, nodes and bounds prove nothing about the idle floor")


def _statement(certificate: EacoCertificate) -> Iterator[BrokenRule]:
    """Yield what is wrong with the figures that are stated."""
    bound, left_out = certificate.bound, certificate.left_out
    if certificate.kind == "prices":
        if left_out is not None:
            yield BrokenRule("left-out", "is stated, but prices of costs prove nothing about it")
        if bound is None or not isfinite(bound):
            text = "the certificate states none" if bound is None else f"{bound!r} is stated"
            yield BrokenRule("bound", text)
        return
    if bound is not None:
        yield BrokenRule("bound", "a proof that no plan exists has no bound")
    if left_out is None or not 0 < left_out < inf:
        text = f"a proof that no plan exists needs more than none, {left_out!r} is stated"
        yield BrokenRule("left-out", text)


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
    paths, known = Paths(certificate), {nodes.id for nodes in instance.nodes}
    if certificate.everywhere is not None:
        yield from _lengths(instance, certificate, certificate.everywhere, "everywhere")
    for n, node in enumerate(certificate.nodes):
        if isinstance(node, Leaf):
            yield from _lengths(instance, certificate, node.prices, f"nodes[{n}]")
            if len(node.split_prices) != paths.depths[n]:
                given, needed = len(node.split_prices), paths.depths[n]
                text = f"nodes[{n}] has {given} prices for {needed} splits"
                yield BrokenRule("one-price-per-split", text)
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
    for cut in prices.cuts:
        if cut.rule >= len(certificate.rules):
            text = f"{where} cuts by rules[{shown(cut.rule)}], but there are "
            yield BrokenRule("known-rule", text + str(len(certificate.rules)))
        elif not isinstance(certificate.rules[cut.rule], Rounded):
            text = f"{where} cuts by rules[{cut.rule}], whose count nothing limits"
            yield BrokenRule("cut", text)


class Paths:
    """The paths to nodes from the root, kept by their last branches: all at once may be very long.

    Attributes
    ----------
    depths
        Splits on the path to each node.
    """

    def __init__(self, certificate: EacoCertificate) -> None:
        self.depths = [0] * len(certificate.nodes)
        self._last: dict[int, tuple[int, PathStep]] = {}
        for n, node in enumerate(certificate.nodes):
            if isinstance(node, Split):
                for side, child in enumerate(node.cases):
                    self.depths[child] = self.depths[n] + 1
                    self._last[child] = n, PathStep(certificate.rules, node, side)

    def to(self, n: int) -> list[PathStep]:
        """Return the path to a node."""
        path = []
        while n in self._last:
            n, step = self._last[n]
            path.append(step)
        return path[::-1]


# --- values -----------------------------------------------------------------------------------


def _values(
    instance: EacoInstance, certificate: EacoCertificate, effort: Effort
) -> Iterator[BrokenRule]:
    """Yield the leaves that prove less than is stated."""
    is_infeasibility = certificate.kind == "infeasible"
    stated = certificate.left_out if is_infeasibility else certificate.bound
    assert stated is not None
    lagrangian = LagrangianValue(
        instance,
        certificate.rules,
        is_infeasibility=is_infeasibility,
        bits=bits_for(_size(certificate, stated), BITS),
        effort=effort,
    )
    paths = Paths(certificate)
    root = certificate.nodes[0]
    everywhere = certificate.everywhere
    if everywhere is None and isinstance(root, Leaf):
        everywhere = root.prices
    lagrangian.gather(everywhere, stated)
    low: dict[int, int] = {}
    for n, node in enumerate(certificate.nodes):
        effort.spend(1 + paths.depths[n])
        if isinstance(node, Unpackable):
            yield from packing_faults(instance, node.nodes, paths.to(n), n)
        elif isinstance(node, Leaf):
            value = lagrangian.value(node, paths.to(n))
            if value < lagrangian.limit:
                low[n] = value
    if low:
        n = min(low, key=low.__getitem__)
        more = f"; {len(low)} leaves prove less" if len(low) > 1 else ""
        text = f"nodes[{n}] proves only {lagrangian.shown(low[n])!r}, {stated!r} is stated{more}"
        yield BrokenRule("left-out" if is_infeasibility else "bound", text)


def _size(certificate: EacoCertificate, stated: float) -> float:
    """Return the greatest figure that a proof adds up, to which its rounding has to be small."""
    prices = [node.prices for node in certificate.nodes if isinstance(node, Leaf)]
    return max([abs(stated), *(abs(price) for each in prices for price in each.jobs)])
