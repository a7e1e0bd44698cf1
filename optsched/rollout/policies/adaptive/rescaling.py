"""So many GPUs, shared out once in an epoch among jobs that restart at each change of width."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from optsched.rollout.policies.adaptive.width_history import WidthHistory
from optsched.rollout.policies.fixed_capacity import SharedOut

if TYPE_CHECKING:
    from optsched.rollout.engine.decision import Decision, Rent
    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.fixed_capacity import SharedOptions
    from optsched.rollout.policies.width_curves import Curve
    from optsched.rollout.scenario import Scenario


class Rescaling(SharedOut):
    """Keeps account of what jobs have run on, and lets none of them grow faster than allowed."""

    every_epoch = True
    changing: ClassVar[tuple[str, ...]] = (*SharedOut.changing, "history")

    def __init__(
        self, name: str, scenario: Scenario, options: SharedOptions, growth: float | None
    ) -> None:
        super().__init__(name, scenario, options)
        self.history = WidthHistory(scenario, growth)

    def take_note(self, view: View) -> bool:
        """Take note of what happened; tell whether anything did that concerns the shares."""
        self.history.stop(view, view.failed)
        self.history.forget(view.ended)
        return super().take_note(view)

    def share_out(self, view: View, gpus: int, rent: Rent) -> Decision:
        """Give every active job its width of so many GPUs, or less where it finds no place."""
        decision = super().share_out(view, gpus, rent)
        self.history.stop(view, decision.stop)
        self.history.note(view, {job: len(held) for job, held in decision.place.items()})
        return decision

    def allowed(self, view: View, job: int) -> Curve:
        """Return the useful widths that a job may be given now."""
        return self.history.limited(view, job, self.curve(view, job))

    def curves_by_type(self, view: View, job: int) -> dict[str, Curve]:
        """Return the useful widths that a job may be given now, on each type."""
        told = super().curves_by_type(view, job)
        return {name: self.history.limited(view, job, own) for name, own in told.items()}
