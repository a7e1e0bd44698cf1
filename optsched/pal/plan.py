"""Decisions of the PAL problem, and the certificate that goes with them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from optsched.instance import Document

Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Index = Annotated[int, Field(ge=0)]


class Placement(Document):
    """The GPUs of one job; none if it is left out."""

    id: str
    gpus: tuple[str, ...] = ()


class PalPlan(Document):
    """Which GPUs every job runs on."""

    jobs: tuple[Placement, ...]


class Within(Document):
    """Counts jobs that stand in a domain, on GPUs that are fast enough.

    Attributes
    ----------
    types
        Ids of jobs; each stands for all jobs that equal it but for their ids and current GPUs.
        Running jobs equal each other only, if their restarts take the same; of waiting ones
        `restart_s` does not count.
    domain
        Id of a domain that holds all GPUs of a counted job.
    slowest
        Greatest slowdown of those GPUs for the job's class; any if None. With it, all `types` are
        of one class.
    """

    types: tuple[str, ...] = Field(min_length=1)
    domain: str
    slowest: float | None = None


class Keeps(Document):
    """Counts 1 if a running job keeps the GPUs that it holds, else 0."""

    job: str


class Split(Document):
    """Two cases of which every plan meets one: a count is at most a number, or at least one more.

    Attributes
    ----------
    rule
        Index of the rule that counts.
    at_most
        Greatest count in the first case.
    cases
        Indices of the two cases among the certificate's `nodes`; both lie behind this one.
    """

    rule: Index
    at_most: Index
    cases: tuple[Index, Index]


class Cut(Document):
    """A rule's count is at most what the GPUs can hold: floor(GPUs / smallest gang)."""

    rule: Index
    price: Price


class Leaf(Document):
    """Prices that prove the bound in one case.

    Attributes
    ----------
    gpu_prices
        Of each free GPU, in the order of `PalInstance.free_gpus`, in the objective's unit.
    split_prices
        Of one more or one less of what is counted, for each split on the way from the root.
    cuts
        Prices of cuts.
    """

    gpu_prices: tuple[Price, ...]
    split_prices: tuple[Price, ...] = ()
    cuts: tuple[Cut, ...] = ()


class PalCertificate(Document):
    """What proves a bound, or that no plan exists: cases, and Lagrangian prices in each of them.

    Attributes
    ----------
    kind
        ``"prices"``: every plan costs at least `bound`. ``"misfit"``: at least `left_out` jobs,
        more than none, cannot be placed; the prices are then for the cost of one for each job that
        is left out, and none for one that is placed.
    rules
        What splits and cuts count.
    exclusions
        Prices, for kind ``"prices"``, that say what better plans cannot use: a label, or stay, with
        which every plan costs at least `bound`, since so do the prices of the rest. It is left out
        of everything behind: later exclusions, and the leaves.
    nodes
        The tree of cases; the first is its root.
    """

    kind: Literal["prices", "misfit"] = "prices"
    bound: float | None = None
    left_out: float | None = None
    rules: tuple[Within | Keeps, ...] = ()
    exclusions: tuple[Leaf, ...] = ()
    nodes: tuple[Split | Leaf, ...] = Field(min_length=1)
