"""Philly's settings, and the guidelines of its study as switches."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from optsched.rollout.policy_options import Count, NonNegative, Options, Positive, Share, Tries


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
    relax_by: Literal["twice", "one"] = Field(
        default="twice",
        description="`one`: it accepts one server more, after n times as many tries where it needs "
        "n servers, in one domain for the first ten times.",
    )
    relax_for: Literal["time", "place"] = Field(
        default="time",
        description="Which tries in vain count: all (`time`), or those for which enough GPUs "
        "were free, but no place that the gang accepts (`place`).",
    )
    spread: bool = Field(
        default=False,
        description="Whether a gang of two GPUs or more gets the server with the most free GPUs, "
        "not the fullest that has room, as jobs of one GPU do.",
    )
    reclaim_at: Share = Field(
        default=0.9,
        description="Share of GPUs in use from which on the owner of lent quota takes it back: the "
        "last started jobs of queues above their quotas are preempted.",
    )
    reclaim_after: Tries = Field(
        default=100,
        description="Tries in vain after which the owner takes back GPUs that it lacks.",
    )
    backfill: bool = Field(
        default=True, description="Whether gangs of another size may overtake one that waits."
    )
    stop_retrying: bool = Field(
        default=False,
        description="Whether a job that fails is not tried again where retries have seldom helped: "
        "learnt during the rollout, by reason and by who retries.",
    )
    learn_by: Literal["user", "model", "queue"] = Field(
        default="user", description="Whose retries are learnt from apart, beside those of all."
    )
    stop_below: Share = Field(
        default=0.1,
        description="The estimated chance that a retry gets over the reason of the failure, below "
        "which `stop_retrying` gives a job up.",
    )
    prior: Positive = Field(
        default=4.0,
        description="How many retries the prior of that estimate weighs: half of them succeed.",
    )
    dedicated: bool = Field(
        default=False,
        description="Whether a gang of two GPUs or more wants servers without another gang. Jobs "
        "on one GPU are packed by best fit, whatever `spread` says.",
    )
    share_after: Tries = Field(
        default=20,
        description="Tries in vain after which a gang that wants servers of its own shares some.",
    )
    defragment: bool = Field(
        default=False,
        description="Whether smaller jobs are moved off servers for a gang that is tried in vain "
        "though enough GPUs are free.",
    )
    pre_run: bool = Field(
        default=False,
        description="Whether gangs of two GPUs or more are first tried on one GPU, again after "
        "each failure until a trial is passed. They keep their places in their lines.",
    )
    pre_run_s: Positive = Field(default=120.0, description="Seconds of a trial.")
    pool: Count = Field(default=8, description="Most trials at once.")
