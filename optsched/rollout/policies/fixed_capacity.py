"""So many GPUs, rented for good, shared out again among the jobs whenever something happens."""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import compress, repeat
from math import isfinite
from operator import ne
from typing import TYPE_CHECKING, ClassVar, cast

import numpy as np
from pydantic import Field

from optsched.rollout.checkpoints.restorable import RestorablePolicy
from optsched.rollout.engine.decision import NOTHING, Decision
from optsched.rollout.policies.adaptive.within_types import SEEKS, WithinTypes
from optsched.rollout.policies.held_gpus import PLACEMENT, Holdings, Placement, Placing, placing
from optsched.rollout.policies.width_curves import Curves
from optsched.rollout.policy_needs import refuse_quotas
from optsched.rollout.policy_options import Count, GpuType, OptionError, Options
from optsched.rollout.prices.fleets import capacity, check_type

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from optsched.documents.arrays import Floats
    from optsched.rollout.engine.decision import Rent
    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.width_curves import Curve
    from optsched.rollout.scenario import Scenario


class SharedOptions(Options):
    """How many GPUs are shared out, and which."""

    gpus: Count | None = Field(
        default=None,
        description="GPUs in all; null: the scenario's budget without its fraction, else all.",
    )
    placement: Placement = Field(default="lowest", description=PLACEMENT)


class SharedOfType(SharedOptions):
    """As `SharedOptions`; of rented GPUs of several types those of one, or of all."""

    gpu_type: GpuType = None


