"""Options of the policies that place jobs in rounds."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, create_model, model_validator

from optsched.rollout.policies import job_orders
from optsched.rollout.policy_options import Count, Gap, NonNegative, Options, Positive

Bins = Literal["released", "silhouette", "exact"]
Thresholds = Annotated[float | str, AfterValidator(job_orders.thresholds)]


class RoundOptions(Options):
    """What rounds of every order have."""

    backfill: bool = Field(
        default=False, description="Whether jobs that fit may overtake a gang that does not."
    )


class LasOptions(RoundOptions):
    """Least attained service."""

    one_dimensional: bool = Field(
        default=False, description="Whether service is time, without regard to GPUs."
    )


class SrtfOptions(RoundOptions):
    """Shortest remaining time first."""

    times_gpus: bool = Field(
        default=False, description="Whether remaining times count for each GPU of the gang."
    )


class TiresiasOptions(RoundOptions):
    """Discretised least attained service."""

    backfill: bool = Field(
        default=True, description="Whether jobs that fit may overtake a gang that does not."
    )
    thresholds_gpu_s: Thresholds = Field(
        default=3250.0, description="GPU-seconds that part the queues, as 3250/36000 if several."
    )
    promote: NonNegative = Field(
        default=0.0,
        description="A job that waits so many times as long as it ran goes back to the first "
        "queue; 0: never.",
    )
    lease_s: NonNegative | None = Field(
        default=None,
        description="For so long after a start nobody takes a job's GPUs; null: the scenario's "
        "epoch, 0: never.",
    )
    consolidate: Literal["skewed", "all"] = Field(
        default="skewed",
        description="Which gangs get few nodes: those of models whose own locality slows them "
        "down, or all. All, too, if no model of the scenario has a locality of its own.",
    )


class OrderedOptions(RoundOptions):
    """Rounds in an order that can be chosen; the options of an order are None for its defaults."""

    order: Literal["fifo", "las", "srtf", "tiresias"] = Field(
        default="fifo", description="Who comes first: see the policies las, srtf and tiresias."
    )
    one_dimensional: bool | None = Field(default=None, description="Of the order las.")
    times_gpus: bool | None = Field(default=None, description="Of the order srtf.")
    thresholds_gpu_s: Thresholds | None = Field(default=None, description="Of the order tiresias.")
    promote: NonNegative | None = Field(default=None, description="Of the order tiresias.")

    @model_validator(mode="after")
    def _are_of_the_order(self) -> Self:
        for name in self.of_order():
            if name not in job_orders.OPTIONS[self.order]:
                raise ValueError(f"options of the order {self.order}, not '{name}'")
        return self

    def of_order(self) -> dict[str, Any]:
        """Return the options of the order that are given."""
        names = [name for options in job_orders.OPTIONS.values() for name in options]
        values = {name: getattr(self, name) for name in names}
        return {name: value for name, value in values.items() if value is not None}


class BinnedOptions(OrderedOptions):
    """Rounds that look at the GPUs' slowdowns, in bins."""

    bins: Bins = Field(default="released", description="How slowdowns are put into bins.")


@cache
def binned(bins: Bins) -> type[BinnedOptions]:
    """Return the options of a rule whose bins are these by default."""
    description = BinnedOptions.model_fields["bins"].description
    field = Field(default=bins, description=description)
    return create_model("BinnedOptions", __base__=BinnedOptions, bins=(Bins, field))


class PalOptions(OrderedOptions):
    """The exact placement; see `pal_adapter.Exact`."""

    weights: Literal["equal", "remaining"] = Field(
        default="equal", description="What a job's slowdown counts: one, or its remaining time."
    )
    gap: Gap = Field(default=1e-3, description="Relative gap at which a search ends.")
    programs: Count = Field(
        default=7,
        description="Linear programs, of nodes of its tree, after which a search ends.",
    )
    time_limit_s: Positive = Field(default=60.0, description="Of each call, its proof included.")
