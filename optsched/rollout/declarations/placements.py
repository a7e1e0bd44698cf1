"""Declarations of the policies that place jobs in rounds: the packing rules, and PAL."""

from __future__ import annotations

from optsched.pal.greedy.rules import RULES, SC24
from optsched.rollout.declarations.entry import POLICIES, Entry
from optsched.rollout.declarations.gangs import ROUNDS
from optsched.rollout.policy_needs import PROFILE

_EXAMPLE = "optsched compare pal-64 --policy packed-sticky,"
_BACKFILL = (
    "Whether jobs that fit overtake a gang that does not is the option `backfill`, off as in the "
    "released code."
)
_RESTARTS = (
    "A running job that gets its own GPUs again is not restarted; the released code restarts all."
)
_FAITHFUL = {
    "packed-sticky": "The baseline of PAL's evaluation: fewest nodes, and running jobs keep their "
    "GPUs.",
    "packed-non-sticky": "Fewest nodes, every job placed again in every round.",
    "random-sticky": "GPUs drawn at random; running jobs keep theirs.",
    "random-non-sticky": "GPUs drawn at random, every job placed again in every round.",
    "pm-first": "The free GPUs of the best bins, wherever they stand; classes in PAL's order; the "
    "released code's bins.",
    "pal-greedy": "The least product of penalty and bin, job after job; classes in PAL's order; "
    "the released code's bins.",
    "pal-multilevel": "PAL's rule where a cluster has two levels.",
}
_DIFFERS = {
    "packed-sticky": (ROUNDS,),
    "packed-non-sticky": (_RESTARTS,),
    "random-sticky": (ROUNDS,),
    "random-non-sticky": (_RESTARTS,),
    "pm-first": (_RESTARTS, _BACKFILL),
    "pal-greedy": (
        _RESTARTS,
        _BACKFILL,
        "Each model has a penalty of its own, where the scenario has one; the paper has one for "
        "all.",
    ),
    "pal-multilevel": (
        "It is no published rule: every level of the topology counts, not only inside a node and "
        "across.",
        _RESTARTS,
    ),
}
_BECOMES = {
    "pm-first": "takes free GPUs by number",
    "pal-greedy": "places by locality alone",
    "pal-multilevel": "places by locality alone",
}

PLACEMENTS = (
    *(
        Entry(
            rule.name,
            f"in rounds: {rule.summary}",
            rule.source,
            POLICIES + "round_based:placing",
            rule.name,
            faithful=_FAITHFUL[rule.name],
            differs=_DIFFERS[rule.name],
            needs=() if rule.bins is None else (PROFILE,),
            becomes=_BECOMES.get(rule.name, ""),
            example=_EXAMPLE + (rule.name if rule.name != "packed-sticky" else "pal-greedy"),
        )
        for rule in RULES
        if rule.is_policy
    ),
    Entry(
        "pal",
        "in rounds: least total slowdown of all jobs at once, by the exact method",
        SC24,
        POLICIES + "round_based:pal",
        faithful="The slowdowns of PAL's model: penalty of the place x slowdown of the slowest "
        "GPU, admitted jobs as in its rounds.",
        differs=(
            "PAL's policy is greedy, job after job by class; here all admitted jobs are placed at "
            "once, to a proven gap.",
            "Slowdowns themselves count, not bins of them.",
        ),
        needs=(PROFILE,),
        becomes="places by locality alone",
        example=_EXAMPLE + "pal-greedy,pal",
    ),
)
