"""Simple rules for sharing GPUs that a user would try; the order and what is compared are given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.eaco.greedy.group_costs import Draft
from optsched.eaco.greedy.grouping import Grouping

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from optsched.eaco.greedy.group_costs import GroupCosts

    Change = tuple[Draft | None, Draft]  # a group before, if it was there, and after


def best_fit(estimates: GroupCosts) -> Grouping:
    """Put each job, in the order of the queue, where least memory is left; if nowhere, alone.

    Running jobs stay; a job without room waits, and the queue goes on.
    """

    def memory_left(change: Change) -> float:
        after = change[1]
        gpu = estimates.gpus[estimates.pool(after).gpu]
        return gpu.memory_gb - estimates.memory_gb(after)

    grouping = Grouping.running(estimates)
    for job in grouping.queue():
        shared = list(_shared(grouping, job))
        alone = grouping.alone(job)
        changes = shared or ([(None, alone)] if alone else [])
        _make_best(grouping, job, changes, memory_left)
    return grouping


def best_delta_energy(estimates: GroupCosts) -> Grouping:
    """Put each job, in the order of the queue, where the objective rises least, alone or not.

    Running jobs stay; a job without room waits, and the queue goes on. Waking nodes is not counted.
    """

    def rise(change: Change) -> float:
        before, after = change
        return estimates.cost(after) - (estimates.cost(before) if before else 0.0)

    grouping = Grouping.running(estimates)
    for job in grouping.queue():
        alone: list[Change] = [(None, draft) for draft in grouping.new_groups(job)]
        _make_best(grouping, job, [*_shared(grouping, job), *alone], rise)
    return grouping


def _shared(grouping: Grouping, job: int) -> Iterator[Change]:
    """Yield what can become of each group with one more job."""
    for draft in grouping.drafts:
        wider = grouping.beside(draft, job)
        if wider is not None:
            yield draft, wider


def _make_best(
    grouping: Grouping, job: int, changes: list[Change], worth: Callable[[Change], float]
) -> None:
    """Make the first of the least changes; without any the job waits."""
    if not changes:
        grouping.wait([job])
        return
    before, after = min(changes, key=worth)
    if before is None:
        grouping.drafts.append(after)
    else:
        grouping.replace(before, after)


def longest_first(estimates: GroupCosts) -> Grouping:
    """Open a group with the job that has most left, and add the next longest that it pays to add.

    Jobs of a group then end at nearly the same time, which is worth more than how well they get on.
    It pays if the objective rises by less than with that job alone. A job for which there is no
    room joins the group where the objective rises least, or waits.
    """
    return _longest_first(estimates, pays=_is_cheaper)


def longest_first_full(estimates: GroupCosts) -> Grouping:
    """Do as `longest_first`, but add jobs whether it pays or not: this takes fewest GPUs."""
    return _longest_first(estimates, pays=lambda *_: True)


def _longest_first(
    estimates: GroupCosts, pays: Callable[[Grouping, Draft, Draft, int], bool]
) -> Grouping:
    grouping = Grouping.from_scratch(estimates)
    left = sorted(grouping.queue(), key=lambda n: -_time_left(estimates, n))
    late: list[int] = []
    while left:
        job = left.pop(0)
        draft = grouping.alone(job)
        if draft is None:
            late.append(job)
            continue
        grouping.drafts.append(draft)
        for other in list(left):
            if len(draft.jobs) == estimates.instance.max_jobs_per_gpu:
                break
            wider = grouping.beside(draft, other)
            if wider is not None and pays(grouping, draft, wider, other):
                grouping.replace(draft, wider)
                draft = wider
                left.remove(other)
    for job in late:
        _make_best(
            grouping,
            job,
            list(_shared(grouping, job)),
            lambda change: estimates.cost(change[1]) - estimates.cost(change[0] or change[1]),
        )
    return grouping


def _is_cheaper(grouping: Grouping, before: Draft, after: Draft, job: int) -> bool:
    alone = grouping.alone(job)
    cost = grouping.estimates.cost
    return alone is None or cost(after) < cost(before) + cost(alone)


def _time_left(estimates: GroupCosts, job: int) -> float:
    """Return how long a job takes alone on the fastest GPUs that it fits, moved if it runs."""
    return estimates.work_s(job, Draft((job,), estimates.hosts[job][0]))
