"""Philly's settings, and the guidelines of its study as switches."""

from __future__ import annotations

from pydantic import Field

from optsched.rollout.policy_options import Count, NonNegative, Options, Positive, Share, Tries

USER_ERRORS = frozenset(
    {
        "CPU out of memory",
        "Incorrect inputs",
        "Semantic error",
        "Core dump",
        "Invalid mem access",
        "Syntax error",
        "Permission error",
        "Import error",
        "Model diverged",
        "Output node error",
    }
)
"""Reasons of table 7 that users cause, alone or with one other: a retry meets them again."""


class PhillyOptions(Options):
    """Philly's settings, and the guidelines as switches."""

    retry_s: NonNegative = Field(
        default=180.0,
        description="Seconds between two tries to place a waiting gang, the first at its arrival; "
        "0: it is tried at every call.",
    )
    relax_after: Tries = Field(
        default=1,
        description="Tries in vain after which a gang accepts a worse place, again and again: "
        "twice as many servers, one level more; 0: any place at once.",
    )
    spread: bool = Field(
        default=False,
        description="Whether a gang gets the server with the most free GPUs, not the fullest that "
        "has room: loads are even, and few servers are empty.",
    )
    reclaim_at: Share = Field(
        default=0.9,
        description="Share of GPUs in use from which on the owner of lent quota takes it back: the "
        "last started jobs of queues above their quotas are preempted.",
    )
    backfill: bool = Field(
        default=True, description="Whether gangs of another size may overtake one that waits."
    )
    stop_retrying: bool = Field(
        default=False, description="Whether a job that fails by a user's error is not tried again."
    )
    dedicated: bool = Field(
        default=False,
        description="Whether a gang of two GPUs or more avoids nodes where another one has GPUs; "
        "it shares a node if it has relaxed its wishes and there is no other place.",
    )
    defragment: bool = Field(
        default=False,
        description="Whether smaller jobs are moved off one node at an epoch, where a gang of at "
        "most one node waits though enough GPUs are free.",
    )
    pre_run: bool = Field(
        default=False,
        description="Whether gangs of two GPUs or more are first tried on one GPU, again after "
        "each failure until a trial is passed.",
    )
    pre_run_s: Positive = Field(default=120.0, description="Seconds of a trial.")
    pool: Count = Field(default=8, description="Most trials at once.")
