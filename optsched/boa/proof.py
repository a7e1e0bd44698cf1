"""The judge of BOA, second part: whether a certificate proves its bound.

For any price the Lagrangian value is a lower bound on the objective of every plan within the limit;
for integer widths an enumeration of what the price leaves open makes it sharp. All of it is done in
integers and fractions, and shares no code with the methods.

A node is one (phase, width): its lower bounds on the objective's total ("value") and on the use
of the limited resource, as multiples of 2**-192. Where GPUs are limited, value is mean jobs in
the system and use is mean GPUs; where the JCT is the target, the two change places.
"""

from __future__ import annotations

from bisect import bisect_left
from fractions import Fraction
from math import inf, isqrt, nextafter
from typing import TYPE_CHECKING, NamedTuple

from optsched.boa.check import (
    SCALE,
    SCALE_BITS,
    limit,
    limit_divisor,
    objective_divisor,
    rounded_down,
    speedup_enclosure,
)
from optsched.boa.instance import BoaInstance, JobClass, Phase, Power, Speedup, Table
from optsched.check import BrokenRule

if TYPE_CHECKING:
    from optsched.boa.plan import BoaCertificate

MAX_LABELS = 20_000_000


class Node(NamedTuple):
    """Value and use of one phase at one width, or of one rescaling; rounded down."""

    value: int
    use: int

    def priced(self, price: Fraction) -> int:
        """Value plus price times use, as a multiple of 2**-192 / price.denominator: exact."""
        return self.value * price.denominator + price.numerator * self.use


class Chain(NamedTuple):
    """A class: for every phase its nodes by width, and the rescaling node of every width."""

    phases: list[dict[int, Node]]
    rescaling: dict[int, Node]


