"""The log of decisions: rows of numbers that read as a sequence of `EpochRecord`, by column too."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

from optsched.rollout.checkpoints.restorable import Restorable
from optsched.rollout.results.record import EpochRecord

if TYPE_CHECKING:
    from collections.abc import Mapping

    from optsched.rollout.engine.decision import SolveRecord
    from optsched.rollout.results.record import Record

WHOLE = (
    "now_us",
    "pending",
    "running",
    "busy_gpus",
    "free_gpus",
    "rented_nodes",
    "changes",
    "busy_gpu_us",
    "available_gpu_us",
    "spent_gpu_us",
)
REAL = ("power_w", "energy_j", "billed_usd")


class EpochLog(Restorable, Sequence[EpochRecord]):
    """One row per decision, in 104 bytes; rows become an `EpochRecord` when they are read."""

    changing = ("_whole", "_real", "_solves")

    def __init__(self) -> None:
        self._whole = array("q")
        self._real = array("d")
        self._solves: dict[int, tuple[SolveRecord, ...]] = {}

    def append(
        self,
        whole: tuple[int, ...],
        real: tuple[float, float, float],
        solves: Sequence[SolveRecord],
    ) -> None:
        """Add a row: the numbers of `WHOLE`, those of `REAL`, and calls of solvers."""
        if solves:
            self._solves[len(self)] = tuple(solves)
        self._whole.extend(whole)
        self._real.extend(real)

    def cut(self, rows: int) -> None:
        """Forget all but the first rows."""
        del self._whole[rows * len(WHOLE) :], self._real[rows * len(REAL) :]
        for row in [row for row in self._solves if row >= rows]:
            del self._solves[row]

    def column(self, key: str) -> Sequence[float]:
        """Return the numbers of a field of `EpochRecord`, one per row."""
        if key in REAL:
            return self._real[REAL.index(key) :: len(REAL)]
        return self._whole[WHOLE.index(key) :: len(WHOLE)]

    @property
    def solves(self) -> Mapping[int, tuple[SolveRecord, ...]]:
        """Calls of solvers by row, of the rows that have any."""
        return self._solves

    def __len__(self) -> int:
        return len(self._real) // len(REAL)

    @overload
    def __getitem__(self, index: int) -> EpochRecord: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[EpochRecord, ...]: ...
    def __getitem__(self, index: int | slice) -> EpochRecord | tuple[EpochRecord, ...]:
        rows = range(len(self))[index]
        return self._row(rows) if isinstance(rows, int) else tuple(map(self._row, rows))

    def _row(self, row: int) -> EpochRecord:
        whole = self._whole[row * len(WHOLE) : (row + 1) * len(WHOLE)]
        real = self._real[row * len(REAL) : (row + 1) * len(REAL)]
        numbers: dict[str, Any] = dict(zip((*WHOLE, *REAL), (*whole, *real), strict=True))
        return EpochRecord(**numbers, solves=self._solves.get(row, ()))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def copy(self) -> EpochLog:
        """Return a copy that does not grow with this one."""
        twin = EpochLog()
        twin._whole, twin._real = self._whole[:], self._real[:]
        twin._solves = dict(self._solves)
        return twin


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
