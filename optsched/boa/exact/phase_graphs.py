"""Layered graphs of phases x options with costs of rescaling, as arrays; like ones in stacks."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.boa.options import option_curves, rents, start_seconds

if TYPE_CHECKING:
    from optsched.boa.instance import BoaInstance
    from optsched.boa.options import OptionCurves
    from optsched.documents.arrays import Floats, Indices


class Path(NamedTuple):
    """One column per phase of a chain, and what the columns add up to."""

    columns: Indices
    value: float
    use: float


@dataclass(frozen=True)
class _Rescaled:
    """What chains and stacks of them have; arrays of a stack have an axis for chains in front.

    Attributes
    ----------
    options
        Shape (columns,): every option that some phase allows.
    value, use
        Shape (phases, columns); value is infinite where a phase does not allow the option.
    rescale_value, rescale_use
        Shape (columns,): of a start, added in the first phase and wherever the column changes.
    """

    options: Floats
    value: Floats
    use: Floats
    rescale_value: Floats
    rescale_use: Floats

    def priced(self, price: float) -> tuple[Floats, Floats]:
        """Return value + price * use of the nodes and of the rescalings."""
        rescaling = priced(self.rescale_value, self.rescale_use, price)
        return priced(self.value, self.use, price), rescaling


@dataclass(frozen=True)
class PhaseChain(_Rescaled):
    """A class, by its number, with several phases and rescaling between them."""

    owner: int

    def path(self, columns: Indices) -> Path:
        """Add up a path through the chain."""
        phases = np.arange(len(columns))
        started = np.r_[True, columns[1:] != columns[:-1]]
        value = self.value[phases, columns] + started * self.rescale_value[columns]
        use = self.use[phases, columns] + started * self.rescale_use[columns]
        return Path(columns, float(value.sum()), float(use.sum()))


@dataclass(frozen=True)
class ChainStack(_Rescaled):
    """Chains with the same options in each phase, one above the other; the numbers of classes."""

    owners: list[int]

    def chains(self) -> list[PhaseChain]:
        """Return the chains, as views."""
        arrays = self.value, self.use, self.rescale_value, self.rescale_use
        rows = zip(*arrays, self.owners, strict=True)
        return [PhaseChain(self.options, *of_chain) for of_chain in rows]

    def paths(self, columns: Indices) -> list[Path]:
        """Add up a path through each chain; `columns` has the shape (chains, phases)."""
        nodes, started = columns[:, :, None], np.ones(columns.shape, bool)
        started[:, 1:] = columns[:, 1:] != columns[:, :-1]
        totals = [
            np.take_along_axis(of_node, nodes, 2)[:, :, 0]
            + started * np.take_along_axis(of_rescaling, columns, 1)
            for of_node, of_rescaling in (
                (self.value, self.rescale_value),
                (self.use, self.rescale_use),
            )
        ]
        value, use = (total.sum(axis=1).tolist() for total in totals)
        return list(map(Path, columns, value, use))


def priced(value: Floats, use: Floats, price: float) -> Floats:
    """Return value + price * use; for an infinite price the use, where the value is finite."""
    if np.isposinf(price):
        return np.where(np.isfinite(value), use, np.inf)
    return value + price * use


def stacks(
    instance: BoaInstance, owners: list[int], rates_per_s: list[float], flipped: bool
) -> list[ChainStack]:
    """Stack the classes of the given numbers; a rate is given for every class."""
    phases = [(instance.classes[i], phase) for i in owners for phase in instance.classes[i].phases]
    parts = option_curves(instance, phases)
    part, row = np.empty(len(phases), np.intp), np.empty(len(phases), np.intp)
    for p, (rows, _, _, _) in enumerate(parts):
        part[rows], row[rows] = p, range(len(rows))
    work = np.array([phase.work_gpu_s for _, phase in phases])
    first = accumulate((len(instance.classes[i].phases) for i in owners), initial=0)
    alike: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    for i, start in zip(owners, first, strict=False):
        key = tuple(part[start : start + len(instance.classes[i].phases)].tolist())
        alike.setdefault(key, []).append((i, start))
    stacked = []
    for key, members in alike.items():
        numbers, starts = (list(column) for column in zip(*members, strict=True))
        at = np.array(starts)[:, None] + np.arange(len(key))
        rates = np.array([rates_per_s[i] for i in numbers])
        options, jobs = _nodes([parts[p] for p in key], row[at], rates[:, None] * work[at])
        rented = rents(instance, options)
        lost, paid = start_seconds(instance, [instance.classes[i] for i in numbers], options)
        starting, idle = rates[:, None] * lost, rates[:, None] * paid
        both = (
            *value_and_use(jobs, rented, flipped),
            *value_and_use(starting, rented, flipped, idle),
        )
        stacked.append(ChainStack(options, *both, numbers))
    return stacked


def _nodes(parts: list[OptionCurves], rows: Indices, load: Floats) -> tuple[Floats, Floats]:
    """Return all options, and the mean jobs of each chain, phase and option, infinite for some."""
    options = np.unique(np.concatenate([part.options for part in parts]))
    jobs = np.full((*load.shape, len(options)), np.inf)
    for e, part in enumerate(parts):
        columns = np.searchsorted(options, part.options)
        jobs[:, e, columns] = load[:, e, None] / part.speedup[rows[:, e]]
    return options, jobs


def value_and_use(
    jobs: Floats, rented: Floats, flipped: bool, idle: Floats | float = 0.0
) -> tuple[Floats, Floats]:
    """Return value and use of mean jobs at each rent, infinite and 0 where there are none.

    Parameters
    ----------
    idle
        Like `jobs`: what is paid for beside them, as if for so many jobs.
    """
    possible = np.isfinite(jobs)
    finite = np.where(possible, jobs, 0.0)
    held = (finite + idle) * rented
    if flipped:
        return np.where(possible, held, np.inf), finite
    return jobs, held
