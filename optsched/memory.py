"""Memory: what a machine has free, and methods that would need more, refused before they begin."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from optsched.registry import problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.instance import Instance
    from optsched.registry import Method

CGROUPS = (  # limit and use of a control group, version 2 and 1, and what its use consists of
    (
        "/sys/fs/cgroup/memory.max",
        "/sys/fs/cgroup/memory.current",
        "/sys/fs/cgroup/memory.stat",
    ),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
        "/sys/fs/cgroup/memory/memory.stat",
    ),
)
CACHED = ("inactive_file", "total_inactive_file")  # counts as use, but is given up when asked for
SMALL = 32 * 2**20
"""Bytes below which what is free is not asked for: that takes a millisecond."""
NEW_OBJECTS = 50_000
"""After how many new objects the garbage collector looks at them during a solve."""


class TooLarge(ValueError):
    """A method needs more memory than there is for an instance; it was not begun.

    Examples
    --------
    >>> import optsched
    >>> try:
    ...     optsched.solve("boa/cbd-85", memory_gib=1e-9)
    ... except optsched.TooLarge as error:
    ...     print("not begun")
    not begun
    """


def available() -> int:
    """Return how many bytes this process may still take: of the machine, or its control group."""
    import psutil

    return min([int(psutil.virtual_memory().available), *_left_to_group()])


def _left_to_group() -> Iterator[int]:
    for paths in CGROUPS:
        try:
            most, used, parts = (Path(path).read_text().strip() for path in paths)
        except OSError:
            continue
        if most.isdecimal() and used.isdecimal():  # no limit is "max" in version 2
            shares = dict(line.split() for line in parts.splitlines())
            cached = max(int(shares.get(name, 0)) for name in CACHED)
            yield max(0, int(most) - int(used) + cached)


def must_fit(instance: Instance, method: Method, memory_gib: float | None) -> None:
    """Refuse a method whose estimate exceeds the memory, before anything is built.

    Parameters
    ----------
    memory_gib
        GiB that it may take; by default what is free.

    Raises
    ------
    TooLarge
        With the estimate, and a method that fits, if there is one.
    """
    entry = problem(instance.problem)
    needed = None if method.plugin else entry.memory(instance, method.name)
    if needed is None or (memory_gib is None and needed <= SMALL):
        return
    given = available() if memory_gib is None else memory_gib * 2**30
    if needed <= given:
        return
    raise TooLarge(
        f"{instance.name}: method '{method.name}' needs about {_gib(needed)}, "
        f"but {_given(given)} are {'free' if memory_gib is None else 'given'}; "
        + _what_fits(instance, method, given)
    )


def _what_fits(instance: Instance, method: Method, given: float) -> str:
    """Return in words the first other method that fits, or that there is none."""
    entry = problem(instance.problem)
    others = [other for other in entry.methods if other.name != method.name]
    needs = {other.name: entry.memory(instance, other.name) for other in others}
    known = {name: need for name, need in needs.items() if need is not None}
    for name, need in known.items():
        if need <= given:
            return f"method '{name}' needs about {_gib(need)}"
    if not known:
        return "no other method is known to fit"
    least = min(known, key=known.__getitem__)
    return f"no method fits: '{least}' needs least, about {_gib(known[least])}"


def _gib(count: float) -> str:
    gib = count / 2**30
    return f"{gib:,.0f} GiB" if gib >= 10 else f"{gib:.1f} GiB" if gib >= 0.1 else "0.1 GiB"


def _given(count: float) -> str:
    return _gib(count) if count >= 0.1 * 2**30 else f"{count / 2**20:,.1f} MiB"


@contextmanager
def spared_collections() -> Iterator[None]:
    """Keep the garbage collector off what is there already: instances have many small parts.

    Visiting them again and again is half of the time of a solve with a hundred thousand phases.
    Plans have many parts, too, so that new ones are looked at less often.
    """
    if gc.get_freeze_count():
        yield  # somebody else does so
        return
    gc.collect(1)  # what the last solve left: once frozen it would never be young again
    gc.freeze()
    thresholds = gc.get_threshold()
    gc.set_threshold(NEW_OBJECTS, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()
