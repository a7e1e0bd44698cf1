"""Multiple-choice knapsacks round after round, warm-started (Sia, Jayaram Subramanya, SOSP 2023).

Every job takes one of its options, within capacities. In Sia's round an option is a GPU type and a
number of GPUs, its cost a power of the goodput there (`sia_cost`), and one more is to wait.

>>> from optsched.sia import Choice, Round
>>> wait = (1.1, [0.0, 0.0])
>>> options = {"a": [wait, (1.0, [1.0, 0.0])], "b": [wait, (1.0, [1.0, 0.0]), (0.6, [0.0, 4.0])]}
>>> chosen = Choice().decide(Round.of(options, capacity=[1.0, 4.0]))
>>> chosen.plan.tolist(), round(chosen.objective, 6), chosen.status.value
([1, 2], 1.6, 'optimal')
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.sia.branch_and_bound import BranchAndBound, WarmStart
from optsched.sia.instance import Round
from optsched.sia.result_check import Chosen, confirmed, verify_round
from optsched.sia.round_solver import solve_round
from optsched.sia.verify.certificate import ChoiceCertificate, Prices

if TYPE_CHECKING:
    from collections.abc import Hashable

    from optsched.documents.arrays import Bools
    from optsched.sia.instance import Floats, Indices

__all__ = ["Choice", "ChoiceCertificate", "Chosen", "Round", "sia_cost", "verify_round"]

FEW = 400  # jobs of which a round needs no prices to begin with
PART = 8
LEAST, MOST = 1e-100, 1e100  # of figures that a linear program is made of
MOST_NODES = 200


class _WarmStartByJob(NamedTuple):
    """What a round leaves for the next one: duals, and of every job which options are basic."""

    prices: Floats
    places: dict[Hashable, list[int]]
    loose: Bools


class Choice:
    """Chooses options for jobs, round after round, from what the last round left.

    A round is a linear program that a basic solution leaves nearly whole: it splits no more jobs
    than there are capacities. It is solved over few options, priced over all, beginning with the
    last prices and basis; jobs may come and go, and costs and capacities change. Split jobs are
    rounded; while the gap is open, nodes are branched on an option of a split job, and after 40
    of them the partial plans that may be better than the best one are enumerated. What is stated is
    what the verifier has confirmed.

    Parameters
    ----------
    gap
        Relative gap at which to stop.
    most_nodes
        Nodes after which to stop; what is proven by then is stated. Up to 40, none is enumerated.
    seed
        Seed of HiGHS.

    Attributes
    ----------
    memory
        What the last round left; None before the first one. It can be pickled.
    """

    def __init__(self, gap: float = 1e-4, most_nodes: int = MOST_NODES, seed: int = 0) -> None:
        if not 0 <= gap < 1:
            raise ValueError(f"the gap must be in [0, 1), not {gap!r}")
        if not most_nodes >= 1:
            raise ValueError(f"most_nodes must be at least 1, not {most_nodes!r}")
        self.gap, self.most_nodes, self.seed = gap, most_nodes, seed
        self.memory: _WarmStartByJob | None = None

    def decide(self, instance: Round) -> Chosen:
        """Return the best options, and the proof of how good they are.

        Raises
        ------
        ValueError
            If a figure is not 0 and beyond 1e-100 or 1e100, which no linear program bears.
        SolverDisagreement
            If a bound contradicts the plan.
        """
        for name in ("cost", "use", "capacity"):
            sizes = np.abs(getattr(instance, name))
            least, most = sizes.min(initial=1.0, where=sizes > 0), sizes.max(initial=0.0)
            if least < LEAST or most > MOST:
                figure = least if least < LEAST else most
                raise ValueError(f"'{name}' has a figure of {figure!r}, not in [{LEAST}, {MOST}]")
        if not len(instance.jobs):
            nothing = Prices(prices=(0.0,) * len(instance.capacity))
            certificate = ChoiceCertificate(bound=0.0, nodes=(nothing,))
            return confirmed(instance, np.zeros(0, dtype=np.intp), certificate, self.gap, 0)
        start = self._start(instance)
        solved = solve_round(instance, start, self.gap, self.most_nodes, self.seed)
        self.memory = _kept_for_next(instance, solved.search)
        plan = None if solved.plan is None else solved.plan - instance.first
        return confirmed(instance, plan, solved.certificate, self.gap, solved.programs)

    def _start(self, instance: Round) -> WarmStart:
        memory = self.memory
        capacities = len(instance.capacity)
        if memory is not None and len(memory.prices) == capacities:
            return _warm_start(instance, memory)
        if len(instance.jobs) <= FEW:
            nothing = np.zeros(len(instance.cost), dtype=np.bool_)
            return WarmStart(np.zeros(capacities), nothing, np.ones(capacities, dtype=np.bool_))
        sample = _part(instance)
        search = BranchAndBound(sample, self._start(sample), self.gap, self.seed)
        search.run(1)
        return _warm_start(instance, _kept_for_next(sample, search))


def sia_cost(
    goodput: Floats,
    counts: Indices,
    *,
    restart: Floats,
    held: Indices,
    power: float = -0.5,
    most: float = 3000.0,
) -> Floats:
    """Return what Sia has options cost: a power of the goodput over the job's least, two decimals.

    Parameters
    ----------
    goodput
        Shape (options,), above 0.
    counts
        Shape (jobs,): how many options each job has.
    restart
        Shape (jobs,): factor of the goodput of all options but the one that the job holds.
    held
        Shape (jobs,): that option, by its place among the job's own; -1 if it holds none.
    power
        Below 0: costs are minimised.
    most
        Costs are cut off here.

    Source: Sia, SOSP 2023, siasosp23/artifacts, sia-simulator/sia.py.
    """
    first = np.cumsum(counts) - counts
    factor = np.repeat(np.where(held >= 0, restart, 1.0), counts)
    factor[(first + held)[held >= 0]] = 1.0
    relative = goodput / np.repeat(np.minimum.reduceat(goodput, first), counts) * factor
    cost: Floats = np.round(np.maximum(relative, 1e-4) ** power, 2)
    return np.minimum(cost, most)


# --- from round to round ----------------------------------------------------------------------


def _warm_start(instance: Round, memory: _WarmStartByJob) -> WarmStart:
    """Return what a memory says of a round: basic options of the jobs that are still there."""
    basic = np.zeros(len(instance.cost), dtype=np.bool_)
    counts, unknown, known = instance.counts.tolist(), [], []
    for n, (job, first) in enumerate(zip(instance.jobs, instance.first.tolist(), strict=True)):
        places = memory.places.get(job, ())
        for place in places:
            if place < counts[n]:
                known.append(first + place)
        if not places or min(places) >= counts[n]:
            unknown.append(n)
    basic[known] = True
    if unknown:
        priced = instance.cost + instance.use @ memory.prices
        for n in unknown:
            first = int(instance.first[n])
            basic[first + int(np.argmin(priced[first : first + counts[n]]))] = True
    return WarmStart(memory.prices, basic, memory.loose)


def _kept_for_next(instance: Round, search: BranchAndBound) -> _WarmStartByJob:
    basic, loose = search.root_basis
    places: dict[Hashable, list[int]] = {}
    for job, place in zip(
        instance.job[basic].tolist(),
        (basic - instance.first[instance.job[basic]]).tolist(),
        strict=True,
    ):
        places.setdefault(instance.jobs[job], []).append(place)
    return _WarmStartByJob(search.root_prices, places, loose)


def _part(instance: Round) -> Round:
    """Return a round of every eighth job, with an eighth of the capacities."""
    jobs = np.arange(0, len(instance.jobs), PART)
    is_in = np.zeros(len(instance.jobs), dtype=np.bool_)
    is_in[jobs] = True
    options = is_in[instance.job]
    return Round(
        jobs=[instance.jobs[n] for n in jobs.tolist()],
        counts=instance.counts[jobs],
        cost=instance.cost[options],
        use=instance.use[options],
        capacity=instance.capacity * (len(jobs) / len(instance.jobs)),
    )
