"""Speedup curves as arrays: their whole widths, and the speedup at each."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from optsched.boa.instance import Amdahl, Table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from optsched.boa.instance import Speedup
    from optsched.documents.arrays import Floats


class SpeedupCurves(NamedTuple):
    """Speedup curves with the same whole widths.

    Attributes
    ----------
    rows
        Which of the given curves they are.
    gpus
        Shape (widths,), ascending.
    speedup
        Shape (rows, widths).
    """

    rows: list[int]
    gpus: Floats
    speedup: Floats


def curves(speedups: Iterable[Speedup]) -> list[SpeedupCurves]:
    """Return the whole widths of speedup curves and the speedups there, equal widths together."""
    rows: dict[tuple[str, Any], list[int]] = {}
    alike: dict[tuple[str, Any], list[Any]] = {}
    for row, speedup in enumerate(speedups):
        key, shape = _parts(speedup)
        rows.setdefault(key, []).append(row)
        alike.setdefault(key, []).append(shape)
    return [SpeedupCurves(rows[key], *_curves(*key, alike[key])) for key in rows]


def curve(speedup: Speedup) -> tuple[Floats, Floats]:
    """Return the whole widths of a speedup curve, ascending, and the speedup at each."""
    key, shape = _parts(speedup)
    gpus, values = _curves(*key, [shape])
    return gpus, values[0]


def speedup_at(speedup: Speedup, gpus: float) -> float:
    """Return the speedup at a real width."""
    if isinstance(speedup, Table):
        if gpus in speedup.gpus:
            return float(speedup.speedup[speedup.gpus.index(gpus)])
        return float(np.interp(gpus, *curve(speedup)))
    if isinstance(speedup, Amdahl):
        return 1 / (1 - speedup.parallel_fraction + speedup.parallel_fraction / gpus)
    return float(gpus**speedup.exponent)


def shape(speedup: Speedup) -> tuple[str, Any]:
    """Return kind and size of a curve, which tell its widths."""
    return _parts(speedup)[0]


def _parts(speedup: Speedup) -> tuple[tuple[str, Any], Any]:
    """Return kind and size of a curve, which tell its widths, and its figures."""
    if isinstance(speedup, Table):
        return (speedup.kind, speedup.gpus), speedup.speedup
    if isinstance(speedup, Amdahl):
        return (speedup.kind, speedup.max_gpus), speedup.parallel_fraction
    return (speedup.kind, speedup.max_gpus), speedup.exponent


def _curves(kind: str, size: Any, shapes: list[Any]) -> tuple[Floats, Floats]:
    if kind == "table":
        gpus, values = np.array(size, float), np.fromiter(chain.from_iterable(shapes), float)
        distinct = np.r_[True, gpus[1:] != gpus[:-1]]
        return gpus[distinct], values.reshape(len(shapes), -1)[:, distinct]
    gpus, shape = np.arange(1, size + 1, dtype=float), np.array(shapes)[:, None]
    return gpus, 1 / (1 - shape + shape / gpus) if kind == "amdahl" else gpus**shape
