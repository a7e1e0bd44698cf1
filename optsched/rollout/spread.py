"""What distance costs a gang: its speed by the number of servers, and domains, that it is on."""

from __future__ import annotations

import math
from bisect import bisect_right
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from optsched.documents.base import Items
from optsched.documents.faults import Fault, is_number, mapping, prefixed, sequence, shown
from optsched.instance import Document

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Factor = Annotated[float, Field(ge=1e-6, le=1, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=1_000_000)]


class Ladder(Document):
    """Speeds relative to one server, domain or GPU; they do not rise with the number of them.

    Between two numbers the speed is a power of the number, so that what a gang loses from n to 2 n
    depends on n alone through the rungs around it. Above the last number it stays as it is there:
    nothing is claimed of what nobody measured.
    """

    counts: Items[Count] = Field(description="Numbers of servers, domains or GPUs, from 1 up.")
    speed: Items[Factor] = Field(description="The speed on so many; 1 on one.")

    def at(self, count: int) -> float:
        """Return the speed on some number of servers or domains."""
        above = bisect_right(self.counts, count)
        if above == len(self.counts):
            return self.speed[-1]
        low, high = self.counts[above - 1 : above + 1]
        near, far = self.speed[above - 1 : above + 1]
        share = math.log(count / low) / math.log(high / low)
        return near * math.pow(far / near, share)


class Spread(Document):
    """Speed of a gang by how far it is spread, relative to the best place its size can have.

    Source of the default: Jeon et al., USENIX ATC 2019: two GPUs on one and on two servers, 114.8
    and 98.0 images/s (table 4); gangs of 16 on 2, 4 and 8 servers use 43.66, 40.94 and 28.56 % of
    their GPUs (table 5), which is taken for their speeds.
    """

    servers: Ladder = Field(
        default=Ladder(counts=(1, 2, 4, 8), speed=(1.0, 0.854, 0.8, 0.558)),
        description="By the number of servers.",
    )
    domains: Ladder | None = Field(
        default=None,
        description="By the number of domains right above the servers, such as racks; no loss if "
        "not given.",
    )


def spread_faults(document: Mapping[str, Any], levels: tuple[str, ...]) -> Iterator[Fault]:
    """Yield the faults of `spread` and `recorded_speed` of a scenario; bears wrong types."""
    spread = mapping(document.get("spread"))
    yield from prefixed(("recorded_speed",), _ladder_faults(document.get("recorded_speed")))
    for key in ("servers", "domains"):
        yield from prefixed(("spread", key), _ladder_faults(spread.get(key)))
    if spread.get("domains") is not None and levels and len(levels) < 3:
        text = f"there are no domains between {levels[0]} and {levels[-1]}"
        yield ("spread", "domains"), text


def _ladder_faults(ladder: Any) -> Iterator[Fault]:
    counts, speeds = (sequence(mapping(ladder).get(key)) for key in ("counts", "speed"))
    if not counts or not all(map(is_number, (*counts, *speeds))):
        return
    if len(counts) != len(speeds):
        yield ("speed",), f"has {len(speeds)} values for {len(counts)} counts"
    if counts[0] != 1:
        yield ("counts", 0), f"must begin with 1, found {shown(counts[0])}"
    if speeds and speeds[0] != 1:
        yield ("speed", 0), f"is the speed in one place: must be 1, found {shown(speeds[0])}"
    for n, (before, after) in enumerate(pairwise(counts), start=1):
        if after <= before:
            yield ("counts", n), f"{shown(after)} after {shown(before)}: must ascend"
    for n, (before, after) in enumerate(pairwise(speeds), start=1):
        if after > before:
            yield ("speed", n), f"{shown(after)} after {shown(before)}: must not rise"
