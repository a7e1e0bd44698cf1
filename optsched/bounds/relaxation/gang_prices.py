"""Prices of gangs by width: exact completions, and which gangs fit together, by subgradients."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.bounds.certificate import GangCertificate
from optsched.bounds.relaxation.dearest_gangs import Gangs
from optsched.bounds.relaxation.rounding import MOST_BITS, MOST_PRICE, MOST_UNITS
from optsched.bounds.verify.completions import least_completion

if TYPE_CHECKING:
    from optsched.bounds.least_times import World
    from optsched.bounds.relaxation.prices import Relaxation
    from optsched.documents.arrays import Floats
    from optsched.rollout.scenario import Scenario

US = 1_000_000


class GangSettings(NamedTuple):
    """How prices of gangs are looked for, and where.

    Attributes
    ----------
    slots
        Of time, at most; rounds where jobs end with them.
    most_pairs, most_size
        Jobs x slots, and gangs x GPUs x slots, beyond which there are none.
    even_steps, steps, few, per_job
        Steps of the same price for each GPU of a gang, and of any price for each width; no more
        than a few and so many for each job.
    target, memory
        A step goes for such a share of the value more, along a mean that keeps so much of what
        it was before.
    patience, least
        After so many steps without a gain the target is halved, until it is such a share.
    """

    slots: int = 500
    most_pairs: int = 400_000
    most_size: int = 4_000_000
    even_steps: int = 120
    steps: int = 300
    few: int = 40
    per_job: int = 2
    target: float = 0.02
    memory: float = 0.8
    patience: int = 8
    least: float = 1 / 64

    def most(self, jobs: int, *, is_even: bool) -> int:
        """Return how many steps there are at most for so many jobs."""
        return min(self.even_steps if is_even else self.steps, self.few + self.per_job * jobs)


SETTINGS = GangSettings()


class _Found(NamedTuple):
    total: float
    excess: Floats  # by width and slot the gangs that jobs take beyond the dearest ones


class _Pricing:
    """Evaluates prices by width and slot; the time after the last slot is free."""

    def __init__(self, world: World, edges: Floats) -> None:
        self.edges, self.spans = edges, np.diff(edges)
        self._edges = edges.tolist()
        jobs = [(job, int(job.pieces[0].width)) for job in world.jobs if job.pieces]
        self.widths = np.unique([width for _, width in jobs])
        released = [np.sort([j.release_us / US for j, k in jobs if k == w]) for w in self.widths]
        there = np.array([np.searchsorted(r, edges[1:], side="left") for r in released])
        self.gangs = Gangs(self.widths, there, world.capacity)
        self.jobs = len(world.jobs)
        self._alone = sum(job.end_us for job in world.jobs if not job.length_us) / US
        held = [(job, width) for job, width in jobs if job.length_us]
        self._jobs = [
            (j.release_us / US, j.length_us / US, j.end_us / US, int(n))
            for (j, width), n in zip(
                held, np.searchsorted(self.widths, [k for _, k in held]), strict=True
            )
        ]
        begins = [row[0] for row in self._jobs]
        self._slots = (np.searchsorted(edges, begins, side="right") - 1).tolist()

    def value(self, prices: Floats) -> _Found:
        rows, total, use = prices.tolist(), self._alone, np.zeros_like(prices)
        for (release, length, alone, n), slot in zip(self._jobs, self._slots, strict=True):
            least, end = least_completion(
                release, length, self._edges, rows[n], slot, 1.0, math.inf
            )
            total += max(least, alone)
            if least > alone:
                self._take(use[n], prices[n], slot, (release, length, end))
        dearest = self.gangs.dearest(prices)
        total -= float(dearest.pay @ self.spans)
        return _Found(total, use / self.spans - dearest.counts)

    def _take(self, use: Floats, price: Floats, slot: int, job: tuple[float, float, float]) -> None:
        """Add the cheapest time of a job before its end to what is used of each slot."""
        release, length, end = job
        stop = min(int(np.searchsorted(self.edges, end, side="left")), len(price))
        if stop <= slot:
            return
        spans = self.spans[slot:stop].copy()
        spans[0] = self.edges[slot + 1] - release
        spans[-1] -= max(0.0, self.edges[stop] - end)
        order = price[slot:stop].argsort(kind="stable")
        free = max(0.0, end - self.edges[stop])
        held = np.minimum(spans[order].cumsum(), length - free)
        held[1:] -= held[:-1].copy()
        use[slot:stop][order] += np.maximum(held, 0)


def gang_certificate(
    scenario: Scenario, world: World, relaxation: Relaxation, settings: GangSettings = SETTINGS
) -> GangCertificate | None:
    """Return a certificate with prices of gangs, where that is quick enough and GPUs are scarce.

    None where a job has more than one width, too.
    """
    if not relaxation.prices.any() or any(len(job.pieces) > 1 for job in world.jobs):
        return None
    step = scenario.epoch_s if scenario.finish_at_epochs else None
    edges = _edges(relaxation, step, settings.slots)
    if len(world.jobs) * len(edges) > settings.most_pairs:
        return None
    pricing = _Pricing(world, edges)
    if pricing.gangs.size > settings.most_size:
        return None
    prices = np.outer(pricing.widths, _resampled(relaxation, edges))
    prices = _improved(pricing, prices, settings, is_even=True)
    prices = _improved(pricing, prices, settings, is_even=False)
    return _rounded(pricing, prices)


def _edges(relaxation: Relaxation, step: float | None, most: int) -> Floats:
    """Return edges until GPUs are free: of rounds, or some of the relaxation's."""
    edges: Floats = relaxation.edges[: int(np.flatnonzero(relaxation.prices)[-1]) + 2]
    if step is None:
        few: Floats = edges[np.unique(np.linspace(0, len(edges) - 1, most + 1).astype(int))]
        return few
    first, count = math.floor(edges[0] / step), math.ceil(edges[-1] / step)
    many = max(1, math.ceil((count - first) / most))
    found: Floats = step * np.arange(first, count + many, many, dtype=float)
    return found