def prove(instance: BoaInstance, certificate: BoaCertificate) -> list[BrokenRule]:
    """Return every reason why the certificate does not prove what it states.

    For any price the Lagrangian value (least priced total minus price times limit) is a lower bound
    on the objective of every plan within the limit. For integer widths it is sharpened: all partial
    plans whose priced completion stays below the stated bound are enumerated, and none of them may
    end within the limit and below the bound.
    """
    if certificate.kind == "least":
        return _prove_least(instance, certificate)
    price = Fraction(certificate.price)
    total, unit = priced_total(instance, price), SCALE * price.denominator
    broken = []
    if str(total // price.denominator) != certificate.priced_total:
        text = f"is {total // price.denominator} at the price {certificate.price!r}, not as stated"
        broken.append(BrokenRule("priced-total", text))
    if certificate.bound is None:
        return [*broken, BrokenRule("bound", "the certificate states none")]
    stated = Fraction(certificate.bound) * objective_divisor(instance)
    if stated <= max(Fraction(total, unit) - price * limit(instance), Fraction(0)):
        return broken
    lagrangian = (Fraction(total, unit) - price * limit(instance)) / objective_divisor(instance)
    text = f"the price proves only {float(lagrangian)!r}, {certificate.bound!r} is stated"
    if instance.widths != "integer":
        return [*broken, BrokenRule("bound", text)]
    reason = _counterexample(_chains(instance), price, limit(instance), stated)
    if reason:
        broken.append(BrokenRule("bound", f"{text}; {reason}"))
    return broken


def _prove_least(instance: BoaInstance, certificate: BoaCertificate) -> list[BrokenRule]:
    """Prove that no plan keeps within the limit."""
    least = least_use(instance)
    if str(rounded_down(least)) != certificate.priced_total:
        return [
            BrokenRule("priced-total", f"the least use is {rounded_down(least)}, not as stated")
        ]
    if least <= limit(instance):
        text = f"a plan within the limit may exist: the least use is {float(least)!r}"
        return [BrokenRule("infeasible", text)]
    stated, divisor = certificate.least, limit_divisor(instance)
    if stated is None or not Fraction(stated) <= least / divisor < Fraction(nextafter(stated, inf)):
        text = f"the least use is {float(least / divisor)!r}, {stated!r} is stated"
        return [BrokenRule("infeasible", text)]
    if certificate.bound is not None or certificate.price:
        return [BrokenRule("infeasible", "a proof that no plan exists has no price and no bound")]
    return []


def priced_total(instance: BoaInstance, price: Fraction) -> int:
    """Return the least priced total over all plans, rounded down.

    Parameters
    ----------
    price
        Price of one unit of the limited resource; its denominator must be a power of two.

    Returns
    -------
    int
        A multiple of 2**-192 / price.denominator.
    """
    if instance.widths == "continuous":
        return sum(
            _least_priced_share(c, phase, instance.budget is not None, price)
            for c in instance.classes
            for phase in c.phases
        )
    return sum(_completions(chain, price)[0] for chain in _chains(instance))


def least_use(instance: BoaInstance) -> Fraction:
    """Return a lower bound on the use of every plan, sharp to 2**-192 for each term."""
    if instance.widths == "continuous":
        jobs, gpus = (1, 0) if instance.budget is None else (0, 1)
        shares = [
            _least_share(c, phase, jobs, gpus) for c in instance.classes for phase in c.phases
        ]
        return sum(shares, Fraction(0))
    total = sum(
        _completions(Chain(*_swapped(chain)), Fraction(0))[0] for chain in _chains(instance)
    )
    return Fraction(total, SCALE)


def _swapped(chain: Chain) -> tuple[list[dict[int, Node]], dict[int, Node]]:
    phases = [{k: Node(n.use, n.value) for k, n in phase.items()} for phase in chain.phases]
    return phases, {k: Node(n.use, n.value) for k, n in chain.rescaling.items()}


def _chains(instance: BoaInstance) -> list[Chain]:
    """Return a chain for every class, or for every phase where rescaling is free."""
    flipped = instance.budget is None
    chains = []
    for job_class in instance.classes:
        rate = Fraction(job_class.arrival_rate_per_h) / 3600
        phases = [
            _nodes(phase.speedup, rate * Fraction(phase.work_gpu_s), flipped)
            for phase in job_class.phases
        ]
        lost = rate * Fraction(job_class.rescale_s)
        widths = {k for nodes in phases for k in nodes}
        rescaling = {k: _node(*lost.as_integer_ratio(), k, flipped) for k in widths}
        if lost:
            chains.append(Chain(phases, rescaling))
        else:
            chains += [Chain([nodes], rescaling) for nodes in phases]
    return chains


def _nodes(speedup: Speedup, work: Fraction, flipped: bool) -> dict[int, Node]:
    nodes = {}
    for k in speedup.widths:
        if isinstance(speedup, Table):
            top, bottom = speedup.measured[k].as_integer_ratio()
        else:
            top, bottom = speedup_enclosure(speedup, Fraction(k))[1].as_integer_ratio()
        nodes[k] = _node(work.numerator * bottom, work.denominator * top, k, flipped)
    return nodes


def _node(jobs: int, per: int, gpus: int, flipped: bool) -> Node:
    """Return the mean jobs, jobs / per, and the mean GPUs that they hold; both rounded down."""
    jobs <<= SCALE_BITS
    mean, held = jobs // per, gpus * jobs // per
    return Node(held, mean) if flipped else Node(mean, held)


def _completions(chain: Chain, price: Fraction) -> tuple[int, list[dict[int, int]]]:
    """Return the least priced way through a chain, and from after each node to its end."""
    after: list[dict[int, int]] = [dict.fromkeys(chain.phases[-1], 0)]
    for nodes, earlier in zip(chain.phases[:0:-1], chain.phases[-2::-1], strict=True):
        stay = {k: node.priced(price) + after[0][k] for k, node in nodes.items()}
        switch = min(cost + chain.rescaling[k].priced(price) for k, cost in stay.items())
        after.insert(0, {k: min(switch, stay.get(k, switch)) for k in earlier})
    first = chain.phases[0]
    least = min(
        first[k].priced(price) + chain.rescaling[k].priced(price) + after[0][k] for k in first
    )
    return least, after


Labels = list[tuple[int, int]]  # (use, value) of partial plans, none worse than another in both


class _Effort:
    """Counts partial plans, and gives up on certificates that ask for too many."""

    def __init__(self) -> None:
        self.count = 0

    def spend(self, count: int) -> None:
        self.count += count
        if self.count > MAX_LABELS:
            raise OverflowError(f"more than {MAX_LABELS:,} partial plans would have to be followed")


def _counterexample(
    chains: list[Chain], price: Fraction, limit: Fraction, stated: Fraction
) -> str | None:
    """Look for a plan within the limit whose value is below `stated`; None if there is none."""
    unit = SCALE * price.denominator
    ceiling = stated * unit + price.numerator * SCALE * limit  # on value + price * use
    cutoff = -((-ceiling.numerator) // ceiling.denominator)
    completions = [_completions(chain, price) for chain in chains]
    slack = cutoff - sum(least for least, _ in completions)
    effort = _Effort()
    try:
        menus = [
            (least, _ways(chain, after, price, least + slack, effort))
            for chain, (least, after) in zip(chains, completions, strict=True)
        ]
        labels = _combined(menus, price, cutoff, effort)
    except OverflowError as error:
        return str(error)
    for use, value in labels:
        if Fraction(use, SCALE) <= limit and Fraction(value, SCALE) < stated:
            return "a plan that may lie within the limit has a smaller objective"
    return None


def _ways(
    chain: Chain, after: list[dict[int, int]], price: Fraction, ceiling: int, effort: _Effort
) -> Labels:
    """Return the ways through a chain whose priced value is below a ceiling."""
    entering: Labels = [(0, 0)]
    staying: dict[int, Labels] = {}
    for nodes, rest in zip(chain.phases, after, strict=True):
        leaving = {}
        for k, node in nodes.items():
            room = ceiling - rest[k]
            extended = _extended(entering, node, chain.rescaling[k], price, room)
            extended += _extended(staying.get(k, []), node, Node(0, 0), price, room)
            if extended:
                leaving[k] = _undominated(extended)
                effort.spend(len(extended))
        staying = leaving
        entering = _undominated([label for part in leaving.values() for label in part])
    return entering


def _extended(labels: Labels, node: Node, switch: Node, price: Fraction, room: int) -> Labels:
    """Append a node to each partial plan; keep those whose priced value stays below `room`."""
    use, value = node.use + switch.use, node.value + switch.value
    m, d = price.numerator, price.denominator
    room -= value * d + m * use
    return [(u + use, v + value) for u, v in labels if v * d + m * u < room]


def _combined(
    menus: list[tuple[int, Labels]], price: Fraction, cutoff: int, effort: _Effort
) -> Labels:
    """Return the plans that take one way from each menu and whose priced value is below a cutoff.

    Each menu comes with its least priced value; the short ones come first.
    """
    m, d = price.numerator, price.denominator
    rest = sum(least for least, _ in menus)
    labels: Labels = [(0, 0)]
    for least, ways in sorted(menus, key=lambda menu: len(menu[1])):
        rest -= least
        priced = sorted((v * d + m * u, u, v) for u, v in ways)
        extended: Labels = []
        for use, value in labels:
            room = cutoff - rest - value * d - m * use
            fitting = bisect_left(priced, (room,))
            extended += [(use + u, value + v) for _, u, v in priced[:fitting]]
        effort.spend(len(extended))
        labels = _undominated(extended)
    return labels


def _undominated(labels: Labels) -> Labels:
    if len(labels) == 1:
        return labels
    kept: Labels = []
    for use, value in sorted(labels):
        if not kept or value < kept[-1][1]:
            kept.append((use, value))
    return kept


# --- continuous widths ------------------------------------------------------------------------


def _least_priced_share(
    job_class: JobClass, phase: Phase, gpus_limited: bool, price: Fraction
) -> int:
    jobs, gpus = (Fraction(1), price) if gpus_limited else (price, Fraction(1))
    least = _least_share(job_class, phase, jobs, gpus)
    scaled = least * SCALE * price.denominator
    return scaled.numerator // scaled.denominator


def _least_share(
    job_class: JobClass, phase: Phase, jobs: Fraction | int, gpus: Fraction | int
) -> Fraction:
    """Return a lower bound on rho * min over k of (jobs + gpus * k) / s(k), over real widths k."""
    rho = Fraction(job_class.arrival_rate_per_h) / 3600 * Fraction(phase.work_gpu_s)
    return rho * _least_ratio(phase.speedup, Fraction(jobs), Fraction(gpus))


def _least_ratio(speedup: Speedup, a: Fraction, c: Fraction) -> Fraction:
    """Return a lower bound on min over k of (a + c k) / s(k)."""
    first, last = Fraction(speedup.widths[0]), Fraction(speedup.widths[-1])

    def at(k: Fraction) -> Fraction:
        return (a + c * k) / speedup_enclosure(speedup, k)[1]

    if isinstance(speedup, Table):  # linear pieces: the ratio is monotone on each
        return min(at(Fraction(k)) for k in speedup.widths)
    if isinstance(speedup, Power):
        alpha = Fraction(speedup.exponent)
        if alpha == 1 or c == 0:
            return at(last)
        return at(min(max(a * alpha / (c * (1 - alpha)), first), last))
    f = Fraction(speedup.parallel_fraction)
    if f == 1 or c == 0:
        return at(last)
    square = a * f / (c * (1 - f))
    if square <= first**2:
        return at(first)
    if square >= last**2:
        return at(last)
    root = Fraction(isqrt(int(a * f * c * (1 - f) * SCALE**2)), SCALE)
    return a * (1 - f) + c * f + 2 * root
