"""What is swept: a field of an instance or scenario, and the unit that its name tells."""

from __future__ import annotations

UNITS = {
    "_usd_per_h": "USD/h",
    "_gpu_hours": "GPU-h",
    "_gpu_h": "GPU-h",
    "_gpus": "GPUs",
    "_usd": "USD",
    "_kwh": "kWh",
    "_gb": "GB",
    "_s": "s",
    "_w": "W",
}


def split_unit(path: str) -> tuple[str, str]:
    """Return name and unit of a field or metric, such as "budget" and "GPUs" of budget_gpus."""
    last = path.split(".")[-1]
    if not last.replace("_", "").isalpha():
        return path, ""
    for ending, unit in UNITS.items():
        if last.endswith(ending):
            return last.removesuffix(ending).replace("_", " "), unit
    return last.replace("_", " "), ""


ROLLOUT = "rollout"  # in the place of a problem's name
