"""Units of fields, by the ends of their names; and numbers that were written with one."""

from __future__ import annotations

import re

_SECONDS = {"ms": 1e-3, "s": 1, "sec": 1, "min": 60, "m": 60, "h": 3600, "hours": 3600, "d": 86400}
_WATTS = {"w": 1, "kw": 1e3, "mw": 1e6}
_GB = {"mb": 1e-3, "gb": 1, "tb": 1e3, "mib": 1.048576e-3, "gib": 1.073741824}
_UNITS: dict[str, tuple[str, dict[str, float]]] = {
    "s": ("seconds", _SECONDS),
    "w": ("watts", _WATTS),
    "gb": ("GB", _GB),
    "kwh": ("kWh", {"wh": 1e-3, "kwh": 1, "mwh": 1e3}),
}
_WRITTEN = re.compile(r"(?P<figure>\d{1,15}(?:\.\d{1,15})?) *(?P<unit>[A-Za-z]{1,8})")


def unit_hint(field: object, text: object) -> str:
    """Return what a text such as ``"4kW"`` is as the number that a field takes; or nothing.

    Parameters
    ----------
    field
        Name of the field, whose end says the unit: ``power_cap_w``.

    Examples
    --------
    >>> unit_hint("power_cap_w", "4kW")
    'in watts it is 4000'
    >>> unit_hint("name", "4kW")
    ''
    """
    known = _UNITS.get(str(field).rpartition("_")[2])
    match = _WRITTEN.fullmatch(text.strip()) if isinstance(text, str) else None
    if known is None or match is None or "_" not in str(field):
        return ""
    name, factors = known
    factor = factors.get(match["unit"].lower())
    if factor is None:
        return f"it is in {name}, without a unit"
    return f"in {name} it is {float(match['figure']) * factor:.12g}"
