"""Rounds in which running jobs keep their GPUs unless an admitted one needs them, step by step.

What `round_based.Rounds` does for all jobs in every round is done here for those that it can
concern. While no waiting job is admitted, all running ones are, for they fit together; so jobs
that wait are gone through in order, and one that does not fit into what is free is admitted only
if the GPUs of those that run and stand behind it suffice. How many these are at most is known
without asking for every job. Who stands behind it exactly is asked when they may suffice.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from optsched.rollout.engine.decision import NOTHING, Decision
from optsched.rollout.policies.placement_round import GangJob
from optsched.rollout.policies.placement_rules import preempted
from optsched.rollout.policies.rounds.running_jobs import Running, standings
from optsched.rollout.policies.rounds.waiting_jobs import WaitingJobs

if TYPE_CHECKING:
    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.job_orders import SteadyOrder
    from optsched.rollout.policies.placement_round import ClusterData
    from optsched.rollout.policies.rounds.places import OpenPlaces, Places
    from optsched.rollout.policies.rounds.running_jobs import Standing, Tail
    from optsched.rollout.policies.rounds.waiting_jobs import Scan


class KeptJobs:
    """Who waits and who runs, kept from round to round in a cluster without quotas.

    Its nodes are ready all the time. Where jobs stand is as `SteadyOrder` says.
    """

    def __init__(
        self, view: View, world: ClusterData, places: OpenPlaces, order: SteadyOrder, backfill: bool
    ) -> None:
        self.world, self.free, self.order, self.backfill = world, places, order, backfill
        self.waiting, self.running = WaitingJobs(), Running(order)
        self._started: dict[int, tuple[int, ...]] = {}  # at the last call, as those that stopped
        self._stopped: list[int] = []
        running, pending = view.running.tolist(), view.pending.tolist()
        order.look(view, [*running, *pending])
        held = {job: view.gpus_of(job) for job in running}
        for gpus in held.values():
            places.take(gpus)
        self.running.add(view, held)
        self._join(view, pending)

    def note(self, view: View) -> None:
        """Take note of what has happened since the last call."""
        started, stopped = self._started, self._stopped
        self.order.note(view, started, stopped)
        for job in (*view.ended, *view.failed):
            if job in self.running.gpus:
                self.free.release(self.running.remove(job))
            elif job in started:
                self.free.release(started.pop(job))
        if started:
            self.running.add(view, started)
        if stopped or view.arrived:
            self._join(view, [*stopped, *view.arrived])
        self._started, self._stopped = {}, []

    def _join(self, view: View, jobs: list[int]) -> None:
        for standing in standings(self.order, view, jobs):
            self.waiting.add(view.demand(standing.job), standing)

    def _admitted(self, view: View) -> tuple[list[int], list[int]]:
        """Return the waiting jobs that are admitted and the running ones that are not, in order."""
        admitted, spare, scan = [], self.free.free, self.waiting.scan()
        while scan.next is not None:
            standing, size = scan.next
            if size <= spare:
                admitted.append(standing.job)
                spare -= size
                scan.go_on()
                continue
            behind = self.running.behind(standing, view.now_us)
            if behind is not None and behind.gpus + spare >= size:
                tail = self.running.tail(standing, behind, view)
                room = spare + tail.upto[-1]
                if room >= size:
                    return self._with_tail(scan, tail, admitted, room)
            if not self.backfill:
                return admitted, self._held_up(standing, view)
            scan.give_up_size()
        return admitted, []

    def _held_up(self, standing: Standing, view: View) -> list[int]:
        """Return who is not admitted behind a gang that may not be overtaken: who runs goes on."""
        return []

    def _with_tail(
        self, scan: Scan, tail: Tail, admitted: list[int], room: int
    ) -> tuple[list[int], list[int]]:
        """Return the same, once a job is admitted for which some of those behind it may stop.

        Those of them that come before the next waiting job and fit together go on, all at once.
        """
        standings, upto = tail
        lent, at = [], 0
        while scan.next is not None or at < len(standings):
            end = len(standings)
            if scan.next is not None:
                end = bisect_left(standings, scan.next[0], at)
            if at < end:
                fits = bisect_right(upto, upto[at] + room, at, end + 1) - 1
                room -= upto[fits] - upto[at]
                at = fits
                if at == end:
                    continue
                lent.append(standings[at][1])
                at += 1
            else:
                assert scan.next is not None
                standing, size = scan.next
                if size <= room:
                    room -= size
                    admitted.append(standing.job)
                    scan.go_on()
                    continue
                scan.give_up_size()
            if not self.backfill:
                break
        lent += [job for _, job in standings[at:]]
        return admitted, lent


class StickyRounds(KeptJobs):
    """Running jobs keep their GPUs; those that start get some by a rule."""

    def __init__(
        self, view: View, world: ClusterData, places: Places, order: SteadyOrder, backfill: bool
    ) -> None:
        super().__init__(view, world, places, order, backfill)
        self.places = places

    def decide(self, view: View) -> Decision:
        """Start the waiting jobs that are admitted, and stop those whose GPUs they need."""
        admitted, lent = self._admitted(view)
        if not admitted:
            return NOTHING
        pick = self.places.rule()
        places: dict[int, tuple[int, ...]] = {}
        stops = []
        for job in admitted:
            size, model = view.demand(job), view.model(job)
            for other in self._making_room(size - self.places.free, lent):
                self.places.release(self.running.remove(other))
                stops.append(other)
            gpus = pick(GangJob(size, self.world.class_of(model), model))
            assert gpus is not None, "no rule of these wants more than room"
            places[job] = gpus
            self.places.take(gpus)
            self.waiting.remove(job)
        self._started, self._stopped = places.copy(), stops
        return Decision(place=places, stop=tuple(sorted(stops)))

    def _making_room(self, missing: int, lent: list[int]) -> list[int]:
        """Return the jobs that make room for so many GPUs, and take them out of the last ones."""
        last, found, held = len(lent), 0, self.running.gpus
        while found < missing:
            last -= 1
            found += len(held[lent[last]])
        tail = lent[last:]
        chosen = preempted(missing, {job: len(held[job]) for job in tail}) if tail else []
        lent[last:] = [job for job in tail if job not in chosen]
        return chosen
