"""EaCO's greedy rules over kept groups: each does what the rule of its name does with an instance.

Those are in `optsched.eaco.greedy.published_rules` and `simple_rules`, and say where they are from.
Here groups are looked at by gang size and types, for jobs without deadlines. Sums are formed in the
order in which the rules form them, so that they are rounded alike.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from optsched.eaco.greedy.published_rules import THRESHOLDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from optsched.rollout.policies.sharing.kept.groups import KeptGroup, Member, Position
    from optsched.rollout.policies.sharing.kept.round import Round
    from optsched.rollout.policies.sharing.kept.waiting_by_kind import Line

    Types = tuple[str, ...]
    Shelf = list[tuple[Position, KeptGroup]]


def fifo(round_: Round, line: Line) -> Member | None:
    """Place jobs alone up to the first that finds no room; return that one."""
    return next((member for member in line if round_.alone(member) is None), None)


def least_utilised(round_: Round, line: Line) -> None:
    """Do as `gandiva`."""
    types, mixes = round_.mixes.costs.types, round_.mixes

    def gains(group: KeptGroup, member: Member) -> bool:
        speeds = mixes.of(mixes.wider(group.types, member.type) or ()).speeds
        members = sorted([*group.members, member])
        return sum(speeds[each.type] for each in members) > THRESHOLDS.kept_from

    first = fifo(round_, line)
    if first is None:
        return
    waiting = line.since(first).by(lambda each: types[each.type].utilisation)
    for member in _still_possible(round_, waiting):
        for shelves in _by_utilisation(round_, member, is_busiest_first=False):
            found = [group for shelf in shelves for group in _first(shelf, gains, member)]
            if found:
                round_.join(min(found, key=position), member)
                break
        else:
            _waits(round_, member)


def eaco(
    round_: Round,
    line: Line,
    utilisation_threshold: float = 1.0,
    memory_threshold: float = 1.0,
) -> None:
    """Do as `eaco`."""
    mixes = round_.mixes

    def is_open(group: KeptGroup, member: Member) -> bool:
        gb = sum(mixes.memory_gb[each.type] for each in group.members)
        return gb / mixes.limit_gb <= memory_threshold

    for member in _still_possible(round_, line):
        for shelves in _by_utilisation(round_, member, is_busiest_first=True):
            if mixes.of(shelves[0][0][1].types).utilisation > utilisation_threshold:
                continue
            found = [
                group for shelf in shelves for group in _first(reversed(shelf), is_open, member)
            ]
            if found:
                round_.join(max(found, key=position), member)
                break
        else:
            _alone_or_not(round_, member)


def best_fit_memory(round_: Round, line: Line) -> None:
    """Do as `best_fit`."""
    mixes = round_.mixes

    def left_gb(group: KeptGroup, member: Member) -> float:
        members = sorted([*group.members, member])
        return mixes.limit_gb - sum(mixes.memory_gb[each.type] for each in members)

    for member in _still_possible(round_, line):
        found = [
            (left_gb(group, member), group.position, group) for group in open_to(round_, member)
        ]
        if found:
            round_.join(min(found)[2], member)
        else:
            _alone_or_not(round_, member)


def best_delta_energy(round_: Round, line: Line) -> None:
    """Do as the rule of that name."""
    for member in _still_possible(round_, line):
        groups = sorted(open_to(round_, member), key=position)
        energy = round_.energy
        energy.look_at([member, *(each for group in groups for each in group.members)])
        alone = _rises_alone(round_, member)
        least, best, node = inf, None, None
        for group, gpus in _perhaps_least(round_, groups, member, min(alone, default=inf)):
            rise = energy.rise(group, member, gpus)
            if rise < least:
                least, best = rise, group
        for rise, host in alone.items():
            if rise < least:
                least, node = rise, host
        if node is not None:
            round_.open(member, node)
        elif best is not None:
            round_.join(best, member)
        else:
            _waits(round_, member)


def _rises_alone(round_: Round, member: Member) -> dict[float, int]:
    """Return by kWh of a job on GPUs of its own the first node where it costs so much."""
    nodes: dict[int, int] = {}
    for host in round_.hosts(member):
        nodes.setdefault(round_.gpus_of_node(host), host)
    rises: dict[float, int] = {}
    for gpus, host in nodes.items():
        rises.setdefault(round_.energy.alone(member, gpus), host)
    return rises


def _perhaps_least(
    round_: Round, groups: Sequence[KeptGroup], member: Member, other: float
) -> Iterator[tuple[KeptGroup, int]]:
    """Yield the groups that may rise least with one more job, and GPUs of a node there.

    Parameters
    ----------
    other
        A rise that can be had besides.
    """
    found, most = [], other
    for group in groups:
        gpus = round_.gpus_beside(group)
        low, high = round_.energy.rise_within(group, member, gpus)
        most = min(most, high)
        found.append((low, group, gpus))
    return ((group, gpus) for low, group, gpus in found if low <= most)


def sharing_scores(round_: Round, line: Line) -> None:
    """Do as `lucid`."""
    labels = _labels(round_, line)
    for member in _still_possible(round_, line):
        calm = [(labels[types[0]], *shelf[0]) for types, shelf in _calm(round_, labels, member)]
        if calm:
            round_.join(min(calm)[2], member)
        else:
            _alone_or_not(round_, member)


def lucid_ordered(round_: Round, line: Line) -> None:
    """Do as `optsched.rollout.policies.sharing.lucid.share_when_full`."""
    labels = _labels(round_, line)
    for member in _still_possible(round_, line):
        if round_.alone(member) is not None:
            continue
        shelves = _calm(round_, labels, member)
        calm = [(round_.place_of(group), group) for _, shelf in shelves for _, group in shelf]
        if calm:
            round_.join(min(calm)[1], member)
        else:
            _waits(round_, member)


# --- parts ------------------------------------------------------------------------------------


def position(group: KeptGroup) -> Position:
    """Return where a group stands among groups."""
    return group.position


def open_to(round_: Round, member: Member) -> Iterator[KeptGroup]:
    """Yield the groups that a job may join."""
    for types, shelf in round_.kept.shelves.get(member.gang, {}).items():
        if round_.mixes.wider(types, member.type) is not None:
            for _, group in shelf:
                yield group


def _labels(round_: Round, line: Line) -> dict[str, int]:
    """Return Lucid's label of each type of jobs that are there."""
    kept = round_.kept
    labels = round_.mixes.labels({*kept.types(), *(member.type for member in line.heads())})
    if labels != kept.labels:
        kept.labels = labels
        kept.unplaced.clear()
    return labels


