"""What the importers share: text with places in it, and GPUs of nodes."""

from __future__ import annotations

import re
import warnings
from bisect import bisect_left
from typing import TYPE_CHECKING

from optsched.documents.faults import InstanceError, shown
from optsched.documents.files import read_text as text_of
from optsched.documents.limits import LIMITS

if TYPE_CHECKING:
    from pathlib import Path


class ImportNote(UserWarning):
    """Something in a file that was not looked at, or may be meant otherwise."""


def note(text: str, origin: str) -> None:
    """Warn of something in a file."""
    warnings.warn(f"{origin}: {text}", ImportNote, stacklevel=4)


def read_text(path: Path, most: int = LIMITS.file_bytes) -> str:
    """Return the text of a file.

    Raises
    ------
    InstanceError
        If it is no regular file, larger than the limit, not text, or empty.
    """
    text = text_of(path, most=most)
    if not text.strip():
        raise InstanceError(str(path), ["the file is empty"])
    return text


class Places:
    """Where the places of a text are, as lines and columns, both from 1."""

    def __init__(self, text: str) -> None:
        self._ends = [match.start() for match in re.finditer("\n", text)]

    def at(self, offset: int) -> tuple[int, int]:
        """Return the line and column of a place."""
        line = bisect_left(self._ends, offset)
        return line + 1, offset - (self._ends[line - 1] if line else -1)

    def told(self, offset: int) -> str:
        """Return line and column of a place, in words."""
        line, column = self.at(offset)
        return f"line {line}, column {column}"


def gpu_ids(node: str, count: int | None, origin: str) -> list[str]:
    """Return the ids of a node's GPUs.

    Raises
    ------
    InstanceError
        If nothing says how many there are.
    """
    if count is None:
        text = "the file does not say how many GPUs a node has: give --gpus-per-node"
        raise InstanceError(origin, [text])
    if len(node) > LIMITS.name_chars:
        text = f"the node {shown(node)} has a name of {len(node):,} characters"
        raise InstanceError(origin, [f"{text}, more than {LIMITS.name_chars:,}"])
    return [f"{node}/{index}" for index in range(count)]


def refuse_many(nodes: int, each: int | None, origin: str) -> None:
    """Refuse more GPUs than a topology may have, before their ids are made.

    Raises
    ------
    InstanceError
        If there are more.
    """
    if nodes * (each or 1) > LIMITS.items:
        text = f"{nodes:,} nodes of {each or 1:,} GPUs: more than {LIMITS.items:,} GPUs"
        raise InstanceError(origin, [text])
