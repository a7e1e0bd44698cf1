"""What the importers share: text with places in it, and GPUs of nodes."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from optsched.documents.faults import InstanceError

if TYPE_CHECKING:
    from pathlib import Path


class ImportNote(UserWarning):
    """Something in a file that was not looked at, or may be meant otherwise."""


def note(text: str, origin: str) -> None:
    """Warn of something in a file."""
    warnings.warn(f"{origin}: {text}", ImportNote, stacklevel=4)


def read_text(path: Path) -> str:
    """Return the text of a file.

    Raises
    ------
    InstanceError
        If it is a folder, not text, or empty.
    """
    if path.is_dir():
        raise InstanceError(str(path), ["is a folder, expected a file"])
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InstanceError(str(path), [f"byte {error.start} is not UTF-8 text"]) from None
    if not text.strip():
        raise InstanceError(str(path), ["the file is empty"])
    return text


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Return where a place in a text is, both counted from 1."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def located(text: str, offset: int) -> str:
    """Return line and column of a place in a text, in words."""
    line, column = line_and_column(text, offset)
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
    return [f"{node}/{index}" for index in range(count)]
