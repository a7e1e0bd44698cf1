"""What went wrong in HiGHS while an instance was solved: methods go on, and the result tells it."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_NOTED: ContextVar[list[str] | None] = ContextVar("failures of HiGHS", default=None)


def note_failure(text: str) -> None:
    """Take note of a run of HiGHS that came to nothing."""
    noted = _NOTED.get()
    if noted is not None:
        noted.append(text)


@contextmanager
def noted_failures() -> Iterator[list[str]]:
    """Give the list of the failures in here; workers send theirs back with what they have done."""
    noted: list[str] = []
    token = _NOTED.set(noted)
    try:
        yield noted
    finally:
        _NOTED.reset(token)
