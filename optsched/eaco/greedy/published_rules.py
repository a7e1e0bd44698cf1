"""Published rules for sharing GPUs: FIFO, FIFO_packed, Gandiva twice, EaCO and Lucid's labels.

All keep the instance's rules, which most of the sources do not know: a partner is one that memory,
tolerances and deadlines allow. The order of `EacoInstance.jobs` is the queue's. Where a source says
nothing of running jobs they stay where they are. All run at full power.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from optsched.eaco.greedy.grouping import Grouping

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from optsched.eaco.greedy.group_costs import Draft, GroupCosts


@dataclass(frozen=True)
class PublishedThresholds:
    """Figures of the sources.

    Attributes
    ----------
    packed_from
        FIFO_packed: the sum of rates that a pair must exceed.
    kept_from
        Gandiva: the sum of rates from which a pair is kept, what jobs get by taking turns.
    jumbo, tiny
        Lucid: mean speeds beside others, below which the label is 2, or 1.
    labels
        Lucid: greatest sum of labels of a pair.
    """

    packed_from: float = 1.5
    kept_from: float = 1.0
    jumbo: float = 0.85
    tiny: float = 0.95
    labels: int = 2


THRESHOLDS = PublishedThresholds()


def fifo(estimates: GroupCosts) -> Grouping:
    """Give each job GPUs of its own, in the order of the queue, up to the first that finds none.

    Source: Gavel's `fifo`, called the default by EaCO. There a worker type is drawn among the free
    ones; here the fastest one is taken.
    """
    grouping = Grouping.running(estimates)
    grouping.wait(_exclusively(grouping))
    return grouping


def _exclusively(grouping: Grouping) -> list[int]:
    """Place jobs alone up to the first that finds no room; return that and those behind it."""
    queue = grouping.queue()
    for place, job in enumerate(queue):
        draft = grouping.alone(job)
        if draft is None:
            return queue[place:]
        grouping.drafts.append(draft)
    return []


def fifo_packed(estimates: GroupCosts) -> Grouping:
    """Place jobs alone until GPUs run out, then beside the single job of the greatest sum of rates.

    Only pairs whose rates sum to more than 1.5; a job without such a partner ends the round. All
    is decided from scratch; a running job is moved only if its GPUs are not to be had.

    Source: Gavel's policies/fifo.py @c4fa4009, FIFO_packed in EaCO.
    """
    grouping = Grouping.from_scratch(estimates)
    queue = _exclusively(grouping)
    for place, job in enumerate(queue):
        pairs = [(old, new) for old, new in _pairs(grouping, job)]
        best = max(pairs, key=lambda pair: throughput(estimates, pair[1]), default=None)
        if best is None or throughput(estimates, best[1]) <= THRESHOLDS.packed_from:
            grouping.wait(queue[place:])
            break
        grouping.replace(*best)
    return grouping


def throughput(estimates: GroupCosts, draft: Draft) -> float:
    """Return the sum of the rates of a group's jobs, while all run."""
    speeds = estimates.mix(draft).speeds
    return sum(speeds[estimates.jobs[n].type] for n in draft.jobs)


def _pairs(grouping: Grouping, job: int) -> Iterator[tuple[Draft, Draft]]:
    """Yield the groups of one job, and what they become with another job."""
    for draft in grouping.drafts:
        if len(draft.jobs) == 1:
            wider = grouping.beside(draft, job)
            if wider is not None:
                yield draft, wider


def gandiva_gavel(estimates: GroupCosts, seed: int) -> Grouping:
    """Pair jobs at random if not all of them get GPUs of their own, and undo pairs that lose.

    A pair whose rates sum to less than 1 is undone, and its jobs drawn again, as often as there are
    jobs; pairs that run now stay if they do not lose. Pairs, then single jobs that found none, get
    GPUs in the order of the queue.

    Source: Gavel's policies/gandiva.py @c4fa4009, with which EaCO compares. There all combinations
    take turns on the GPUs; here those that find no room wait.
    """
    grouping = fifo(estimates)
    if not grouping.waiting:
        return grouping
    running = Grouping.running(estimates).drafts
    pairs = [draft for draft in running if len(draft.jobs) > 1]
    kept = [pair for pair in pairs if throughput(estimates, pair) >= THRESHOLDS.kept_from]
    paired = Grouping.from_scratch(estimates, kept)
    for pair in sorted(_random_pairs(paired, random.Random(seed))):
        first = paired.alone(pair[0])
        both = paired.beside(first, pair[1]) if first and len(pair) == 2 else first
        if both is None:
            paired.wait(pair)
        else:
            paired.drafts.append(both)
    return paired


def _random_pairs(grouping: Grouping, generator: random.Random) -> Iterator[tuple[int, ...]]:
    """Yield all jobs that are in no group: pairs that do not lose, and those that found none."""
    free = grouping.queue()
    for _ in range(len(free)):
        if len(free) < 2:
            break
        two = sorted(generator.sample(free, 2))
        first = grouping.alone(two[0])
        both = grouping.beside(first, two[1]) if first else None
        if both and throughput(grouping.estimates, both) >= THRESHOLDS.kept_from:
            free = [n for n in free if n not in two]
            yield tuple(two)
    yield from ((n,) for n in free)


