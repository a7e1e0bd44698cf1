"""What bounds say of rollouts: a row for each policy and seed, and its means over seeds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from optsched.instance import Document

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

BOUNDED = ("jct_mean_s", "makespan_s", "energy_kwh")
"""Metrics that have a bound: `<metric>_bound` beside them, and `<metric>_above`."""
BELOW = "below the bound: no schedule of the modelled world does so, the modelled world is too slow"


class BoundRow(Document):
    """A rollout, or a recorded schedule, beside what no schedule of its class can be below."""

    policy: str
    seed: int
    jct_mean_s_bound: float | None = Field(
        default=None, description="No schedule of the class has a smaller mean JCT."
    )
    jct_mean_s_above: float | None = Field(
        default=None, description="Its mean JCT over that, less 1; none if jobs did not end."
    )
    makespan_s_bound: float | None = Field(
        default=None, description="No schedule of the class has a smaller makespan."
    )
    makespan_s_above: float | None = Field(default=None, description="As of the mean JCT.")
    energy_kwh_bound: float | None = Field(
        default=None, description="No schedule of the class takes less energy; none without watts."
    )
    energy_kwh_above: float | None = Field(default=None, description="As of the mean JCT.")
    schedules: str = Field(default="", description="The class of schedules, in words.")

    @property
    def is_below(self) -> bool:
        """Whether something is below its bound."""
        return min(getattr(self, f"{metric}_above") or 0.0 for metric in BOUNDED) < 0

    def figures(self) -> dict[str, float | None]:
        """Return bounds, and how far above them it is, by name."""
        return {name: getattr(self, name) for name in names()}


def names() -> list[str]:
    """Return the names of the figures of a row."""
    return [f"{metric}_{what}" for metric in BOUNDED for what in ("bound", "above")]


def means(rows: Iterable[BoundRow]) -> dict[str, float | None]:
    """Return the means of rows over seeds; None where one of them has none."""
    table = [row.figures() for row in rows]
    return {name: _mean([row[name] for row in table]) for name in names()}


def bounded(figures: Mapping[str, object]) -> list[str]:
    """Return the metrics of which figures have a bound."""
    return [metric for metric in BOUNDED if figures.get(f"{metric}_bound") is not None]


def classes(rows: Iterable[BoundRow]) -> str:
    """Return the classes of schedules of rows, in words."""
    return "; or: ".join(dict.fromkeys(row.schedules for row in rows))


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None
