"""Work for executors: what is handed to them, and whether it or its worker failed."""

from __future__ import annotations

from concurrent.futures import BrokenExecutor, CancelledError, Future
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor

GIVEN_UP = "KilledWorker"
"""How Dask says that the workers of a task died; its class is no error of an executor."""


def submitted(
    executor: Executor, function: Callable[..., Any], *arguments: Any, **named: Any
) -> Future[Any]:
    """Hand a call to an executor; if all its workers are dead already, the future says so."""
    try:
        return executor.submit(function, *arguments, **named)
    except BrokenExecutor as error:
        future: Future[Any] = Future()
        future.set_exception(error)
        return future


def is_lost(error: BaseException) -> bool:
    """Tell whether a call was not done because of its worker, rather than by its own fault."""
    if isinstance(error, BrokenExecutor | CancelledError):
        return True
    return any(
        cls.__name__ == GIVEN_UP and cls.__module__.partition(".")[0] == "distributed"
        for cls in type(error).__mro__
    )
