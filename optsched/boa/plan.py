"""Decisions of the BOA problem, and the certificate that goes with them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from optsched.instance import Document

Share = Annotated[float, Field(allow_inf_nan=False)]
Width = Annotated[float, Field(allow_inf_nan=False)]


class WidthSequence(Document):
    """The width in each phase, and the offer if there are several, for a share of a class's jobs.

    The share is drawn for each job independently of its size, so it is also the share of the
    class's work.
    """

    share: Share
    gpus: tuple[int | Width, ...]
    offers: tuple[str, ...] | None = None  # ids, one for each phase; None without offers


class ClassPlan(Document):
    """The width sequences of one class; their shares sum to one."""

    id: str
    sequences: tuple[WidthSequence, ...]


class BoaPlan(Document):
    """How many GPUs each job rents in each phase of its work, for every class."""

    classes: tuple[ClassPlan, ...]


class BoaCertificate(Document):
    """What proves a bound, or that no plan exists.

    Attributes
    ----------
    kind
        ``"price"``: the price proves the bound. ``"least"``: no plan uses as little of the limited
        resource as the limit asks; `bound` is None and `least` a lower bound on that use.
    price
        Price of one unit of the limited resource in units of the objective's total: mu, jobs in
        the system per GPU, where GPUs are limited; GPUs per job in the system where JCT is.
    priced_total
        Sum over classes of the least priced value of a job's path through its phases, rounded down
        to a multiple of 2**-192 and written as that multiple. It grows strictly with the price.
    bound
        Lower bound on the objective, in its unit.
    least
        Lower bound on the limited resource, in its unit, for kind ``"least"``.
    labels
        At most so many partial plans have to be followed to prove what the bound has above the
        price's; the verifier follows no more. None for as many as it follows at all.
    """

    kind: Literal["price", "least"]
    price: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    priced_total: str = Field(pattern=r"^[0-9]+$")
    bound: float | None = None
    least: float | None = None
    labels: int | None = Field(default=None, ge=0)
