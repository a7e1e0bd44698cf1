"""Nodes that cannot be used for a while: planned drains, and outages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from optsched.documents.base import Items
from optsched.documents.faults import Fault, is_number, mapping, sequence, shown
from optsched.instance import Document, NonNegative, Positive

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

NodeNumber = Annotated[int, Field(ge=0, le=1_000_000)]


class Downtime(Document):
    """Some nodes, for some time. No job is placed on them then; policies see them as not ready."""

    nodes: Items[NodeNumber] = Field(description="Their numbers, from 0.")
    from_s: NonNegative
    to_s: Positive | None = Field(default=None, description="If none, they never come back.")
    kind: Literal["outage", "drain"] = Field(
        default="outage",
        description="outage: jobs on them lose their GPUs and the work since the last checkpoint, "
        "and are back in the queue after `retries.delay_s`; the nodes draw nothing. drain: jobs "
        "that run there end there.",
    )


def downtime_faults(document: Mapping[str, Any], nodes: int | None) -> Iterator[Fault]:
    """Yield the faults of a scenario's `downtime`; bears fields of wrong types."""
    given = sequence(document.get("downtime"))
    if given and document.get("rented") is not None:
        yield ("downtime",), "cannot stand beside rented: a rented node that fails is replaced"
    for n, entry in enumerate(map(mapping, given)):
        start, end = entry.get("from_s"), entry.get("to_s")
        if is_number(start) and is_number(end) and end <= start:
            yield ("downtime", n, "to_s"), f"{shown(end)} after {shown(start)}: must ascend"
        for k, node in enumerate(sequence(entry.get("nodes"))):
            if nodes is not None and is_number(node) and node >= nodes:
                text = f"there is no node {shown(node)}: the last of {nodes} is {nodes - 1}"
                yield ("downtime", n, "nodes", k), text