def gandiva(estimates: GroupCosts) -> Grouping:
    """If not all jobs get GPUs of their own, pack the least busy one onto the least busy GPUs.

    First jobs get GPUs of their own as in `fifo`, where they are profiled. The others follow, the
    one of the least utilisation first, each to the GPUs of the least utilisation that are allowed
    and where the rates then sum to more than 1, what time slicing gives; else the next ones.

    Source: Gandiva, OSDI'18, as other schedulers' notes quote it. There jobs that run are packed
    further, too; here only those that wait are.
    """
    grouping = Grouping.running(estimates)
    waiting = _exclusively(grouping)
    for job in sorted(waiting, key=lambda n: utilisation(estimates, n)):
        _join_first(grouping, job, _by_utilisation(grouping), THRESHOLDS.kept_from)
    return grouping


def utilisation(estimates: GroupCosts, job: int) -> float:
    """Return the utilisation of a job alone."""
    return estimates.types[estimates.jobs[job].type].utilisation


def _by_utilisation(grouping: Grouping) -> list[Draft]:
    """Return the groups, those on the least busy GPUs first."""
    return sorted(grouping.drafts, key=lambda draft: grouping.estimates.mix(draft).utilisation)


def _join_first(
    grouping: Grouping, job: int, candidates: Iterable[Draft], above: float = 0.0
) -> None:
    """Put a job into the first group where it may be and rates sum to more; else let it wait."""
    for draft in candidates:
        wider = grouping.beside(draft, job)
        if wider and throughput(grouping.estimates, wider) > above:
            grouping.replace(draft, wider)
            return
    grouping.wait([job])


def eaco(
    estimates: GroupCosts, utilisation_threshold: float = 1.0, memory_threshold: float = 1.0
) -> Grouping:
    """Put each job on the busiest GPUs where all deadlines and tolerances hold, else on new ones.

    Jobs come in the order of the queue. Candidates are the groups of the same gang size, the
    busiest first; then new GPUs, which get the fullest node with room, a sleeping one last. A job
    without any waits, and the queue goes on. Sharing is tried even if GPUs are free.

    Parameters
    ----------
    utilisation_threshold, memory_threshold
        GPUs that are busier, or of whose memory a larger share is taken, are no candidates. Neither
        is published. The instance's own limits on groups hold besides.

    Source: EaCO, arXiv 2412.08294, Algorithm 1; that the queue goes on is ours. With identical GPUs
    its subsets of GPUs come down to these. It profiles a new group for one epoch and undoes it if a
    deadline would be missed; here rates are known, so that nothing has to be undone.
    """
    grouping = Grouping.running(estimates)
    for job in grouping.queue():
        open_groups = (
            draft
            for draft in reversed(_by_utilisation(grouping))
            if estimates.mix(draft).utilisation <= utilisation_threshold
            and _memory_share(estimates, draft) <= memory_threshold
        )
        old, new = _first_wider(grouping, job, open_groups)
        new = new or grouping.alone(job)
        if new is None:
            grouping.wait([job])
        elif old is None:
            grouping.drafts.append(new)
        else:
            grouping.replace(old, new)
    return grouping


def _first_wider(
    grouping: Grouping, job: int, candidates: Iterable[Draft]
) -> tuple[Draft | None, Draft | None]:
    """Return the first group where a job may be, before and after."""
    for draft in candidates:
        wider = grouping.beside(draft, job)
        if wider is not None:
            return draft, wider
    return None, None


def _memory_share(estimates: GroupCosts, draft: Draft) -> float:
    gpu = estimates.gpus[estimates.pool(draft).gpu]
    return estimates.memory_gb(draft) / gpu.memory_gb


def lucid(estimates: GroupCosts) -> Grouping:
    """Put each job beside one whose label is small enough, else on GPUs of its own.

    A type's label says how it bears others, by its mean rate in pairs with the types of the
    instance: 2 below 0.85, 1 below 0.95, else 0. Two jobs share if their labels sum to at most 2.
    Of several partners the one of the smallest label is taken, of these the first.

    Source: Lucid, ASPLOS'23, S-Lab-System-Group/Lucid @63685a3a, analyzer.py and policy, for labels
    and rule. That sharing does not wait for the cluster to be full, and the choice, are ours.
    """
    grouping = Grouping.running(estimates)
    known = labels(estimates)
    for job in grouping.queue():
        mine = known[estimates.jobs[job].type]
        singles = [draft for draft in grouping.drafts if len(draft.jobs) == 1]
        others = {d: known[estimates.jobs[d.jobs[0]].type] for d in singles}
        calm = [draft for draft in singles if others[draft] + mine <= THRESHOLDS.labels]
        calm.sort(key=others.__getitem__)
        old, new = _first_wider(grouping, job, calm)
        alone = None if new else grouping.alone(job)
        if old and new:
            grouping.replace(old, new)
        elif alone:
            grouping.drafts.append(alone)
        else:
            grouping.wait([job])
    return grouping


def labels(estimates: GroupCosts) -> dict[str, int]:
    """Return Lucid's label of each type of the jobs, on GPUs of the first pool's type.

    A type without any pair that fits has label 2.
    """
    names = {job.type for job in estimates.jobs}
    return labels_of(estimates, estimates.nodes[0].gpu, sorted(names))


def labels_of(estimates: GroupCosts, gpu: str, names: Sequence[str]) -> dict[str, int]:
    """Return Lucid's label of each of some types, which are all that there are, on some GPUs."""
    by_type = {}
    for name in names:
        mixes = [estimates.side_by_side(gpu, [name, other]) for other in names]
        speeds = [mix.speeds[name] for mix in mixes if name in mix.speeds]
        mean = fmean(speeds) if speeds else 0.0
        by_type[name] = 2 if mean < THRESHOLDS.jumbo else 1 if mean < THRESHOLDS.tiny else 0
    return by_type
