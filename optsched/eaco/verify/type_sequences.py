"""The verifier of EaCO: groups of few job types, filtered by the sequence of their types.

For each sequence of types, in the order of work, jobs add at least their work times a figure of the
sequence: see docs/obligations-eaco.md, section 5. What is left is priced exactly. It shares no code
with the methods.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.eaco.verify.group_costs import per_j
from optsched.eaco.verify.limits import LIMITS, ceil_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from optsched.eaco.instance import Nodes, PowerLevel
    from optsched.eaco.verify.group_enumeration import GroupOptions
    from optsched.eaco.verify.rates import Quotient

    Wholes = NDArray[np.int64]

Types = tuple[str, ...]

WHOLE = 54  # bits of what a job adds: those of eight stay below 2**57
NEVER = 1 << 58


class _Pace(NamedTuple):
    """Rates by type, and watts of a GPU with its share of the node, exactly.

    `drawn` is the GPU's alone, rounded down as `ExactPace.watts`.
    """

    rates: dict[str, Fraction]
    watts: Fraction
    drawn: int


class TypeSequence(NamedTuple):
    """Types in the order of work, joules that a second of each one's work takes, and rates.

    `drawn` is what a GPU draws while all run, rounded down.
    """

    types: Types
    joules: tuple[Fraction, ...]
    rates: tuple[Fraction, ...]
    drawn: int


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
        self._work = [works[n] for n in self._order]
        self._type = [groups.equal[n].job.type for n in self._order]
        self._copies = np.array([len(groups.equal[n].jobs) for n in self._order])
        self._again = int((self._copies > 1).any())
        self._least = [self._least_rate(n) for n in self._order]
        self._unit = gang * per_j(groups.instance) * (1 << groups.bits)
        kinds = groups.figures.types
        self._memory = {name: Fraction(kinds[name].memory_gb) for name in {*self._type}}
        left = 1 - Fraction(groups.instance.memory_headroom)
        self._memory_limit = Fraction(self._gpu.memory_gb) * left
        self._paces: dict[tuple[str | None, Types], _Pace | None] = {}

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
            for sequence in self._sequences(level):
                charge = watt * self._gang * (sequence.drawn - bare) >> self._groups.watt_bits
                for rows in self._rows(sequence, inside, threshold - charge):
                    for at in rows.tolist():
                        members = tuple(sorted([self._order[n] for n in at]))
                        if members in seen:
                            continue
                        if self._gpu.levels:
                            seen.add(members)
                        yield members

    # --- sequences -----------------------------------------------------------------------------

    def _sequences(self, level: PowerLevel | None) -> Iterator[TypeSequence]:
        """Yield every sequence of types whose jobs may run side by side."""
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
            yield from self._of(key, level)
            if len(key) < self._groups.instance.max_jobs_per_gpu:
                stack += [(*key, name) for name in names if name >= key[-1]]

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

    def _of(self, key: Types, level: PowerLevel | None) -> Iterator[TypeSequence]:
        """Yield the sequences of a multiset of types that fits together; so do all within."""
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
        seen = set[Types]()
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
            rates = tuple(inside[-1].rates[kind] for kind in types)
            each = tuple(share * joules[n] for n in order)
            yield TypeSequence(types, each, rates, inside[-1].drawn)

    # --- groups --------------------------------------------------------------------------------

    def _rows(
        self, sequence: TypeSequence, pays: Sequence[int], threshold: int
    ) -> Iterator[NDArray[np.int64]]:
        """Yield rows of positions: all groups of a sequence that may be below the threshold."""
        added = self._added(sequence, pays)
        greatest = max([abs(threshold), *(abs(v) for part in added for v in part.values())])
        shift = max(0, greatest.bit_length() - WHOLE)
        limit = -(-threshold >> shift)  # up
        size, many = len(added), len(self._order)
        adds = np.full((size, many), NEVER)
        rest = np.full((size + 1, many + 1), NEVER)
        rest[size] = 0
        for n in range(size - 1, -1, -1):
            for at, value in added[n].items():
                adds[n, at] = value >> shift  # down
            whole = np.where(adds[n] == NEVER, NEVER, adds[n] + self._later(rest[n + 1]))
            rest[n, :-1] = np.minimum.accumulate(np.minimum(whole, NEVER)[::-1])[::-1]
        nobody = np.zeros((1, 0), dtype=np.int64)
        stack = [iter([(nobody, np.zeros(1, dtype=np.int64))])]
        while stack:
            part = next(stack[-1], None)
            if part is None:
                stack.pop()
            elif part[0].shape[1] == size:
                yield part[0]
            else:
                stack.append(self._longer(*part, adds, rest, limit))

    def _added(self, sequence: TypeSequence, pays: Sequence[int]) -> list[dict[int, int]]:
        """Return by place in the sequence what each job adds at least, above what it pays."""
        found = []
        for kind, joules, rate in zip(*sequence[:3], strict=True):
            over, under = (joules * self._unit).as_integer_ratio()
            can = [
                at
                for at, (name, least) in enumerate(zip(self._type, self._least, strict=True))
                if name == kind and least <= rate
            ]
            works = {at: self._work[at] for at in can}
            found.append(
                {
                    at: work.numerator * over // (work.denominator * under) - pays[at]  # down
                    for at, work in works.items()
                }
            )
        return found

    def _later(self, rest: Wholes) -> Wholes:
        """Return what later jobs add at least: equal ones stand at one position."""
        return rest[:-1] if self._again else rest[1:]

    def _longer(
        self, at: Wholes, held: Wholes, adds: Wholes, rest: Wholes, limit: int
    ) -> Iterator[tuple[Wholes, Wholes]]:
        """Yield the groups with one more job, of no more work, that may be below the limit."""
        n = at.shape[1]
        whole = self._later(rest[n + 1])
        more = np.flatnonzero((adds[n] < NEVER) & (whole < NEVER))
        least = adds[n][more] + whole[more]
        step = max(1, LIMITS.rows // max(len(more), 1))
        for first in range(0, len(at), step):
            block, so_far = at[first : first + step], held[first : first + step]
            self._groups.budget.spend(1 + len(block) * len(more) // LIMITS.rows_per_term)
            fits = so_far[:, None] + least < limit
            if n:
                fits &= more > block[:, -1:] - self._again
            row, job = np.nonzero(fits)
            larger = np.column_stack([block[row], more[job]])
            if self._again:
                times = (larger == larger[:, -1:]).sum(axis=1)
                free = times <= self._copies[larger[:, -1]]
                larger, row, job = larger[free], row[free], job[free]
            if len(larger):
                yield larger, so_far[row] + adds[n][more[job]]


def _borne(key: Types, joules: dict[int, Fraction], inside: Sequence[_Pace]) -> Fraction:
    """Return a share of jobs' joules that any set of them takes, whatever order they end in."""
    share = Fraction(1)
    for mask, pace in enumerate(inside, start=1):
        held = [n for n in range(len(key)) if mask >> n & 1]
        paid = sum([joules[n] * pace.rates[key[n]] for n in held], Fraction(0))
        if paid > 0:
            share = min(share, pace.watts / paid)
    return share
