"""Power levels of groups, and what keeps a cluster below its power cap; both are optsched's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.eaco.greedy import node_packing
from optsched.eaco.greedy.grouping import Grouping

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.eaco.greedy.group_costs import Draft, GroupCosts


def with_best_levels(grouping: Grouping) -> Grouping:
    """Return the same groups, each at the power level that costs least within its tolerances."""
    cost = grouping.estimates.cost
    best = [
        min([draft, *_levels(grouping.estimates, draft)], key=cost) for draft in grouping.drafts
    ]
    return _like(grouping, best)


def capped(grouping: Grouping) -> Grouping:
    """Return groups that keep the power cap, where lower levels and waiting can do it.

    As long as the cluster draws too much, the change is made that costs least per watt that it
    saves: a lower level of a group within its tolerances; if there is none left, a group waits.
    """
    cap = grouping.estimates.instance.power_cap_w
    power = None if cap is None else power_w(grouping)
    while cap is not None and power is not None and power > cap:
        change = _best_level(grouping) or _best_to_wait(grouping)
        if change is None:
            return grouping
        old, new = change
        drafts = [draft for draft in grouping.drafts if draft != old]
        grouping = _like(grouping, [*drafts, new] if new else drafts)
        if new is None:
            grouping.wait(old.jobs)
        power = power_w(grouping)
    return grouping


def power_w(grouping: Grouping) -> float | None:
    """Return the watts of the cluster, or None if the groups do not fit on its nodes."""
    estimates, numbers = grouping.estimates, node_packing.pack(grouping.estimates, grouping.drafts)
    if numbers is None:
        return None
    watts = float(estimates.instance.idle_floor_w)
    used: dict[tuple[int, int], int] = {}
    for draft, first in zip(grouping.drafts, numbers, strict=True):
        gang, nodes = estimates.gang(draft), estimates.pool(draft)
        watts += gang * estimates.peak_w(draft)
        for number in range(first, first + max(1, gang // nodes.gpus)):
            key = (draft.nodes, number)
            used[key] = used.get(key, 0) + min(gang, nodes.gpus)
    for (pool, _), gpus in used.items():
        nodes = estimates.nodes[pool]
        watts += nodes.power.base_w - nodes.power.sleep_w
        watts += (nodes.gpus - gpus) * estimates.gpus[nodes.gpu].power.bare_w
    return watts


def _levels(estimates: GroupCosts, draft: Draft) -> Iterator[Draft]:
    """Yield a group at each power level that it may have."""
    for level in range(len(estimates.levels(draft))):
        other = draft._replace(level=level)
        if estimates.allowed(other):
            yield other


def _best_level(grouping: Grouping) -> tuple[Draft, Draft | None] | None:
    """Return the group and its lower level that cost least per watt, as long as there is one."""
    estimates, best, least = grouping.estimates, None, float("inf")
    for draft in grouping.drafts:
        now, gang = estimates.peak_w(draft), estimates.gang(draft)
        for other in _levels(estimates, draft):
            saved = gang * (now - estimates.peak_w(other))
            if saved <= 0:
                continue
            price = (estimates.cost(other) - estimates.cost(draft)) / saved
            if price < least:
                best, least = (draft, other), price
    return best


def _best_to_wait(grouping: Grouping) -> tuple[Draft, Draft | None] | None:
    """Return the group, all of whose jobs may wait, that costs least per watt of it."""
    estimates, best, least = grouping.estimates, None, float("inf")
    for draft in grouping.drafts:
        if any(estimates.jobs[n].waiting_penalty_kwh is None for n in draft.jobs):
            continue
        extra = sum(estimates.waiting_cost(n) for n in draft.jobs) - estimates.cost(draft)
        drawn = estimates.gang(draft) * estimates.peak_w(draft)
        price = extra / drawn if drawn else float("inf")  # its node may draw something yet
        if best is None or price < least:
            best, least = (draft, None), price
    return best


def _like(grouping: Grouping, drafts: list[Draft]) -> Grouping:
    other = Grouping(grouping.estimates, drafts)
    other.wait(grouping.waiting)
    return other
