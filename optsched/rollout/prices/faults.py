"""Faults of what nodes cost, and of budgets beside it, found in the raw document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from optsched.documents.faults import Fault, is_number, mapping, sequence, shown
from optsched.rollout.node_groups import sizes_of, type_sizes_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PRICE = "usd_per_gpu_h"


def price_faults(document: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield the faults of prices and budgets; bears fields of wrong types."""
    groups = [mapping(group) for group in sequence(document.get("nodes"))]
    prices = [group[PRICE] for group in groups if is_number(group.get(PRICE))]
    yield from _group_faults(groups)
    types = type_sizes_of(document.get("nodes"), by_market=True)
    if prices and len(types) < 2:
        n = next(n for n, group in enumerate(groups) if is_number(group.get(PRICE)))
        yield ("nodes", n, PRICE), "all GPUs are of one type: give price_usd_per_gpu_h"
    if document.get("budget_usd_per_h") is not None and not prices:
        text = f"needs prices: give {PRICE} of each group of nodes, or budget_gpus"
        yield ("budget_usd_per_h",), text
    if document.get("rented") is not None:
        yield from _rented_faults(document, groups, types)


def _group_faults(groups: list[Mapping[str, Any]]) -> Iterator[Fault]:
    """Yield the prices that are another than before for the same type and market."""
    known: dict[Any, float] = {}
    for n, group in enumerate(groups):
        name, price = group.get("gpu_type"), group.get(PRICE)
        if not (is_number(price) and isinstance(name, str | None)):
            continue
        pool = name, group.get("market") == "spot"
        if known.setdefault(pool, price) != price:
            text = f"GPUs of a type have one price, and others cost {shown(known[pool])}"
            yield ("nodes", n, PRICE), f"{shown(price)}: {text}"


def _rented_faults(
    document: Mapping[str, Any], groups: list[Mapping[str, Any]], types: Mapping[str, int]
) -> Iterator[Fault]:
    """Yield what keeps nodes from being rented: prices that lack, nodes beyond the budget."""
    if len(types) > 1:
        for n, group in enumerate(groups):
            if group.get(PRICE) is None:
                yield ("nodes", n, PRICE), "missing: rented nodes of several GPU types have prices"
        if mapping(document.get("rented")).get("at_start"):
            yield ("rented", "at_start"), "of which type is not told: leave it out"
    is_tree = document.get("topology") is not None
    sizes = [] if is_tree else sizes_of(document.get("nodes"), document.get("gpus_per_node"))
    gpus, usd = document.get("budget_gpus"), document.get("budget_usd_per_h")
    if sizes and is_number(gpus) and gpus < min(sizes):
        text = f"{shown(gpus)} GPUs: less than the smallest node, which has {min(sizes)}"
        yield ("budget_gpus",), text
    costs = [
        group["gpus"] * group[PRICE]
        for group in groups
        if is_number(group.get("gpus")) and is_number(group.get(PRICE))
    ]
    if costs and is_number(usd) and usd < min(costs):
        text = f"{shown(usd)} USD: less than the cheapest node, which costs {min(costs):g} an hour"
        yield ("budget_usd_per_h",), text
