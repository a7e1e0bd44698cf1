"""Offers of a cloud: GPUs of a type in a market, at a price, and what interruptions cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from math import inf
from typing import Any, Literal, NamedTuple

from pydantic import Field

from optsched.boa.speedups import Gpus, Speedup
from optsched.documents.faults import nearest, shown
from optsched.instance import Document, Fault, NonNegative, Positive

UNLIMITED = 10**9  # more than any width


class Offer(Document):
    """GPUs of one type that can be rented in one market.

    A job on so many nodes is interrupted whenever one of them is taken away. Nodes are taken away
    independently, each as a Poisson process while the job runs on it (docs/math/boa.md,
    Interruptions).
    """

    id: str = Field(min_length=1)
    gpu_type: str = Field(min_length=1, description="As phases name it in their curves.")
    market: Literal["on-demand", "spot"] = "on-demand"
    usd_per_gpu_h: Positive
    gpus_per_node: Gpus = Field(
        default=1, description="GPUs that are rented and taken away together."
    )
    bills: Literal["gpus", "nodes"] = Field(
        default="gpus",
        description="What is paid for: the GPUs that a job holds, or all of each node it runs on.",
    )
    interruptions_per_node_h: NonNegative = Field(
        default=0.0, description="Of a node on which a job runs; for market 'spot' only."
    )
    restart_s: NonNegative = Field(
        default=0.0,
        description="Seconds from an interruption until a node has replaced the one that is gone, "
        "all paid for; the class's rescale_s comes on top.",
    )
    start_s: NonNegative = Field(
        default=0.0,
        description="Seconds from the order of a node until a job can run on it, all paid for; a "
        "job waits for them at its start and at each change of offer or width.",
    )
    stop_s: NonNegative = Field(
        default=0.0, description="Seconds that a node is paid for after a job has left it."
    )
    least_billed_s: NonNegative = Field(
        default=0.0, description="Seconds that a node is paid for at least, once it is ordered."
    )
    note: str = Field(default="", description="Where price and interruptions come from.")

    @property
    def charges_starts(self) -> bool:
        """Whether an order of nodes costs more than the running of a job on them."""
        return bool(self.start_s or self.stop_s or self.least_billed_s)

    def most_gpus(self, checkpoint_s: float | None) -> int:
        """Return the largest width at which interruptions leave at least half of the running time.

        That is one interruption, at most, for each checkpoint.
        """
        if not (self.interruptions_per_node_h and checkpoint_s):
            return UNLIMITED
        lost = Fraction(self.interruptions_per_node_h) * Fraction(checkpoint_s)
        return min(int(3600 / lost) * self.gpus_per_node, UNLIMITED)


class OfferedCurve(NamedTuple):
    """Where a phase can run: an offer, and the phase's curve there.

    Attributes
    ----------
    number, offer
        Of the instance's offers; 0 and None where GPUs are of one type.
    speedup
        Without interruptions.
    most_gpus
        The largest width that interruptions allow.
    """

    number: int
    offer: Offer | None
    speedup: Speedup
    most_gpus: int = UNLIMITED

    @property
    def widths(self) -> Sequence[int]:
        """The whole widths, ascending."""
        widths = self.speedup.widths
        if widths[-1] <= self.most_gpus:
            return widths
        if isinstance(widths, range):
            return range(1, self.most_gpus + 1)
        return tuple([k for k in widths if k <= self.most_gpus])


# --- faults -----------------------------------------------------------------------------------

Path = tuple[str | int, ...]
Entries = list[tuple[int, Mapping[str, Any]]]  # number and document of each offer
PhaseEntry = tuple[Path, Mapping[str, Any], Any]  # path of a phase, its class, its speedup


def offer_faults(document: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield the faults of offers, and of what stands beside them; bears fields of wrong types."""
    offers = document.get("offers")
    phases = list(_phases(document))
    if offers is None:
        for path, _, speedup in phases:
            if _kind(speedup) == "by-type":
                text = "'by-type' needs offers, which say what GPUs of a type cost"
                yield (*path, "speedup", "kind"), text
        return
    if not isinstance(offers, list | tuple):
        return
    yield from _beside_offers(document)
    entries = [(n, offer) for n, offer in enumerate(offers) if isinstance(offer, Mapping)]
    yield from _offer_entries(entries)
    yield from _type_faults(entries, phases)
    yield from _interruption_faults(entries, phases)


def one_type_faults(phases: Any) -> Iterator[Fault]:
    """Yield phases with speedups by type, where all GPUs are of one."""
    for e, phase in enumerate(phases if isinstance(phases, list | tuple) else ()):
        if isinstance(phase, Mapping) and _kind(phase.get("speedup")) == "by-type":
            yield (e, "speedup", "kind"), "'by-type' is for instances with offers: give one curve"


