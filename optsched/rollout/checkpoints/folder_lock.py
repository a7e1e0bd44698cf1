"""One rollout at a time in a folder: a lock that the system drops with the process that has it."""

from __future__ import annotations

import contextlib
import errno
import os
from typing import TYPE_CHECKING

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAME = ".rollout.lock"
TAKEN = (errno.EAGAIN, errno.EACCES)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other rollouts out of a folder.

    The lock is one of the system on an open file (`flock`), so it ends with the process, however
    that ends. Over NFS it holds between hosts if the server locks; where a file system has no
    locks, or the system no `flock`, the rollout goes on without.

    Raises
    ------
    ValueError
        If another rollout runs in the folder.
    """
    if fcntl is None:
        yield
        return
    path = folder / NAME
    file = _taken(path)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            path.unlink()  # before the lock goes: who waits for it sees that its file has no name
        os.close(file)


def _taken(path: Path) -> int:
    """Return a file that is locked and still has its name."""
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in TAKEN:
                os.close(file)
                text = "another rollout runs in this folder; wait for its end, or name another one"
                raise ValueError(f"{path.parent}: {text}") from None
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file), path.stat()):
                return file
        os.close(file)
