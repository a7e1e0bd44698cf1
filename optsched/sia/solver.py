"""LP-based branch and bound for the multiple-choice knapsack (Sinha & Zoltners, OR 1979).

A round is a linear program that a basic solution leaves nearly whole: it splits no more jobs than
there are capacities. It is solved over few options, priced over all, beginning with the prices and
the basis of the round before; jobs may come and go, and costs and capacities change. Split jobs are
rounded; while the gap is open, nodes are branched on an option of a split job, and after some of
them the partial plans that may be better than the best one are enumerated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.search import Infeasible
from optsched.sia.arrays import Round, knapsack
from optsched.sia.branch_and_bound import ChoiceTree, WarmStart
from optsched.sia.greedy.methods import in_order
from optsched.sia.plan import SiaPlan
from optsched.sia.round_solver import Basis, Limits, Solved, solve_round
from optsched.sia.settings import SETTINGS
from optsched.sia.verify.certificate import ChoiceCertificate, Prices

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from optsched.documents.arrays import Bools
    from optsched.results.result import Result
    from optsched.search import Search
    from optsched.sia.arrays import Floats, Indices
    from optsched.sia.instance import SiaInstance


class RoundMemory(NamedTuple):
    """What a round leaves for the next one: duals, and of every job which options are basic.

    Attributes
    ----------
    prices, loose
        Shape (capacities,), as of `Basis`.
    jobs
        The jobs of the round.
    owner, place
        Shape (basic options,): the job of each, by its place in `jobs`, and its own place among the
        job's options.
    digest
        Tells whether the next round is the same.
    """

    prices: Floats
    loose: Bools
    jobs: Sequence[Hashable]
    owner: Indices
    place: Indices
    digest: str = ""

    @classmethod
    def of(cls, arrays: Round, left: Basis) -> RoundMemory:
        """Return what a round leaves."""
        prices, basic, loose = left
        owner = arrays.job[basic]
        return cls(prices, loose, arrays.jobs, owner, basic - arrays.first[owner], arrays.digest)

    def resumed(self, arrays: Round) -> WarmStart:
        """Return where a round begins: basic options of the jobs that are still there."""
        basic = np.zeros(len(arrays.cost), dtype=np.bool_)
        number = {job: n for n, job in enumerate(arrays.jobs)}
        owner = np.array([number.get(job, -1) for job in self.jobs], dtype=np.intp)[self.owner]
        is_there = (owner >= 0) & (self.place < arrays.counts[owner])
        owner = owner[is_there]
        basic[arrays.first[owner] + self.place[is_there]] = True
        is_known = np.zeros(len(arrays.jobs), dtype=np.bool_)
        is_known[owner] = True
        unknown = np.flatnonzero(~is_known).tolist()
        if unknown:
            priced = arrays.cost + arrays.use @ self.prices
            for n in unknown:
                first, count = int(arrays.first[n]), int(arrays.counts[n])
                basic[first + int(np.argmin(priced[first : first + count]))] = True
        return WarmStart(self.prices, basic, self.loose)


def exact(instance: SiaInstance, search: Search) -> ChoiceCertificate:
    """Solve a round to the gap asked for, beginning with what the one before it left.

    Raises
    ------
    Infeasible
        If the GPUs do not suffice for the jobs that may not wait.
    """
    if search.deadline is not None:
        in_order(instance, search)  # whatever the limit, there is a plan if a rule finds one
    return within(instance, search, SETTINGS.most_nodes)


def within(instance: SiaInstance, search: Search, most_nodes: int) -> ChoiceCertificate:
    """Solve a round as `exact` does, in no more nodes of branch and bound than these."""
    arrays = knapsack(instance)

    def offer(plan: Indices) -> None:
        search.offer(SiaPlan.of(instance, (plan - arrays.first).tolist()))

    past = search.previous(RoundMemory)
    if past is not None and past.digest == arrays.digest:
        again = _again(search, past)
        if again is not None:
            return again
    count = search.seconds_for_program
    limits = Limits(search.gap, most_nodes, search.seed, search.out_of_time, offer, count)
    if past is None and search.start is not None:
        past = _remembered(instance, search.start)
    solved, search.state = solve_after(arrays, past, limits)
    if not search.stopped and solved.plan is not None:
        search.gave_up = f"{most_nodes:,} nodes do not suffice"
    return _certified(instance, solved)


def _again(search: Search, past: RoundMemory) -> ChoiceCertificate | None:
    """Return the last certificate for the same round, with its plan; None if its gap is open."""
    last = search.start
    if last is None or last.plan is None or not isinstance(last.certificate, ChoiceCertificate):
        return None
    search.offer(last.plan)
    bound = last.certificate.bound
    if bound is None or not search.is_closed(bound):
        return None
    search.state, search.is_warm = past, True
    return last.certificate


def certify(instance: SiaInstance, search: Search) -> ChoiceCertificate:
    """Certify a bound for any plan by prices; a few nodes more if they leave no plan.

    Raises
    ------
    Infeasible
        If it is proven that there is no plan.
    """
    arrays = knapsack(instance)
    limits = Limits(search.gap, 1, search.seed, search.out_of_time)
    solved, _ = solve_after(arrays, None, limits)
    if solved.plan is None and solved.certificate.bound is not None:
        limits = limits._replace(most_nodes=SETTINGS.nodes_before_enumeration + 1)
        solved, _ = solve_after(arrays, None, limits)
    if solved.plan is not None:
        search.offer(SiaPlan.of(instance, (solved.plan - arrays.first).tolist()))
    return _certified(instance, solved)


def certify_claim(instance: SiaInstance, search: Search, claimed: float) -> ChoiceCertificate:
    """Prove a bound that a solver claims, or as much of it as time and nodes allow.

    Its own plans are left out of the search: what is stated is the claimant's plan.

    Raises
    ------
    Infeasible
        If it is proven that there is no plan.
    """
    arrays, known = knapsack(instance), None
    if isinstance(search.plan, SiaPlan):
        known = _places(instance, search.plan) + arrays.first
    most_nodes = SETTINGS.most_nodes if claimed > 0 else 1
    limits = Limits(search.gap, most_nodes, search.seed, search.out_of_time)
    solved, _ = solve_after(arrays, None, limits, known)
    return _certified(instance, solved)


def lp_rounding(instance: SiaInstance, search: Search) -> ChoiceCertificate:
    """Round the linear relaxation: split jobs take what fits, then jobs move to what costs less."""
    return within(instance, search, 1)


def _certified(instance: SiaInstance, solved: Solved) -> ChoiceCertificate:
    if solved.certificate.bound is None:
        text = f"{instance.name}: the GPUs do not suffice for the jobs that may not wait"
        raise Infeasible(text, solved.certificate)
    return solved.certificate


# --- from round to round ----------------------------------------------------------------------


def solve_after(
    arrays: Round, past: RoundMemory | None, limits: Limits, known: Indices | None = None
) -> tuple[Solved, RoundMemory]:
    """Solve a round after another one, and return what it leaves for the next.

    Parameters
    ----------
    past
        What the round before left; None if there was none.
    known
        A plan to begin with: an option of the common list for every job.
    """
    solved = solve_round(arrays, _start(arrays, past, limits), limits, known)
    return solved, RoundMemory.of(arrays, solved.basis)


def _start(arrays: Round, past: RoundMemory | None, limits: Limits) -> WarmStart:
    """Return where to begin; large rounds without a past begin with the prices of a part."""
    capacities = len(arrays.capacity)
    if past is not None and len(past.prices) == capacities:
        return past.resumed(arrays)
    if len(arrays.jobs) <= SETTINGS.most_jobs_unpriced:
        nothing = np.zeros(len(arrays.cost), dtype=np.bool_)
        return WarmStart(np.zeros(capacities), nothing, np.ones(capacities, dtype=np.bool_))
    sample = _part(arrays)
    search = ChoiceTree(sample, _start(sample, None, limits), limits.gap, limits.seed)
    search.run(1)
    left = Basis(search.root_prices, *search.root_basis)
    return RoundMemory.of(sample, left).resumed(arrays)


def _remembered(instance: SiaInstance, last: Result) -> RoundMemory | None:
    """Return what a result that was read from a file says: its prices, and options by job."""
    node = next(iter(getattr(last.certificate, "nodes", ())), None)
    if not isinstance(node, Prices) or not isinstance(last.plan, SiaPlan):
        return None
    taken = {row.id: (row.type, row.gpus) for row in last.plan.jobs}
    known = []
    for job, options in zip(instance.jobs, instance.options, strict=True):
        groups = [(option.type, option.gpus) for option in options]
        if taken.get(job.id) in groups:
            known.append((job.id, groups.index(taken[job.id])))
    prices, places = np.array(node.prices), np.array([n for _, n in known], dtype=np.intp)
    jobs = [name for name, _ in known]
    return RoundMemory(prices, prices <= 0, jobs, np.arange(len(jobs)), places)


def _places(instance: SiaInstance, plan: SiaPlan) -> Indices:
    """Return the option of each job, by its place among its own."""
    taken = {row.id: (row.type, row.gpus) for row in plan.jobs}
    pairs = zip(instance.jobs, instance.options, strict=True)
    groups = ((job.id, [(option.type, option.gpus) for option in own]) for job, own in pairs)
    return np.array([own.index(taken[name]) for name, own in groups], dtype=np.intp)


def _part(arrays: Round) -> Round:
    """Return a round of every eighth job, with an eighth of the capacities."""
    jobs = np.arange(0, len(arrays.jobs), SETTINGS.jobs_per_sample)
    is_in = np.zeros(len(arrays.jobs), dtype=np.bool_)
    is_in[jobs] = True
    options = is_in[arrays.job]
    return Round(
        jobs=[arrays.jobs[n] for n in jobs.tolist()],
        counts=arrays.counts[jobs],
        cost=arrays.cost[options],
        use=arrays.use[options],
        capacity=arrays.capacity * (len(jobs) / len(arrays.jobs)),
    )
