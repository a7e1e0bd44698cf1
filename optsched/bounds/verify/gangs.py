"""What prices of gangs prove of mean JCT: exact completions less what the dearest gangs pay."""

from __future__ import annotations

from bisect import bisect_right
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from optsched.bounds.verify.completions import least_completion
from optsched.bounds.verify.fullest import fullest
from optsched.bounds.verify.refusal import Refused

if TYPE_CHECKING:
    from optsched.bounds.certificate import GangCertificate
    from optsched.bounds.least_times import Needs, World

FAR: Final = 1 << 60


def proven_by_gangs_us(world: World, certificate: GangCertificate) -> int:
    """Return what the sum of all jobs' ends is at least, in whole microseconds.

    L(u) = sum over jobs of max(earliest end, min over C of C + price of its gang's cheapest time
    before C) - integral of what the dearest gangs that fit pay, see docs/math/bounds.md.

    Raises
    ------
    Refused
        If jobs are elastic, or slots or widths do not ascend.
    """
    ends = ends_by_gangs_us(world, certificate)
    rents = rents_of(world, certificate, world.capacity)
    lengths = (end - begin for begin, end in pairwise(certificate.edges))
    rent = sum(price * length for price, length in zip(rents, lengths, strict=True))
    return sum(ends) - -(-rent * certificate.unit_us // (1 << certificate.price_bits))


def ends_by_gangs_us(world: World, certificate: GangCertificate) -> list[int]:
    """Return by job what its end and the price of its gang's time are at least together."""
    _require_form(world, certificate)
    unit, bits = certificate.unit_us, certificate.price_bits
    edges = [0, *certificate.edges]
    by_width = {
        width: [0, *prices]
        for width, prices in zip(certificate.widths, certificate.prices, strict=True)
    }
    ends = []
    for job in world.jobs:
        length, prices = job.length_us // unit, by_width.get(width_of(job))
        if not length or prices is None or job.release_us // unit + length >= FAR:
            ends.append(job.end_us)
            continue
        release = job.release_us // unit
        slot = bisect_right(edges, release) - 1
        least, _ = least_completion(release, length, edges, prices, slot, 1 << bits, FAR)
        ends.append(max(job.end_us, least * unit >> bits))
    return ends


def rents_of(world: World, certificate: GangCertificate, capacity: int) -> list[int]:
    """Return by slot the most that gangs of jobs that are there can pay at once on so many GPUs."""
    unit = certificate.unit_us
    releases: dict[int, list[int]] = {width: [] for width in certificate.widths}
    for job in world.jobs:
        if (width := width_of(job)) in releases:
            releases[width].append(job.release_us // unit)
    return fullest(
        [(width, sorted(releases[width])) for width in certificate.widths],
        certificate.prices,
        certificate.edges[1:],
        capacity,
    )


def width_of(job: Needs) -> int:
    """Return the width of a rigid job; 0 of one that needs no GPUs."""
    if len(job.pieces) > 1 or any(piece.width.denominator != 1 for piece in job.pieces):
        raise Refused("gangs: jobs are elastic")
    return int(sum((piece.width for piece in job.pieces), Fraction(0)))


def _require_form(world: World, certificate: GangCertificate) -> None:
    if any(wide <= narrow for narrow, wide in pairwise([0, *certificate.widths])):
        raise Refused("widths: must ascend")
    if any(end <= begin for begin, end in pairwise(certificate.edges)) or certificate.edges[0] < 0:
        raise Refused("edges: must ascend")
    if len(certificate.prices) != len(certificate.widths):
        raise Refused("prices: one row for each width")
    if any(len(row) != len(certificate.edges) - 1 for row in certificate.prices):
        raise Refused("prices: one for each slot between two edges")
