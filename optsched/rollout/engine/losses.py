"""GPU time that jobs lose while they run, by what it is lost to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.rollout.checkpoints.restorable import Restorable
from optsched.rollout.physics.regimes import LOSSES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from optsched.rollout.engine.state import State
    from optsched.rollout.physics.regimes import Regime

UNUSED = len(LOSSES)
KINDS = UNUSED + 1


class Losses(Restorable):
    """Integrals of what regimes lose per microsecond, in billionths of a GPU-microsecond.

    Nothing is multiplied while a regime lasts: the running time of a job's attempt tells how long
    that was, when it ends. Jobs that never lose anything are in none of the dicts.

    Attributes
    ----------
    present
        By job what its regime loses in a microsecond, as `Regime.losing`.
    since
        By job the running time of its attempt when the regime began.
    total, unsaved
        By job the integrals so far, and since its last checkpoint: of each of `LOSSES`, and of what
        is unused.
    """

    changing = ("present", "since", "total", "unsaved")

    def __init__(self, state: State) -> None:
        self.state = state
        self.present: dict[int, tuple[tuple[int, int], ...]] = {}
        self.since: dict[int, int] = {}
        self.total: dict[int, list[int]] = {}
        self.unsaved: dict[int, list[int]] = {}

    def begin(self, regimes: Iterable[tuple[int, Regime]]) -> None:
        """Let regimes of jobs begin; the jobs are settled, and their last regimes are over."""
        present, since, attempt_us = self.present, self.since, self.state.attempt_us
        for job, regime in regimes:
            if regime.losing or job in self.unsaved:
                present[job] = regime.losing
                since[job] = attempt_us[job]

    def end(self, jobs: Collection[int]) -> None:
        """Let the regimes of some jobs end; they are settled."""
        present = self.present
        ending = [job for job in jobs if job in present] if present else ()
        if ending:
            self.count(ending)
            for job in ending:
                del present[job]

    def lasts(self, job: int, regime: Regime) -> bool:
        """Return whether a job already loses what another regime would let it lose."""
        return self.present.get(job, ()) == regime.losing

    def count(self, jobs: Iterable[int]) -> None:
        """Count what was lost by jobs up to now; they are settled."""
        present, begun, attempt_us = self.present, self.since, self.state.attempt_us
        unsaved_us, totals, unsaveds = self.state.unsaved_us, self.total, self.unsaved
        for job in jobs:
            losing = present.get(job)
            if losing is None:
                continue
            worked = attempt_us[job] - begun[job]
            if not worked:
                continue
            begun[job] = attempt_us[job]
            total, unsaved = totals.get(job), unsaveds.get(job)
            if total is None:
                total = totals[job] = [0] * KINDS
            # A checkpoint during the regime leaves what came after it, and of that regime alone.
            open_us = unsaved_us[job]
            if unsaved is None or open_us <= worked:
                unsaved = unsaveds[job] = [0] * KINDS
            if open_us > worked:
                open_us = worked
            for n, rate in losing:
                lost = rate * worked
                total[n] += lost
                unsaved[n] += lost if open_us == worked else rate * open_us

    def undo(self, job: int) -> None:
        """Take back what was lost since the last checkpoint; the GPUs were unused all the same."""
        unsaved = self.unsaved.pop(job, None)
        if unsaved is None:
            return
        total = self.total[job]
        for n in range(UNUSED):
            total[n] -= unsaved[n]

    def save(self, job: int) -> None:
        """Let nothing that was lost so far be undone any more."""
        self.unsaved.pop(job, None)
