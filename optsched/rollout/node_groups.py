"""Nodes of unlike sizes, without a whole topology."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from optsched.cluster.topology import Name
from optsched.documents.faults import Fault, mapping, sequence
from optsched.instance import Document, NonNegative, Positive

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Count = Annotated[int, Field(ge=1, le=1_000_000)]
UNIFORM_LEVELS = ("node", "cluster")
DOMAIN_LEVELS = ("node", "domain", "cluster")
ONLY_TYPE = "gpu"
"""Of the GPUs of a cluster whose nodes name no type."""


class NodeGroup(Document):
    """Equal nodes."""

    count: Count
    gpus: Count = Field(description="Of each of them.")
    gpu_type: Name | None = Field(
        default=None,
        description="Type of their GPUs; a gang is on GPUs of one. All groups name one, or none "
        "does.",
    )
    usd_per_gpu_h: Positive | None = Field(
        default=None,
        description="Price of each of their GPUs where they are of several types, in place of "
        "`price_usd_per_gpu_h`. All groups have one, or none has; GPUs of a type and market have "
        "the same.",
    )
    market: Literal["on-demand", "spot"] = Field(
        default="on-demand",
        description="spot: their GPUs are a pool of their own, which policies know by the name of "
        "the type and '-spot', and can be taken away.",
    )
    interruptions_per_node_h: NonNegative = Field(
        default=0.0,
        description="How often a spot node that is ready is taken away. It is replaced by one that "
        "is ready after `rented.provision_s`, and jobs on it lose what came after their last "
        "checkpoint and are back in the queue after `retries.delay_s`.",
    )
    domain: Name | None = Field(
        default=None,
        description="What they stand in, such as a rack or an RDMA domain; groups may share one. "
        "All groups have one, or none has.",
    )


def sizes_of(nodes: Any, gpus_per_node: Any) -> list[int]:
    """Return the GPUs of each node of a document, as far as they can be told; bears wrong types."""
    if _is_count(nodes) and _is_count(gpus_per_node):
        return [gpus_per_node] * nodes
    sizes: list[int] = []
    for group in map(mapping, sequence(nodes)):
        count, gpus = group.get("count", 0), group.get("gpus", 0)
        if not (_is_count(count) and _is_count(gpus)):
            return []
        sizes += [gpus] * count
    return sizes


def pool_of(gpu_type: str, market: Any) -> str:
    """Return the name by which policies know GPUs of a type in a market."""
    return f"{gpu_type}-spot" if market == "spot" else gpu_type


def type_sizes_of(nodes: Any, *, by_market: bool = False) -> dict[str, int]:
    """Return the GPUs of each type that a document names, or of each pool, where they are told."""
    gpus: dict[str, int] = {}
    for group in map(mapping, sequence(nodes)):
        name, count, each = group.get("gpu_type"), group.get("count", 0), group.get("gpus", 0)
        if isinstance(name, str) and _is_count(count) and _is_count(each):
            name = pool_of(name, group.get("market") if by_market else None)
            gpus[name] = gpus.get(name, 0) + count * each
    return gpus


def levels_of(nodes: Any) -> tuple[str, ...]:
    """Return the levels of a cluster without a topology."""
    has_domains = any(mapping(group).get("domain") is not None for group in sequence(nodes))
    return DOMAIN_LEVELS if has_domains else UNIFORM_LEVELS


def node_faults(document: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield the faults of how the nodes of a scenario are given."""
    nodes, each = document.get("nodes"), document.get("gpus_per_node")
    if document.get("topology") is not None:
        for key in ("nodes", "gpus_per_node"):
            if document.get(key) is not None:
                yield (key,), "cannot stand beside topology: give one of them"
                return
        return
    missing = "missing: give nodes and gpus_per_node, or topology"
    if nodes is None:
        yield ("nodes",), missing
        return
    if isinstance(nodes, list | tuple):
        if each is not None:
            yield ("gpus_per_node",), "cannot stand beside groups of nodes, which have their own"
        for key in ("domain", "gpu_type", "usd_per_gpu_h"):
            named = [mapping(group).get(key) is not None for group in nodes]
            if any(named) and not all(named):
                yield ("nodes", named.index(False), key), "missing: the other groups have one"
    elif each is None:
        yield ("gpus_per_node",), missing


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 1_000_000
