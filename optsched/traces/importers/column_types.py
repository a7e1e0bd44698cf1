"""Kinds of cells: how the text in a column of a trace is read, and what is expected there."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Generic, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


@dataclass(frozen=True)
class ColumnType(Generic[T]):
    """What a column holds: `read` turns text into a value, or raises ValueError."""

    expected: str
    read: Callable[[str], T]
    stand_in: T
    """Takes the place of what is faulty, so that the search for faults can go on."""


def _whole(text: str, least: int) -> int:
    number = int(text) if text.isdecimal() else _whole_float(text)
    if not least <= number <= 1_000_000:
        raise ValueError
    return number


def _whole_float(text: str) -> int:
    """Read 4.0, as programs write that keep numbers with gaps."""
    number = _number(text)
    if number != int(number):
        raise ValueError
    return int(number)


def _number(text: str) -> float:
    number = float(text)
    if "_" in text or not math.isfinite(number):
        raise ValueError
    return number


def _seconds(text: str) -> float:
    """Read up to about 3,000 years, which in microseconds fit 64 bits many times over."""
    number = _number(text)
    if not 0 <= number <= 1e11:
        raise ValueError
    return number


def _milliseconds(text: str) -> float:
    return _seconds(text) / 1000


def _positive(text: str) -> float:
    number = _seconds(text)
    if number == 0:
        raise ValueError
    return number


def _moment(text: str) -> float:
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _word(text: str) -> str:
    if not text:
        raise ValueError
    return text


COUNT = ColumnType("a whole number of at least 1", lambda text: _whole(text, 1), 1)
COUNT_OR_0 = ColumnType("a whole number of at least 0", lambda text: _whole(text, 0), 0)
SECONDS = ColumnType("seconds from 0 to 1e11", _seconds, 0.0)
MILLISECONDS = ColumnType("milliseconds from 0 to 1e11", _milliseconds, 0.0)
NUMBER = ColumnType("a number", _number, 0.0)
POSITIVE = ColumnType("a number above 0", _positive, 1.0)
MOMENT = ColumnType("a date and time such as 2017-10-09 07:01:55", _moment, 0.0)
WORD = ColumnType("a word", _word, "")
TEXT = ColumnType("text", str, "")


def moment_in(zone: str) -> ColumnType[float]:
    """Return the kind of dates without a zone that are local times of a place.

    Raises
    ------
    ValueError
        If no such zone is known.
    """
    place = zone_of(zone)

    def read(text: str) -> float:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=place)).timestamp()

    return ColumnType(MOMENT.expected, read, 0.0)


class RowClock:
    """Local times in the order of rows, in a zone whose clock is put back and forward.

    An hour that the clock repeats, and one that it skips, stands for two moments each: of them the
    one that keeps the order of the rows is taken, the first one where both do.

    Attributes
    ----------
    doubtful
        So many times could have been two moments.

    Raises
    ------
    ValueError
        If no such zone is known.
    """

    def __init__(self, zone: str) -> None:
        self._zone, self._latest = zone_of(zone), -math.inf
        self.doubtful = 0
        self.column = ColumnType(MOMENT.expected, self._read, 0.0)

    def _read(self, text: str) -> float:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            return moment.timestamp()
        first, second = (
            moment.replace(tzinfo=self._zone, fold=fold).timestamp() for fold in (0, 1)
        )
        low, high = min(first, second), max(first, second)
        self.doubtful += low < high
        seconds = high if low < self._latest <= high else low
        self._latest = max(self._latest, seconds)
        return seconds


def zone_of(name: str) -> ZoneInfo:
    """Return a time zone by its name, such as ``"America/Los_Angeles"``."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"there is no time zone '{name}' on this machine") from None


def one_of(words: dict[str, T], stand_in: T) -> ColumnType[T]:
    """Return the kind of columns that hold one of some words."""

    def read(text: str) -> T:
        try:
            return words[text]
        except KeyError:
            raise ValueError from None

    return ColumnType(f"one of {', '.join(words)}", read, stand_in)
