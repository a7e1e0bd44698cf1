"""Jobs of widths of their own on rented nodes: as many GPUs are rented as the widths add up to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import insort
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from optsched.rollout.checkpoints.restorable import RestorablePolicy
from optsched.rollout.engine.decision import NOTHING, Decision
from optsched.rollout.policies.held_gpus import PLACEMENT, Holdings, Placement, placing
from optsched.rollout.policies.width_curves import Curves
from optsched.rollout.policy_needs import refuse_quotas
from optsched.rollout.policy_options import Options

if TYPE_CHECKING:
    from optsched.rollout.engine.decision import SolveRecord
    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.width_curves import Curve
    from optsched.rollout.scenario import Scenario


class ElasticOptions(Options):
    """How widths become GPUs."""

    placement: Placement = Field(default="lowest", description=PLACEMENT)
    partial: bool = Field(
        default=True, description="Whether jobs start with fewer GPUs than they want."
    )


class Elastic(RestorablePolicy, ABC):
    """Every job gets the width that its phase wants, and nodes are rented for them all.

    A job that waits starts with what is free, if not all that it wants is, and grows to what it
    wants when that is free; one with a fixed width holds up those behind it. At the end of a phase
    the width changes to what the next one wants. Rented are as many nodes as hold the sum of all
    wanted widths; the engine keeps those with jobs. Nothing but the jobs that something happened
    to is looked at, so a call takes as long as its changes; where no job came or left and each
    wants in its phase what it wanted before, nothing can change.

    Source: the allocator of the BOA authors' code, Li-Zhouzi/adaptdl, policy/fixed_width.py. There
    all jobs take what is free at every round; that running ones wait until they get all that they
    want is ours: it takes one change of width instead of many.
    """

    changing: ClassVar[tuple[str, ...]] = ("held", "wanted", "waiting", "growing", "stale", "total")

    def __init__(self, name: str, scenario: Scenario, options: ElasticOptions) -> None:
        refuse_quotas(name, scenario)
        self.name = name
        self.scenario = scenario
        self.curves = Curves(scenario)
        self.held = Holdings(scenario)
        self.placing = placing(options.placement)
        self.partial = options.partial
        self.wanted: dict[int, int] = {}
        self.waiting: list[int] = []
        self.growing: list[int] = []
        self.stale: set[int] = set()
        self.total = 0

    # --- what the widths are ------------------------------------------------------------------

    @abstractmethod
    def width(self, view: View, job: int) -> int:
        """Return the width that a job wants in its phase, one of `curve`."""

    def refresh(self, view: View) -> list[SolveRecord]:
        """Bring what the widths follow from up to date; return the calls of solvers.

        Running jobs that may want another width than before are added to `stale`.
        """
        return []

    def curve(self, view: View, job: int) -> Curve:
        """Return the curve of a job in its phase."""
        phases = self.curves.of(view.model(job), view.demand(job))
        return phases[min(view.phase(job), len(phases) - 1)]

    # --- a call -------------------------------------------------------------------------------

    def decide(self, view: View) -> Decision:
        """Start, widen and narrow jobs, and rent nodes for them."""
        before = self.held.usable
        self.held.look(view)
        self._take_note(view)
        solves = self.refresh(view)
        is_news = view.arrived or view.ended or view.failed or before != self.held.usable
        if not (is_news or solves) and all(self._stays(view, job) for job in self.stale):
            self.stale.clear()
            return NOTHING
        changes = self._narrower(view)
        free = self.held.free + sum(self.held.width(job) - w for job, w in changes.items())
        self._widen(view, changes, free)
        places = self.placing.place(view, self.held, changes) if changes else {}
        rent = self.held.rent(view, self.total)
        if not (places or solves) and rent is None:
            return NOTHING
        return Decision(place=places, rent=rent, solves=tuple(solves))

    def _take_note(self, view: View) -> None:
        """Take note of what happened."""
        left = [*view.ended, *view.failed]
        self.held.release(left)
        for job in left:
            self.forget(job)
        for job in view.arrived:
            self.arrive(view, job)
        self.stale.update(view.advanced)

    def arrive(self, view: View, job: int) -> None:
        """Let a job wait."""
        insort(self.waiting, job)
        self.want(job, self.width(view, job))

    def want(self, job: int, width: int) -> None:
        """Take note of the width that a job wants from now on."""
        self.total += width - self.wanted.get(job, 0)
        self.wanted[job] = width

    def forget(self, job: int) -> None:
        """Let a job want nothing: it holds no GPUs any more."""
        self.total -= self.wanted.pop(job, 0)
        if self.growing and job in self.growing:
            self.growing.remove(job)

    def _stays(self, view: View, job: int) -> bool:
        """Tell whether a job that is stale wants what it wanted."""
        if job not in self.held.of:
            return True
        return not self.held.is_stuck(job) and self.width(view, job) == self.wanted[job]

    def _narrower(self, view: View) -> dict[int, int]:
        """Let stale jobs want what their phase wants; return those that get narrower."""
        changes = {}
        jobs, self.stale = sorted(self.stale), set()
        for job in jobs:
            if job not in self.held.of:
                continue
            if self.held.is_stuck(job):  # it ends as it is, or is stale until its nodes are back
                self.stale.add(job)
                continue
            self.want(job, self.width(view, job))
            now, wanted = self.held.width(job), self.wanted[job]
            is_growing = job in self.growing
            if wanted <= now and is_growing:
                self.growing.remove(job)
            if wanted > now and not is_growing:
                insort(self.growing, job)
            if wanted < now:
                changes[job] = wanted
        return changes

    def _widen(self, view: View, changes: dict[int, int], free: int) -> None:
        """Start waiting jobs, then let running ones grow, the earliest first, as GPUs are free.

        A job with phases that does not fit lets those behind it try only if it may start with
        part of its width.
        """
        while self.waiting and free:
            job = self.waiting[0]
            width = wanted = self.wanted[job]
            if wanted > free:
                width = self.curve(view, job).at_most(free) if self.partial else 0
                if not width:
                    break
                insort(self.growing, job)
            changes[job] = width
            free -= width
            del self.waiting[0]
        while free:
            job = next((job for job in self.growing if not self.held.is_stuck(job)), -1)
            if job < 0:
                break
            now = changes.get(job, self.held.width(job))
            if self.wanted[job] - now > free:
                break
            changes[job] = self.wanted[job]
            free -= self.wanted[job] - now
            self.growing.remove(job)
