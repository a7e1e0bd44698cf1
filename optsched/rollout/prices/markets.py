"""Nodes of the spot market: what is wrong with how they are given, and offers as BOA knows them."""

from __future__ import annotations

from fractions import Fraction
from math import isfinite
from typing import TYPE_CHECKING, Any, TypeGuard

from optsched.boa.offers import Offer
from optsched.documents.faults import Fault, is_number, mapping, sequence, shown
from optsched.rollout.node_groups import ONLY_TYPE, pool_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from optsched.rollout.scenario import Scenario

RATE = "interruptions_per_node_h"


def interruption_rates(scenario: Scenario) -> list[float]:
    """Return of each node how often it is taken away an hour; empty if none ever is."""
    groups = scenario.node_groups
    if not any(group.interruptions_per_node_h for group in groups):
        return []
    return [group.interruptions_per_node_h for group in groups for _ in range(group.count)]


def offers(scenario: Scenario) -> dict[str, Offer]:
    """Return by pool (`pool_of`) the offer that it is in the problem BOA.

    A node that is taken away is replaced after `rented.provision_s`, while its job waits for
    `retries.delay_s` as well. Where pools have groups of unlike sizes, nodes are of the largest.
    """
    provision_s = 0.0 if scenario.rented is None else scenario.rented.provision_s
    found: dict[str, Offer] = {}
    for group in scenario.node_groups:
        name, before = pool_of(group.gpu_type or ONLY_TYPE, group.market), 0
        if name in found:
            before = found[name].gpus_per_node
        found[name] = Offer(
            id=name,
            gpu_type=name,
            market=group.market,
            usd_per_gpu_h=group.usd_per_gpu_h or 1.0,
            gpus_per_node=max(group.gpus, before),
            interruptions_per_node_h=group.interruptions_per_node_h,
            restart_s=provision_s + scenario.retries.delay_s if group.market == "spot" else 0.0,
        )
    return found


def market_faults(document: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield the faults of markets and interruptions; bears fields of wrong types."""
    groups = [mapping(group) for group in sequence(document.get("nodes"))]
    bought = [group.get("gpu_type") for group in groups if group.get("market") != "spot"]
    named = {name for name in bought if isinstance(name, str)}
    rates: dict[str, Any] = {}
    for n, group in enumerate(groups):
        name, rate = group.get("gpu_type"), group.get(RATE, 0)
        if group.get("market") != "spot":
            if is_number(rate) and rate:
                text = "must be 0 where the market is 'on-demand'; only 'spot' is interrupted"
                yield ("nodes", n, RATE), text
            continue
        if not isinstance(name, str):
            yield ("nodes", n, "gpu_type"), "missing: nodes of the spot market name their type"
            continue
        if pool_of(name, "spot") in named:
            text = f"{shown(pool_of(name, 'spot'))} would be this pool, and is a type of its own"
            yield ("nodes", n, "gpu_type"), text
        if rates.setdefault(name, rate) != rate:
            text = f"{shown(rate)}: others of the type are taken away {shown(rates[name])} times"
            yield ("nodes", n, RATE), text
        if _is_finite(rate) and rate > 0:
            yield from _interruption_faults(document, n, rate)


def _interruption_faults(document: Mapping[str, Any], n: int, rate: float) -> Iterator[Fault]:
    """Yield why nodes cannot be taken away: owned ones, or jobs that would never get on."""
    if document.get("rented") is None:
        yield ("nodes", n, RATE), "needs rented: nodes that are owned have downtime"
    every_s = mapping(document.get("costs")).get("checkpoint_every_s")
    if every_s is None:
        text = "missing: jobs on spot nodes would lose all work at each interruption"
        yield ("costs", "checkpoint_every_s"), text
    elif _is_finite(every_s) and Fraction(rate) * Fraction(every_s) > 3600:
        yield ("nodes", n, RATE), "eats all work: more than one interruption for each checkpoint"


def _is_finite(value: Any) -> TypeGuard[int | float]:
    """Tell whether a value in a raw document is a number other than inf and nan."""
    return is_number(value) and (isinstance(value, int) or isfinite(value))
