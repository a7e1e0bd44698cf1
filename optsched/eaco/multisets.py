"""Multisets of job types, as tuples: which of them have all of another."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache


@lru_cache(maxsize=1 << 14)
def is_within(part: tuple[str, ...], whole: tuple[str, ...]) -> bool:
    """Tell whether a group has all jobs of another."""
    return Counter(part) <= Counter(whole)
