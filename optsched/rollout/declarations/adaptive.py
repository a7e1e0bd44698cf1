"""Declarations of Pollux and Sia."""

from __future__ import annotations

from optsched.rollout.declarations.entry import POLICIES, Entry
from optsched.rollout.policy_needs import SPEEDUPS

_POLLUX = "Pollux, OSDI 2021, petuum/adaptdl, branch osdi21-artifact"
_SPEEDUP = (
    "Only speedups count: there is no batch size and no statistical efficiency, so no goodput, "
    "which is the paper's."
)
_POLLUX_DIFFERS = (
    "The best power mean is found exactly, by dynamic programming, not by genetic search.",
    _SPEEDUP,
    "Interference is not avoided: Pollux lets at most one distributed job on a node.",
    "There is no cap of twice the GPUs that a job has had so far.",
)
_BECOMES = "gives jobs what they ask for"

ADAPTIVE = (
    Entry(
        "pollux",
        "so many GPUs, the best power mean of speedups, p = -1",
        _POLLUX,
        POLICIES + "pollux:pollux",
        faithful="The objective, its penalty of restarts, and rounds.",
        differs=_POLLUX_DIFFERS,
        needs=(SPEEDUPS,),
        becomes=_BECOMES,
        refuses=("quotas",),
        example="optsched compare boa-cloud --policy equi,pollux",
    ),
    Entry(
        "pollux-autoscaling",
        "the same on as many nodes as are used well",
        _POLLUX,
        POLICIES + "pollux:pollux_autoscaling",
        faithful="As pollux; the number of nodes keeps the utility in a band.",
        differs=_POLLUX_DIFFERS,
        needs=(SPEEDUPS,),
        becomes=_BECOMES,
        refuses=("quotas",),
        example="optsched compare boa-cloud --policy pollux,pollux-autoscaling",
    ),
    Entry(
        "sia",
        "so many GPUs, a configuration for every job by Sia's integer program, round after round",
        "Sia, SOSP 2023, siasosp23/artifacts, sia-simulator/sia.py",
        POLICIES + "sia:sia",
        faithful="The integer program of a round, its configurations and its costs of restarts.",
        differs=(
            "All GPUs are of one type, for scenarios know no others; several types are its point.",
            _SPEEDUP,
            "A job may start at any width, not at its least and then at most twice as wide in "
            "each round.",
            "A job that restarts need not keep its configuration.",
        ),
        needs=(SPEEDUPS,),
        becomes=_BECOMES,
        refuses=("quotas",),
        example="optsched compare boa-cloud --policy pollux,sia",
    ),
)
