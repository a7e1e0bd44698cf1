"""The method "pods": parts of a large cluster by themselves, under prices that hold for all of it.

The cluster is divided into pods of about a thousand GPUs that stand together. For the bound each
pod solves the relaxation for its *share* of every type of jobs, fractions of jobs and all; pods
that are alike then agree on prices, and the Lagrangian value of all prices together is a bound for
the whole cluster (any prices are). For the plan each type's jobs are dealt out evenly, and each pod
places its own by the exact method's relaxation, rounding and dives. Last, some jobs at a time are
placed anew wherever they are.

The pods are those of POP (Narayanan et al., SOSP'21), which has no bound; with whole jobs instead
of shares pods disagree on prices, and the bound is ten times as far away.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.linear import LinearProgram
from optsched.pal.arrays import arrays
from optsched.pal.cases import Prices
from optsched.pal.division import Pod, divided
from optsched.pal.exact import PENALTY, Prover, exact, place_parts_anew, start
from optsched.pal.lagrange import Lagrangian
from optsched.pal.plan import PalCertificate, PalPlan
from optsched.pal.relaxation import labels, relaxation
from optsched.solve import Infeasible, Search

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from optsched.pal.arrays import Arrays
    from optsched.pal.instance import Job, PalInstance

    Floats = NDArray[np.float64]

LARGE = 2048  # GPUs, beyond which the whole relaxation takes longer than its pods
POD_GPUS = 1024
GANGS = 4  # a pod holds at least so many of the largest gang
MOST_TYPES = 200  # with more types than that a pod gets whole jobs, not shares of every type
ROOT_GAP = 5e-3


def by_size(instance: PalInstance, search: Search) -> PalCertificate | None:
    """Solve by `exact`, or by `pods` where the cluster is large.

    Raises
    ------
    Infeasible
        If hard caps or the number of GPUs leave no room for all jobs.
    """
    is_large = len(instance.free_gpus) > LARGE
    return (pods if is_large else exact)(instance, search)


def pods(instance: PalInstance, search: Search) -> PalCertificate | None:
    """Place the jobs pod by pod, and bound the cost by prices for the whole cluster.

    Raises
    ------
    Infeasible
        If hard caps or the number of GPUs leave no room for all jobs.
    """
    largest = max(job.gpus for job in instance.jobs)
    division = divided(instance, max(POD_GPUS, GANGS * largest))
    if len(division) < 2:
        return exact(instance, search)
    search.has_floor = False  # greedy rules take longer than the pods, which begin with one each
    whole = Whole(instance)
    _place(whole, division, search)
    if search.plan is None:
        return exact(instance, search)
    bound = whole.bound(_prices(whole, division, search))
    search.certificate = whole.certificate(bound, search)
    place_parts_anew(instance, search, lambda: _is_closed(bound.value, search))
    return whole.certificate(bound, search)


class Bound(NamedTuple):
    """GPU prices, and the Lagrangian value that they prove."""

    prices: Floats
    value: float


class Whole:
    """The whole cluster as arrays, and what prices prove for it."""

    def __init__(self, instance: PalInstance) -> None:
        self.instance = instance
        self.problem = arrays(instance)
        self.labels = labels(self.problem)
        self._reward = np.array([jobs.reward for jobs in self.problem.types])
        self._lagrangian = Lagrangian(self.problem, self.labels, self._reward)

    def bound(self, prices: Floats) -> Bound:
        """Return what GPU prices prove, or no prices at all if that is more."""
        none = np.zeros_like(prices)
        return max((self._bound(each) for each in (none, prices)), key=lambda bound: bound.value)

    def _bound(self, prices: Floats) -> Bound:
        extra = np.zeros(len(self.labels.type))
        return Bound(prices, self._lagrangian.options(prices, extra, 0.0).value)

    def certificate(self, bound: Bound, search: Search) -> PalCertificate:
        """Return the prices as a certificate."""
        assert search.objective is not None
        leaf = Prices(bound.prices, (), {}).leaf({})
        return PalCertificate(bound=min(bound.value, search.objective), nodes=(leaf,))


def _is_closed(bound: float, search: Search) -> bool:
    assert search.objective is not None
    return search.objective - bound <= search.gap * search.objective


# --- prices -----------------------------------------------------------------------------------


def _prices(whole: Whole, division: Sequence[Pod], search: Search) -> Floats:
    """Return the prices of all GPUs, as the pods see them; zero where time runs out."""
    prices = np.zeros(len(whole.problem.gpus))
    few_types = len(whole.problem.types) <= MOST_TYPES
    assert search.objective is not None
    known: dict[object, Floats] = {}
    for pod in division:
        if pod.kind not in known:
            if search.out_of_time():
                return prices
            jobs = whole.instance.jobs if few_types else pod.jobs
            solved = _pod_prices(whole, pod, jobs, search)
            if solved is None:
                return prices
            known[pod.kind] = solved
        prices[pod.gpus] = known[pod.kind]
    return prices


def _pod_prices(whole: Whole, pod: Pod, jobs: Sequence[Job], search: Search) -> Floats | None:
    """Return the prices of a pod's GPUs if it runs its share of some jobs; None without time."""
    part = pod.instance(whole.instance, jobs)
    problem = arrays(part)
    assert search.objective is not None
    penalty = PENALTY * search.objective / len(whole.instance.jobs)
    reward = np.array([min(jobs.reward, penalty) for jobs in problem.types])
    found = labels(problem)
    if not len(found.type):
        return np.zeros(len(pod.gpus))
    program = relaxation(problem, found, reward)
    count = len(problem.types)
    if len(jobs) > len(pod.jobs):
        shares = np.array(list(_shares(whole.instance, problem, pod)))
        row_lower, row_upper = program.row_lower.copy(), program.row_upper.copy()
        row_lower[:count] = row_upper[:count] = shares
        program = replace(program, row_lower=row_lower, row_upper=row_upper)
    solved = LinearProgram(program, search.seed).solve(search.seconds_left())
    if solved is None:
        return None
    duals = solved.row_duals[count : count + len(problem.gpus)]
    return np.maximum(-duals, 0.0)[pod.rank]