def _resampled(relaxation: Relaxation, edges: Floats) -> Floats:
    """Return the mean prices of other slots."""
    paid = np.r_[0.0, np.cumsum(relaxation.prices * np.diff(relaxation.edges))]
    prices: Floats = np.diff(np.interp(edges, relaxation.edges, paid)) / np.diff(edges)
    return prices


def _improved(
    pricing: _Pricing, prices: Floats, settings: GangSettings, *, is_even: bool
) -> Floats:
    """Go along means of subgradients, by steps after Polyak that aim at a bit more than the best.

    Where all is even, each GPU of a gang has the same price; those of a gang add up.
    """
    widths = pricing.widths[:, None].astype(float)
    best, at = pricing.value(prices), prices
    now, found, mean, share, since = prices, best, np.zeros(()), 1.0, 0
    for number in range(settings.most(pricing.jobs, is_even=is_even)):
        excess = found.excess
        if is_even:
            excess = np.broadcast_to((widths * excess).sum(axis=0) / widths.sum(), now.shape)
        mean = settings.memory * mean + (1 - settings.memory) * excess if number else excess
        slope = float((widths * mean * excess * pricing.spans).sum())
        if slope <= 0:
            mean, slope = excess, float((widths * excess**2 * pricing.spans).sum())
        if slope <= 0:
            break
        goal = best.total * (1 + settings.target * share) - found.total
        now = np.maximum(0, now + goal / slope * widths * mean)
        found = pricing.value(now)
        if found.total > best.total:
            best, at, since = found, now, 0
            continue
        since += 1
        if since == settings.patience:
            now, found, since, share = at, best, 0, share / 2
        if share < settings.least:
            break
    return at


def _rounded(pricing: _Pricing, prices: Floats) -> GangCertificate:
    unit = 10 ** max(0, math.ceil(math.log10(max(1.0, pricing.edges[-1] * US / MOST_UNITS))))
    edges, kept = np.unique(np.rint(pricing.edges * (US / unit)), return_index=True)
    prices, bits = prices[:, kept[:-1]], MOST_BITS
    while bits > 16 and float(prices.max(initial=0.0)) * 2**bits > MOST_PRICE:
        bits -= 1
    whole = np.minimum(np.floor(prices * 2**bits), MOST_PRICE).astype(np.int64)
    return GangCertificate(
        unit_us=unit,
        price_bits=bits,
        edges=edges.astype(np.int64).tolist(),
        widths=pricing.widths.tolist(),
        prices=whole.tolist(),
    )
