"""Tasks under way: what solves and rollouts tell, whichever process they are in."""

from __future__ import annotations

import ctypes
import multiprocessing
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from optsched.executors.tasks import Task

    Listener = Callable[[list["UnderWay"]], object]

TICK_S = 0.25
"""How often what other processes tell is looked at."""
WIDTH = 160
"""Bytes of text for each point that another process computes."""


class UnderWay(NamedTuple):
    """A task that is being computed.

    Attributes
    ----------
    elapsed_s
        Seconds since it was first seen.
    text
        Phase, best plan, bound and gap, as `optsched.Progress` has them; of a rollout the share of
        jobs that have ended. Empty at first.
    """

    called: str
    method: str
    elapsed_s: float
    text: str


class Board:
    """Shared memory with a line for each point: other processes write, this one reads.

    There is no lock that a killed process could leave behind; a line that is read while it is
    written is right the next time. A first byte of 1 says that the point is under way.
    """

    def __init__(self, numbers: Iterable[int]) -> None:
        self._row = {number: row for row, number in enumerate(numbers)}
        size = max(len(self._row), 1) * WIDTH
        self._lines = multiprocessing.get_context("spawn").RawArray(ctypes.c_char, size)

    def put(self, number: int, text: str) -> None:
        """Write what a point tells."""
        line = b"\1" + text.encode()[: WIDTH - 1]
        self._write(number, line)

    def clear(self, number: int) -> None:
        """Note that a point is no longer under way."""
        self._write(number, b"")

    def texts(self) -> dict[int, str]:
        """Return the texts of the points under way, by number."""
        lines, found = self._lines.raw, {}
        for number, row in self._row.items():
            line = lines[row * WIDTH : (row + 1) * WIDTH]
            if line[:1] == b"\1":
                found[number] = line[1:].rstrip(b"\0").decode(errors="ignore")
        return found

    def _write(self, number: int, line: bytes) -> None:
        row = self._row[number]
        memory = memoryview(self._lines).cast("B")
        memory[row * WIDTH : (row + 1) * WIDTH] = line.ljust(WIDTH, b"\0")


class Watch:
    """Tells a listener which points are under way, and what they tell."""

    def __init__(self, tasks: Mapping[int, Task], listener: Listener) -> None:
        self._tasks, self._listener = tasks, listener
        self._begun: dict[int, float] = {}
        self._told: dict[int, str] = {}

    def tell(self, texts: Mapping[int, str]) -> None:
        """Tell of the points under way, by number, unless there is nothing new."""
        if texts == self._told:
            return
        now = time.monotonic()
        self._begun = {number: self._begun.get(number, now) for number in texts}
        self._told = dict(texts)
        self._listener([
            UnderWay(self._tasks[n].called, self._tasks[n].method, now - self._begun[n], text)
            for n, text in texts.items()
        ])  # fmt: skip
