"""What functions of a rule's give, remembered for some of their arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

K = TypeVar("K", bound=tuple[object, ...])
V = TypeVar("V")


class Remembered(dict[K, V]):
    """What a function gives by its arguments; it is copied and saved with what it belongs to.

    Parameters
    ----------
    most
        For so many arguments; then all is forgotten.
    """

    def __init__(self, function: Callable[..., V], most: int) -> None:
        super().__init__()
        self._function, self._most = function, most

    def __missing__(self, arguments: K) -> V:
        if len(self) == self._most:
            self.clear()
        found = self[arguments] = self._function(*arguments)
        return found
