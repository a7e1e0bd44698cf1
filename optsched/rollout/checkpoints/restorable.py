"""What changes in an object, by the names of its attributes: its state, and how it is put back."""

from __future__ import annotations

from collections import deque
from numbers import Number
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Mapping


class Restorable:
    """Has a state that can be saved, and put into a new object that was made as this one was.

    Attributes
    ----------
    changing
        Names of the attributes that change from call to call, a dot before those of parts, such as
        ``"choice.memory"``; a class adds its own to those of its base. Their values are plain data
        (`optsched.rollout.checkpoints.plain_data`) or `Restorable` themselves. What can be computed
        again from the rest need not be named.
    """

    changing: ClassVar[tuple[str, ...]] = ()

    def snapshot(self) -> dict[str, Any]:
        """Return what changes, as plain data; it is written at once, so nothing is copied."""
        return {path: _saved(attrgetter(path)(self)) for path in self.changing}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state; containers stay the same objects, for others may know them.

        Raises
        ------
        ValueError
            If it is not the state of such an object.
        """
        if state.keys() != set(self.changing):
            raise ValueError(f"not a state of {type(self).__name__}")
        for path, value in state.items():
            part, _, name = path.rpartition(".")
            owner = attrgetter(part)(self) if part else self
            setattr(owner, name, _replaced(getattr(owner, name), value, path))


class RestorablePolicy(Restorable):
    """A policy with a state, as `optsched.rollout.Policy` has it, by names of attributes."""

    def state(self) -> dict[str, Any]:
        """Return what changes, as plain data."""
        return self.snapshot()


def _saved(value: Any) -> Any:
    return value.snapshot() if isinstance(value, Restorable) else value


def _replaced(old: Any, new: Any, name: str) -> Any:
    """Return a new value, in the container of the old one."""
    if isinstance(old, Restorable):
        old.restore(new)
        return old
    kinds = {type(old), type(new)} - {type(None)}
    is_number = isinstance(old, Number) and isinstance(new, Number)
    if len(kinds) > 1 and not is_number:
        raise ValueError(f"{name}: expected {type(old).__name__}, found {type(new).__name__}")
    if new is None:
        return new
    if isinstance(old, list | bytearray):
        old[:] = new
    elif isinstance(old, dict | set):
        old.clear()
        old.update(new)
    elif isinstance(old, deque):
        old.clear()
        old.extend(new)
    else:
        return new
    return old
