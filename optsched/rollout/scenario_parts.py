"""Parts of a scenario: what starts, failures and neighbours cost, and what policies are told."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from optsched.cluster.power import GpuPower, NodePower
from optsched.cluster.profile import Profile
from optsched.cluster.topology import Name
from optsched.documents.base import Entries
from optsched.eaco.interference import Interference
from optsched.instance import Document, NonNegative, Positive

Factor = Annotated[float, Field(ge=1e-6, le=1, allow_inf_nan=False)]
Sigma = Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)]


class Costs(Document):
    """Seconds for which a job holds its GPUs without getting on."""

    start_s: NonNegative = Field(default=0.0, description="At its first start.")
    restore_s: NonNegative = Field(default=0.0, description="At every later start or move.")
    checkpoint_s: NonNegative = Field(
        default=0.0, description="Added to `restore_s` at a start after a stop, and at a move."
    )
    rescale_s: NonNegative = Field(default=0.0, description="At a change of width.")
    checkpoint_every_s: Positive | None = Field(
        default=None,
        description="Running time between checkpoints: a failure loses what came after the last. "
        "If none, a failure loses all work since the beginning.",
    )
    stop_loses_work: bool = Field(
        default=False, description="Whether a stop or move loses work as a failure does."
    )


class Rented(Document):
    """Nodes that are rented as they are needed, at most as many as the topology has."""

    provision_s: NonNegative = Field(default=0.0, description="From asking for a node to its use.")
    at_start: Annotated[int, Field(ge=0, le=1_000_000)] = 0


class Sharing(Document):
    """Jobs side by side on the same GPUs, as in EaCO."""

    max_jobs_per_gpu: Annotated[int, Field(ge=1, le=8)] = 1
    memory_gb: Positive | None = Field(default=None, description="Of each GPU; any if not given.")
    interference: Interference = Interference()


class PowerModel(Document):
    """Watts of the cluster."""

    gpu: GpuPower
    node: NodePower
    idle_nodes: Literal["on", "sleep"] = Field(
        default="on", description="sleep: a node without jobs draws its sleep watts."
    )
    pue: Annotated[float, Field(ge=1, le=10)] = Field(
        default=1.0, description="Power usage effectiveness: energy of the site per energy of IT."
    )
    price_usd_per_kwh: NonNegative = 0.0


class Neighbours(Document):
    """Interference between jobs on the same server that do not share GPUs.

    Source: ATC'19, table 4 (ResNet-50, 2 GPUs): 75.6 of 98.0 images/s with neighbours.
    """

    shared_server: Factor = Field(
        default=1.0,
        description="Factor on the speed of a job of two GPUs or more while another such job has "
        "GPUs on one of its servers.",
    )


class Estimates(Document):
    """What policies are told about remaining run times."""

    kind: Literal["exact", "noisy", "history", "none"] = "exact"
    sigma: Sigma = Field(
        default=0.5, description="noisy: the truth times exp(sigma x a normal draw of the job)."
    )


class Beliefs(Document):
    """What policies believe of the world, where that is not the truth.

    Errors are drawn once for each figure from the seed of a rollout, so that all policies see the
    same; with a sigma of 0 there are none. Estimates of run times are told apart: `estimates`.
    """

    speedups: Sigma = Field(
        default=0.0,
        description="Of each model's speedups: the true one to the power of exp(sigma x a normal "
        "draw of the model).",
    )
    slowdowns: Sigma = Field(
        default=0.0,
        description="Of each GPU's slowdown for each class: the truth times exp(sigma x a draw).",
    )
    interference: Sigma = Field(
        default=0.0,
        description="Of how much slower jobs are beside each other: the truth times exp(sigma x a "
        "draw), by measured group and type; the formula's two figures have a draw each.",
    )
    arrivals: Sigma = Field(
        default=0.0,
        description="Of the arrival rate of each class of jobs that policies of BOA are given.",
    )
    works: Sigma = Field(default=0.0, description="Of the mean work of each of these classes.")
    profile: Profile | None = Field(
        default=None,
        description="What policies are told in place of `profile`: measured at another time, say.",
    )


class Events(Document):
    """Passing trouble: for a while a node runs slower for one application class or all.

    Source: 20 of 1,404 runs on Longhorn, factors 1.7 to 3.6 (hal-uw/blox-pal @8a59070).
    """

    application_class: Name | None = Field(
        default=None, description="Jobs of models of this class suffer; if none, all jobs do."
    )
    mean_between_s: Positive = Field(
        description="Mean time from the end of one event of a node to the next."
    )
    mean_length_s: Positive
    factor: Annotated[tuple[Positive, Positive], Field(description="Uniform between these.")] = (
        1.7,
        3.6,
    )


class Retries(Document):
    """What happens after a failure, before any policy's guideline."""

    delay_s: NonNegative = Field(default=0.0, description="From a failure to being in the queue.")
    limits: Entries[str, Annotated[int, Field(ge=0, le=1_000)]] = Field(
        default={}, description="By reason, the retries after which the job ends as failed."
    )
