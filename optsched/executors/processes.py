"""Processes that work for this one: no Ctrl-C reaches them, and none outlives it."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import connection, resource_tracker
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future
    from types import TracebackType

PR_SET_PDEATHSIG = 1  # linux/prctl.h


class Workers(ProcessPoolExecutor):
    """A pool of spawned processes, to be used in a `with` statement.

    They are not forked, since a thread may draw a bar of progress; and they do not run the
    caller's script again, which needs no guard then. What ends the `with` statement by an
    exception, Ctrl-C too, ends them in the middle of their work. They notice themselves that the
    parent is gone, however it ended.

    Parameters
    ----------
    processes
        How many at most; they are started when there is a task.
    begin, arguments
        What each one calls first.
    """

    def __init__(
        self, processes: int, begin: Callable[..., object] | None = None, *arguments: Any
    ) -> None:
        context = multiprocessing.get_context("spawn")
        super().__init__(processes, context, _begin, (begin, arguments))

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        """Let a process call a function."""
        with _without_interrupts(), _without_main():
            future = super().submit(function, *arguments, **named)
            self._watch_the_new_process()
        return future

    def _watch_the_new_process(self) -> None:
        """Let the thread that waits for processes to end wait for the one just started, too.

        Python (3.11 to 3.13) wakes it before that process is there. If nothing else happens, nobody
        notices that it is killed, and its task never ends.
        """
        wakeup = getattr(self, "_executor_manager_thread_wakeup", None)
        if wakeup is not None:
            with self._shutdown_lock:
                wakeup.wakeup()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        """End the processes: after their work, or at once after an exception."""
        if kind is not None:
            self.kill()
        return super().__exit__(kind, error, trace)

    def kill(self) -> None:
        """End the processes at once; what they have not done fails."""
        for process in list((self._processes or {}).values()):
            process.kill()


def _begin(begin: Callable[..., object] | None, arguments: tuple[Any, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # where there are no masks
    end_with_parent()
    if begin is not None:
        begin(*arguments)


def end_with_parent() -> None:
    """End this worker when its parent has ended, however that came.

    A thread waits for it, which needs Python's lock; on Linux the kernel sees to it besides.
    """
    parent = multiprocessing.parent_process()
    assert parent is not None, "only workers have a parent"
    threading.Thread(target=_end_after, args=(parent.sentinel,), daemon=True).start()
    if sys.platform == "linux":
        import ctypes

        with contextlib.suppress(OSError, AttributeError):  # a C library without it
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


def _end_after(sentinel: int) -> None:
    connection.wait([sentinel])
    os._exit(1)


@contextlib.contextmanager
def _without_interrupts() -> Iterator[None]:
    """Let processes start that Ctrl-C does not reach, not even while they import.

    They inherit the mask of the thread that starts them; what comes meanwhile comes afterwards.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # it would take the mask away again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _without_main() -> Iterator[None]:
    """Let processes start that do not run the caller's script again."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main
