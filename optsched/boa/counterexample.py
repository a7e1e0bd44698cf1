"""Plans that a stated bound of BOA forgets: the judge looks for one through all that may be left.

For integer widths an enumeration of the partial plans that a price leaves open makes its bound
sharp. Integers and fractions only.
"""

from __future__ import annotations

from bisect import bisect_left
from fractions import Fraction

from optsched.boa.chains import Chain, Node, Weights, completions
from optsched.boa.check import SCALE

MAX_LABELS = 20_000_000

Labels = list[tuple[int, int]]  # (use, value) of partial plans, none worse than another in both


class _Effort:
    """Counts partial plans, and gives up on certificates that ask for too many."""

    def __init__(self) -> None:
        self.count = 0

    def spend(self, count: int) -> None:
        self.count += count
        if self.count > MAX_LABELS:
            raise OverflowError(f"more than {MAX_LABELS:,} partial plans would have to be followed")


def counterexample(
    chains: list[Chain], price: Fraction, limit: Fraction, stated: Fraction
) -> str | None:
    """Look for a plan within the limit whose value is below `stated`; None if there is none."""
    unit = SCALE * price.denominator
    ceiling = stated * unit + price.numerator * SCALE * limit  # on value + price * use
    cutoff = -((-ceiling.numerator) // ceiling.denominator)
    weights = Weights(price.denominator, price.numerator)
    complete = [completions(chain, weights) for chain in chains]
    slack = cutoff - sum(least for least, _ in complete)
    effort = _Effort()
    try:
        menus = [
            (least, _ways(chain, after, price, least + slack, effort))
            for chain, (least, after) in zip(chains, complete, strict=True)
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
