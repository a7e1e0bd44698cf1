"""The verifier of EaCO: groups of few job types, filtered by the sequence of their types.

For each sequence of types, in the order of work, jobs add at least their work times a figure of the
sequence: see docs/obligations-eaco.md, section 5. What is left is priced exactly. It shares no code
with the methods.
"""

from __future__ import annotations

from bisect import bisect_left
from fractions import Fraction
from itertools import accumulate, permutations
from math import lcm
from typing import TYPE_CHECKING, Any, NamedTuple

from optsched.eaco.verify.group_costs import per_j
from optsched.eaco.verify.limits import LIMITS, ceil_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from optsched.eaco.instance import Nodes, PowerLevel
    from optsched.eaco.verify.group_enumeration import GroupOptions
    from optsched.eaco.verify.rates import Quotient


Types = tuple[str, ...]


class _Pace(NamedTuple):
    """Rates by type, and watts of a GPU with its share of the node, exactly.

    `drawn` is the GPU's alone, rounded down as `ExactPace.watts`.
    """

    rates: dict[str, Fraction]
    watts: Fraction
    drawn: int


class _TypeCharge(NamedTuple):
    """A type somewhere in the order of work: joules that a second of its work takes; its rate."""

    kind: str
    joules: Fraction
    rate: Fraction


class ChargedTypes(NamedTuple):
    """Types that run side by side, in every order of their jobs' work.

    Attributes
    ----------
    charges
        Each once, whatever orders it is in.
    orders
        Of each order, the longest work first, its charges by number.
    drawn
        What a GPU draws while all run, rounded down.
    """

    charges: tuple[_TypeCharge, ...]
    orders: tuple[tuple[int, ...], ...]
    drawn: int


class _Place(NamedTuple):
    """Who can be at a place of a sequence, positions ascending, and what they add at least.

    Attributes
    ----------
    whole, least
        With all that follow; and the least of that from each entry on.
    """

    at: list[int]
    adds: list[int]
    whole: list[int]
    least: list[int]


