"""List scheduling (Graham, SIAM J. Applied Math. 1969): one round, one job after the other.

A rule sees free GPUs only. The order of `PalInstance.jobs` is the scheduler's (FIFO). With
admission "all" a rule that cannot place some job has no plan. With "optional" that job is left out
and the next ones are still tried (backfill), where the released PAL ends the round at the first
failure. Rewards are not looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.pal.plan import PalPlan, Placement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from optsched.pal.greedy.free_gpus import ClusterState, FreeGpus, Gang, Indices
    from optsched.pal.instance import PalInstance

    Rule = Callable[[FreeGpus, Gang], Indices | None]  # GPUs for a job; None if it cannot be


def keep_running(instance: PalInstance, state: ClusterState) -> dict[int, Indices]:
    """Let running jobs keep their GPUs where they can; return these by number of the job.

    A job whose GPUs may not all be used any more, or lie beyond its cap, counts as waiting.
    """
    held = ((n, state.held(job)) for n, job in enumerate(instance.jobs))
    chosen = {n: gpus for n, gpus in held if gpus is not None}
    for gpus in chosen.values():
        state.take(gpus)
    return chosen


def place(
    jobs: Sequence[Gang],
    state: FreeGpus,
    rule: Rule,
    chosen: dict[int, Indices] | None = None,
    order: Iterable[int] | None = None,
) -> dict[int, Indices]:
    """Place jobs in an order, that of `jobs` by default.

    Parameters
    ----------
    chosen
        GPUs of jobs that are placed already, by number of the job; none by default.

    Returns
    -------
    dict
        GPUs by number of the job; jobs that could not be placed are missing.
    """
    placed = dict(chosen or {})
    for n in range(len(jobs)) if order is None else order:
        if n in placed or state.free_count() < jobs[n].gpus:
            continue
        gpus = rule(state, jobs[n])
        if gpus is not None:
            state.take(gpus)
            placed[n] = gpus
    return placed


def place_with_preemption(
    jobs: Sequence[Gang], state: FreeGpus, rule: Rule, running: dict[int, Indices]
) -> dict[int, Indices]:
    """Place waiting jobs besides running ones, which may be preempted by those before them.

    Where a waiting job does not fit, running jobs behind it are preempted one by one from the end
    of the order until it does; they wait from then on, and are placed again when it is their turn.
    If it never fits they keep their GPUs.

    Parameters
    ----------
    running
        GPUs of running jobs by number of the job, in the order of `jobs`; not free in `state`.
    """
    placed = dict(running)
    for n, job in enumerate(jobs):
        if n in placed:
            continue
        gpus = rule(state, job)
        if gpus is None:
            later = [m for m in reversed(running) if m > n and m in placed]
            gpus = _preempting(state, job, rule, placed, later)
        if gpus is not None:
            state.take(gpus)
            placed[n] = gpus
    return placed


def _preempting(
    state: FreeGpus, job: Gang, rule: Rule, placed: dict[int, Indices], later: list[int]
) -> Indices | None:
    if state.free_count() + sum(len(placed[m]) for m in later) < job.gpus:
        return None
    for n, last in enumerate(later):
        state.release(placed[last])
        gpus = rule(state, job)
        if gpus is not None:
            for m in later[: n + 1]:
                del placed[m]
            return gpus
    for m in later:
        state.take(placed[m])
    return None


def longest_prefix(demands: Iterable[int], free: int) -> int:
    """Return how many jobs from the first on fit into so many GPUs together."""
    count = 0
    for gpus in demands:
        free -= gpus
        if free < 0:
            break
        count += 1
    return count


def class_order(instance: PalInstance) -> list[int]:
    """Return the jobs in the order of the released PAL.

    First the longest prefix of the scheduler's order whose gangs add up to no more than the free
    GPUs, sorted by class in the order of the profile (PAL's A, B, C, D: the most variable first)
    and otherwise as it was; then the rest, which the release never reaches.
    """
    prefix = longest_prefix((job.gpus for job in instance.jobs), len(instance.free_gpus))
    rank = {name: n for n, name in enumerate(instance.profile.classes)}
    first = sorted(range(prefix), key=lambda n: rank[instance.jobs[n].application_class])
    return [*first, *range(prefix, len(instance.jobs))]


def plan(instance: PalInstance, state: ClusterState, chosen: dict[int, Indices]) -> PalPlan | None:
    """Return the plan of chosen GPUs by number of the job; None if a job that must be is not."""
    if instance.admission == "all" and len(chosen) < len(instance.jobs):
        return None
    gpus = {n: sorted(numbers.tolist()) for n, numbers in chosen.items()}
    return PalPlan(
        jobs=tuple(
            Placement(id=job.id, gpus=tuple(map(state.gpus.__getitem__, gpus.get(n, ()))))
            for n, job in enumerate(instance.jobs)
        )
    )
