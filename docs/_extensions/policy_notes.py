"""Where each policy differs from its source; words in `DIFFERENCES` stand for a sentence."""

from __future__ import annotations

DIFFERENCES = {
    "rounds": "what fits beside a preempted job goes on; the released code preempts it, too",
    "growing": "running jobs grow only when all that they want is free, in one change of width",
    "fixed": "GPUs are rented for good, the budget rounded down",
}

NOTES = {
    "fifo": "",
    "philly": "the study's guidelines are switches",
    "las": "rounds",
    "srtf": "rounds",
    "tiresias": "rounds; only the wait since a job last held GPUs counts",
    "packed-sticky": "rounds",
    "packed-non-sticky": "rounds",
    "random-sticky": "rounds",
    "random-non-sticky": "rounds",
    "pm-first": "rounds; backfill",
    "pal-greedy": "rounds; backfill; a penalty for each model",
    "pal-multilevel": "no published rule: PAL's, with every level of the topology",
    "pal": "PAL's policy is greedy; here all admitted jobs are placed at once",
    "boa": "growing",
    "boa-budgeted": "an allowance for the jobs at hand at every epoch",
    "one-width-per-class": "growing",
    "fixed-width": "growing",
    "efficiency-threshold": "growing",
    "equi": "fixed",
    "fifo-requested": "fixed",
    "srpt-k": "fixed",
    "marginal-greedy": "fixed; without parameter servers",
    "pollux": "solved exactly, by dynamic programming and not by genetic search",
    "pollux-autoscaling": "as `pollux`",
    "sia": "one type of GPUs; a job that restarts need not keep its configuration",
    "eaco": "EaCO's rule is greedy; here the groups of least cost are found",
    "fifo-exclusive": "the fastest free GPU type, not one drawn at random",
    "fifo-packed": "",
    "random-pairs": "combinations that find no room wait; there they take turns",
    "least-utilised": "only waiting jobs are packed; there running ones are, too",
    "eaco-greedy": "rates are known, so no group is tried; the queue goes on",
    "best-fit-memory": "",
    "best-delta-energy": "",
    "sharing-scores": "sharing does not wait for a full cluster",
    "longest-first": "",
}