class SequencedGroups:
    """Groups of one gang size on some nodes.

    Parameters
    ----------
    among
        Numbers of the sets of equal jobs that fit alone.
    """

    def __init__(self, groups: GroupOptions, gang: int, nodes: Nodes, among: Sequence[int]) -> None:
        self._groups, self._gang, self._nodes = groups, gang, nodes
        self._gpu = groups.figures.gpus[nodes.gpu]
        works = {n: Fraction(*groups.costs.work(n, nodes.gpu, moved=False)) for n in among}
        self._order = sorted(among, key=lambda n: (-works[n], n))
        unit = lcm(*[work.denominator for work in works.values()])
        self._work = [int(works[n] * unit) for n in self._order]  # in seconds / unit
        self._type = [groups.equal[n].job.type for n in self._order]
        self._copies = [len(groups.equal[n].jobs) for n in self._order]
        self._of_kind: dict[str, list[int]] = {}
        for at, kind in enumerate(self._type):
            self._of_kind.setdefault(kind, []).append(at)
        self._again = int(any(copies > 1 for copies in self._copies))
        self._least = [self._least_rate(n) for n in self._order]
        self._bearing: dict[tuple[str, tuple[int, int]], list[int]] = {}
        self._unit = gang * per_j(groups.instance) * (1 << groups.bits) / unit
        kinds = groups.figures.types
        self._memory = {name: Fraction(kinds[name].memory_gb) for name in {*self._type}}
        left = 1 - Fraction(groups.instance.memory_headroom)
        self._memory_limit = Fraction(self._gpu.memory_gb) * left
        self._paces: dict[tuple[str | None, Types], _Pace | None]
        self._paces = groups.paces.kept("side by side", nodes, None)
        self._kept_at: tuple[PowerLevel | None, dict[Any, Any]] | None = None

    def _least_rate(self, n: int) -> Fraction:
        least: Quotient = self._groups.least_rate(n, self._nodes.gpu, moved=False)
        return Fraction(*least)

    def below(self, pays: Sequence[int], threshold: int, watt: int) -> Iterator[tuple[int, ...]]:
        """Yield all groups that cost less than a threshold above what their jobs pay, once each.

        Others may be among them.

        Parameters
        ----------
        watt
            Price of a watt, not below 0.
        """
        inside, seen = [pays[n] for n in self._order], set[tuple[int, ...]]()
        bare = ceil_at(self._gpu.power.bare_w, self._groups.watt_bits)
        for level in (None, *self._gpu.levels):
            for types in self._side_by_side(level):
                charge = watt * self._gang * (types.drawn - bare) >> self._groups.watt_bits
                for at in self._rows(types, inside, threshold - charge):
                    members = tuple(sorted([self._order[n] for n in at]))
                    if members in seen:
                        continue
                    if self._gpu.levels:
                        seen.add(members)
                    yield members

    # --- sequences -----------------------------------------------------------------------------

    def _side_by_side(self, level: PowerLevel | None) -> Iterator[ChargedTypes]:
        """Yield all types whose jobs may run side by side."""
        least: dict[str, Fraction] = {}
        for kind, rate in zip(self._type, self._least, strict=True):
            least[kind] = min(rate, least.get(kind, rate))
        names = sorted(least)
        stack: list[Types] = [(name,) for name in names]
        while stack:
            key = stack.pop()
            self._groups.budget.spend(1 << len(key))
            pace = self._pace(key, level)
            if pace is None or any(rate < least[name] for name, rate in pace.rates.items()):
                continue  # larger ones are no faster
            if len(key) > 1 and sum([self._memory[name] for name in key]) > self._memory_limit:
                continue
            yield self._charged(key, level)
            if len(key) < self._groups.instance.max_jobs_per_gpu:
                stack += [(*key, name) for name in names if name >= key[-1]]

    def _charged(self, key: Types, level: PowerLevel | None) -> ChargedTypes:
        """Return the charges of a multiset, which follow from its paces alone."""
        if self._kept_at is None or self._kept_at[0] is not level:
            self._kept_at = level, self._groups.paces.kept("sequences", self._nodes, level)
        known: dict[Types, ChargedTypes] = self._kept_at[1]
        if key not in known:
            known[key] = self._of(key, level)
        return known[key]

    def _pace(self, key: Types, level: PowerLevel | None) -> _Pace | None:
        """Return how types run side by side; None if they do not fit together."""
        at = (None if level is None else level.id), key
        if at not in self._paces:
            pace = self._groups.paces.of(key, self._nodes, level)
            self._paces[at] = None
            if pace is not None and pace.rates:
                second, cost = Fraction(*pace.second), Fraction(*pace.cost)
                rates = {name: rate / second for name, rate in pace.rates.items()}
                watts = cost / second / per_j(self._groups.instance)
                self._paces[at] = _Pace(rates, watts, pace.watts)
        return self._paces[at]

    def _of(self, key: Types, level: PowerLevel | None) -> ChargedTypes:
        """Return the charges of a multiset of types that fits together; so do all within."""
        size, inside = len(key), []
        for mask in range(1, 1 << size):
            part = tuple(kind for n, kind in enumerate(key) if mask >> n & 1)
            pace = self._pace(part, level)
            assert pace is not None
            inside.append(pace)
        second = [Fraction(0), *(pace.watts / max(pace.rates.values()) for pace in inside)]
        for n in range(size):  # the least of a set and all larger ones: it does not fall
            for mask in range(1, 1 << size):
                if not mask >> n & 1:
                    second[mask] = min(second[mask], second[mask | 1 << n])
        is_even = all(len({*pace.rates.values()}) == 1 for pace in inside)
        seen, numbers, orders = set[Types](), dict[_TypeCharge, int](), []
        for order in permutations(range(size)):
            types = tuple(key[n] for n in order)
            if types in seen:
                continue
            seen.add(types)
            joules, mask = dict[int, Fraction](), 0
            for n in order:
                joules[n] = second[mask | 1 << n] - second[mask]
                mask |= 1 << n
            share = Fraction(1) if is_even else _borne(key, joules, inside)
            rates = inside[-1].rates
            charges = [_TypeCharge(key[n], share * joules[n], rates[key[n]]) for n in order]
            orders.append(tuple([numbers.setdefault(own, len(numbers)) for own in charges]))
        return ChargedTypes(tuple(numbers), tuple(orders), inside[-1].drawn)

    # --- groups --------------------------------------------------------------------------------

    def _rows(
        self, types: ChargedTypes, pays: Sequence[int], threshold: int
    ) -> Iterator[list[int]]:
        """Yield the positions of all groups of some types that may be below the threshold."""
        added = [self._added(charge, pays) for charge in types.charges]
        least = [min(values.values(), default=0) for values in added]
        for order in types.orders:
            self._groups.budget.spend(1)
            if all([added[n] for n in order]) and sum([least[n] for n in order]) < threshold:
                yield from self._in_order([added[n] for n in order], threshold)

    def _in_order(self, added: Sequence[dict[int, int]], threshold: int) -> Iterator[list[int]]:
        """Yield the same of groups whose jobs, by their work, have these charges."""
        places: list[_Place] = []
        for values in reversed(added):
            places.insert(0, self._place(values, places[0] if places else None))
        stack: list[tuple[list[int], int]] = [([], 0)]
        while stack:
            at, held = stack.pop()
            if len(at) == len(places):
                yield at
                continue
            place = places[len(at)]
            start = bisect_left(place.at, at[-1] + 1 - self._again) if at else 0
            looked = 0
            for n in range(start, len(place.at)):
                if held + place.least[n] >= threshold:
                    break  # so are all later ones
                looked += 1
                job = place.at[n]
                if held + place.whole[n] < threshold and at.count(job) < self._copies[job]:
                    stack.append(([*at, job], held + place.adds[n]))
            self._groups.budget.spend(1 + looked // LIMITS.rows_per_term)

    def _place(self, added: dict[int, int], after: _Place | None) -> _Place:
        """Return who can be at a place of a sequence, but for those whom nobody can follow."""
        at, adds, whole = [], [], []
        for job, value in added.items():
            rest = 0
            if after is not None:
                start = bisect_left(after.at, job + 1 - self._again)
                if start == len(after.at):
                    continue
                rest = after.least[start]
            at.append(job)
            adds.append(value)
            whole.append(value + rest)
        least = [*accumulate(reversed(whole), min)][::-1]
        return _Place(at, adds, whole, least)

    def _added(self, charge: _TypeCharge, pays: Sequence[int]) -> dict[int, int]:
        """Return what each job adds at least at a charge, above what it pays."""
        over, under = (charge.joules * self._unit).as_integer_ratio()
        key = charge.kind, charge.rate.as_integer_ratio()  # fractions take long to hash
        among = self._bearing.get(key)
        if among is None:
            among = [n for n in self._of_kind[charge.kind] if self._least[n] <= charge.rate]
            self._bearing[key] = among
        return {at: self._work[at] * over // under - pays[at] for at in among}  # rounded down


def _borne(key: Types, joules: dict[int, Fraction], inside: Sequence[_Pace]) -> Fraction:
    """Return a share of jobs' joules that any set of them takes, whatever order they end in."""
    share = Fraction(1)
    for mask, pace in enumerate(inside, start=1):
        held = [n for n in range(len(key)) if mask >> n & 1]
        paid = sum([joules[n] * pace.rates[key[n]] for n in held], Fraction(0))
        if paid > 0:
            share = min(share, pace.watts / paid)
    return share
