"""Parts of drawn EaCO instances, and how an instance is loosened until it has a plan."""

from __future__ import annotations

import itertools

from hypothesis import strategies as st

from optsched.eaco import EacoInstance, EacoPlan, Group
from optsched.eaco.verify.feasibility import violations
from tests.support.strategies.common import among

SHARES = among(0.05, 0.25, 0.5, 0.5, 0.75, 1.0)
RATES = [0.25, 0.5, 0.8, 0.9, 0.95, 1.0]
WORKS = st.one_of(among(600.0, 1800.0, 3600.0, 3600.0, 7200.0), st.floats(60, 1e5))
CURVES = [
    {"kind": "affine"},
    {"kind": "power-law", "exponent": 0.48},
    {"kind": "fan", "exponent": 1.4},
    {"kind": "table", "utilisation": [0.1, 0.5, 1.0], "power_w": [60.0, 90.0, 100.0]},
]


@st.composite
def gpu_types(draw, count, levels):
    """GPUs with all power curves and up to two power levels; the second has more memory."""
    gpus = []
    for name, memory in list(zip("XY", (16.0, 40.0), strict=True))[:count]:
        bare, context, peak = draw(among((0, 0, 100), (10, 20, 120), (30, 60, 300)))
        curve = CURVES[draw(st.integers(0, 2 if peak == 300 else 3))]
        if curve["kind"] == "table" and (context, peak) != (20, 120):
            curve = CURVES[0]
        power = {"bare_w": bare, "context_w": context, "peak_w": peak, "curve": curve}
        limits = [
            {
                "id": f"l{n}",
                "limit_w": max(context, draw(among(0.4, 0.7, 1.0)) * peak) or 1.0,
                "rate": draw(among(0.5, 0.8, 0.95, 1.0)),
                "power": draw(among(0.5, 0.7, 0.9)),
            }
            for n in range(draw(st.integers(0, 2)) if levels else 0)
        ]
        gpus.append({"id": name, "memory_gb": memory, "power": power, "levels": limits})
    return gpus


@st.composite
def pools(draw, gpus, gangs, max_nodes, sleep, most=2):
    """One or two pools of nodes, the first of a size that takes every gang."""
    entries = []
    for n in range(draw(st.integers(1, most))):
        each = draw(among(1, 2, 3, 4, 4, 5, 8) if n else among(max(gangs), 4, 8, 2, 5))
        least = max(1, -(-max(gangs) // each))
        if n == 0 and each < max(gangs) and any(g > each and g % each for g in gangs):
            each, least = max(gangs), 1
        count = draw(st.integers(least, max(least, max_nodes))) if not n else draw(_COUNTS)
        power = {"base_w": draw(among(0.0, 100.0, 400.0))}
        if sleep:
            power["sleep_w"] = draw(among(0.0, 0.1, 0.5)) * power["base_w"]
            power["wake_s"] = draw(among(0.0, 60.0, 600.0))
        node = {"id": "xy"[n], "gpu": draw(st.sampled_from(gpus))["id"], "gpus": each}
        entries.append(node | {"count": count, "power": power})
        if sleep and draw(st.booleans()):
            entries[-1]["on"] = draw(st.integers(0, count))
    return entries


_COUNTS = st.integers(1, 2)


@st.composite
def tables(draw, types, gpus, fallbacks):
    """Measured groups of up to four, some of them for one GPU type, some that do not fit."""
    groups = []
    keys = [key for n in (2, 3, 4) for key in itertools.combinations_with_replacement(types, n)]
    for key in [key for key in keys if draw(st.integers(0, 2)) == 0][:6]:
        fits = draw(st.integers(0, 7)) > 0
        by_type = {name: draw(among(*RATES)) if fits else 0.0 for name in types}
        group = {"types": list(key), "rates": [by_type[name] for name in key]}
        if draw(st.integers(0, 3)) == 0:
            group["gpu"] = draw(st.sampled_from(gpus))["id"]
        if draw(st.booleans()):
            group["gpu_power_w"] = draw(among(30.0, 75.0, 110.0, 333.25))
        if draw(st.booleans()):
            group["utilisation"] = draw(SHARES)
        groups.append(group)
    slope = draw(among(0.0, 0.56, 2.0))
    table = {"groups": groups, "fallback": draw(among(*fallbacks))}
    return table | {"saturation_slope": slope, "partner_slowdown": draw(among(0, 0.02))}


# --- instances with a plan ------------------------------------------------------------------------


def with_a_plan(text):
    """Loosen a document until every job may have GPUs of its own, or all may wait."""
    instance = EacoInstance.from_document(text)
    if all(job.waiting_penalty_kwh is not None for job in instance.jobs):
        return instance.changed({"power_cap_w": None}) if _below_floor(instance) else instance
    while (plan := exclusive(instance)) is None:
        for pool in text["nodes"]:
            pool["count"] += 1
        instance = EacoInstance.from_document(text)
    if any(rule.rule == "deadline" for rule in violations(instance, plan)):
        instance = instance.changed({"jobs.*.deadline_s": None})
    if any(rule.rule == "power-cap" for rule in violations(instance, plan)):
        instance = instance.changed({"power_cap_w": None})
    assert not violations(instance, plan)
    return instance


def _below_floor(instance):
    return instance.power_cap_w is not None and instance.power_cap_w < instance.idle_floor_w


def exclusive(instance):
    """Return a plan in which running jobs that can stay do, and all have GPUs of their own."""
    free = {(p.id, n): p.gpus for p in instance.nodes for n in range(p.count)}
    first = {place.jobs[0]: place for place in instance.running}
    order = sorted(instance.jobs, key=lambda job: (job.id not in first, -job.gpus))
    groups = []
    for job in order:
        place = first.get(job.id)
        spots = [(place.nodes, place.node)] if place is not None else list(free)
        spot = _spot(instance, job, spots, free) or _spot(instance, job, list(free), free)
        if spot is None:
            return None
        kept = place.id if place is not None and spot == (place.nodes, place.node) else None
        groups.append(Group(jobs=(job.id,), nodes=spot[0], node=spot[1], location=kept))
    return EacoPlan(groups=tuple(groups))


def _spot(instance, job, spots, free):
    """Take the first spot that holds a job."""
    types, pools_by = {t.id: t for t in instance.types}, {p.id: p for p in instance.nodes}
    memory = {gpu.id: gpu.memory_gb for gpu in instance.gpu_types}
    for name, node in spots:
        each = pools_by[name].gpus
        need = {(name, node + n): min(job.gpus, each) for n in range(max(1, job.gpus // each))}
        within = job.gpus <= each or job.gpus % each == 0
        fits = types[job.type].memory_gb <= memory[pools_by[name].gpu]
        if within and fits and all(free.get(key, 0) >= n for key, n in need.items()):
            for key, n in need.items():
                free[key] -= n
            return name, node
    return None
