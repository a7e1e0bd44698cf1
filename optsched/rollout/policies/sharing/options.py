"""Options of the policies that share GPUs."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from optsched.rollout.policy_options import Count, Gap, NonNegative, Options, Positive, Share


class SharingOptions(Options):
    """Which jobs are looked at, and what waiting costs them."""

    waiting_kwh: Positive = Field(
        default=1.0, description="Cost of a job's waiting, besides the energy that its work takes."
    )
    window: Count | None = Field(
        default=None, description="How many waiting jobs are looked at, the earliest; null: all."
    )


class ThresholdOptions(SharingOptions):
    """EaCO's rule besides: the two thresholds of Algorithm 1, of which no value is published."""

    utilisation_threshold: Share = Field(
        default=1.0, description="GPUs that are busier take no further job."
    )
    memory_threshold: Share = Field(
        default=1.0, description="GPUs of whose memory a larger share is taken take none either."
    )


THRESHOLDS = {"utilisation_threshold", "memory_threshold"}


class ExactOptions(SharingOptions):
    """What is minimised, and when a search ends."""

    window: Count | None = Field(
        default=20, description="How many waiting jobs are looked at, the earliest; null: all."
    )
    objective: Literal["run-to-completion", "epoch", "eaco"] = Field(
        default="run-to-completion",
        description="run-to-completion (O1); epoch (O2), over the scenario's epoch or horizon_s; "
        "eaco, equation (1) of the paper: a training epoch takes an hour alone, and jobs that "
        "EaCO's rule lets wait are left out.",
    )
    energy_weight: Share = Field(default=0.5, description="eaco: the weight of energy.")
    horizon_s: Positive | None = Field(default=None, description="epoch: null: scenario's epoch.")
    patience_s: NonNegative = Field(
        default=0.0,
        description="How long jobs that would start without a running partner wait for better ones "
        "while others run.",
    )
    gap: Gap = Field(default=1e-2, description="Relative gap at which a search ends.")
    programs: Count = Field(default=50, description="Linear programs after which a search ends.")
    time_limit_s: Positive = Field(default=60.0, description="Of each call, its proof included.")
