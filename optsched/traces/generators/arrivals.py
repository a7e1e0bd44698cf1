"""Arrivals in bursts, by the hour of the day and the day of the week."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.traces.generators.random_draws import stratified

if TYPE_CHECKING:
    from numpy.random import Generator

    from optsched.documents.arrays import Floats, Integers
    from optsched.traces.generators.random_draws import GapMixture

DAY_S = 86_400.0


class WeeklyProfile(NamedTuple):
    """Shares of the arrivals, in any unit: of the 24 hours, and of the days from Sunday."""

    hours: tuple[float, ...]
    days: tuple[float, ...]


def arrival_moments(
    rng: Generator, count: int, span_s: float, gaps: GapMixture, profile: WeeklyProfile | None
) -> Floats:
    """Return ascending moments of arrivals in seconds, the first 0 and the last `span_s`.

    Bursts have as many arrivals as come before the next long gap, and begin at moments that the
    profile draws, the midnight before a Sunday being 0. Bursts of about the same size are
    stratified over hours and over days, so that one large burst makes no rush hour.
    """
    is_first = rng.random(count) < gaps.between
    is_first[0] = True
    burst = np.cumsum(is_first) - 1
    sizes = np.bincount(burst)
    within = np.where(is_first, 0.0, rng.exponential(gaps.short * span_s / count, count))
    since = np.cumsum(within)
    since -= since[np.flatnonzero(is_first)][burst]
    order = np.lexsort((rng.random(len(sizes)), -sizes))
    rank = np.empty(len(sizes), np.int64)
    rank[order] = np.arange(len(sizes))
    day, hour = stratified(rng, rank // 48), stratified(rng, rank // 24)
    starts = hour * span_s if profile is None else _starts(day, hour, span_s, profile)
    moments: Floats = np.sort((starts[burst] + since) % max(span_s, 1e-9))
    moments[0] = 0.0
    if count > 1:
        moments[-1] = span_s
    return moments


def busiest(submit_us: Integers) -> tuple[float, float]:
    """Return the share of arrivals in the busiest hour of the day, and on weekends, in %.

    For traces that begin at the midnight before a Sunday.
    """
    hours = submit_us // 3_600_000_000
    by_hour = np.bincount(hours % 24, minlength=24) / max(1, len(hours))
    return 100 * float(by_hour.max()), 100 * float(np.isin(hours // 24 % 7, (0, 6)).mean())


def _starts(day: Floats, hour: Floats, span_s: float, profile: WeeklyProfile) -> Floats:
    """Return moments in seconds: the day by one uniform draw, the hour in it by the other."""
    edges = np.concatenate(([0.0], np.cumsum(profile.hours)))
    edges /= edges[-1]
    whole, rest = divmod(span_s / DAY_S, 1.0)
    days = int(whole) + (rest > 0)
    part = np.ones(days)  # what share of its arrivals a day has before the trace ends
    if rest > 0:
        part[-1] = np.interp(24 * rest, np.arange(25), edges)
    weights = np.array(profile.days)[np.arange(days) % 7] * part
    upto = np.concatenate(([0.0], np.cumsum(weights))) / weights.sum()
    chosen = np.minimum(np.searchsorted(upto, day, side="right") - 1, days - 1)
    moments: Floats = chosen * DAY_S + np.interp(hour * part[chosen], edges, np.arange(25)) * 3600.0
    return moments
