"""Hostlists as Slurm writes them: ``tux[0-3,12,18-20]``."""

from __future__ import annotations

import itertools
import math
import re
from typing import TYPE_CHECKING

from optsched.documents.faults import shown
from optsched.documents.limits import LIMITS

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST = LIMITS.range_names  # more is a slip of the pen


class HostlistError(ValueError):
    """A hostlist that does not parse; `position` counts from 0 within it."""

    def __init__(self, position: int, text: str) -> None:
        self.position = position
        super().__init__(text)


def expand(hostlist: str) -> list[str]:
    """Return the names that a hostlist stands for, in its order.

    A range keeps the width of its first number, so ``n[08-10]`` is n08, n09, n10. Of several pairs
    of brackets in a name the last one runs fastest.

    Raises
    ------
    HostlistError
        If it does not parse, or stands for more than 65,536 names.

    Examples
    --------
    >>> expand("tux[0-1,08-10],login")
    ['tux0', 'tux1', 'tux08', 'tux09', 'tux10', 'login']
    >>> expand("r[1-2]n[0-1]")
    ['r1n0', 'r1n1', 'r2n0', 'r2n1']
    """
    names: list[str] = []
    for position, item in _items(hostlist):
        choices = [_choices(part, position + start) for start, part in _parts(item)]
        if sum(len(choice[-1]) for choice in choices) > LIMITS.name_chars:
            text = f"a name of more than {LIMITS.name_chars:,} characters"
            raise HostlistError(position, f"{text}, {shown(item)}")
        if len(names) + math.prod(map(len, choices)) > MOST:
            raise HostlistError(position, f"{shown(item)} stands for more than {MOST:,} names")
        names += map("".join, itertools.product(*choices))
    return names


def _items(hostlist: str) -> Iterator[tuple[int, str]]:
    """Yield position and text of what stands between commas outside of brackets."""
    start, opened = 0, None
    for position, sign in enumerate(hostlist + ","):
        if sign == "[" and opened is not None:
            raise HostlistError(position, "'[' inside of brackets")
        if sign == "[":
            opened = position
        elif sign == "]" and opened is None:
            raise HostlistError(position, "']' without '['")
        elif sign == "]":
            opened = None
        elif sign == "," and opened is None:
            if start == position:
                raise HostlistError(position, "a name is missing")
            yield start, hostlist[start:position]
            start = position + 1
    if opened is not None:
        raise HostlistError(opened, "'[' is never closed")


def _parts(item: str) -> Iterator[tuple[int, str]]:
    for match in re.finditer(r"\[[^\]]*\]|[^\[]+", item):
        yield match.start(), match[0]


def _choices(part: str, position: int) -> list[str]:
    if not part.startswith("["):
        space = re.search(r"\s", part)
        if space:
            raise HostlistError(position + space.start(), "a blank inside of a hostlist")
        return [part]
    numbers: list[str] = []
    position += 1
    for piece in part[1:-1].split(","):
        numbers += _numbers(piece, position)
        if len(numbers) > MOST:
            raise HostlistError(position, f"more than {MOST:,} numbers in brackets")
        position += len(piece) + 1
    return numbers


def _numbers(piece: str, position: int) -> list[str]:
    match = re.fullmatch(r"([0-9]{1,18})(?:-([0-9]{1,18}))?", piece)
    if not match:
        text = f"expected a number or a range such as 0-3, found '{piece[:50]}'"
        raise HostlistError(position, text)
    first, last = int(match[1]), int(match[2] or match[1])
    if last < first:
        raise HostlistError(position, f"the range {piece} runs backwards")
    if last - first >= MOST:
        raise HostlistError(position, f"the range {piece} has more than {MOST:,} numbers")
    return [str(number).zfill(len(match[1])) for number in range(first, last + 1)]
