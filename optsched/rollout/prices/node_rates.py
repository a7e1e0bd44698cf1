"""Prices of nodes in whole numbers, so that bills add up exactly, whatever happens between."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.rollout.node_groups import ONLY_TYPE, pool_of
from optsched.traces.trace import US

if TYPE_CHECKING:
    from optsched.rollout.scenario import Scenario

NANO = 10**9
BILL = NANO * 3600 * US
"""Of a bill, in a USD: it is an integral of nano-USD per hour over microseconds."""


def prices_of_types(scenario: Scenario) -> dict[str, float]:
    """Return by type and market what a GPU costs an hour, in USD, where groups have prices."""
    priced = [group for group in scenario.node_groups if group.usd_per_gpu_h]
    return {pool_of(g.gpu_type or ONLY_TYPE, g.market): g.usd_per_gpu_h or 0.0 for g in priced}


def node_rates(scenario: Scenario) -> list[int]:
    """Return what each node costs, in nano-USD per hour; 0 where groups of nodes have no price."""
    if not scenario.has_prices:
        return []
    return [
        round((group.usd_per_gpu_h or 0.0) * NANO) * group.gpus
        for group in scenario.node_groups
        for _ in range(group.count)
    ]
