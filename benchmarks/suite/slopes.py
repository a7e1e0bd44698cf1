"""Cost as the work grows: log-log slopes of CPU seconds over sizes."""

from __future__ import annotations

from typing import Any

LEAST_SIZES = 3


def slopes(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return for each method of each work the exponent of its CPU seconds.

    Only rows that came to their end count, and only methods with three of them or more.

    Returns
    -------
    list of dict
        With keys work, method, unit, sizes (ascending), exponent.
    """
    points: dict[tuple[str, str, str], dict[int, float]] = {}
    for record in records:
        if record["status"] in ("optimal", "done") and record["cpu_s"]:
            key = (record["work"], record["method"], record["unit"])
            points.setdefault(key, {})[record["size"]] = record["cpu_s"]
    return [
        {
            "work": work,
            "method": method,
            "unit": unit,
            "sizes": sorted(measured),
            "exponent": exponent(measured),
        }
        for (work, method, unit), measured in points.items()
        if len(measured) >= LEAST_SIZES
    ]


def exponent(seconds: dict[int, float]) -> float:
    """Return the slope of a line through (log size, log seconds)."""
    import numpy as np

    return float(np.polyfit(np.log(list(seconds)), np.log(list(seconds.values())), 1)[0])
