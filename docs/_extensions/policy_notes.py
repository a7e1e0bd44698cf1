"""What each policy needs in a scenario, and where it differs from its source.

Words in `NEEDS` and `DIFFERENCES` stand for the sentences beside them.
"""

from __future__ import annotations

from typing import NamedTuple


class Note(NamedTuple):
    """What a scenario must have for a policy to mean something, and what is unlike the source."""

    needs: str = ""
    differs: str = ""


NEEDS = {
    "profile": "slowdowns of GPUs by class (`profile`); without them all GPUs are alike",
    "curves": "models with `phases` of their own speedups; without them a job keeps the width that "
    "it asks for",
    "estimates": "told run times (`estimates`)",
    "sharing": "`sharing` with more than one job per GPU, a power model, and equal nodes that are "
    "not rented; without it no job shares",
    "rented": "nodes that are rented (`rented`); without it they all stand there",
}
DIFFERENCES = {
    "rounds": "what fits beside a preempted job goes on; the released code preempts it, too",
    "growing": "running jobs grow only when all that they want is free, in one change of width",
    "fixed": "GPUs are rented for good, the budget rounded down",
}

NOTES = {
    "fifo": Note(),
    "philly": Note("", "the study's guidelines are switches"),
    "las": Note("", "rounds"),
    "srtf": Note("estimates", "rounds"),
    "tiresias": Note("", "rounds; only the wait since a job last held GPUs counts"),
    "packed-sticky": Note("", "rounds"),
    "packed-non-sticky": Note("", "rounds"),
    "random-sticky": Note("", "rounds"),
    "random-non-sticky": Note("", "rounds"),
    "pm-first": Note("profile", "rounds; backfill"),
    "pal-greedy": Note("profile", "rounds; backfill; a penalty for each model"),
    "pal-multilevel": Note("profile", "no published rule: PAL's, with every level of the topology"),
    "pal": Note("profile", "PAL's policy is greedy; here all admitted jobs are placed at once"),
    "boa": Note("curves, rented", "growing"),
    "boa-budgeted": Note("curves, rented", "an allowance for the jobs at hand at every epoch"),
    "one-width-per-class": Note("curves, rented", "growing"),
    "fixed-width": Note("rented", "growing"),
    "efficiency-threshold": Note("curves, rented", "growing"),
    "equi": Note("curves", "fixed"),
    "fifo-requested": Note("", "fixed"),
    "srpt-k": Note("curves, estimates", "fixed"),
    "marginal-greedy": Note("curves, estimates", "fixed; without parameter servers"),
    "pollux": Note("curves", "solved exactly, by dynamic programming and not by genetic search"),
    "pollux-autoscaling": Note("curves, rented", "as `pollux`"),
    "sia": Note("curves", "one type of GPUs; a job that restarts need not keep its configuration"),
    "eaco": Note("sharing", "EaCO's rule is greedy; here the groups of least cost are found"),
    "fifo-exclusive": Note("sharing", "the fastest free GPU type, not one drawn at random"),
    "fifo-packed": Note("sharing"),
    "random-pairs": Note("sharing", "combinations that find no room wait; there they take turns"),
    "least-utilised": Note("sharing", "only waiting jobs are packed; there running ones are, too"),
    "eaco-greedy": Note("sharing", "rates are known, so no group is tried; the queue goes on"),
    "best-fit-memory": Note("sharing"),
    "best-delta-energy": Note("sharing"),
    "sharing-scores": Note("sharing", "sharing does not wait for a full cluster"),
    "longest-first": Note("sharing"),
}