def curve_documents(speedup: Any) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Yield path and document of the curves in a speedup: itself, or one for each type."""
    if not isinstance(speedup, Mapping):
        return
    if speedup.get("kind") != "by-type":
        yield (), speedup
        return
    curves = speedup.get("curves")
    for n, entry in enumerate(curves if isinstance(curves, list | tuple) else ()):
        curve = entry.get("speedup") if isinstance(entry, Mapping) else None
        if isinstance(curve, Mapping):
            yield ("curves", n, "speedup"), curve


def _phases(document: Mapping[str, Any]) -> Iterator[PhaseEntry]:
    """Yield path, class and speedup of every phase."""
    classes = document.get("classes")
    for i, entry in enumerate(classes if isinstance(classes, list | tuple) else ()):
        phases = entry.get("phases") if isinstance(entry, Mapping) else None
        for e, phase in enumerate(phases if isinstance(phases, list | tuple) else ()):
            if isinstance(phase, Mapping):
                yield ("classes", i, "phases", e), entry, phase.get("speedup")


def _kind(speedup: Any) -> Any:
    return speedup.get("kind") if isinstance(speedup, Mapping) else None


def _beside_offers(document: Mapping[str, Any]) -> Iterator[Fault]:
    if document.get("budget_gpus") is not None:
        text = "cannot stand beside offers, whose GPUs differ in price: give budget_usd_per_h"
        yield ("budget_gpus",), text
    if document.get("price_usd_per_gpu_h") is not None:
        yield ("price_usd_per_gpu_h",), "cannot stand beside offers, which have prices of their own"
    if document.get("widths") == "continuous":
        text = "'continuous' has no offers: use widths 'mixed' or 'integer'"
        yield ("widths",), text


def _offer_entries(entries: Entries) -> Iterator[Fault]:
    first: dict[str, int] = {}
    for n, offer in entries:
        name = offer.get("id")
        if isinstance(name, str) and first.setdefault(name, n) != n:
            yield ("offers", n, "id"), f"{shown(name)} is already the id of offers[{first[name]}]"
        if offer.get("market") != "spot" and offer.get("interruptions_per_node_h"):
            text = "must be 0 where the market is 'on-demand'; only 'spot' is interrupted"
            yield ("offers", n, "interruptions_per_node_h"), text


def _type_faults(entries: Entries, phases: list[PhaseEntry]) -> Iterator[Fault]:
    """Yield phases without a type that is offered, and offers of types that no phase runs on."""
    offered = {offer["gpu_type"] for _, offer in entries if isinstance(offer.get("gpu_type"), str)}
    used: dict[str, None] = {}
    for path, _, speedup in phases:
        kind = _kind(speedup)
        if kind != "by-type":
            if kind is not None:
                text = f"expected 'by-type' beside offers, found {shown(kind)}"
                yield (*path, "speedup", "kind"), text
            continue
        names: dict[str, None] = {}
        for n, name in _types(speedup):
            if name in names:
                text = f"{shown(name)} has a curve already"
                yield (*path, "speedup", "curves", n, "gpu_type"), text
            names[name] = None
        used |= names
        if names and not offered & names.keys():
            text = f"the phase runs on {', '.join(map(shown, names))}, which no offer has"
            yield (*path, "speedup", "curves"), text
    for n, offer in entries:
        wanted = offer.get("gpu_type")
        if used and isinstance(wanted, str) and wanted not in used:
            text = f"no phase runs on {shown(wanted)}; {nearest(wanted, used)}"
            yield ("offers", n, "gpu_type"), text


def _interruption_faults(entries: Entries, phases: list[PhaseEntry]) -> Iterator[Fault]:
    """Yield offers that leave no class half of its running time, and phases left without any."""
    works: dict[int, bool] = {}  # whether some phase can run on an offer
    for path, job_class, speedup in phases:
        least, left = _least_widths(speedup), []
        for n, offer in entries:
            width = least.get(offer.get("gpu_type"))
            if width is not None:
                left.append(_most_gpus(offer, job_class.get("checkpoint_s")) >= width)
                works[n] = works.get(n, False) or left[-1]
        if left and not any(left):
            text = "interruptions eat the work on every offer: write checkpoints sooner"
            yield (*path[:2], "checkpoint_s"), text
    for n in (n for n, possible in works.items() if not possible):
        text = "eats all work: each class has more than one interruption for each checkpoint"
        yield ("offers", n, "interruptions_per_node_h"), text


def _most_gpus(offer: Mapping[str, Any], checkpoint_s: Any) -> int:
    """Return `Offer.most_gpus` of figures that may be of wrong types."""
    rate: Any = offer.get("interruptions_per_node_h")
    node: Any = offer.get("gpus_per_node", 1)
    if all(isinstance(f, int | float) and 0 < f < inf for f in (rate, node, checkpoint_s)):
        return int(3600 / (Fraction(rate) * Fraction(checkpoint_s))) * int(node)
    return UNLIMITED


def _least_widths(speedup: Any) -> dict[Any, int]:
    """Return the least width of a phase on each type."""
    least = {}
    for path, curve in curve_documents(speedup):
        gpus = curve.get("gpus")
        first = gpus[0] if isinstance(gpus, list | tuple) and gpus else 1
        if path and isinstance(first, int):
            name = speedup["curves"][path[1]].get("gpu_type")
            least[name if isinstance(name, str) else None] = first
    return least


def _types(speedup: Mapping[str, Any]) -> list[tuple[int, str]]:
    curves = speedup.get("curves")
    entries = enumerate(curves if isinstance(curves, list | tuple) else ())
    named = [(n, entry.get("gpu_type")) for n, entry in entries if isinstance(entry, Mapping)]
    return [(n, name) for n, name in named if isinstance(name, str)]
