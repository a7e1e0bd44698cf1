"""Points of sweeps that were computed before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from optsched.executors.cache import Cache
from optsched.sweeps.points import Point

if TYPE_CHECKING:
    from optsched.sweeps.sweep_task import SweepTask


class PointCache(Cache["SweepTask", Point]):
    """Points by the hash of what they depend on."""

    schema_id, noun = "optsched/point/1", "point"

    def body(self, value: Point) -> Any:
        """Return a point as JSON knows it."""
        return value.model_dump(mode="json", by_alias=True, exclude_none=True)

    def value(self, body: Any, task: SweepTask) -> Point:
        """Return the point of a file."""
        try:
            return Point.model_validate(body)
        except ValidationError as error:
            raise ValueError("not a point") from error
