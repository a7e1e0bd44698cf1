"""Decisions of the EaCO problem, and the certificate that goes with them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator

from optsched.certificates.bound_tree import Cut as Cut
from optsched.certificates.bound_tree import Price
from optsched.certificates.bound_tree import Split as Split
from optsched.instance import Document

Real = Annotated[float, Field(allow_inf_nan=False)]
RENAMED = {"misfit": "infeasible", "floor": "below_idle_power"}  # kinds of certificates


class Group(Document):
    """Jobs that share one set of GPUs; one alone is a group, too.

    Attributes
    ----------
    jobs
        Ids, all of the same gang size.
    nodes
        Id of the nodes, and so the GPU type.
    node
        Number of the node, from 0. A gang larger than a node has this and the next ones whole.
    level
        Id of a power level of the GPU type; full power if None.
    location
        Id of the entry in `running` whose GPUs the group has; other GPUs if None.
    """

    jobs: tuple[str, ...] = Field(min_length=1)
    nodes: str
    node: Annotated[int, Field(ge=0)] = 0
    level: str | None = None
    location: str | None = None


class EacoPlan(Document):
    """Which jobs share GPUs, where, and which ones wait."""

    groups: tuple[Group, ...] = ()
    waiting: tuple[str, ...] = ()


class Together(Document):
    """Counts groups that hold certain jobs; a job stands for all jobs that equal it.

    Attributes
    ----------
    jobs
        Ids; a group counts if it holds at least these, each as often as it is named.
    nodes
        Id of the nodes that a group must be on to count; any if None.
    gpus
        Gang size that it must have; any if None.
    level
        Id of the power level that it must have, "" for full power; any if None.
    location
        Id of the location that it must keep, "" for none; any if None.
    """

    kind: Literal["together"] = "together"
    jobs: tuple[str, ...] = ()
    nodes: str | None = None
    gpus: Annotated[int, Field(ge=1)] | None = None
    level: str | None = None
    location: str | None = None


class Rounded(Document):
    """Counts floor(jobs of a set in a group / divisor); all groups count at most as the set does.

    That is a Chvatal-Gomory cut of rank one: with divisor 2 the odd set cuts of matching.

    Attributes
    ----------
    jobs
        Ids; each stands for all jobs that equal it, and one named twice counts twice.
    """

    kind: Literal["rounded"] = "rounded"
    jobs: tuple[str, ...] = Field(min_length=1)
    divisor: Annotated[int, Field(ge=2, le=1000)]


class NodesUsed(Document):
    """Counts nodes in use, or of these only the ones that are asleep now."""

    kind: Literal["nodes"] = "nodes"
    nodes: str
    asleep: bool = False


class Prices(Document):
    """Prices of all that groups use up, in the unit of the objective.

    Attributes
    ----------
    jobs
        What a job pays for being placed, by sets of equal jobs: in the order of their first ones in
        the instance. Of any sign.
    gpus
        Of a GPU of each entry in `nodes`.
    locations
        Of keeping each entry in `running`.
    watt
        Of a watt below the power cap.
    cuts
        Of cuts.
    """

    jobs: tuple[Real, ...]
    gpus: tuple[Price, ...]
    locations: tuple[Price, ...] = ()
    watt: Price = 0.0
    cuts: tuple[Cut, ...] = ()


class Leaf(Document):
    """Prices that prove the bound at one leaf.

    Attributes
    ----------
    split_prices
        Of one more or one less of what is counted, for each split on the path from the root.
    """

    prices: Prices
    split_prices: tuple[Price, ...] = ()


class Unpackable(Document):
    """A leaf without any plan: the groups that it asks for do not fit on the nodes it allows.

    Attributes
    ----------
    nodes
        Id of the nodes.
    """

    nodes: str


class EacoCertificate(Document):
    """What proves a bound, or that no plan exists: a tree, and Lagrangian prices at its leaves.

    Attributes
    ----------
    kind
        ``"prices"``: every plan costs at least `bound`. ``"infeasible"``: at least `left_out` jobs,
        more than none, find no place; the prices are then for the cost of one for each such job,
        and none for all else. ``"below_idle_power"``: the power cap is below the watts of the
        cluster asleep.
    everywhere
        Prices that hold everywhere. They prove less than the leaves do, but a group whose reduced
        cost makes up for the difference need not be looked at anywhere.
    rules
        What splits and cuts count.
    nodes
        The branch-and-bound tree; the first is its root.
    """

    kind: Literal["prices", "infeasible", "below_idle_power"] = "prices"
    bound: float | None = None
    left_out: float | None = None
    everywhere: Prices | None = None
    rules: tuple[Annotated[Together | Rounded | NodesUsed, Field(discriminator="kind")], ...] = ()
    nodes: tuple[Split | Leaf | Unpackable, ...] = ()

    @field_validator("kind", mode="before")
    @classmethod
    def _not_renamed(cls, kind: object) -> object:
        if isinstance(kind, str) and kind in RENAMED:
            raise ValueError(f"'{RENAMED[kind]}', as this kind is called now")
        return kind
