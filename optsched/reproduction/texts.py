"""Figures as texts, the same in tables and on the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from optsched.reproduction.estimates import Estimate
    from optsched.reproduction.verdicts import Published


def number(value: float) -> str:
    """Return a figure in three or four digits."""
    size = abs(value)
    digits = 0 if size >= 1000 else 1 if size >= 10 else 2
    text = f"{value:,.{digits}f}"
    return "0" if float(text.replace(",", "")) == 0 else text


def published_text(published: Published | None) -> str:
    """Return a published figure or range; empty if there is none."""
    if published is None:
        return ""
    if published.low == published.high:
        return f"{published.low:,g}"
    return f"{published.low:,g} to {published.high:,g}"


def interval_text(ours: Estimate | None) -> str:
    """Return an interval; empty where there is none."""
    if ours is None or ours.low == ours.high:
        return ""
    return f"{number(ours.low)} to {number(ours.high)}"


def exact_text(seeds: int, exact: float | None, exact_seeds: int, beside: float | None) -> str:
    """Return the figure of the exact method; where it has fewer seeds, ours on these as well."""
    if exact is None:
        return ""
    if beside is None or exact_seeds == seeds:
        return number(exact)
    seeds_text = "1 seed" if exact_seeds == 1 else f"{exact_seeds} seeds"
    return f"{number(exact)} ({seeds_text}; ours there {number(beside)})"
