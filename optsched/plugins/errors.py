"""What is said when code of others cannot be used."""

from __future__ import annotations

import traceback
from pathlib import Path

OURS = Path(__file__).parents[1]


class PluginError(ValueError):
    """Code of others cannot be used: whose it is, and what is wrong with it, in one line."""


def failure(told: str, what: str, error: BaseException) -> PluginError:
    """Return the error for what code of others raised: in one line, with the place in that code."""
    words = str(error).strip().splitlines()
    text = f"{type(error).__name__}: {words[0]}" if words else type(error).__name__
    return PluginError(f"{told}: it {what}: {text}{_place(error)}")


def _place(error: BaseException) -> str:
    """Return the innermost line that is neither ours nor of the import system, if there is one."""
    if isinstance(error, SyntaxError):  # which names its place itself
        return ""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        if OURS in path.parents:
            return ""
        if "importlib" not in path.parts and not frame.filename.startswith("<"):
            return f" ({frame.filename}, line {frame.lineno})"
    return ""
