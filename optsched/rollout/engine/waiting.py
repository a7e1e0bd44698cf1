"""Why jobs wait: clocks of whole classes of jobs, so that a change costs nothing per job."""

from __future__ import annotations

from operator import add, sub
from typing import TYPE_CHECKING, Any

from optsched.rollout.checkpoints.restorable import Restorable
from optsched.rollout.engine.places import FreePlaces
from optsched.traces.trace import US

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from optsched.rollout.engine.state import State

KINDS = ("back_off", "fair_share", "capacity", "fragmentation", "order")
"""What would let a job start now, in the order in which they are asked for."""

BACK_OFF, FAIR_SHARE, CAPACITY, FRAGMENTATION, ORDER = range(len(KINDS))
DELAY_US = 60 * US
"""Waits that are longer than this are delays (ATC'19, table 2)."""

ANY_PLACE = (1 << 40, 1 << 40)
"""The worst place that a job accepts: so many nodes, in one domain of such a level."""


class _Class:
    """Jobs of a queue and size that accept the same places: at any time they wait for one reason.

    Attributes
    ----------
    key
        Queue (empty without a quota), size, and most nodes and level of the places accepted.
    jobs
        How many of them wait now.
    kind, since
        Why, and from when on.
    clock
        For how long it has been each kind, until `since`.
    """

    __slots__ = ("clock", "jobs", "key", "kind", "since")

    def __init__(self, key: tuple[str, int, int, int], kind: int, now: int) -> None:
        self.key, self.jobs, self.kind, self.since = key, 0, kind, now
        self.clock = [0] * len(KINDS)

    def turn(self, kind: int, now: int) -> None:
        """Note the kind from now on."""
        if kind != self.kind:
            self.clock[self.kind] += now - self.since
            self.kind, self.since = kind, now

    def read(self, now: int) -> list[int]:
        """Return for how long it has been each kind until now."""
        clock = self.clock.copy()
        clock[self.kind] += now - self.since
        return clock

    def saved(self) -> list[Any]:
        """Return all of it as plain data."""
        return [list(self.key), self.jobs, self.kind, self.since, self.clock]


