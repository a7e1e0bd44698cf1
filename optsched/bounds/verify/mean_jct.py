"""What a certificate proves of mean JCT: Lagrangian value of mean busy times, rounded outward."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from optsched.bounds.verify.refusal import Refused
from optsched.bounds.verify.slot_values import Slots

if TYPE_CHECKING:
    from optsched.bounds.certificate import JctCertificate
    from optsched.bounds.least_times import Needs, World

STEPS = 1 << 16
MOST_NEED = 1 << 54
MOST_MOMENT = 1 << 36


def proven_total_us(world: World, certificate: JctCertificate) -> int:
    """Return what the sum of all jobs' ends is at least, in whole microseconds.

    L(u) = sum over jobs of max(earliest end, min over x of the priced mean busy time + length / 2)
    - capacity x integral of u, see docs/math/bounds.md. Any prices prove their L.

    Raises
    ------
    Refused
        If the certificate has not one threshold for each job, or its slots do not ascend.
    """
    _require_form(world, certificate)
    unit = certificate.unit_us
    rent = sum(
        price * (end - begin)
        for price, (begin, end) in zip(certificate.prices, pairwise(certificate.edges), strict=True)
    )
    rent_us = -(-world.capacity * rent * unit // (1 << certificate.price_bits))
    return sum(least_ends_us(world.jobs, certificate)) - rent_us


def _require_form(world: World, certificate: JctCertificate) -> None:
    if len(certificate.thresholds) != len(world.jobs):
        found = f"{len(certificate.thresholds):,} thresholds for {len(world.jobs):,} jobs"
        raise Refused(f"thresholds: one for each job, found {found}")
    if len(certificate.prices) != len(certificate.edges) - 1:
        raise Refused("prices: one for each slot between two edges")
    if any(end <= begin for begin, end in pairwise(certificate.edges)):
        raise Refused("edges: must ascend")


def least_ends_us(jobs: list[Needs], certificate: JctCertificate) -> list[int]:
    """Return by job what its end and the price of its time are at least together."""
    import numpy as np

    unit = certificate.unit_us
    rows: list[tuple[int, int, int, int]] = []
    of_job: list[tuple[int, int, int]] = []
    for number, (job, threshold) in enumerate(zip(jobs, certificate.thresholds, strict=True)):
        length, release = job.length_us // unit, job.release_us // unit
        needs = [(length * p.width).__floor__() for p in job.pieces]
        if not (threshold and length) or max(needs, default=MOST_NEED) >= MOST_NEED:
            continue
        if release >= MOST_MOMENT:
            continue
        of_job.append((number, threshold, length))
        rows += [(number, release, threshold, need) for need in needs]
    ends = [job.end_us for job in jobs]
    if not rows:
        return ends
    columns = np.array(rows, np.int64)
    slots = Slots(certificate.edges, certificate.prices, certificate.price_bits)
    surplus = iter(slots.surplus(columns[:, 1], columns[:, 2], columns[:, 3]))
    for number, threshold, length in of_job:
        job = jobs[number]
        gained = sum(piece.rate * next(surplus) for piece in job.pieces)
        twice = STEPS * (2 * threshold * length + length * length) - gained
        priced = twice * unit // (2 * STEPS * length) + job.shift_us
        ends[number] = max(ends[number], priced)
    return ends
