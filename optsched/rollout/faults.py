"""Faults of scenarios that concern several fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from optsched.instance import Fault


def scenario_faults(document: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield the faults of a scenario's document; bears fields of wrong types."""
    has_topology = document.get("topology") is not None
    uniform = [key for key in ("nodes", "gpus_per_node") if document.get(key) is not None]
    if has_topology and uniform:
        yield (uniform[0],), "cannot stand beside topology: give one of them"
    if not has_topology and len(uniform) < 2:
        yield ("nodes",), "missing: give nodes and gpus_per_node, or topology"