class Waiting(Restorable):
    """Splits waiting into its `KINDS` (after ATC'19, section 3.1.1, table 2).

    The rule is in docs/rollouts.md. A wait goes from submission, failure or stop to the next start.

    Attributes
    ----------
    held
        By queue with a quota, the GPUs that it holds.
    entered
        Jobs that are in the queue but in no class yet, with what they accept.
    begun
        When the present wait of each job that waits, or is to come back, began.
    spent, delays
        By job that has waited: microseconds of each kind; delays of each kind.
    """

    changing = ("held", "entered", "begun", "spent", "delays", "_parts", "_read")

    def __init__(
        self, state: State, queues: Sequence[str], quotas: Mapping[str, int], lends: bool = False
    ) -> None:
        self.state, self.lends = state, lends
        self.group_of = [queue if queue in quotas else "" for queue in queues]
        self.quotas = dict(quotas)
        self.held = dict.fromkeys(quotas, 0)
        self.places = FreePlaces(state)
        self.entered: dict[int, tuple[int, int]] = {}
        self.begun: dict[int, int] = {}
        self.spent: dict[int, list[int]] = {}
        self.delays: dict[int, list[int]] = {}
        self._classes: dict[tuple[str, int, int, int], _Class] = {}
        self._class_of: dict[int, _Class] = {}
        self._parts: dict[int, list[int]] = {}  # of the present wait, what classes left before told
        self._read: dict[int, list[int]] = {}  # the clock of a job's class when it joined

    def snapshot(self) -> dict[str, Any]:
        """Return what changes, the classes included."""
        order = {key: n for n, key in enumerate(self._classes)}
        members = {job: order[each.key] for job, each in self._class_of.items()}
        classes = [each.saved() for each in self._classes.values()]
        return super().snapshot() | {"classes": classes, "members": members}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        own = dict(state)
        saved, members = own.pop("classes"), own.pop("members")
        super().restore(own)
        self.places.is_known = False
        classes = []
        for key, jobs, kind, since, clock in saved:
            made = _Class((key[0], key[1], key[2], key[3]), kind, since)
            made.jobs, made.clock = jobs, list(clock)
            classes.append(made)
        self._classes = {made.key: made for made in classes}
        self._class_of = {job: classes[n] for job, n in members.items()}

    # --- jobs ---------------------------------------------------------------------------------

    def fail(self, job: int, now: int) -> None:
        """Note that an attempt failed: until the job is in the queue again it is backing off."""
        self.begun[job] = now

    def forget(self, job: int) -> None:
        """Note that a job ended."""
        self.begun.pop(job, None)

    def enter(self, job: int, now: int) -> None:
        """Note that a job begins to wait in the queue; it accepts any place until told."""
        begun = self.begun.setdefault(job, now)
        self.entered[job] = ANY_PLACE
        if begun < now:
            self._parts[job] = [now - begun, *(0 for _ in KINDS[1:])]

    def accept(self, job: int, place: tuple[int, int], now: int) -> bool:
        """Note what a waiting job accepts from now on; return whether that is a change."""
        place = self._limits(job, place)
        if job in self.entered:
            is_new = self.entered[job] != place
            self.entered[job] = place
            return is_new
        if self._class_of[job].key[2:] == place:
            return False
        self._parts[job] = self._present(job, now)
        self._leave_class(job)
        self.entered[job] = place
        return True

    def leave(self, job: int, now: int) -> None:
        """Note that a job leaves the queue."""
        begun = self.begun[job]
        if begun < now:
            parts, before = self._present(job, now), self.spent.get(job)
            self.spent[job] = parts if before is None else list(map(add, before, parts))
            if now - begun > DELAY_US:
                self.delays.setdefault(job, [0] * len(KINDS))[parts.index(max(parts))] += 1
        del self.begun[job]
        self._parts.pop(job, None)
        if self.entered.pop(job, None) is None:
            self._leave_class(job)

    def split(self, job: int, now: int) -> list[int]:
        """Return the microseconds of each kind of a job until now."""
        spent = self.spent.get(job, [0] * len(KINDS))
        if job not in self.begun:
            return spent
        return list(map(add, spent, self._present(job, now)))

    def hold(self, job: int, gpus: int) -> None:
        """Note that a job's queue holds more GPUs, or fewer if negative."""
        group = self.group_of[job]
        if group:
            self.held[group] += gpus

    # --- classes ------------------------------------------------------------------------------

    def update(self, now: int, gpus: Iterable[int], nodes: Iterable[int]) -> None:
        """Note what is free from now on; something has changed on GPUs and nodes."""
        self.places.note(gpus, nodes)
        free = self.state.free_gpus
        for each in self._classes.values():
            each.turn(self._kind(each.key, free), now)
        for job, place in self.entered.items():
            self._join(job, place, free, now)
        self.entered.clear()

    def _kind(self, key: tuple[str, int, int, int], free: int) -> int:
        group, size, nodes, level = key
        if group and self.held[group] + size > self.quotas[group]:
            if not self.lends or free < size:
                return FAIR_SHARE
        elif free < size:
            return CAPACITY
        if nodes >= size and level >= self.places.top:
            return ORDER
        return ORDER if self.places.has_room(size, nodes, level) else FRAGMENTATION

    def _join(self, job: int, place: tuple[int, int], free: int, now: int) -> None:
        key = (self.group_of[job], self.state.demand[job], *place)
        found = self._classes.get(key)
        if found is None:
            found = self._classes[key] = _Class(key, self._kind(key, free), now)
        found.jobs += 1
        self._class_of[job] = found
        self._read[job] = found.read(now)

    def _leave_class(self, job: int) -> None:
        left = self._class_of.pop(job)
        del self._read[job]
        left.jobs -= 1
        if not left.jobs:
            del self._classes[left.key]

    def _present(self, job: int, now: int) -> list[int]:
        """Return the microseconds of each kind of a job's present wait, until now."""
        found, before = self._class_of.get(job), self._parts.get(job)
        if found is None:
            if before is not None or job in self.entered:
                return before or [0] * len(KINDS)
            return [now - self.begun[job], *(0 for _ in KINDS[1:])]
        parts = list(map(sub, found.read(now), self._read[job]))
        return parts if before is None else list(map(add, before, parts))

    def _limits(self, job: int, place: tuple[int, int]) -> tuple[int, int]:
        """Return one name for places that are the same, so that there are few classes."""
        nodes, level = place
        size, top = self.state.demand[job], self.places.top
        is_any = nodes >= min(size, len(self.places.count)) and level >= top
        return ANY_PLACE if is_any else (nodes, min(level, top))