def _shares(instance: PalInstance, problem: Arrays, pod: Pod) -> Iterator[float]:
    """Yield how many jobs of each type a pod runs: those that are there, and a share of others."""
    staying = Counter(stay.type for stay in problem.stays)
    for t, jobs in enumerate(problem.types):
        elsewhere = sum(instance.jobs[n].id in pod.rooted for n in jobs.jobs) - staying[t]
        yield staying[t] + (len(jobs.jobs) - staying[t] - elsewhere) * pod.share


# --- plans ------------------------------------------------------------------------------------


def _place(whole: Whole, division: Sequence[Pod], search: Search) -> None:
    """Offer the plan in which each pod places the jobs that were dealt to it."""
    gpus_of: dict[str, tuple[str, ...]] = {}
    known: dict[object, list[tuple[int, ...]]] = {}
    names = np.array(whole.problem.gpus)
    for pod in division:
        key = pod.kind, pod.demand
        if key not in known:
            placed = _placed(whole.instance, pod, search)
            if placed is None:
                return
            known[key] = placed
        for job, inside in zip(pod.jobs, known[key], strict=True):
            gpus_of[job.id] = tuple(names[pod.gpus[list(inside)]].tolist())
    placements = [{"id": job.id, "gpus": gpus_of[job.id]} for job in whole.instance.jobs]
    search.offer(PalPlan.model_validate({"jobs": placements}))


def _placed(instance: PalInstance, pod: Pod, search: Search) -> list[tuple[int, ...]] | None:
    """Return the GPUs of each job of a pod, by position in `gpus`; None if they find no place."""
    part = pod.instance(instance, pod.jobs)
    inner = Search(part, search.seconds_left(), ROOT_GAP, search.seed)
    try:
        start(part, inner)
    except Infeasible:
        return None
    if inner.plan is None:
        return None
    if pod.jobs and not search.out_of_time():
        prover = Prover(part, inner)
        if len(prover.labels.type):  # else no job fits in here
            prover.root()
    order = np.argsort(pod.rank).tolist()
    position = {gpu: order[n] for n, gpu in enumerate(part.free_gpus)}
    assert isinstance(inner.plan, PalPlan)
    return [tuple(position[gpu] for gpu in placed.gpus) for placed in inner.plan.jobs]