class SharedOut(RestorablePolicy, ABC):
    """At every call each active job is given a width, 0 to wait; the sum is at most C.

    Source: docs/math/boa.md, Greedy rules: "capped ones use C = floor(b) GPUs rented permanently".
    """

    changing: ClassVar[tuple[str, ...]] = ("held", "active")

    def __init__(self, name: str, scenario: Scenario, options: SharedOptions) -> None:
        refuse_quotas(name, scenario)
        self.name = name
        self.curves = Curves(scenario)
        self.gpu_type = options.gpu_type if isinstance(options, SharedOfType) else None
        check_type(self.gpu_type, scenario)
        self.held = Holdings(scenario, self.gpu_type)
        self.placing = self.placed_by(options.placement)
        self.gpus = capacity(scenario, options.gpus, self.held)
        self.active: dict[int, None] = {}
        self._phases: dict[int, tuple[Curve, ...]] = {}  # of active jobs, as they were asked for
        self._only: dict[int, Curve] = {}  # of those of them that have one phase
        self._speed_asked: dict[int, float] = {}  # of active jobs of one phase, at their gangs

    def placed_by(self, placement: str) -> Placing:
        """Return what chooses GPUs, by its name: within a type, if there are several."""
        if not self.curves.types.are_several:
            return placing(placement)
        if placement not in SEEKS:
            text = f"{placement!r} knows no GPU types: use {', '.join(map(repr, SEEKS))}"
            raise OptionError(f"option 'placement': {text}")
        return WithinTypes(self.offers, SEEKS[placement])

    @abstractmethod
    def shares(self, view: View, jobs: Sequence[int], gpus: int) -> dict[int, int]:
        """Return widths for jobs, given in the order of submission; those without one wait."""

    def decide(self, view: View) -> Decision:
        """Share out the GPUs that are ready."""
        is_changed = self.take_note(view)
        rent = self.held.rent(view, self.gpus)
        if not is_changed:
            return NOTHING if rent is None else Decision(rent=rent)
        return self.share_out(view, min(self.gpus, self.available), rent)

    @property
    def available(self) -> int:
        """GPUs in nodes that can be used, whoever holds them."""
        return self.held.free + self.held.taken

    def take_note(self, view: View) -> bool:
        """Take note of what happened; tell whether anything did that concerns the shares."""
        before = self.held.usable
        self.held.look(view)
        left = [*view.ended, *view.failed]
        self.held.release(left)
        for job in left:
            self.active.pop(job, None)
            self._phases.pop(job, None)
            self._only.pop(job, None)
            self._speed_asked.pop(job, None)
        for job in view.arrived:
            is_last = not self.active or next(reversed(self.active)) < job
            self.active[job] = None
            if not is_last:
                self.active = dict.fromkeys(sorted(self.active))
        if left or view.arrived or before != self.held.usable:
            return True
        return not all(self.goes_on(view, job) for job in view.advanced)

    def goes_on(self, view: View, job: int) -> bool:
        """Tell whether a running job's next phase changes nothing of any share."""
        return False

    def share_out(self, view: View, gpus: int, rent: Rent) -> Decision:
        """Give every active job its width of so many GPUs; on a closed node jobs keep theirs."""
        stuck = {job: self.held.width(job) for job in self.held.stuck}
        jobs = [job for job in self.active if job not in stuck] if stuck else list(self.active)
        shares = self.shares(view, jobs, max(0, gpus - sum(stuck.values())))
        if stuck:
            shares = shares | stuck  # a rule may keep its own
        held = self.held.of
        before = set(held)
        changes = self.changed(shares)
        if not (all(shares.values()) and shares.keys() >= before):
            self.held.release([job for job in list(held) if not shares.get(job)])
        return self.placed(view, changes, before, rent)

    def placed(
        self, view: View, changes: Mapping[int, int], before: set[int], rent: Rent
    ) -> Decision:
        """Place jobs at new widths; those that were `before` and hold nothing then are stopped."""
        places = self.placing.place(view, self.held, changes)
        stops = before.difference(self.held.of)
        return Decision(place=places, stop=tuple(sorted(stops)), rent=rent)

    def changed(self, shares: Mapping[int, int]) -> dict[int, int]:
        """Return the shares of jobs that do not hold already what they are to have."""
        held = map(len, map(self.held.of.get, shares, repeat(())))
        others = compress(shares, map(ne, held, shares.values()))
        return {job: shares[job] for job in others if shares[job]}

    def offers(self, view: View, job: int, width: int) -> list[tuple[str, int]]:
        """Return types, and so many GPUs of each, for a job that is given a width of some type.

        No more GPUs than these; the fastest comes first, and of equal ones the fewest GPUs.
        """
        found = [
            (-speed, gpus, name)
            for name, curve in self.curves_by_type(view, job).items()
            for gpus, speed in zip(curve.gpus, curve.speed, strict=True)
            if gpus <= width
        ]
        return [(name, gpus) for _, gpus, name in sorted(found)]

    # --- what rules ask -----------------------------------------------------------------------

    def curve(self, view: View, job: int) -> Curve:
        """Return the useful widths of a job in its phase: each is faster than the one before."""
        phases = self._phases.get(job)
        if phases is None:
            phases = self._phases[job] = self._all_curves(view, job)
        if len(phases) == 1:
            self._only[job] = phases[0]
            return phases[0]
        return phases[min(view.phase(job), len(phases) - 1)]

    def curves_of(self, view: View, jobs: Iterable[int]) -> list[Curve]:
        """Return the same of several jobs."""
        found = list(map(self._only.get, jobs))
        if all(found):
            return cast("list[Curve]", found)
        return [curve or self.curve(view, job) for job, curve in zip(jobs, found, strict=True)]

    def _all_curves(self, view: View, job: int) -> tuple[Curve, ...]:
        """Return the useful widths of a job in each phase, on the one type of GPUs if there is."""
        if self.gpu_type is None:
            return self.curves.useful(view.model(job), view.demand(job))
        by_type = self.curves.by_type(view.model(job), view.demand(job))
        return tuple(phase[self.gpu_type] for phase in by_type)

    def curves_by_type(self, view: View, job: int) -> dict[str, Curve]:
        """Return the useful widths of a job in its phase, on each type that it can run on."""
        phases = self.curves.by_type(view.model(job), view.demand(job))
        return phases[min(view.phase(job), len(phases) - 1)]

    def remaining_s(self, view: View, jobs: Sequence[int]) -> list[float]:
        """Return what `work_left` does, as plain numbers."""
        seconds: list[float] = self.work_left(view, jobs).tolist()
        return seconds

    def work_left(self, view: View, jobs: Sequence[int]) -> Floats:
        """Return the work that jobs have left, in seconds at speedup 1, as far as is known.

        The time at the gang asked for times the speedup there in the present phase. A job of which
        nothing is known has an hour.
        """
        speeds = list(map(self._speed_asked.get, jobs))
        if None in speeds:
            speeds = [
                speed or self.speed_asked(view, job)
                for job, speed in zip(jobs, speeds, strict=True)
            ]
        work: Floats = seconds_left(view, jobs) * np.array(speeds, dtype=float)
        return work

    def speed_asked(self, view: View, job: int) -> float:
        """Return the speedup of a job in its phase at the gang that it asks for."""
        speed = self.curve(view, job).speed_at(view.demand(job)) or 1.0
        if len(self._phases[job]) == 1:
            self._speed_asked[job] = speed
        return speed


def seconds_left(view: View, jobs: Sequence[int]) -> Floats:
    """Return the seconds that jobs still need at the gangs asked for; an hour if unknown."""
    left = view.remaining_us(jobs) / 1e6
    if not isfinite(left.sum()):
        left = np.nan_to_num(left, nan=3600.0)
    return left
