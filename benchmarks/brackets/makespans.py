"""Makespans of policies above the certified bound of the same jobs."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from benchmarks.brackets.measure import ALL, CLASSES
from optsched.bounds.least_times import world_of
from optsched.bounds.relaxation.makespan_values import makespan_certificate
from optsched.bounds.verify.bounds import proven_makespan_s
from optsched.rollout.run import simulate
from optsched.rollout.scenario_files import read_scenario
from optsched.rollout.trace_source import jobs_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

GANGS = ("lrpt", "wsrpt", "las:backfill=true", "fifo:backfill=true")
SHARED = ("fifo-packed", "lrpt", "longest-first", "fifo")
POLICIES = {
    "philly-small": GANGS,
    "pal-64": GANGS,
    "pal-64-persistent": GANGS,
    "eaco-28": SHARED,
    "eaco-64": SHARED,
    "boa-cloud": ("boa", "boa-budgeted", "one-width-per-class"),
}


def makespans(name: str, policies: Sequence[str], seeds: Sequence[int]) -> dict[str, list[float]]:
    """Return by policy and seed the makespan over its proven bound, less 1."""
    scenario, allowed = read_scenario(name), CLASSES.get(name, ALL)
    found: dict[str, list[float]] = {policy: [] for policy in policies}
    for seed in seeds:
        trace = jobs_of(scenario, seed=seed)
        world = world_of(scenario, trace, allowed)
        bound_s = proven_makespan_s(world, makespan_certificate(world))
        for policy in policies:
            figures = simulate(scenario, policy, trace=trace, seed=seed).metrics
            assert not figures["unfinished"], "jobs did not end"
            assert allowed.moves or not figures["migrations"], "the bound leaves moves out"
            found[policy].append((figures["makespan_s"] or 0.0) / bound_s - 1)
    return found


def makespans_markdown(found: Mapping[str, Mapping[str, list[float]]], head: str) -> str:
    """Return a table with a row for each scenario and policy: the median over seeds, and worst."""
    lines = [
        head,
        "",
        "| scenario | policy | makespan above the bound | worst |",
        "|---|---|---:|---:|",
    ]
    for name, rows in found.items():
        for policy, values in rows.items():
            cells = f"{100 * median(values):,.1f} % | {100 * max(values):,.1f} %"
            lines.append(f"| {name} | `{policy}` | {cells} |")
    return "\n".join(lines)
