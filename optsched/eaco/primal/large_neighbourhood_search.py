"""Large neighbourhood search (Shaw, CP 1998): groups are dissolved, and their jobs reoptimised.

Most of what a dive leaves above the relaxation is in a few groups of jobs that were left over. They
are drawn by that excess; others, some with jobs of like lengths and some at random, are dissolved
with them. No group that costs more above what its jobs pay than all of these together can help.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from optsched.eaco.primal.diving import fit, held
from optsched.eaco.settings import SETTINGS
from optsched.mip import highs

if TYPE_CHECKING:
    from collections.abc import Callable

    from optsched.documents.arrays import Floats, Indices
    from optsched.eaco.exact.column_generation import ColumnGeneration

    Clock = Callable[[], float | None]


def repaired(
    generation: ColumnGeneration, x: Floats, goal: float, seed: int, clock: Clock
) -> Floats:
    """Return how often each group of the program is in a better plan.

    Parameters
    ----------
    x
        The same of a plan that leaves no job out.
    goal
        Cost at which to stop.
    """
    rng, idle = np.random.default_rng(seed), 0
    x = np.append(x, np.zeros(len(generation.pool.cost) - len(x)))
    for trial in range(SETTINGS.lns_tries):
        cost, chosen = total(generation, x), np.flatnonzero(x)
        excess = generation.bound.duals.reduced(generation.pool.take(chosen)) * x[chosen]
        is_idle = idle > SETTINGS.lns_patience
        if cost <= goal or excess.sum() <= SETTINGS.lns_gain * abs(cost) or clock() == 0 or is_idle:
            break
        alike = SETTINGS.lns_alike[trial % 3]
        free = _drawn(generation, chosen, np.maximum(excess, 0.0), alike, rng)
        free, slack = chosen[free], float(excess[free].sum())
        left = held(generation.pool.members[free], x[free], len(generation.frame.copies))
        x = _reoptimised(generation, x, free, left, slack, seed, clock)
        idle = 0 if total(generation, x) < cost * (1 - SETTINGS.lns_gain) else idle + 1
        if len(free) == len(chosen):
            break
    return x


def repaired_by_gangs(
    generation: ColumnGeneration, x: Floats, goal: float, seed: int, clock: Clock
) -> Floats:
    """Return how often each group of the program is in a plan whose jobs are parted anew.

    All jobs of a gang size at once, first those whose groups cost most above what they pay; sizes
    at which little can be gained stay as they are.

    Parameters
    ----------
    x, goal
        As of `repaired`.
    """
    x = np.append(x, np.zeros(len(generation.pool.cost) - len(x)))
    sizes, excess = _excess(generation, x)
    for n in np.argsort(-excess, kind="stable").tolist():
        above = total(generation, x) - goal
        if above <= 0 or excess[n] <= SETTINGS.lns_least_share * above or clock() == 0:
            break
        chosen = np.flatnonzero(x)
        free = chosen[generation.pool.gang[chosen] == sizes[n]]
        left = np.where(generation.gangs == sizes[n], generation.frame.copies, 0.0)
        x = _reoptimised(generation, x, free, left, float(excess[n]), seed, clock)
    return x


def _excess(generation: ColumnGeneration, x: Floats) -> tuple[Indices, Floats]:
    """Return the gang sizes, and what the jobs of each cost above what they pay."""
    duals, frame = generation.bound.duals, generation.frame
    sizes, of = np.unique(generation.gangs, return_inverse=True)
    chosen = np.flatnonzero(x)
    plan = generation.pool.take(chosen)
    where, too_much = np.searchsorted(sizes, plan.gang), duals.reduced(plan) * x[chosen]
    above = np.bincount(where, too_much, minlength=len(sizes)).astype(float)
    waiting = frame.copies - held(plan.members, x[chosen], len(frame.copies))
    worth = np.where(frame.must, 0.0, frame.waiting) - duals.jobs
    return sizes, above + np.bincount(of, np.maximum(waiting * worth, 0.0), minlength=len(sizes))


def total(generation: ColumnGeneration, x: Floats) -> float:
    """Return what a plan costs, with waiting jobs and nodes."""
    frame = generation.frame
    waiting = np.where(frame.must, 0.0, frame.waiting)
    others = np.concatenate([waiting, frame.node_cost, frame.wake_cost])
    return float(generation.pool.cost[: len(x)] @ x + others @ _others(generation, x))


def keeps_cap(generation: ColumnGeneration, x: Floats) -> bool:
    """Tell whether a plan draws no more than the power cap leaves."""
    frame, pools = generation.frame, len(generation.frame.gpus)
    if not np.isfinite(frame.headroom_w):
        return True
    used = _others(generation, x)[len(frame.copies) : len(frame.copies) + pools]
    return bool(generation.pool.watts[: len(x)] @ x + frame.node_w @ used <= frame.headroom_w)


def _drawn(
    generation: ColumnGeneration,
    chosen: Indices,
    excess: Floats,
    alike: int,
    rng: np.random.Generator,
) -> Indices:
    """Return which groups to dissolve: one drawn by its excess, some like it, some at random."""
    anchor = rng.choice(len(chosen), p=excess / excess.sum())
    longest = np.append(generation.lengths, -np.inf)[generation.pool.members[chosen]].max(axis=1)
    far = np.abs(longest - longest[anchor]) * rng.uniform(0.5, 1.0, len(chosen))
    far[anchor] = -1.0
    order, first = np.argsort(far, kind="stable"), max(alike, 1)
    return np.concatenate([order[:first], rng.permutation(order[first:])])[: SETTINGS.lns_dissolved]


def _reoptimised(
    generation: ColumnGeneration,
    x: Floats,
    free: Indices,
    left: Floats,
    slack: float,
    seed: int,
    clock: Clock,
) -> Floats:
    """Return the plan with the jobs that are left by all but some groups in others, if better."""
    generation.add(generation.among(generation.bound.duals, left, slack))
    pool = generation.pool
    x = np.append(x, np.zeros(len(pool.cost) - len(x)))
    near = _cheapest(generation, np.flatnonzero(fit(pool.members, left)), slack)
    kept = np.setdiff1d(np.flatnonzero(x), free)
    at = np.concatenate([kept, np.union1d(near, free)])
    program = generation.master.whole(pool.take(at))
    start = np.concatenate([_others(generation, x), x[at]])
    lower = program.lower.copy()
    lower[len(start) - len(at) :][: len(kept)] = x[kept]
    outcome = highs.solve(
        replace(program, lower=lower),
        time_limit_s=clock(),
        gap=SETTINGS.lns_gain,
        most_nodes=SETTINGS.lns_nodes,
        seed=seed,
        start=start,
        restarts=False,
    )
    if outcome.x is None or outcome.objective >= program.cost @ start:
        return x
    better = np.zeros(len(x))
    better[at] = np.rint(outcome.x[len(start) - len(at) :])
    return better


def _cheapest(generation: ColumnGeneration, which: Indices, slack: float) -> Indices:
    """Return those groups that cost least above what their jobs pay, of each size."""
    pool = generation.pool.take(which)
    reduced = generation.bound.duals.reduced(pool)
    size, chosen = (pool.members < len(generation.frame.copies)).sum(axis=1), []
    for k in range(1, pool.members.shape[1] + 1):
        same = np.flatnonzero((size == k) & (reduced < slack))
        is_full = k == pool.members.shape[1]
        most = SETTINGS.lns_full_groups if is_full else SETTINGS.lns_smaller_groups
        chosen.append(which[same[np.argsort(reduced[same], kind="stable")[:most]]])
    return np.concatenate(chosen)


def _others(generation: ColumnGeneration, x: Floats) -> Floats:
    """Return the values of the columns that are no groups: waiting jobs, nodes used and woken."""
    pool, frame = generation.pool, generation.frame
    waiting = frame.copies - held(pool.members[: len(x)], x, len(frame.copies))
    on = pool.pool[: len(x)]
    gpus = np.bincount(on, weights=pool.gang[: len(x)] * x, minlength=len(frame.gpus))
    used = np.ceil(gpus / frame.gpus)
    return np.concatenate([waiting, used, np.maximum(used - frame.awake, 0.0)])
