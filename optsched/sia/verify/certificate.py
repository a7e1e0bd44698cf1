"""The verifier of rounds: whether a plan keeps the capacities, and Lagrangian values prove a bound.

Integers and fractions only, and sums that are rounded once; no solver, no tolerance. What cannot be
a job's cheapest option is left out beforehand, in whole numbers of 63 bits
(`reduced_cost_filter.py`), and so are the partial plans of an enumeration looked at
(`enumeration.py`).
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import chain
from math import fsum, isfinite
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from optsched.certificates.bound_tree import Price, Split, at_leaves, tree_faults, written
from optsched.instance import Document
from optsched.sia.verify.enumeration import PriceRow, unproven
from optsched.sia.verify.reduced_cost_filter import ReducedCostFilter
from optsched.sia.verify.reduced_costs import ReducedCosts
from optsched.verification import BrokenRule

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from optsched.certificates.bound_tree import PathStep
    from optsched.sia.arrays import Round


class Prices(Document):
    """Prices of the capacities, and whether they are for costs, or for having no plan at all."""

    kind: Literal["cost", "infeasible"] = "cost"
    prices: tuple[Price, ...]


class Enumeration(Document):
    """Vectors of prices that leave no partial plan below the bound to go on with."""

    rows: tuple[Prices, ...]


Leaf = Prices | Enumeration


class ChoiceCertificate(Document):
    """What proves a bound, or that there is no plan: a branch-and-bound tree with prices.

    Attributes
    ----------
    bound
        Every plan costs at least this; None if there is none at all.
    nodes
        The tree, its root first. A `Split` by rule n parts the plans that do not take
        option n from those that do.
    """

    bound: float | None = None
    nodes: tuple[Split | Prices | Enumeration, ...] = Field(min_length=1)


def violations(instance: Round, plan: Sequence[int]) -> list[BrokenRule]:
    """Return every rule that a plan breaks: an option for every job, within the capacities."""
    if len(plan) != len(instance.jobs):
        text = f"{len(plan)} options are chosen, but there are {len(instance.jobs)} jobs"
        return [BrokenRule("one-option", text)]
    broken, counts, first = [], instance.counts.tolist(), instance.first.tolist()
    for n, option in enumerate(plan):
        if not 0 <= option < counts[n]:
            text = f"job {instance.jobs[n]!r} takes option {option}, but it has {counts[n]}"
            broken.append(BrokenRule("one-option", text))
    if broken:
        return broken
    chosen = [first[n] + int(option) for n, option in enumerate(plan)]
    for number, (capacity, use) in enumerate(
        zip(instance.capacity.tolist(), instance.use.T, strict=True)
    ):
        taken = use[chosen].tolist() if chosen else []
        if _is_above(taken, capacity):
            total = written(sum(map(Fraction, taken)))
            text = f"{total} is taken of capacity {number}, which is {capacity}"
            broken.append(BrokenRule("capacity", text))
    return broken


def _is_above(terms: list[float], limit: float) -> bool:
    """Tell exactly whether the sum of floats is above a limit."""
    try:
        return fsum([*terms, -limit]) > 0  # rounded once, so that its sign is exact
    except OverflowError:
        return sum(map(Fraction, terms)) > Fraction(limit)


def prove(instance: Round, certificate: ChoiceCertificate) -> list[BrokenRule]:
    """Return every reason why a certificate does not prove what it states."""
    broken = list(_faults(instance, certificate))
    if not broken:
        faults = at_leaves(certificate.nodes, _Verifier(instance, certificate.bound).faults)
        broken = [*chain(*faults.values())]
    return broken


def _faults(instance: Round, certificate: ChoiceCertificate) -> Iterator[BrokenRule]:
    bound = certificate.bound
    if bound is not None and not isfinite(bound):
        yield BrokenRule("bound", f"{bound!r} is stated")
    yield from tree_faults(certificate.nodes, len(instance.cost))
    for n, node in enumerate(certificate.nodes):
        if isinstance(node, Split):
            if node.at_most:
                yield BrokenRule("tree", f"nodes[{n}] splits at {node.at_most}, not at 0")
            continue
        for row in (node,) if isinstance(node, Prices) else node.rows:
            if len(row.prices) != len(instance.capacity):
                count = f"{len(row.prices)} prices for {len(instance.capacity)} capacities"
                yield BrokenRule("prices", f"nodes[{n}] has {count}")


class _Verifier:
    """Tells what the leaves of a certificate prove."""

    def __init__(self, instance: Round, bound: float | None) -> None:
        self._round, self._problem, self._filter = (
            instance,
            ReducedCosts(instance),
            ReducedCostFilter(instance),
        )
        self._stated = bound
        self._bound = None if bound is None else Fraction(bound)

    def faults(self, n: int, node: Leaf, path: Sequence[PathStep]) -> Iterator[BrokenRule]:
        """Yield why a leaf does not prove the bound of its plans."""
        taken, barred = (
            frozenset(step.split.rule for step in path if step.side == side) for side in (1, 0)
        )
        only = dict(zip(self._problem.job([*taken]), taken, strict=True))
        out = Counter(self._problem.job([*barred]))
        if len(only) < len(taken) or taken & barred:
            return  # no plan takes two options of a job, or one that it does not take
        if any(count == self._round.counts[job] for job, count in out.items()):
            return
        if isinstance(node, Enumeration):
            yield from self._enumeration_faults(n, node, only, barred)
            return
        value = self._value(node, only, out, barred)
        if node.kind == "infeasible" and value > 0:
            return  # this node has no plan
        if node.kind == "infeasible" or self._bound is None:
            yield BrokenRule("infeasible", f"nodes[{n}] does not prove that there is no plan")
        elif value < self._bound:
            text = f"nodes[{n}] proves {written(value)} only, {self._stated!r} is stated"
            yield BrokenRule("bound", text)

    def _enumeration_faults(
        self, n: int, node: Enumeration, only: dict[int, int], barred: frozenset[int]
    ) -> Iterator[BrokenRule]:
        every = range(len(self._round.cost))
        pairs = zip(every, self._problem.job(every), strict=True)
        options = [
            option
            for option, job in pairs
            if option not in barred and only.get(job, option) == option
        ]
        rows = [PriceRow(row.kind == "infeasible", row.prices) for row in node.rows]
        reason = unproven(self._problem, options, rows, self._bound)
        if reason is not None:
            rule = "infeasible" if self._bound is None else "bound"
            what = "that there is no plan" if self._bound is None else f"{self._stated!r}"
            yield BrokenRule(rule, f"nodes[{n}] does not prove {what}: {reason}")

    def _value(
        self, node: Prices, only: dict[int, int], out: Counter[int], barred: frozenset[int]
    ) -> Fraction:
        """Return the Lagrangian value of a leaf: no plan costs less."""
        instance, problem, farkas = self._round, self._problem, node.kind == "infeasible"
        near = self._filter.near(node.prices, 0 * instance.cost if farkas else instance.cost)
        for job in {*only, *out}:  # their cheapest option may be elsewhere
            near[instance.first[job] : instance.first[job] + instance.counts[job]] = True
        options = near.nonzero()[0].tolist()
        priced, unit = problem.priced(options, node.prices, farkas=farkas)
        least: list[int] = []
        last = -1  # options ascend, so those of a job are one after the other
        for option, job, value in zip(options, problem.job(options), priced, strict=True):
            if (only or barred) and (option in barred or only.get(job, option) != option):
                continue
            if job != last:
                least.append(value)
            elif value < least[-1]:
                least[-1] = value
            last = job
        assert len(least) == problem.jobs
        return Fraction(sum(least), unit) - problem.capacity_value(node.prices)
