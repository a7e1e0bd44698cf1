"""Gandiva (Xiao et al., OSDI 2018): turns on GPUs, packing, moves, jobs that grow and shrink."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from optsched.rollout.checkpoints.restorable import RestorablePolicy
from optsched.rollout.engine.decision import NOTHING, Decision
from optsched.rollout.policies.adaptive.packing import Packing
from optsched.rollout.policies.adaptive.turns import Turns
from optsched.rollout.policies.width_curves import Curves
from optsched.rollout.policy_needs import refuse_quotas
from optsched.rollout.policy_options import Options, Positive, takes
from optsched.traces.trace import US

if TYPE_CHECKING:
    from optsched.rollout.engine.view import View
    from optsched.rollout.scenario import Scenario


class TimeSlicingOptions(Options):
    """The length of a turn, and which of Gandiva's other means are used."""

    quantum_s: Positive = Field(
        default=60.0,
        description="A turn lasts so long beside what its start costs, to the next epoch.",
    )
    packing: bool = Field(
        default=True,
        description="Whether jobs that wait run beside others, if both get more done than in "
        "turns.",
    )
    migration: bool = Field(
        default=True, description="Whether gangs move to fewer nodes when jobs have left."
    )
    growing: bool = Field(
        default=True, description="Whether jobs use free GPUs of their node while nobody waits."
    )