def _calm(round_: Round, labels: dict[str, int], member: Member) -> Iterator[tuple[Types, Shelf]]:
    """Yield the single jobs that a job may join by their labels."""
    most = THRESHOLDS.labels - labels[member.type]
    for types, shelf in round_.kept.shelves.get(member.gang, {}).items():
        is_calm = len(types) == 1 and labels[types[0]] <= most
        if is_calm and round_.mixes.wider(types, member.type) is not None:
            yield types, shelf


def _by_utilisation(
    round_: Round, member: Member, *, is_busiest_first: bool
) -> Iterator[list[Shelf]]:
    """Yield the groups that a job may join, those of equal utilisation together."""
    mixes = round_.mixes
    by_busy: dict[float, list[Shelf]] = {}
    for types, shelf in round_.kept.shelves.get(member.gang, {}).items():
        if mixes.wider(types, member.type) is not None:
            by_busy.setdefault(mixes.of(types).utilisation, []).append(shelf)
    for busy in sorted(by_busy, reverse=is_busiest_first):
        yield by_busy[busy]


def _first(
    shelf: Iterable[tuple[Position, KeptGroup]],
    is_right: Callable[[KeptGroup, Member], bool],
    member: Member,
) -> Iterator[KeptGroup]:
    """Yield the first group of a shelf that is right, if there is one."""
    for _, group in shelf:
        if is_right(group, member):
            yield group
            return


def _still_possible(round_: Round, line: Line) -> Iterator[Member]:
    """Yield jobs, but those that are like one that found nothing, since when nothing changed."""
    kept = round_.kept
    return line.passing(
        lambda member: kept.unplaced.get((member.type, member.gang)) == kept.version,
        lambda: kept.version,
    )


def _alone_or_not(round_: Round, member: Member) -> None:
    if round_.alone(member) is None:
        _waits(round_, member)


def _waits(round_: Round, member: Member) -> None:
    """Note that a job found nothing."""
    round_.kept.unplaced[member.type, member.gang] = round_.kept.version
