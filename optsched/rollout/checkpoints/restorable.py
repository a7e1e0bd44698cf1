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
    """The base of policies: `decide(view)` is what a class adds, as `optsched.rollout.Policy` says.

    Its rollouts can be interrupted and go on, if `changing` names what it keeps from call to call;
    a policy that keeps nothing names nothing.

    Attributes
    ----------
    name
        The name of the class, unless it has another one.
    every_epoch
        Whether it is called at every epoch while there are jobs, not only after something happened.

    Examples
    --------
    >>> from optsched.rollout import Decision, RestorablePolicy
    >>> class Oldest(RestorablePolicy):
    ...     def decide(self, view):
    ...         free = [gpu for node in range(view.cluster.nodes) for gpu in view.free_gpus(node)]
    ...         job = min(view.pending.tolist(), default=None)
    ...         if job is None or view.demand(job) > len(free):
    ...             return Decision()
    ...         return Decision(place={job: free[: view.demand(job)]})
    >>> Oldest().name
    'Oldest'
    """

    name: str = ""
    every_epoch: bool = False

    def __init_subclass__(cls, **options: Any) -> None:
        """Name a class of policies after itself, if nothing else names it."""
        super().__init_subclass__(**options)
        if "name" not in vars(cls) and getattr(cls, "name", "") in ("", *_names_of_bases(cls)):
            cls.name = cls.__name__

    def state(self) -> dict[str, Any]:
        """Return what changes, as plain data."""
        return self.snapshot()


def _names_of_bases(cls: type) -> list[str]:
    return [base.__name__ for base in cls.__mro__[1:]]


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
