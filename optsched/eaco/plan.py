"""Decisions of the EaCO problem."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from optsched.instance import Document


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
