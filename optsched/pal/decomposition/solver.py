"""The method "pods": parts of a large cluster by themselves, under prices that hold for all of it.

The cluster is divided into pods of about a thousand GPUs that stand together. For the bound each
pod solves the relaxation for its *share* of every type of jobs, fractions of jobs and all; pods
that are alike then agree on prices, and the Lagrangian value of all prices together is a bound for
the whole cluster (any prices are). For the plan each type's jobs are dealt out evenly, and each pod
places its own by the exact method's relaxation, rounding and dives. Last, jobs that pay far more
than the prices ask for are placed anew, and then some jobs at a time, wherever they are.

The pods are those of POP (Narayanan et al., SOSP'21), which has no bound; with whole jobs instead
of shares pods disagree on prices, and the bound is ten times as far away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.pal.decomposition.partition import Pod, divided
from optsched.pal.decomposition.subproblems import Placing, Pricing, results
from optsched.pal.exact.arrays import arrays
from optsched.pal.exact.lagrangian_bound import Lagrangian
from optsched.pal.exact.relaxation import labels
from optsched.pal.exact.reoptimisation import place_parts_anew
from optsched.pal.exact.solver import PENALTY, WholeProver, exact
from optsched.pal.exact.warm_start import Left, Proof, best_known, carried, of_gpus
from optsched.pal.exact.worst_removal import Fees, place_dear_anew
from optsched.pal.greedy.fast_fallback import KINDS_S, PODS_S, begin, hurried, is_hurried
from optsched.pal.node_classes.solver import by_kinds, few_kinds
from optsched.pal.plan import PalCertificate, PalPlan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from optsched.pal.exact.warm_start import Known
    from optsched.pal.instance import PalInstance
    from optsched.results.result import Result
    from optsched.search import Search

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]

LARGE = 2048  # GPUs, beyond which the whole relaxation takes longer than its pods
POD_GPUS = 1024
GANGS = 4  # a pod holds at least so many of the largest gang
FEW_OPTIONS = 20_000  # labels that plans may need: with fewer the whole relaxation is quick
MOST_TYPES = 200  # with more types than that a pod gets whole jobs, not shares of every type
ROOT_GAP = 5e-3
FEW_PARTS = 4  # placed anew in vain, after which the bound must be what keeps a gap open


def by_size(instance: PalInstance, search: Search) -> PalCertificate | None:
    """Solve by `exact`; where the cluster is large by `kinds`, or `pods` if there are many kinds.

    A time limit that is too short for either gets what `fast_fallback` does.

    Raises
    ------
    Infeasible
        If hard caps or the number of GPUs leave no room for all jobs.
    """
    if len(instance.free_gpus) <= LARGE:
        return exact(instance, search)
    nodes = few_kinds(instance, search)
    if is_hurried(instance, search, PODS_S if nodes is None else KINDS_S):
        certificate = hurried(instance, search)
        if certificate is not None:
            return certificate
    return pods(instance, search) if nodes is None else by_kinds(instance, search, nodes)


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
    search.gave_up = (
        f"the prices of {len(division)} pods prove no more, and placing jobs anew gained no more"
    )
    certificate = _divided(Whole(instance), division, search)
    search.out_of_time()  # parts may have been cut short
    return certificate


def _divided(whole: Whole, division: Sequence[Pod], search: Search) -> PalCertificate | None:
    instance = whole.instance
    search.state = Left(whole.problem.gpus)
    resumed = None if search.start is None else _resumed(whole, search.start, division, search)
    if resumed is not None and _is_closed(resumed.value, search):
        return whole.certificate(resumed, search)
    begin(instance, search)
    if search.plan is not None and whole.options(whole.unpriced(), search) < FEW_OPTIONS:
        return exact(instance, search)
    priced = _place(whole, division, search)
    if search.plan is None:
        return exact(instance, search)
    bound = resumed or whole.bound(_prices(whole, division, priced, search))
    search.certificate = whole.certificate(bound, search)
    place_dear_anew(instance, search, whole.fees(bound), lambda: _is_closed(bound.value, search))
    if not _is_closed(bound.value, search) and whole.options(bound, search) < FEW_OPTIONS:
        return whole.proven(bound, search)
    place_parts_anew(instance, search, lambda: _is_closed(bound.value, search))
    if not _is_closed(bound.value, search) and whole.options(bound, search) < FEW_OPTIONS:
        return whole.proven(bound, search)
    return whole.certificate(bound, search)


def _resumed(
    whole: Whole, start: Result, division: Sequence[Pod], search: Search
) -> DecompositionBound | None:
    """Begin with the epoch before, and do no more than it takes to close the gap.

    Returns
    -------
    Bound | None
        None without a plan, when everything is to be done as if there had been no epoch before.
    """
    instance, problem = whole.instance, whole.problem
    packing, new = carried(instance, problem, start)
    search.offer(packing.plan(instance))
    if search.plan is None:
        return None
    bound = whole.bound_before(start, search)
    search.certificate = whole.certificate(bound, search)
    if _is_closed(bound.value, search):
        return bound
    place_dear_anew(instance, search, whole.fees(bound), lambda: _is_closed(bound.value, search))
    if _is_closed(bound.value, search):
        return bound
    packing.reinsert()
    search.offer(packing.plan(instance))
    names = [instance.jobs[n].id for n in new]
    place_parts_anew(instance, search, lambda: _is_closed(bound.value, search), FEW_PARTS, names)
    if _is_closed(bound.value, search):
        return bound
    bound = max(
        bound, whole.bound(_prices(whole, division, {}, search)), key=lambda each: each.value
    )
    search.certificate = whole.certificate(bound, search)
    place_parts_anew(instance, search, lambda: _is_closed(bound.value, search), around=names)
    return bound


class DecompositionBound(NamedTuple):
    """Prices, and the Lagrangian value that they prove."""

    known: Known
    value: float


class PricedBlock(NamedTuple):
    """A pod, and the prices of its GPUs by number."""

    pod: Pod
    prices: Floats


class Whole:
    """The whole cluster as arrays, and what prices prove for it."""

    def __init__(self, instance: PalInstance) -> None:
        self.instance = instance
        self.problem = arrays(instance)
        self.labels = labels(self.problem)
        self._reward = np.array([jobs.reward for jobs in self.problem.types])
        self._lagrangian = Lagrangian(self.problem, self.labels, self._reward)

    def bound(self, prices: Floats) -> DecompositionBound:
        """Return what GPU prices prove, or no prices at all if that is more."""
        found = (self._bound(of_gpus(each)) for each in (np.zeros_like(prices), prices))
        return max(found, key=lambda bound: bound.value)

    def unpriced(self) -> DecompositionBound:
        """Return what no prices prove: that each job costs what it would cost alone."""
        return self._bound(of_gpus(np.zeros(len(self.problem.gpus))))

    def options(self, bound: DecompositionBound, search: Search) -> int:
        """Return how many labels and stays a plan that is better by the gap may use.

        At the prices of the bound any plan with one of the others costs too much. Even without
        prices these are nearly all, where jobs are few or it is dear to move them.
        """
        assert search.objective is not None
        goal = search.objective * (1 - search.gap)
        return int((~self._lagrangian.too_dear(self._proof(bound).options, goal)).sum())

    def proven(self, bound: DecompositionBound, search: Search) -> PalCertificate | None:
        """Grow one tree for the whole cluster, without what the prices of the bound rule out."""
        prover = WholeProver(self.instance, search)
        prover.begin_with(self._proof(bound))
        return prover.prove()

    def bound_before(self, start: Result, search: Search) -> DecompositionBound:
        """Return what prices of the epoch before prove, or no prices at all if that is more."""
        assert search.objective is not None
        none = self.unpriced()
        parts = self.instance, self.problem, self.labels, self._lagrangian
        best = best_known(*parts, start, search.objective)
        if best is None or best.options.value <= none.value:
            return none
        return DecompositionBound(best.known, best.options.value)

    def fees(self, bound: DecompositionBound) -> Fees:
        """Return what jobs pay at the prices of a bound."""
        return Fees(self.problem, self.labels, self._proof(bound))

    def _proof(self, bound: DecompositionBound) -> Proof:
        options = bound.known.options(self.problem, self.labels, self._lagrangian)
        return Proof(bound.known, options)

    def _bound(self, known: Known) -> DecompositionBound:
        return DecompositionBound(
            known, known.options(self.problem, self.labels, self._lagrangian).value
        )

    def certificate(self, bound: DecompositionBound, search: Search) -> PalCertificate:
        """Return the prices as a certificate."""
        assert search.objective is not None
        value = min(bound.value, search.objective)
        return bound.known.certificate(self.instance, self.problem, value)


def _is_closed(bound: float, search: Search) -> bool:
    assert search.objective is not None
    return search.objective - bound <= search.gap * search.objective


# --- pods -------------------------------------------------------------------------------------


def _place(whole: Whole, division: Sequence[Pod], search: Search) -> dict[object, PricedBlock]:
    """Offer the plan in which each pod places the jobs that were dealt to it; return prices."""
    first = {(pod.kind, pod.demand): pod for pod in reversed(division)}
    kinds = dict.fromkeys((pod.kind, pod.demand) for pod in division)
    tasks = [_placing(whole, first[kind], search) for kind in kinds]
    known: dict[object, list[Indices]] = {}
    priced: dict[object, PricedBlock] = {}
    for kind, placed in zip(kinds, results(tasks, search), strict=True):
        if placed is None:
            return {}
        order = np.argsort(first[kind].open)
        known[kind] = [order[list(inside)] for inside in placed.places]
        if placed.prices is not None:
            priced.setdefault(kind[0], PricedBlock(first[kind], placed.prices))
    gpus_of = {job.id: job.current for job in division[0].stays}
    names = np.array(whole.problem.gpus)
    for pod in division:
        for job, inside in zip(pod.jobs, known[pod.kind, pod.demand], strict=True):
            gpus_of[job.id] = tuple(names[pod.open[inside]].tolist())
    placements = [{"id": job.id, "gpus": gpus_of[job.id]} for job in whole.instance.jobs]
    search.offer(PalPlan.model_validate({"jobs": placements}))
    return priced


def _prices(
    whole: Whole, division: Sequence[Pod], known: dict[object, PricedBlock], search: Search
) -> Floats:
    """Return the prices of all GPUs, as the pods see them; zero where time runs out."""
    first = {pod.kind: pod for pod in reversed(division) if pod.kind not in known}
    tasks = [_pricing(whole, pod, search) for pod in first.values()]
    priced = dict(known)
    for pod, found in zip(first.values(), results(tasks, search), strict=True):
        if found is not None:
            priced[pod.kind] = PricedBlock(pod, found)
    prices = np.zeros(len(whole.problem.gpus))
    for pod in division:
        if pod.kind in priced:
            like, inside = priced[pod.kind]
            prices[pod.gpus] = inside[like.rank]
    return prices


def _placing(whole: Whole, pod: Pod, search: Search) -> Placing:
    part = pod.to_place(whole.instance)
    return Placing(part, _pricing(whole, pod, search), ROOT_GAP)


def _pricing(whole: Whole, pod: Pod, search: Search) -> Pricing:
    instance, penalty = whole.instance, np.inf
    if search.objective is not None:
        penalty = PENALTY * search.objective / len(instance.jobs)
    if len(whole.problem.types) > MOST_TYPES:
        return Pricing(pod.instance(instance, pod.jobs), 1.0, penalty, search.seed)
    own = {job.id for job in pod.jobs}
    others = (job for job in instance.jobs if job.id not in own and job.id not in pod.rooted)
    part = pod.instance(instance, [*pod.jobs, *others])  # types in the order of the pod's own
    return Pricing(part, pod.share, penalty, search.seed)
