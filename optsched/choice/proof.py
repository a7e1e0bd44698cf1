"""The judge of the choice problem: whether a plan keeps the capacities, and whether prices prove.

Integers and fractions only, and sums that are rounded once; no solver, no tolerance.
"""

from __future__ import annotations

from fractions import Fraction
from math import fsum
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from optsched.casetree import Price, Split, tree_faults
from optsched.check import BrokenRule
from optsched.instance import Document

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from optsched.choice.round import Round


class Prices(Document):
    """Prices of the capacities, and whether they are for costs, or for having no plan at all."""

    kind: Literal["cost", "misfit"] = "cost"
    prices: tuple[Price, ...]


class ChoiceCertificate(Document):
    """What proves a bound, or that there is no plan: cases, and prices in each of them.

    Attributes
    ----------
    bound
        Every plan costs at least this; None if there is none at all.
    nodes
        The tree of cases, its root first. A `Split` by rule n parts the plans that do not take
        option n from those that do.
    """

    bound: float | None = None
    nodes: tuple[Split | Prices, ...] = Field(min_length=1)


def violations(found: Round, plan: Sequence[int]) -> list[BrokenRule]:
    """Return every rule that a plan breaks: an option for every job, within the capacities."""
    if len(plan) != len(found.jobs):
        text = f"{len(plan)} options are chosen, but there are {len(found.jobs)} jobs"
        return [BrokenRule("one-option", text)]
    broken, counts, first = [], found.counts.tolist(), found.first.tolist()
    for n, option in enumerate(plan):
        if not 0 <= option < counts[n]:
            text = f"job {found.jobs[n]!r} takes option {option}, but it has {counts[n]}"
            broken.append(BrokenRule("one-option", text))
    if broken:
        return broken
    chosen = [first[n] + int(option) for n, option in enumerate(plan)]
    for kind, (room, use) in enumerate(zip(found.capacity.tolist(), found.use.T, strict=True)):
        taken = use[chosen].tolist() if chosen else []
        if fsum([*taken, -room]) > 0:  # its sign is exact
            text = f"{fsum(taken)} is taken of capacity {kind}, which is {room}"
            broken.append(BrokenRule("capacity", text))
    return broken


def prove(found: Round, certificate: ChoiceCertificate) -> list[BrokenRule]:
    """Return every reason why a certificate does not prove what it states."""
    broken = list(_faults(found, certificate))
    if broken:
        return broken
    exact, cases = _Exact(found), _cases(certificate)
    bound = None if certificate.bound is None else Fraction(certificate.bound)
    for n, (taken, barred) in cases.items():
        node = certificate.nodes[n]
        assert isinstance(node, Prices)
        value = exact.value(node, taken, barred)
        if value is None or (node.kind == "misfit" and value > 0):
            continue  # there is no plan in this case
        if node.kind == "misfit" or bound is None:
            broken.append(BrokenRule("misfit", f"nodes[{n}] does not prove that there is no plan"))
        elif value < bound:
            text = f"nodes[{n}] proves {float(value)!r} only, {certificate.bound!r} is stated"
            broken.append(BrokenRule("bound", text))
    return broken


def _faults(found: Round, certificate: ChoiceCertificate) -> Iterator[BrokenRule]:
    yield from tree_faults(certificate.nodes, len(found.cost))
    for n, node in enumerate(certificate.nodes):
        if isinstance(node, Split):
            if node.at_most:
                yield BrokenRule("tree", f"nodes[{n}] splits at {node.at_most}, not at 0")
        elif len(node.prices) != len(found.capacity):
            count = f"{len(node.prices)} prices for {len(found.capacity)} capacities"
            yield BrokenRule("prices", f"nodes[{n}] has {count}")


def _cases(certificate: ChoiceCertificate) -> dict[int, tuple[frozenset[int], frozenset[int]]]:
    """Return of every leaf which options are taken there, and which are barred."""
    found, stack = {}, [(0, frozenset[int](), frozenset[int]())]
    while stack:
        n, taken, barred = stack.pop()
        node = certificate.nodes[n]
        if isinstance(node, Split):
            stack.append((node.cases[0], taken, barred | {node.rule}))
            stack.append((node.cases[1], taken | {node.rule}, barred))
        else:
            found[n] = (taken, barred)
    return found


class _Exact:
    """A round in whole numbers: costs and uses as multiples of one power of two."""

    def __init__(self, found: Round) -> None:
        self.first, self.counts = found.first.tolist(), found.counts.tolist()
        self.job = found.job.tolist()
        self.cost, self.cost_unit = _whole(found.cost.tolist())
        flat, self.use_unit = _whole([*found.use.ravel().tolist(), *found.capacity.tolist()])
        kinds = len(found.capacity)
        self.capacity = flat[len(flat) - kinds :]
        self.use = [flat[kind : len(flat) - kinds : kinds] for kind in range(kinds)]

    def value(self, node: Prices, taken: frozenset[int], barred: frozenset[int]) -> Fraction | None:
        """Return the Lagrangian value of a case: no plan costs less; None if there is no plan."""
        prices, price_unit = _whole(list(node.prices))
        priced = self._priced(node, prices, price_unit)
        only = {self.job[option]: option for option in taken}
        if len(only) < len(taken) or taken & barred:
            return None
        total = 0
        for job, (first, count) in enumerate(zip(self.first, self.counts, strict=True)):
            own = priced[first : first + count]
            if job in only:
                own = [priced[only[job]]]
            elif barred:
                own = [value for n, value in enumerate(own, first) if n not in barred]
            if not own:
                return None
            total += min(own)
        spent = sum(p * c for p, c in zip(prices, self.capacity, strict=True))
        unit = self.cost_unit * self.use_unit * price_unit
        return Fraction(total - spent * self.cost_unit, unit)

    def _priced(self, node: Prices, prices: list[int], price_unit: int) -> list[int]:
        """Return the priced cost of every option, as a multiple of 1 / all three units."""
        weight = self.use_unit * price_unit if node.kind == "cost" else 0
        weighted = {cost: weight * cost for cost in set(self.cost)}
        priced = [weighted[cost] for cost in self.cost]
        for price, use in zip(prices, self.use, strict=True):
            if price:
                scaled = price * self.cost_unit
                dear = {n: scaled * n for n in set(use)}
                priced = [value + dear[n] for value, n in zip(priced, use, strict=True)]
        return priced


def _whole(numbers: list[float]) -> tuple[list[int], int]:
    """Return floats as multiples of one over a power of two, and that power."""
    ratios = {number: number.as_integer_ratio() for number in set(numbers)}
    unit = max((below for _, below in ratios.values()), default=1)
    whole = {number: above * (unit // below) for number, (above, below) in ratios.items()}
    return [whole[number] for number in numbers], unit
