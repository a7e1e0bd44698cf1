"""The judge of the choice problem: whether a plan keeps the capacities, and whether prices prove.

Integers and fractions only, and sums that are rounded once; no solver, no tolerance. What cannot be
a job's cheapest option is left out beforehand, in whole numbers of 63 bits (`sieve.py`).
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import fsum, isfinite
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from optsched.casetree import Price, Split, tree_faults
from optsched.check import BrokenRule
from optsched.choice.sieve import Sieve
from optsched.instance import Document

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from optsched.choice.round import Floats, Indices, Round


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
    sieve, cases = Sieve(found), _cases(certificate)
    bound = None if certificate.bound is None else Fraction(certificate.bound)
    for n, (taken, barred) in cases.items():
        node = certificate.nodes[n]
        assert isinstance(node, Prices)
        value = _value(found, sieve, node, taken, barred)
        if value is None or (node.kind == "misfit" and value > 0):
            continue  # there is no plan in this case
        if node.kind == "misfit" or bound is None:
            broken.append(BrokenRule("misfit", f"nodes[{n}] does not prove that there is no plan"))
        elif value < bound:
            text = f"nodes[{n}] proves {_shown(value)} only, {certificate.bound!r} is stated"
            broken.append(BrokenRule("bound", text))
    return broken


def _shown(value: Fraction) -> str:
    try:
        return repr(float(value))
    except OverflowError:  # prices near the greatest float
        return "less than every float"


def _faults(found: Round, certificate: ChoiceCertificate) -> Iterator[BrokenRule]:
    bound = certificate.bound
    if bound is not None and not isfinite(bound):
        yield BrokenRule("bound", f"{bound!r} is stated")
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


def _value(
    found: Round, sieve: Sieve, node: Prices, taken: frozenset[int], barred: frozenset[int]
) -> Fraction | None:
    """Return the Lagrangian value of a case: no plan costs less; None if there is no plan."""
    only = {int(found.job[option]): option for option in taken}
    out = Counter(int(found.job[option]) for option in barred)
    if len(only) < len(taken) or taken & barred:
        return None
    if any(count == found.counts[job] for job, count in out.items()):
        return None
    cost = found.cost if node.kind == "cost" else 0 * found.cost
    near = sieve.near(node.prices, cost)
    for job in {*only, *out}:  # their cheapest option may be elsewhere
        near[found.first[job] : found.first[job] + found.counts[job]] = True
    options = near.nonzero()[0]
    priced, unit = _priced(found, node.prices, cost, options)
    least: dict[int, int] = {}
    pairs = zip(options.tolist(), found.job[options].tolist(), priced, strict=True)
    for option, job, value in pairs:
        if option not in barred and only.get(job, option) == option:
            least[job] = min(value, least.get(job, value))
    assert len(least) == len(found.jobs)
    rent = zip(node.prices, found.capacity.tolist(), strict=True)
    spent = sum(Fraction(price) * Fraction(room) for price, room in rent)
    return Fraction(sum(least.values()), unit) - spent


def _priced(
    found: Round, prices: Sequence[float], cost: Floats, options: Indices
) -> tuple[list[int], int]:
    """Return the exact priced costs of options, as multiples of one over a power of two."""
    whole, price_unit = _whole(prices)
    costs, cost_unit = _whole(cost[options].tolist())
    uses, use_unit = _whole(found.use[options].ravel().tolist())
    weight = price_unit * use_unit
    priced = [weight * each for each in costs]
    for kind, price in enumerate(whole):
        if price:
            factor, used = price * cost_unit, uses[kind :: len(whole)]
            priced = [value + factor * use for value, use in zip(priced, used, strict=True)]
    return priced, cost_unit * weight


def _whole(numbers: Sequence[float]) -> tuple[list[int], int]:
    """Return floats as multiples of one over a power of two, and that power."""
    ratios = [number.as_integer_ratio() for number in numbers]
    unit = max((below for _, below in ratios), default=1)
    return [above * (unit // below) for above, below in ratios], unit
