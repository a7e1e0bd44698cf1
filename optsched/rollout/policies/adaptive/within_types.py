"""Places for jobs of changing widths in a cluster of several GPU types: each gang within one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from optsched.rollout.policies.adaptive.apart import nodes_if_spread, place_apart, spread_nodes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.held_gpus import Gpus, Holdings

    Wanted = tuple[str, int]
    """A type, and so many GPUs of it."""


class Offers(Protocol):
    """Tells what a job would take that was given a width, what it likes best first."""

    def __call__(self, view: View, job: int, width: int) -> Iterable[Wanted]:
        """Return types, and how many GPUs of each."""
        ...


class Seek(Protocol):
    """Finds free GPUs on some nodes, None if there are not enough in places that suit."""

    def __call__(self, held: Holdings, gpus: int, nodes: int, spread: int) -> Gpus | None:
        """Return GPUs; `spread` is the set of nodes of gangs that are on several."""
        ...


class WithinTypes:
    """The first of what a job would take that has room; a job that finds nothing waits.

    Jobs come in the order given. One that gets narrower on the type that it has keeps of its GPUs
    the first.
    """

    def __init__(self, offers: Offers, seek: Seek) -> None:
        self.offers, self.seek = offers, seek

    def place(self, view: View, held: Holdings, widths: Mapping[int, int]) -> dict[int, Gpus]:
        """Return GPUs for the jobs, fewer than wanted for some, and let them hold these."""
        before = {job: held.of.get(job, ()) for job in widths}
        held.release(widths)
        spread, places = spread_nodes(held), {}
        for job, width in widths.items():
            gpus = self._place(view, held, job, width, before[job], spread)
            if not gpus:
                continue
            held.hold(job, gpus)
            spread |= nodes_if_spread(held, gpus)
            if gpus != before[job]:
                places[job] = gpus
        return places

    def _place(
        self, view: View, held: Holdings, job: int, width: int, own: Gpus, spread: int
    ) -> Gpus | None:
        cluster = held.cluster
        own_type = cluster.type_of(own) if own else None
        for gpu_type, gpus in self.offers(view, job, width):
            kept = own[:gpus]
            if gpu_type == own_type and len(kept) == gpus and held.nodes.are_free(kept):
                return kept
            nodes = held.nodes_of[gpu_type] & held.usable
            if held.free_on(nodes) >= gpus:
                found = self.seek(held, gpus, nodes, spread)
                if found is not None:
                    return found
        return None


def _lowest(held: Holdings, gpus: int, nodes: int, spread: int) -> Gpus:
    return held.lowest(gpus, nodes)


def _best_fit(held: Holdings, gpus: int, nodes: int, spread: int) -> Gpus:
    return held.nodes.gang(gpus, nodes) or held.lowest(gpus, nodes)


SEEKS: dict[str, Callable[..., Gpus | None]] = {
    "lowest": _lowest,
    "best-fit": _best_fit,
    "apart": place_apart,
}
"""By name of a placement; PAL's knows no types."""
