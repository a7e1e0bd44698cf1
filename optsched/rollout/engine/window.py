"""The window of the steady state: what had been counted when it began and when it ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.rollout.checkpoints.restorable import Restorable
from optsched.rollout.results.record import Integrals
from optsched.traces.trace import US

if TYPE_CHECKING:
    from optsched.rollout.scenario import Scenario
    from optsched.traces.trace import Trace

NEVER = 2**63


class Window(Restorable):
    """Two moments, and what was counted until each; no decision is made there.

    Attributes
    ----------
    moments
        In microseconds: those of `scenario.steady_s`, else of the first and the last submission.
    seen
        What was counted until the moments that have passed, as in `Integrals`.
    next_us
        The moment that comes next.
    """

    changing = ("seen", "next_us")

    def __init__(self, scenario: Scenario, trace: Trace) -> None:
        given = scenario.steady_s
        if given is not None:
            self.moments = [round(moment * US) for moment in given]
        else:
            submit = trace.submit_us
            self.moments = [int(submit[0]), int(submit[-1])] if len(trace) else [0, 0]
        self.seen: list[tuple[int | float, ...]] = []
        self.next_us = self.moments[0]

    def note(self, counted: Integrals) -> None:
        """Take note of what was counted until the next moment."""
        self.seen.append(tuple(counted))
        self.next_us = self.moments[1] if len(self.seen) == 1 else NEVER

    def ends(self, now: Integrals) -> tuple[Integrals, Integrals]:
        """Return what was counted at both moments, at the latest now."""
        kept = [Integrals(*seen) for seen in self.seen if seen[0] <= now.now_us]  # type: ignore[arg-type]
        first, last = [*kept, now, now][:2]
        return first, last
