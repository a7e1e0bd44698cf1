"""Ctrl-C and SIGTERM, from the first moment of the command line to the last.

Where a command would catch `KeyboardInterrupt`, that is raised, and the command ends with what it
has. Anywhere else the process ends at once, with one line: in the middle of an import, where an
exception leaves half a module, whose users then fail in any way; and before and after the command.
The second Ctrl-C ends the process wherever it is.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

ENDS = {signal.SIGINT: ("interrupted", 130), signal.SIGTERM: ("terminated", 143)}
LONGEST_CPU_S, LONGEST_S = 10.0, 60.0  # from Ctrl-C to the end, for what hangs in a lock, say


class _Process:
    """What is known of this process: it has one command and one state of signals."""

    number: int | None = None  # of the signal that came
    catches = False  # whether KeyboardInterrupt would be caught


def install() -> None:
    """Handle the signals that the caller has not told this process to ignore."""
    for number in ENDS:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _handle)
            sys.unraisablehook = _raise_again
            threading.excepthook = _unless_interrupted


@contextlib.contextmanager
def caught() -> Iterator[None]:
    """Let signals raise `KeyboardInterrupt` here."""
    try:
        _Process.catches = True
        yield
    finally:
        _Process.catches = False


def has_come() -> bool:
    """Tell whether a signal has come."""
    return _Process.number is not None


def told() -> tuple[str, int]:
    """Return what is said of the signal that came, and the exit code."""
    return ENDS[signal.Signals(_Process.number or signal.SIGINT)]


def leave(code: int) -> NoReturn:
    """End the process without waiting for threads: HiGHS may not listen for long."""
    _release()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):  # closed, or None
            stream.flush()
    os._exit(code)


def _handle(number: int, frame: FrameType | None) -> None:
    is_first = _Process.number is None
    _Process.number = number
    if not is_first or not _Process.catches or _is_importing(frame):
        _end_at_once()
    # Not by `threading`: this may stand in the midst of it, with its locks held.
    _thread.start_new_thread(_end_later, ())
    raise KeyboardInterrupt


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _end_at_once() -> NoReturn:
    text, code = told()
    with contextlib.suppress(OSError):
        # What draws on a terminal has hidden the cursor, and is in the middle of a line.
        line = f"\r\x1b[K\x1b[?25h{text}\n" if os.isatty(2) else f"{text}\n"
        os.write(2, line.encode())
    _thread.start_new_thread(_exit_after, (code, 1.0))  # what follows may hang in a lock
    _release()
    os._exit(code)


def _exit_after(code: int, seconds: float) -> None:
    time.sleep(seconds)
    os._exit(code)


def _release() -> None:
    """Remove semaphores that processes shared, of which Python would complain afterwards."""
    util = sys.modules.get("multiprocessing.util")
    with contextlib.suppress(Exception):
        getattr(util, "_run_finalizers")(0)  # noqa: B009 - it has no public name


def _end_later() -> None:
    cpu_s, wall_s = time.process_time() + LONGEST_CPU_S, time.monotonic() + LONGEST_S
    while time.process_time() < cpu_s and time.monotonic() < wall_s:
        time.sleep(0.1)
    _end_at_once()


def _raise_again(unraisable: sys.UnraisableHookArgs) -> None:
    """Deal with an interrupt that came where Python ignores exceptions: in a destructor, say."""
    if not isinstance(unraisable.exc_value, KeyboardInterrupt):
        if not has_come():
            sys.__unraisablehook__(unraisable)
        return
    _thread.start_new_thread(_send_again, (_Process.number or signal.SIGINT,))
    _Process.number = None


def _unless_interrupted(failed: threading.ExceptHookArgs) -> None:
    """Say nothing of threads that fail since their work was ended: Python 3.11's pools do so."""
    if not has_come():
        threading.__excepthook__(failed)


def _send_again(number: int) -> None:
    time.sleep(0.01)
    os.kill(os.getpid(), number)
