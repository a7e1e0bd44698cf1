"""Units of jobs that take turns: who waits in line, who runs, and whose turn is over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.rollout.checkpoints.restorable import Restorable
from optsched.rollout.policies.held_gpus import Holdings
from optsched.traces.trace import US

if TYPE_CHECKING:
    from optsched.rollout.engine.view import View
    from optsched.rollout.scenario import Scenario

    Gpus = tuple[int, ...]


class Turns(Restorable):
    """Units are jobs that hold the same GPUs at the same time: one job, or a few that are packed.

    Attributes
    ----------
    members
        By unit its jobs, in the order in which they came.
    line
        Units that wait, the next one first.
    held
        GPUs of the units that run.
    since
        When each of these began its turn.
    former
        The GPUs on which a unit is or was last.
    grown
        Units with more GPUs than they ask for.
    places, stops
        What is decided in this call.
    """

    changing = ("members", "unit_of", "line", "held", "since", "former", "count", "grown")

    def __init__(self, scenario: Scenario, quantum_s: float) -> None:
        self.held = Holdings(scenario)
        self.members: dict[int, list[int]] = {}
        self.unit_of: dict[int, int] = {}
        self.line: list[int] = []
        self.since: dict[int, int] = {}
        self.former: dict[int, Gpus] = {}
        self.count = 0
        costs = scenario.costs
        self._quantum_us = round(quantum_s * US)
        self._checkpoint_us = round(costs.checkpoint_s * US)
        self._usual_us = round(max(costs.start_s, costs.restore_s) * US)
        self._own_us = {
            name: round(model.rescale_s * US)
            for name, model in scenario.models.items()
            if model.rescale_s is not None
        }
        self.grown: set[int] = set()
        self.places: dict[int, Gpus] = {}
        self.stops: set[int] = set()

    # --- jobs come and go ---------------------------------------------------------------------

    def arrive(self, job: int) -> None:
        """Let a job wait at the end of the line."""
        unit, self.count = self.count, self.count + 1
        self.members[unit], self.unit_of[job] = [job], unit
        self.line.append(unit)

    def leave(self, job: int) -> None:
        """Let a job leave that ended or failed; its partners go on."""
        unit = self.unit_of.pop(job, None)
        if unit is None:
            return
        self.members[unit].remove(job)
        if not self.members[unit]:
            del self.members[unit]
            if unit in self.since:
                self._give_up(unit)
            else:
                self.line.remove(unit)
            self.former.pop(unit, None)

    # --- turns --------------------------------------------------------------------------------

    def begin(self) -> None:
        """Begin a call: nothing is decided yet."""
        self.places, self.stops = {}, set()

    def size(self, view: View, unit: int) -> int:
        """Return the GPUs that a unit asks for."""
        return view.demand(self.members[unit][0])

    def start(self, view: View, unit: int) -> None:
        """Let a unit that is not in the line begin its turn, where it ran last if it can."""
        size, last = self.size(view, unit), self.former.get(unit, ())
        if len(last) != size or not self.held.nodes.are_free(last):
            last = self.held.nodes.gang(size) or self.held.lowest(size)
        self.put(unit, last)
        self.since[unit] = view.now_us

    def put(self, unit: int, gpus: Gpus) -> None:
        """Let a unit have other GPUs than it has."""
        self.held.release([unit])
        self.held.hold(unit, gpus)
        self.former[unit] = gpus
        for job in self.members[unit]:
            self.stops.discard(job)
            self.places[job] = gpus

    def suspend(self, view: View, unit: int) -> None:
        """End the turn of a unit: it goes to the end of the line."""
        self._give_up(unit)
        self.line.append(unit)
        for job in self.members[unit]:
            self.places.pop(job, None)
            if view.gpus_of(job):
                self.stops.add(job)

    def resume(self, unit: int, since: int) -> None:
        """Let a unit that was suspended in this call go on, if its GPUs are still free."""
        gpus = self.former[unit]
        if self.held.nodes.are_free(gpus):
            self.line.remove(unit)
            self.put(unit, gpus)
            self.since[unit] = since

    def _give_up(self, unit: int) -> None:
        self.held.release([unit])
        self.grown.discard(unit)
        del self.since[unit]

    def is_over(self, view: View, unit: int) -> bool:
        """Tell whether a turn is over: a quantum beside what the start of its jobs cost."""
        own = [self._own_us.get(view.model(job), self._usual_us) for job in self.members[unit]]
        lasts = self._quantum_us + self._checkpoint_us + max(own)
        return view.now_us - self.since[unit] >= lasts

    # --- packing ------------------------------------------------------------------------------

    def join(self, unit: int, guest: int) -> None:
        """Let the only job of a waiting unit run beside those of a unit that runs."""
        (job,) = self.members.pop(guest)
        self.line.remove(guest)
        self.former.pop(guest, None)
        self.members[unit].append(job)
        self.unit_of[job] = unit
        self.places[job] = self.held.of[unit]

    def part(self, view: View, unit: int) -> None:
        """Give the last job of a unit GPUs of its own."""
        job = self.members[unit].pop()
        self.arrive(job)
        self.start(view, self.line.pop())
