"""Certificates: prices and thresholds rounded to whole units."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from optsched.bounds.certificate import JctCertificate

if TYPE_CHECKING:
    from optsched.bounds.relaxation.prices import Relaxation

MOST_UNITS, MOST_PRICE, MOST_BITS = 2**34, 2**38, 40


def certificate_of(relaxation: Relaxation, jobs: int) -> JctCertificate:
    """Return the certificate of a relaxation of so many jobs of a trace."""
    value = relaxation.value
    latest = max(float(relaxation.edges[-1]), float(value.thresholds.max())) * 1e6
    unit = 10 ** max(0, math.ceil(math.log10(max(1.0, latest / MOST_UNITS))))
    edges, kept = np.unique(np.rint(relaxation.edges * (1e6 / unit)), return_index=True)
    prices = relaxation.prices[kept[:-1]]
    most = float(prices.max(initial=0.0))
    bits = MOST_BITS
    while bits > 16 and most * 2**bits > MOST_PRICE:
        bits -= 1
    thresholds = np.zeros(jobs, np.int64)
    rounded = np.rint(value.thresholds * (1e6 / unit)).astype(np.int64)
    thresholds[relaxation.rows.number] = np.where(value.is_priced, rounded, 0)
    return JctCertificate(
        unit_us=unit,
        price_bits=bits,
        edges=edges.astype(np.int64).tolist(),
        prices=np.minimum(np.floor(prices * 2**bits), MOST_PRICE).astype(np.int64).tolist(),
        thresholds=thresholds.tolist(),
    )
