"""Declarations of Pollux and Sia."""

from __future__ import annotations

from optsched.rollout.declarations.entry import POLICIES, Entry
from optsched.rollout.policy_needs import BATCHES, SPEEDUPS

_POLLUX = "Pollux, OSDI 2021, petuum/adaptdl, branch osdi21-artifact"
_SPEEDUP = (
    "Goodput is known beforehand: throughput x statistical efficiency where the scenario's models "
    "have batch sizes, else the speedups given (as measured at each width's best batch, say); "
    "there, it is fitted while a job runs. Jobs get on at it under every policy."
)
_POLLUX_FAITHFUL = (
    "The power mean (p = -1) of goodputs over that at a fair share, its penalty of restarts, the "
    "cap of twice the GPUs that a job has run on, at most one distributed job on a node, and rounds"
)
_POLLUX_DIFFERS = (
    "The best widths are found exactly, by dynamic programming, not by genetic search over places.",
    "The search does not know places: a job that would share a node with another distributed "
    "one gets fewer GPUs afterwards, and a speedup is that of a width on any nodes.",
    "The penalty of restarts is 30 s, and not on the start of a job that waits.",
    _SPEEDUP,
)
_TYPES = (
    "Of several GPU types it knows but the reference's speedups; a job then gets the fastest place "
    "within one type that has room for its width or less."
)
_BECOMES = "gives jobs what they ask for"

ADAPTIVE = (
    Entry(
        "pollux",
        "so many GPUs, the best power mean of speedups over a fair share, p = -1",
        _POLLUX,
        POLICIES + "adaptive.pollux:pollux",
        faithful=f"{_POLLUX_FAITHFUL}.",
        differs=(*_POLLUX_DIFFERS, _TYPES),
        needs=(SPEEDUPS,),
        prefers=BATCHES,
        becomes=_BECOMES,
        refuses=("quotas",),
        example="optsched compare boa-cloud --policy equi,pollux",
        knows_types=True,
        rents_types=True,
    ),
    Entry(
        "pollux-autoscaling",
        "the same on as many nodes as are used well",
        _POLLUX,
        POLICIES + "adaptive.pollux:pollux_autoscaling",
        faithful=f"{_POLLUX_FAITHFUL}; the number of nodes keeps the utility, averaged over 15 "
        "rounds, in a band, by bisection.",
        differs=(
            *_POLLUX_DIFFERS,
            "There are always nodes enough for the largest gang at its least width; in Pollux all "
            "jobs can run on one GPU.",
        ),
        needs=(SPEEDUPS,),
        prefers=BATCHES,
        becomes=_BECOMES,
        refuses=("quotas",),
        example="optsched compare boa-cloud --policy pollux,pollux-autoscaling",
        rents_types=True,
    ),
    Entry(
        "sia",
        "so many GPUs, a configuration for every job by Sia's integer program, round after round",
        "Sia, SOSP 2023, siasosp23/artifacts, sia-simulator/sia.py",
        POLICIES + "adaptive.sia:sia",
        faithful="The integer program of a round, its configurations and its costs of restarts; a "
        "job starts at its least width, and gets at most twice the GPUs that it has run on.",
        differs=(
            _SPEEDUP,
            "A job that restarts need not keep its configuration, and a change has no cost besides "
            "(lambda_a).",
            "Widths are placed on the lowest nodes (placement), so that a job may be on more nodes "
            "than its configuration says.",
        ),
        needs=(SPEEDUPS,),
        prefers=BATCHES,
        becomes=_BECOMES,
        refuses=("quotas",),
        example="optsched compare three-types --policy pollux,sia",
        knows_types=True,
        rents_types=True,
    ),
    Entry(
        "gavel",
        "so many GPUs, gangs in rounds by shares of time on each GPU type: fairness or makespan",
        "Narayanan et al., Gavel, OSDI 2020; stanford-futuredata/gavel",
        POLICIES + "gavel.rounds:gavel",
        faithful="The linear programs of max-min fairness and of the makespan over shares of time "
        "on each type, solved anew when jobs come or go, and rounds in the order of share over "
        "time received.",
        differs=(
            "Among the shares of the best least gain those of the greatest sum are taken; in the "
            "released code, what the solver finds.",
            "Speeds are normalised by an equal share of all GPUs, as in the paper; the released "
            "code solves another program for that.",
            "Speeds on each type are told, not estimated, and jobs never share GPUs.",
            "A gang that no share is left for fills up GPUs that would be idle.",
            "The makespan is that of the work that is the oracle's, by default the truth.",
        ),
        refuses=("quotas",),
        example="optsched compare three-types --policy gavel,gavel:objective=makespan,sia",
        knows_types=True,
    ),
    Entry(
        "time-slicing",
        "Gandiva: turns on GPUs when they run out, packing that pays, moves, growing and shrinking",
        "Xiao et al., Gandiva, OSDI 2018",
        POLICIES + "adaptive.time_slicing:time_slicing",
        faithful="Suspending and resuming in turns of a minute when more is asked for than there "
        "is; packing only then, the least busy jobs first, if both get more done than in turns; "
        "gangs move to fewer nodes when jobs leave; jobs grow into free GPUs of their node and "
        "shrink when somebody waits.",
        differs=(
            "The line is the cluster's. There, each server has its own turns, servers keep to "
            "gangs of one size, and a job is suspended and resumed on its server; here a job goes "
            "back to its GPUs only where they are free.",
            "A start after a turn costs what the scenario says of any start, not a wait for a "
            "minibatch; so a turn lasts a quantum beside that, to the next epoch.",
            "Rates of groups are the scenario's interference; there a packing is tried, measured "
            "and undone. Jobs whose model the scenario does not know are never packed.",
            "Only gangs on more nodes than need be are moved, one in an epoch; there, migration "
            "also empties servers, and follows GPU types.",
            "All jobs with speedup curves may grow; there only those whose users say so.",
        ),
        refuses=("quotas", "rented", "downtime"),
        example="optsched compare eaco-28 --policy fifo-exclusive,time-slicing",
    ),
)
