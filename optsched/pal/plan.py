"""Decisions of the PAL problem, and the certificate that goes with them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from optsched.certificates.bound_tree import Cut as Cut
from optsched.certificates.bound_tree import Price
from optsched.certificates.bound_tree import Split as Split
from optsched.instance import Document


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


class Leaf(Document):
    """Prices that prove the bound in one leaf.

    Attributes
    ----------
    gpu_prices
        Of each free GPU, in the order of `PalInstance.free_gpus`, in the objective's unit.
    split_prices
        Of one more or one less of what is counted, for each split on the path from the root.
    cuts
        Prices of cuts: a rule's count is at most what the GPUs hold, floor(GPUs / smallest gang).
    """

    gpu_prices: tuple[Price, ...]
    split_prices: tuple[Price, ...] = ()
    cuts: tuple[Cut, ...] = ()


class PalCertificate(Document):
    """What proves a bound, or that no plan exists: a tree, and Lagrangian prices in each leaf.

    Attributes
    ----------
    kind
        ``"prices"``: every plan costs at least `bound`. ``"infeasible"``: at least `left_out` jobs,
        more than none, cannot be placed; the prices are then for the cost of one for each job that
        is left out, and none for one that is placed. ``"sorted"``: every plan costs at least
        `bound`, by sorting slowdowns and gangs; that needs no rules and no nodes.
    rules
        What splits and cuts count.
    exclusions
        Prices, for kind ``"prices"``, that say what better plans cannot use: an option with which
        every plan costs at least `bound`, since so do the prices of the rest. It is left out
        of everything behind: later exclusions, and the leaves.
    nodes
        The branch-and-bound tree; the first is its root.
    """

    kind: Literal["prices", "infeasible", "sorted"] = "prices"
    bound: float | None = None
    left_out: float | None = None
    rules: tuple[Within | Keeps, ...] = ()
    exclusions: tuple[Leaf, ...] = ()
    nodes: tuple[Split | Leaf, ...] = Field(default=(), validate_default=True)

    @field_validator("kind", mode="before")
    @classmethod
    def _is_no_old_name(cls, kind: object) -> object:
        if kind == "misfit":
            raise ValueError("'infeasible' (the new name of 'misfit')")
        return kind

    @field_validator("nodes")
    @classmethod
    def _is_tree(
        cls, nodes: tuple[Split | Leaf, ...], info: ValidationInfo
    ) -> tuple[Split | Leaf, ...]:
        if not nodes and info.data.get("kind") != "sorted":
            raise PydanticCustomError("tuple_too_short", "at least one node", {"min_length": 1})
        return nodes
