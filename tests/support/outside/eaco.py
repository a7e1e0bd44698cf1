"""EaCO from its mathematics alone: documents go in, fractions come out, nothing of the project.

`optimum` tries every group of every partition at every level and place; `examine` a single plan.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations

from tests.support.outside.eaco_groups import KWH, Cluster, by_id


def examine(document, plan):
    """Every rule that a plan breaks, and its objective, twice."""
    c, total, watts = Cluster(document), Fraction(0), Fraction(0)
    groups, waiting = plan.get("groups", ()), plan.get("waiting", ())
    if sorted([*(j for g in groups for j in g["jobs"]), *waiting]) != sorted(c.jobs):
        return ["every job once"], None
    faults, loads, places = [], Counter(), Counter()
    for job in waiting:
        if c.jobs[job].get("waiting_penalty_kwh") is None:
            return ["may wait"], None
        total += c.waiting_cost(job)
    for g in groups:
        pool, level, place = c.nodes[g["nodes"]], g.get("level"), g.get("location")
        if not c.may_run(g["jobs"], pool, level, place):
            return ["may run"], None
        first = g.get("node", 0)
        if place is not None and c.places[place].get("node", 0) != first:
            faults.append("node of the location")
        places[place] += place is not None
        for number in c.numbers(g["jobs"], pool, first):
            loads[pool["id"], number] += min(c.size(g["jobs"][0]), pool["gpus"])
        cost, drawn = c.group(g["jobs"], pool, level, place)
        total, watts = total + cost, watts + drawn
    for (name, number), used in loads.items():
        if used > c.nodes[name]["gpus"] or number >= c.nodes[name]["count"]:
            faults.append("room of a node")
        cost, drawn = c.node(c.nodes[name], number)
        total, watts = total + cost, watts + drawn
    cap = document.get("power_cap_w")
    if cap is not None and c.floor_w() + watts > Fraction(cap):
        faults.append("power cap")
    if max(places.values(), default=0) > 1:
        faults.append("location once")
    return faults, (total, total)


def optimum(document):
    """The least objective of all plans, twice; (None, None) if there is none."""
    c = Cluster(document)
    cap = document.get("power_cap_w")
    headroom = None if cap is None else Fraction(cap) - c.floor_w()
    start = (frozenset(c.jobs), frozenset(), frozenset())
    states = {start: {Fraction(0): Fraction(0)}}  # of what is left, loads, places: cost by watts
    if headroom is not None and headroom < 0:
        return None, None
    while any(left for left, _, _ in states):
        after = {}
        for (left, loads, places), costs in states.items():
            for key, cost, watts in _next(c, left, loads, places):
                own = after.setdefault(key, {})
                for drawn, so_far in costs.items():
                    total = drawn + watts if headroom is not None else Fraction(0)
                    if headroom is None or total <= headroom:
                        own[total] = min(own.get(total, so_far + cost), so_far + cost)
        states = {key: own for key, own in after.items() if own}
    least = min((cost for costs in states.values() for cost in costs.values()), default=None)
    return least, least


def _next(c, left, loads, places):
    """What may become of the first job that is left, and of others beside it."""
    if not left:
        yield (left, loads, places), Fraction(0), Fraction(0)
        return
    first, *others = [job for job in c.jobs if job in left]
    if c.jobs[first].get("waiting_penalty_kwh") is not None:
        yield (left - {first}, loads, places), c.waiting_cost(first), Fraction(0)
    for size in range(min(len(others) + 1, c.document.get("max_jobs_per_gpu", 4))):
        for beside in combinations(others, size):
            jobs = (first, *beside)
            for pool, place, cost, watts in _variants(c, jobs):
                if place in places:
                    continue
                for held, node_cost, node_w in _spots(c, jobs, pool, place, dict(loads)):
                    taken = places | {place} if place is not None else places
                    key = (left - set(jobs), frozenset(held.items()), taken)
                    yield key, cost + node_cost, watts + node_w


def _variants(c, jobs):
    """Every way in which a group may run, with its cost and watts."""
    memory = c.__dict__.setdefault("variants", {})
    if jobs not in memory:
        memory[jobs] = [
            (pool, place, *c.group(jobs, pool, level, place))
            for pool in c.nodes.values()
            for level in (None, *by_id(c.gpus[pool["gpu"]].get("levels", ())))
            for place in (None, *c.places)
            if c.may_run(jobs, pool, level, place)
        ]
    return memory[jobs]


def _spots(c, jobs, pool, place, loads):
    """Loads after a group is put on each node that has room, and what new nodes cost and draw."""
    fixed = None if place is None else c.places[place].get("node", 0)
    for number in range(pool["count"]) if fixed is None else (fixed,):
        held, cost, watts = dict(loads), Fraction(0), Fraction(0)
        for n in c.numbers(jobs, pool, number):
            if (pool["id"], n) not in held:
                more = c.node(pool, n)
                cost, watts = cost + more[0], watts + more[1]
            held[pool["id"], n] = held.get((pool["id"], n), 0) + min(c.size(jobs[0]), pool["gpus"])
            if n >= pool["count"] or held[pool["id"], n] > pool["gpus"]:
                break
        else:
            yield held, cost, watts


def unit(document):
    if document.get("objective") == "eaco":
        return "weighted kWh and h"
    if document.get("price_usd_per_kwh") is not None:
        return "USD"
    return "kWh" if document.get("carbon_g_per_kwh") is None else "g CO2"


def gap_scale(document, plan):
    """What an epoch costs at most: in it energy and credits may cancel."""
    if document.get("objective") != "epoch":
        return Fraction(0)
    c, watts = Cluster(document), Fraction(0)
    for pool in document["nodes"]:
        peak = Fraction(c.gpus[pool["gpu"]]["power"]["peak_w"])
        watts += pool["count"] * (pool["gpus"] * peak + Fraction(pool["power"]["base_w"]))
    return watts * Fraction(document["epoch_s"]) / KWH * c.per_kwh
