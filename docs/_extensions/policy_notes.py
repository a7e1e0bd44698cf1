"""What each policy needs in a scenario, and where it differs from its source."""

from __future__ import annotations

from typing import NamedTuple


class Note(NamedTuple):
    """What a scenario must have for a policy to mean something, and what is unlike the source."""

    needs: str
    deviations: str = ""


PROFILE = "a profile of slowdowns (`profile`); without one all GPUs are alike"
CURVES = "models with `phases`; without them a job keeps the width that it asks for"
SHARING = "`sharing` with more than one job per GPU, a power model, equal nodes that are not rented"
ROUNDS = "the prefix of the order that fits is placed; preempted jobs that still fit go on"
RENT = "running jobs grow only when all that they want is free, in one change of width"
SHARED = "GPUs are rented for good, the budget rounded down"

NOTES = {
    "fifo": Note("nothing"),
    "philly": Note("nothing; `queue` quotas where there are any", "guidelines are switches"),
    "las": Note("nothing", ROUNDS),
    "srtf": Note("`estimates` of run times", ROUNDS),
    "tiresias": Note("nothing", "the wait since a job last held GPUs counts, not all its waiting"),
    "packed-sticky": Note("nothing", ROUNDS),
    "packed-non-sticky": Note("nothing", ROUNDS),
    "random-sticky": Note("nothing", ROUNDS),
    "random-non-sticky": Note("nothing", ROUNDS),
    "pm-first": Note(PROFILE, "caps and backfill are ours"),
    "pal-greedy": Note(PROFILE, "a penalty for each model; caps and backfill are ours"),
    "pal-multilevel": Note(PROFILE, "no published rule: PAL's with every level of the topology"),
    "pal": Note(PROFILE, "PAL's policy is greedy; here all admitted jobs are placed at once"),
    "boa": Note(CURVES, RENT),
    "boa-budgeted": Note(CURVES, "an allowance for the jobs at hand, solved anew at every epoch"),
    "one-width-per-class": Note(CURVES, RENT),
    "fixed-width": Note("nodes that are rented", RENT),
    "efficiency-threshold": Note(CURVES, RENT),
    "equi": Note(CURVES, SHARED),
    "fifo-requested": Note("nothing", SHARED),
    "srpt-k": Note(f"{CURVES}; `estimates`", SHARED),
    "marginal-greedy": Note(f"{CURVES}; `estimates`", "without parameter servers"),
    "pollux": Note(CURVES, "solved exactly by dynamic programming, not by a genetic search"),
    "pollux-autoscaling": Note(CURVES, "as `pollux`; without rented nodes the others stand idle"),
    "sia": Note(
        CURVES, "one type of GPUs; a job that is being restarted need not keep its configuration"
    ),
    "eaco": Note(SHARING, "EaCO's rule is greedy; here the groups of least cost are found"),
    "fifo-exclusive": Note(SHARING, "the fastest free GPU type, not one drawn at random"),
    "fifo-packed": Note(SHARING),
    "random-pairs": Note(SHARING, "combinations that find no room wait; there they take turns"),
    "least-utilised": Note(SHARING, "only waiting jobs are packed; there running ones are, too"),
    "eaco-greedy": Note(
        SHARING, "rates are known, so no group is tried for an epoch; the queue goes on"
    ),
    "best-fit-memory": Note(SHARING),
    "best-delta-energy": Note(SHARING),
    "sharing-scores": Note(SHARING, "sharing does not wait for a full cluster"),
    "longest-first": Note(SHARING),
}
