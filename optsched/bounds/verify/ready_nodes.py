"""What a ready node is worth more than none: whether it proves something, and its figures by cell.

A node is billed while it starts, before it can be used. It may be worth no more than that, and may
become worth more by no more than its rent: then no rent of a node earns anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from optsched.bounds.verify.refusal import Refused

if TYPE_CHECKING:
    from optsched.bounds.certificate import StartsCertificate
    from optsched.documents.arrays import Integers
    from optsched.rollout.scenario import Scenario
    from optsched.traces.trace import Trace

PPM: Final = 1_000_000
US: Final = 1_000_000
MOST: Final = 1 << 61


class Cells(NamedTuple):
    """Figures of cells of time, each rounded outward.

    Attributes
    ----------
    least, most
        ReadyNodes of a ready node within the cell, microseconds for each GPU.
    price
        The least price of GPU time within the cell, millionths.
    """

    least: Integers
    most: Integers
    price: Integers


class ReadyNodes(NamedTuple):
    """ReadyNodes of a ready node by time, linear in each slot; 0 outside.

    Attributes
    ----------
    prices
        Of GPU time by slot, millionths, rounded down: the rent less what the worth rises.
    """

    price_ppm: int
    since: int
    slot: int
    edges: Integers
    prices: Integers
    greatest: int

    def cells(self, begin: int, cell: int, count: int) -> Cells:
        """Return the figures of so many cells from a moment on; no cell is longer than a slot."""
        moments = begin - self.since + cell * np.arange(count + 1)
        slots = moments // self.slot
        inside = (slots >= 0) & (slots < len(self.prices))
        number = np.clip(slots, 0, len(self.prices) - 1)
        rise = (self.edges[number + 1] - self.edges[number]) * (moments - slots * self.slot)
        floor = np.where(inside, self.edges[number] + rise // self.slot, 0)
        ceil = np.where(inside, self.edges[number] - -rise // self.slot, 0)
        price = np.where(inside, self.prices[number], self.price_ppm)
        edge = np.where(inside, self.edges[number], 0)
        kink = slots[1:] != slots[:-1]
        return Cells(
            np.where(kink, np.minimum(floor[1:], edge[1:]), floor[1:]).clip(max=floor[:-1]),
            np.where(kink, np.maximum(ceil[1:], edge[1:]), ceil[1:]).clip(min=ceil[:-1]),
            np.minimum(price[1:], price[:-1]),
        )

    def charged(self, gpu_us: Integers) -> Integers:
        """Return the rent of GPU time, rounded down."""
        return self.price_ppm * gpu_us // PPM

    @staticmethod
    def at(prices: Integers, gpu_us: int) -> Integers:
        """Return what GPU time costs at prices, rounded down."""
        return prices * gpu_us // PPM


def ready_nodes(scenario: Scenario, trace: Trace, certificate: StartsCertificate) -> ReadyNodes:
    """Return what a certificate says that ready nodes are worth.

    Raises
    ------
    Refused
        If nodes do not start, a ready node is worth something when the first job comes or more than
        a start, or its worth rises by more than the rent.
    """
    if not len(trace):
        raise Refused("there are no jobs")
    edges = np.array(certificate.worth_us, np.int64)
    price, slot = certificate.price_ppm, certificate.slot_us
    if scenario.rented is None or scenario.rented.provision_s <= 0:
        raise Refused("no nodes are rented that have to start")
    start_us = max(0, round(scenario.rented.provision_s * US) - 1)
    greatest = int(edges.max())
    if max(greatest * max(slot, PPM), price * max(slot, start_us)) > MOST:
        raise Refused("prices or slots are too great for whole numbers of 64 bits")
    if edges[0] or edges[-1] or certificate.since_us < int(trace.submit_us.min()):
        raise Refused("a ready node is worth something before the first job, or for ever")
    if greatest * PPM > price * start_us:
        raise Refused("a ready node is worth more than what a start is billed")
    rises = np.diff(edges) * PPM
    if (rises > price * slot).any():
        raise Refused("the worth of a ready node rises by more than its rent")
    return ReadyNodes(price, certificate.since_us, slot, edges, price - -(-rises // slot), greatest)
