"""One round of the choice problem: jobs, their options, and the capacities that these use."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from math import fsum
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]

MOST_FAULTS = 5


@dataclass(frozen=True, eq=False)
class Round:
    """Every job takes exactly one of its options, within the capacities, at least total cost.

    A job that may go without has an option that uses nothing, at the cost of going without.

    Attributes
    ----------
    jobs
        Ids, each once; a `Choice` knows jobs again by them from round to round.
    counts
        Shape (jobs,): how many options each job has. All options stand in one list, job by job.
    cost
        Shape (options,), finite.
    use
        Shape (options, capacities), at least 0: what an option takes of each capacity.
    capacity
        Shape (capacities,), at least 0.

    Raises
    ------
    ValueError
        If the arrays are not so; the message names the jobs.
    """

    jobs: Sequence[Hashable]
    counts: Indices
    cost: Floats
    use: Floats
    capacity: Floats

    def __post_init__(self) -> None:
        object.__setattr__(self, "counts", np.asarray(self.counts, dtype=np.intp))
        for name in ("cost", "use", "capacity"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=float))
        faults = list(_shape_faults(self)) or list(_faults(self))
        if faults:
            more = len(faults) - MOST_FAULTS
            rest = [f"and {more:,} more"] if more > 0 else []
            raise ValueError("; ".join([*faults[:MOST_FAULTS], *rest]))

    @classmethod
    def of(
        cls,
        options: Mapping[Any, Sequence[tuple[float, Sequence[float]]]],
        capacity: Sequence[float],
    ) -> Round:
        """Return a round of options (cost, use) by job."""
        rows = [row for own in options.values() for row in own]
        return cls(
            jobs=tuple(options),
            counts=np.array([len(own) for own in options.values()], dtype=np.intp),
            cost=np.array([cost for cost, _ in rows], dtype=float),
            use=np.array([use for _, use in rows], dtype=float).reshape(len(rows), len(capacity)),
            capacity=np.array(capacity, dtype=float),
        )

    @cached_property
    def first(self) -> Indices:
        """Shape (jobs,): the first option of each job."""
        return np.cumsum(self.counts) - self.counts

    @cached_property
    def job(self) -> Indices:
        """Shape (options,): the job of each option, by its place."""
        return np.repeat(np.arange(len(self.jobs), dtype=np.intp), self.counts)

    @cached_property
    def of_capacity(self) -> tuple[Floats, ...]:
        """What each option uses, shape (options,), capacity by capacity."""
        return tuple(np.ascontiguousarray(column) for column in self.use.T)

    @cached_property
    def scale(self) -> float:
        """The largest cost: what a gap is relative to if costs cancel."""
        return float(np.abs(self.cost).max(initial=0.0))

    def objective(self, plan: Sequence[int]) -> float:
        """Return the cost of a plan: an option for every job, by its place among its own."""
        return fsum(self.cost[self.first + np.asarray(plan, dtype=np.intp)].tolist())


def _shape_faults(found: Round) -> Iterator[str]:
    jobs, options, kinds = len(found.jobs), int(found.counts.sum()), len(found.capacity)
    for name, expected in (
        ("counts", (jobs,)),
        ("cost", (options,)),
        ("use", (options, kinds)),
        ("capacity", (kinds,)),
    ):
        shape = getattr(found, name).shape
        if shape != expected:
            yield f"'{name}' has the shape {shape}, but {expected} is expected"


def _faults(found: Round) -> Iterator[str]:
    for job, count in Counter(found.jobs).items():
        if count > 1:
            yield f"job {job!r} is there {count} times"
    for n in np.flatnonzero(found.counts < 1).tolist():
        yield f"job {found.jobs[n]!r} has no option"
    for n in np.flatnonzero(~(np.isfinite(found.capacity) & (found.capacity >= 0))).tolist():
        yield f"capacity {n} is {found.capacity[n]}, not a finite number from 0 up"
    for n in np.flatnonzero(~np.isfinite(found.cost)).tolist():
        yield f"{_name(found, n)} costs {found.cost[n]}, not a finite number"
    for n, kind in np.argwhere(~(np.isfinite(found.use) & (found.use >= 0))).tolist():
        told = f"uses {found.use[n, kind]} of capacity {kind}"
        yield f"{_name(found, n)} {told}, not a finite number from 0 up"


def _name(found: Round, option: int) -> str:
    job = int(found.job[option])
    return f"job {found.jobs[job]!r}, option {option - int(found.first[job])}"
