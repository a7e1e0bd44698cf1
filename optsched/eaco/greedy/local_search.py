"""Local search by moves and swaps (Aarts & Lenstra, Local Search in Comb. Optimization, 1997)."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from optsched.eaco.greedy import node_packing
from optsched.eaco.greedy.group_costs import Draft
from optsched.eaco.greedy.grouping import Grouping
from optsched.eaco.group_figures import JOULES_PER_KWH
from optsched.eaco.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from optsched.eaco.greedy.group_costs import GroupCosts

    Groups = tuple[Draft, ...]
    Step = tuple[Groups, Groups]  # before and after


def improved(grouping: Grouping, is_over: Callable[[], bool] = lambda: False) -> Grouping:
    """Return groups that no step makes cheaper, or those at the end of time or trials.

    Steps: a job goes to another group or to GPUs of its own, two jobs of different groups swap,
    two groups become one, a group goes to other nodes or another power level. The first step that
    helps is taken.

    Parameters
    ----------
    grouping
        Where to start.
    is_over
        Tells whether to stop.
    """
    estimates, drafts = grouping.estimates, dict.fromkeys(grouping.drafts)
    scale = sum(abs(estimates.cost(draft)) for draft in drafts)
    worth = (
        SETTINGS.step_gain * (scale + nodes_cost(estimates, _gpus(estimates, drafts)))
        + SETTINGS.step_gain_kwh
    )
    trials = itertools.count()
    has_moved = True
    while has_moved:
        has_moved = False
        for before, after in _steps(estimates, list(drafts)):
            if is_over() or next(trials) > SETTINGS.search_steps:
                has_moved = False
                break
            if not all(draft in drafts for draft in before):
                continue
            gain = _gain(estimates, drafts, before, after)
            if gain > worth and _has_nodes(estimates, drafts, before, after):
                for draft in before:
                    del drafts[draft]
                drafts |= dict.fromkeys(after)
                has_moved = True
    best = Grouping(estimates, drafts)
    best.wait(grouping.waiting)
    return best


def total(estimates: GroupCosts, drafts: Collection[Draft]) -> float:
    """Return what groups cost, with as few nodes as their GPUs need."""
    groups = sum(map(estimates.cost, drafts))
    return groups + nodes_cost(estimates, _gpus(estimates, drafts))


def nodes_cost(estimates: GroupCosts, used: dict[int, int]) -> float:
    """Return what the nodes around groups cost, by pool and GPUs, if they are filled."""
    instance = estimates.instance
    weight = (instance.energy_weight or 0.0) if instance.objective == "eaco" else 1.0
    joules = 0.0
    for pool, gpus in used.items():
        nodes, power = estimates.nodes[pool], estimates.nodes[pool].power
        count = -(-gpus // nodes.gpus)
        waking = float(power.wake_energy_j) - power.wake_s * power.sleep_w
        joules += max(0, count - nodes.awake) * waking
        if instance.objective == "epoch":
            empty = count * nodes.gpus - gpus
            watts = count * (power.base_w - power.sleep_w)
            watts += empty * estimates.gpus[nodes.gpu].power.bare_w
            joules += (instance.epoch_s or 0.0) * watts
    return weight * joules / JOULES_PER_KWH


def _gain(estimates: GroupCosts, drafts: Collection[Draft], before: Groups, after: Groups) -> float:
    """Return by how much the objective falls."""
    gain = sum(map(estimates.cost, before)) - sum(map(estimates.cost, after))
    old, new = _gpus(estimates, before), _gpus(estimates, after)
    if old == new:
        return gain
    used = _gpus(estimates, drafts)
    later = {p: used.get(p, 0) - old.get(p, 0) + new.get(p, 0) for p in used | new}
    return gain + nodes_cost(estimates, used) - nodes_cost(estimates, later)


def _has_nodes(
    estimates: GroupCosts, drafts: Collection[Draft], before: Groups, after: Groups
) -> bool:
    """Tell whether there are nodes for what a step leads to, and no location is taken twice."""
    later = [draft for draft in drafts if draft not in before] + list(after)
    taken = [draft.location for draft in later if draft.location is not None]
    if len(set(taken)) < len(taken):
        return False
    return all(node_packing.fits(estimates, later, pool) for pool in {d.nodes for d in after})


def _gpus(estimates: GroupCosts, drafts: Iterable[Draft]) -> dict[int, int]:
    """Return how many GPUs groups have on each pool."""
    used: dict[int, int] = {}
    for draft in drafts:
        used[draft.nodes] = used.get(draft.nodes, 0) + estimates.gang(draft)
    return used


# --- steps ------------------------------------------------------------------------------------


def _steps(estimates: GroupCosts, drafts: list[Draft]) -> Iterator[Step]:
    """Yield steps from groups as they are now; some may have changed when their turn comes."""
    for draft in drafts:
        yield from (((draft,), (other,)) for other in _elsewhere(estimates, draft))
        yield from _splits(estimates, draft)
    for one, two in itertools.combinations(drafts, 2):
        if estimates.gang(one) == estimates.gang(two):
            yield from _merges(estimates, one, two)
            yield from _moves(estimates, one, two)
            yield from _moves(estimates, two, one)
            yield from _swaps(estimates, one, two)


def _elsewhere(estimates: GroupCosts, draft: Draft) -> Iterator[Draft]:
    """Yield a group at other levels, on other nodes, and at the locations of its jobs."""
    levels = [None, *range(len(estimates.levels(draft)))]
    others = [draft._replace(level=level) for level in levels if level != draft.level]
    for pool in estimates.hosts[draft.jobs[0]]:
        others.append(Draft(draft.jobs, pool))
    for home in map(estimates.home, draft.jobs):
        if home is not None:
            level = draft.level if home[1] == draft.nodes else None
            others.append(Draft(draft.jobs, home[1], home[0], level))
    yield from (other for other in others if other != draft and estimates.allowed(other))


def _splits(estimates: GroupCosts, draft: Draft) -> Iterator[Step]:
    """Yield one job of a group on GPUs of its own."""
    for n in draft.jobs if len(draft.jobs) > 1 else ():
        rest = _without(draft, n)
        for pool in estimates.hosts[n]:
            alone = Draft((n,), pool)
            if estimates.allowed(alone) and estimates.allowed(rest):
                yield (draft,), (rest, alone)


def _merges(estimates: GroupCosts, one: Draft, two: Draft) -> Iterator[Step]:
    """Yield two groups as one, on the GPUs of either."""
    for kept in (one, two):
        whole = kept._replace(jobs=tuple(sorted((*one.jobs, *two.jobs))))
        if estimates.allowed(whole):
            yield (one, two), (whole,)


def _moves(estimates: GroupCosts, source: Draft, target: Draft) -> Iterator[Step]:
    """Yield one job of a group of several in another one."""
    for n in source.jobs if len(source.jobs) > 1 else ():
        wider = target._replace(jobs=tuple(sorted((*target.jobs, n))))
        rest = _without(source, n)
        if estimates.allowed(wider) and estimates.allowed(rest):
            yield (source, target), (rest, wider)


def _swaps(estimates: GroupCosts, one: Draft, two: Draft) -> Iterator[Step]:
    """Yield two groups after each has given one job to the other."""
    for a, b in itertools.product(one.jobs, two.jobs):
        first = one._replace(jobs=tuple(sorted((*(n for n in one.jobs if n != a), b))))
        second = two._replace(jobs=tuple(sorted((*(n for n in two.jobs if n != b), a))))
        if estimates.allowed(first) and estimates.allowed(second):
            yield (one, two), (first, second)


def _without(draft: Draft, job: int) -> Draft:
    return draft._replace(jobs=tuple(n for n in draft.jobs if n != job))
