"""EaCO: bundled instances, and those whose costs are equal, differ by orders, or hardly bind.

The sizes are such that one of the two methods, at least, may prove them in a few seconds.
"""

from __future__ import annotations

import random
from functools import partial
from typing import TYPE_CHECKING, Any

import optsched
from benchmarks.generators import sharing, sharing_in_types

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from optsched.eaco import EacoInstance

BUNDLED = ("gangs", "gavel-v100", "pairs-60", "paper-four", "paper-mixed", "power-levels",
           "quads-60", "running")  # fmt: skip
LEVELS = [
    {"id": "low", "limit_w": 200.0, "rate": 0.8, "power": 0.65},
    {"id": "mid", "limit_w": 280.0, "rate": 0.95, "power": 0.85},
]


def instances() -> Iterator[tuple[str, Callable[[], EacoInstance]]]:
    """Yield instances by name."""
    for name in BUNDLED:
        yield name, partial(_bundled, name)
    for jobs, most, seed in (
        (20, 2, 0), (20, 3, 0), (20, 3, 6), (20, 4, 0), (20, 4, 1), (24, 3, 2), (24, 3, 4),
        (24, 4, 1), (30, 2, 0), (30, 3, 0), (30, 3, 1), (40, 2, 0), (40, 3, 0), (40, 3, 1),
        (40, 4, 0), (50, 2, 0), (50, 3, 0), (60, 2, 0), (60, 3, 0), (60, 4, 2),
    ):  # fmt: skip
        yield f"unlike-{jobs}-{most}-{seed}", partial(sharing, jobs, most, 0.25, seed)
    for jobs, types, most in ((40, 4, 3), (100, 6, 3), (200, 8, 4), (500, 5, 4)):
        yield f"equal-{jobs}-{types}-{most}", partial(sharing_in_types, jobs, types, most, 0.25)
    for jobs, most in ((12, 3), (20, 3), (20, 4), (30, 5), (74, 5)):
        yield f"symmetric-{jobs}-{most}", partial(symmetric, jobs, most)
    for jobs, watts in ((8, 1e6), (12, 1e9), (16, 1e12), (24, 1e12)):
        yield f"dear-{jobs}-{watts:.0e}", partial(expensive, jobs, watts)
    for jobs, share in ((12, 1.05), (20, 1.05), (30, 1.02), (20, 0.9), (30, 0.5)):
        yield f"deadlines-{jobs}-{share}", partial(deadlines, jobs, share)
    for jobs, most in ((12, 2), (20, 3), (24, 2)):
        yield f"levels-{jobs}-{most}", partial(levels, jobs, most)
    for jobs, share in ((12, 0.6), (16, 0.45), (20, 0.5)):
        yield f"capped-{jobs}-{share}", partial(capped, jobs, share)
    for jobs, most in ((12, 3), (20, 3), (30, 2)):
        yield f"running-{jobs}-{most}", partial(running, jobs, most)
    for jobs, types, most in ((20, 4, 3), (30, 5, 3), (40, 4, 2)):
        yield f"measured-{jobs}-{types}-{most}", partial(measured, jobs, types, most)


def _bundled(name: str) -> EacoInstance:
    return optsched.read(f"eaco/{name}")


def _changed(instance: EacoInstance, **fields: Any) -> EacoInstance:
    document = instance.model_dump(mode="json", by_alias=True, exclude_none=True)
    return type(instance).from_document(document | fields, instance.name)


def _jobs(instance: EacoInstance) -> list[dict[str, Any]]:
    return [job.model_dump(mode="json", exclude_none=True) for job in instance.jobs]


def symmetric(jobs: int, most: int) -> EacoInstance:
    """Return jobs of one type that do not slow each other down: sorting them by work is best."""
    rng = random.Random(jobs)
    power = {"bare_w": 20, "context_w": 50, "peak_w": 300}
    listed = [
        {"id": f"j{n}", "type": "a", "work_s": round(10 ** rng.uniform(2, 5), 1)}
        for n in range(jobs)
    ]
    return _changed(
        sharing(jobs, most, 0.25),
        gpu_types=[{"id": "g", "memory_gb": 24, "power": power}],
        nodes=[{"id": "a", "gpu": "g", "gpus": 4, "count": jobs, "power": {"base_w": 400}}],
        types=[{"id": "a", "utilisation": 0.0}],
        jobs=listed,
        interference={"saturation_slope": 0.0, "partner_slowdown": 0.0},
    )


def expensive(jobs: int, watts: float) -> EacoInstance:
    """Return jobs of which the first two types were measured to draw so many watts together."""
    pair = {"types": ["t0000", "t0001"], "rates": [0.95, 0.95], "gpu_power_w": watts}
    return _changed(sharing(jobs, 3, 0.25, 3), interference={"groups": [pair]})


def deadlines(jobs: int, share: float) -> EacoInstance:
    """Return jobs, every other one due at such a share of its work; below 1 it cannot be met."""
    instance = sharing(jobs, 3, 0.25, 4)
    listed = _jobs(instance)
    for job in listed[::2]:
        job["deadline_s"] = share * job["work_s"]
    return _changed(instance, jobs=listed)


def levels(jobs: int, most: int) -> EacoInstance:
    """Return jobs on GPUs with two power levels, for which they must bear more."""
    instance = sharing(jobs, most, 0.4, 5)
    power = instance.gpu_types[0].power.model_dump(mode="json")
    return _changed(
        instance, gpu_types=[{"id": "g", "memory_gb": 24, "power": power, "levels": LEVELS}]
    )


def capped(jobs: int, share: float) -> EacoInstance:
    """Return jobs that may wait, within a share of what all would draw at their peaks."""
    instance = sharing(jobs, 3, 0.25, 6)
    listed = [job | {"waiting_penalty_kwh": 2.0} for job in _jobs(instance)]
    return _changed(instance, jobs=listed, power_cap_w=share * 350.0 * jobs)


def running(jobs: int, most: int) -> EacoInstance:
    """Return jobs half of which run now, two by two as far as they may, on nodes for all."""
    instance = sharing(jobs, most, 0.25, 7)
    places = [
        {"id": f"r{n}", "nodes": "a", "node": n // 8, "jobs": [f"j{2 * n}", f"j{2 * n + 1}"]}
        for n in range(jobs // 4)
    ]
    return _changed(instance, running=places)


def measured(jobs: int, types: int, most: int) -> EacoInstance:
    """Return jobs of few types all pairs of which were measured."""
    rng = random.Random(jobs)
    instance = sharing(jobs, most, 0.4, 8)
    names = [kind.id for kind in instance.types][:types]
    listed = _jobs(instance)
    for n, job in enumerate(listed):
        job["type"] = names[n % types]
    groups = []
    for i, a in enumerate(names):
        for b in names[i:]:
            first, second = (round(rng.uniform(0.7, 1), 3) for _ in "ab")
            groups.append({"types": [a, b], "rates": [first, first if a == b else second]})
    return _changed(instance, jobs=listed, interference={"groups": groups, "fallback": "pairs"})