class TimeSlicing(RestorablePolicy):
    """Jobs that find no GPUs take turns with those that run; nobody waits for long.

    **Turns.** Jobs wait in one line. At an epoch the first of it gets GPUs, if need be of those
    whose turn is over, the longest turn first; these go to the end of the line. Nobody passes the
    first, so a gang, too, has its turn as soon as others have had theirs.

    **Packing.** Before turns are changed, jobs that wait run beside others with as many GPUs, the
    least busy ones first on the least busy GPUs, if the rates of all together are above 1 (what
    turns would get done) and above those without the guest. They keep together until GPUs are free
    for both.

    **Migration.** While nobody waits, at an epoch after jobs have left, the gang on the most nodes
    moves if it can be on fewer.

    **Growing.** When nobody has waited, and no GPU was taken back, for a quantum, jobs with speedup
    curves get the free GPUs of the node that they are on. They shrink to what they asked for as
    soon as somebody waits.
    """

    every_epoch = True
    changing = ("turns", "has_left", "idle_since")

    def __init__(self, scenario: Scenario, options: TimeSlicingOptions) -> None:
        self.name = "time-slicing"
        refuse_quotas(self.name, scenario)
        if scenario.nodes_change:
            lack = "does not rent nodes" if scenario.rented else "knows no downtime of nodes"
            raise ValueError(f"policy '{self.name}': it {lack}")
        if scenario.costs.stop_loses_work:
            raise ValueError(
                f"policy '{self.name}': its jobs would get nowhere, for they are suspended again "
                "and again, and costs.stop_loses_work says that they lose work each time"
            )
        self.options = options
        self.turns = Turns(scenario, options.quantum_s)
        self.curves = Curves(scenario)
        self.packing = Packing(scenario)
        self.has_left = False
        self.idle_since = 0

    def decide(self, view: View) -> Decision:
        """Let jobs start, take turns, move, grow and shrink."""
        turns = self.turns
        for job in (*view.ended, *view.failed):
            turns.leave(job)
        for job in view.arrived:
            turns.arrive(job)
        self.has_left |= bool(view.ended or view.failed)
        turns.begin()
        if turns.line:
            if turns.grown:
                self._shrink(view)
            self._fill(view)
        if view.is_epoch:
            if turns.line and self.options.packing and self.packing.most_jobs > 1:
                self._pack(view)
            if turns.line:
                self._rotate(view)
            else:
                self._use_room(view)
        if turns.line:
            self.idle_since = view.now_us
        if not (turns.places or turns.stops):
            return NOTHING
        return Decision(place=dict(turns.places), stop=tuple(sorted(turns.stops)))

    # --- while jobs wait ----------------------------------------------------------------------

    def _shrink(self, view: View) -> None:
        """Take back the GPUs beyond those that jobs have asked for."""
        turns = self.turns
        for unit in sorted(turns.grown):
            turns.put(unit, turns.held.of[unit][: turns.size(view, unit)])
        turns.grown.clear()
        self.idle_since = view.now_us

    def _fill(self, view: View) -> None:
        """Start units of the line as long as there is room for the first."""
        turns = self.turns
        while turns.line and turns.size(view, turns.line[0]) <= turns.held.free:
            turns.start(view, turns.line.pop(0))

    def _rotate(self, view: View) -> None:
        """Give the first of the line the GPUs of units whose turn is over."""
        turns = self.turns
        over = [unit for unit in turns.since if turns.is_over(view, unit)]
        over.sort(key=lambda unit: (turns.since[unit], unit), reverse=True)
        room = turns.held.free + sum(len(turns.held.of[unit]) for unit in over)
        suspended: dict[int, int] = {}
        for unit in list(turns.line):
            size = turns.size(view, unit)
            if size > room:
                break
            room -= size
            while turns.held.free < size:
                last = over.pop()
                suspended[last] = turns.since[last]
                turns.suspend(view, last)
            turns.line.remove(unit)
            turns.start(view, unit)
        for unit, since in suspended.items():
            turns.resume(unit, since)

    def _pack(self, view: View) -> None:
        """Let waiting jobs run beside others if that gets more done than turns."""
        turns, packing = self.turns, self.packing
        hosts: dict[tuple[int, tuple[str, ...]], list[int]] = {}
        for unit, gpus in turns.held.of.items():
            group = self._group(view, unit)
            if len(group) < packing.most_jobs:
                hosts.setdefault((len(gpus), group), []).append(unit)
        guests = [unit for unit in turns.line if len(turns.members[unit]) == 1]
        guests.sort(key=lambda unit: packing.busy(self._group(view, unit)))
        kinds = sorted(hosts, key=lambda kind: (packing.busy(kind[1]), kind))
        for guest in guests:
            (name,), size = self._group(view, guest), turns.size(view, guest)
            for kind in kinds:
                if hosts[kind] and kind[0] == size and packing.gains(kind[1], name):
                    turns.join(hosts[kind].pop(0), guest)
                    break

    def _group(self, view: View, unit: int) -> tuple[str, ...]:
        return tuple(sorted(view.model(job) for job in self.turns.members[unit]))

    # --- while nobody waits -------------------------------------------------------------------

    def _use_room(self, view: View) -> None:
        """Part units that are packed, move a gang together, and let jobs grow."""
        turns = self.turns
        for unit in list(turns.held.of):
            size = turns.size(view, unit)
            while len(turns.members[unit]) > 1 and turns.held.free >= size:
                turns.part(view, unit)
        if self.has_left and self.options.migration:
            self._move_together()
        self.has_left = False
        quantum_us = self.options.quantum_s * US
        if self.options.growing and view.now_us - self.idle_since >= quantum_us:
            self._grow(view)

    def _move_together(self) -> None:
        """Move the unit on the most nodes to fewer, if there are such; the first of equal ones."""
        held = self.turns.held
        node_of, nodes = held.cluster.node_of, held.nodes
        spread = {unit: len({node_of[gpu] for gpu in gpus}) for unit, gpus in held.of.items()}
        for unit in sorted(spread, key=lambda unit: (-spread[unit], unit)):
            gpus = held.of[unit]
            if spread[unit] == 1 or spread[unit] == nodes.least_nodes(len(gpus)):
                continue
            nodes.release(gpus)
            found = nodes.gang(len(gpus), most_nodes=spread[unit] - 1)
            nodes.take(gpus)
            if found is not None:
                self.turns.put(unit, found)
                return

    def _grow(self, view: View) -> None:
        """Let jobs on one node use what is free there, the first first."""
        turns = self.turns
        node_of, nodes = turns.held.cluster.node_of, turns.held.nodes
        for unit, gpus in sorted(turns.held.of.items()):
            node = node_of[gpus[0]]
            if not nodes.count[node] or node_of[gpus[-1]] != node or len(turns.members[unit]) > 1:
                continue
            (job,) = turns.members[unit]
            curves = self.curves.useful(view.model(job), view.demand(job))
            curve = curves[min(view.phase(job), len(curves) - 1)]
            wider = curve.at_most(len(gpus) + nodes.count[node])
            if wider > len(gpus) and curve.speed_at(wider) > curve.speed_at(len(gpus)):
                more = nodes.gpus(node, wider - len(gpus))
                turns.put(unit, tuple(sorted((*gpus, *more))))
                turns.grown.add(unit)


@takes(TimeSlicingOptions)
def time_slicing(scenario: Scenario, seed: int, options: TimeSlicingOptions) -> TimeSlicing:
    """Let jobs take turns on GPUs."""
    return TimeSlicing(scenario, options)
