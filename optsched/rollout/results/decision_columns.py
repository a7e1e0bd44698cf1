"""The decisions of a record by column, also where they are not a log of columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.rollout.results.decision_log import EpochLog

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from optsched.rollout.engine.decision import SolveRecord
    from optsched.rollout.results.record import Record


def epoch_column(record: Record, key: str) -> Sequence[float]:
    """Return a number of each `EpochRecord`, in order."""
    if isinstance(record.epochs, EpochLog):
        return record.epochs.column(key)
    return [getattr(epoch, key) for epoch in record.epochs]


def epoch_solves(record: Record) -> Mapping[int, Sequence[SolveRecord]]:
    """Return the calls of solvers by the number of the decision, of those that have any."""
    if isinstance(record.epochs, EpochLog):
        return record.epochs.solves
    return {row: epoch.solves for row, epoch in enumerate(record.epochs) if epoch.solves}


def all_solves(record: Record) -> list[SolveRecord]:
    """Return every call of a solver, in order."""
    return [call for calls in epoch_solves(record).values() for call in calls]
