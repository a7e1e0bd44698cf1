"""Mean JCT of policies above the certified bound of the same jobs in the same scenario."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from optsched.bounds.above import jct_above
from optsched.bounds.bound import bound_of
from optsched.bounds.schedules import Schedules, UnknownPhysics
from optsched.bounds.verify.bounds import verify_bounds
from optsched.rollout.engine.engine import Engine
from optsched.rollout.registry import make
from optsched.rollout.scenario_files import read_scenario
from optsched.rollout.trace_source import jobs_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.rollout.scenario import Scenario
    from optsched.traces.trace import Trace

HINDSIGHT = "hindsight"
ALL = Schedules()
COMMON = (
    "fifo",
    "srtf",
    "srtf:backfill=true",
    "las:backfill=true",
    "philly",
    "wsrpt",
    "wsrpt-lookahead",
)
GANGS = ("fifo:backfill=true", "tiresias")
PLACING = (
    "foresight",
    *("pal-greedy", "pal"),
    *("pal-greedy:order=srtf,backfill=true", "pal:order=srtf,backfill=true"),
)
SHARING = ("fifo-packed", "eaco-greedy", "best-delta-energy", "longest-first")
"""Those that share GPUs, without `eaco`: a rollout of it takes 40 CPU s, the others up to 2."""

POLICIES = {
    "philly-small": COMMON + GANGS,
    "pal-64": COMMON + PLACING,
    "pal-64-persistent": COMMON + PLACING,
    "eaco-28": COMMON + SHARING,
    "eaco-64": COMMON + SHARING,
    "boa-cloud": (
        *("boa-budgeted:price=0.001", "boa-budgeted:budget=160"),
        *("boa:budget=160", "one-width-per-class:budget=160"),
    ),
}
"""By scenario the policies that all of them have, and those of its own family.

On `boa-cloud` those that may have all of its 160 GPUs, at any bill, for the bound is of schedules
at any bill; those that keep a budget are set beside the bound at their bill, see `bills`.
"""
CLASSES = {"boa-cloud": Schedules(moves=False)}
"""By scenario the class of schedules that its policies are in, if less than all."""

ORDERS = {
    "fifo": "order=fifo",
    "fifo, backfill": "order=fifo,backfill=true",
    "las, backfill": "order=las,backfill=true",
    "srtf, backfill": "order=srtf,backfill=true",
}
PLACEMENTS = ("packed-sticky", "pm-first", "pal-greedy", "pal")
IN_ORDERS = "pal-64"
"""The scenario of which orders and placements are crossed."""


ESTIMATED = ("philly-small", "pal-64", "pal-64-persistent")
TOLD: dict[str, dict[str, object]] = {
    "the truth": {},
    "sigma 0.5": {"kind": "noisy", "sigma": 0.5},
    "sigma 1": {"kind": "noisy", "sigma": 1.0},
    "means of what has ended": {"kind": "history"},
}
"""What policies are told of run times: the truth times a lognormal error, or what was seen."""
GUESSING = ("srtf", "srtf:backfill=true", "wsrpt", "wsrpt-lookahead", "las:backfill=true")
"""Those that go by remaining times, and one that knows none."""


@dataclass
class Row:
    """A policy over seeds.

    Attributes
    ----------
    above
        By seed the mean JCT over its bound, less 1; None where jobs did not end, for then the mean
        is not of the same jobs.
    below
        The seeds on which it is below its bound, which refutes the bound.
    unfinished
        By seed how many jobs did not end, where some did not.
    """

    policy: str
    above: dict[int, float | None] = field(default_factory=dict)
    below: list[int] = field(default_factory=list)
    unfinished: dict[int, int] = field(default_factory=dict)


@dataclass
class Bracket:
    """A scenario's policies beside its bound.

    Attributes
    ----------
    bounds_s
        By seed, each verified.
    reason
        Why there is nothing to set policies beside, if so.
    """

    scenario: str
    bounds_s: dict[int, float] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    reason: str | None = None


def bracket(name: str, policies: Sequence[str], seeds: Sequence[int]) -> Bracket:
    """Return policies beside the bounds of a scenario, on the same jobs seed by seed."""
    allowed = CLASSES.get(name, ALL)
    return bracket_of(read_scenario(name), name, policies, seeds, allowed)


def estimated(name: str, told: str, policies: Sequence[str], seeds: Sequence[int]) -> Bracket:
    """Return policies that are told of run times as `TOLD` has it; bounds do not depend on that."""
    scenario = read_scenario(name)
    if TOLD[told]:
        scenario = scenario.changed({"estimates": TOLD[told]})
    return bracket_of(scenario, f"{name}, {told}", policies, seeds)


def bracket_of(
    scenario: Scenario,
    name: str,
    policies: Sequence[str],
    seeds: Sequence[int],
    allowed: Schedules = ALL,
) -> Bracket:
    """Return policies beside the bounds of a scenario, over the schedules that are allowed."""
    found = Bracket(name)
    traces = {seed: jobs_of(scenario, seed=seed) for seed in seeds}
    try:
        found.bounds_s = {s: proven_s(scenario, trace, allowed) for s, trace in traces.items()}
    except UnknownPhysics as refusal:
        found.reason = str(refusal)
    if found.reason is None:
        found.rows = [Row(policy) for policy in policies]
        for row in found.rows:
            for seed, trace in traces.items():
                roll_out(row, scenario, trace, seed, found.bounds_s[seed], allowed)
    return found


def proven_s(scenario: Scenario, trace: Trace, allowed: Schedules = ALL) -> float:
    """Return a bound of mean JCT in seconds, after its verifier has proven it."""
    bounds = bound_of(scenario, trace, allowed)
    verify_bounds(scenario, trace, bounds)
    assert bounds.jct_mean_s is not None, "a trace with jobs has a mean JCT"
    return bounds.jct_mean_s


def roll_out(
    row: Row,
    scenario: Scenario,
    trace: Trace,
    seed: int,
    bound_s: float,
    allowed: Schedules = ALL,
) -> None:
    """Add what a policy reaches on a trace to its row.

    Raises
    ------
    ValueError
        If it moved jobs, and the bound is of schedules that do not.
    """
    record = Engine(scenario, trace, make(row.policy, scenario, seed), seed).run()
    if not allowed.moves and record.jobs.migrations.any():
        raise ValueError(f"policy '{row.policy}' moves jobs, which the bound leaves out")
    above = jct_above(record, bound_s)
    if above is None:
        row.above[seed], row.unfinished[seed] = None, int((record.jobs.end_us < 0).sum())
        return
    row.above[seed] = float(above)
    if above < 0:
        row.below.append(seed)


def orders_by_placements(seeds: Sequence[int]) -> Bracket:
    """Return every order with every placement; the policies are in the order of `crossed`."""
    return bracket(IN_ORDERS, [crossed(p, o) for o in ORDERS for p in PLACEMENTS], seeds)


def crossed(placement: str, order: str) -> str:
    """Return the policy of a placement and an order."""
    return f"{placement}:{ORDERS[order]}"
