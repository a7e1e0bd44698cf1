"""Energies of EaCO: the published values, and run to completion against a simulation."""

import itertools
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.eaco import EacoInstance, EacoPlan, Group, performance
from optsched.eaco.verify.feasibility import exact_objective, objective, violations

# Set, kWh, mean JCT in hours: EaCO, arXiv 2412.08294, tables 1 to 4, on a node with 8 V100.
ROWS = {
    "AlexNet": (24.73, 34.76),
    "ResNet-18": (33.69, 35.13),
    "ResNet-50": (47.87, 36.01),
    "VGG-16": (55.38, 36.13),
    "AlexNet+ResNet-50": (50.93, 36.63),
    "AlexNet+VGG-16": (54.97, 36.51),
    "ResNet-18+VGG-16": (60.84, 37.01),
    "AlexNet+ResNet-18+ResNet-50": (59.01, 38.28),
    "AlexNet+ResNet-18+VGG-16": (65.55, 38.26),
    "AlexNet+ResNet-18+ResNet-50+VGG-16": (93.66, 44.21),
}
J1, J2, J3, J4 = "AlexNet", "ResNet-18", "ResNet-50", "VGG-16"
WORK_S = 3600 * sum(ROWS[name][1] for name in (J1, J2, J3, J4)) / 4
V100 = {"id": "V100", "memory_gb": 16, "power": {"bare_w": 30, "context_w": 36, "peak_w": 300}}


def measured_group(models):
    """A row of the tables: slowdown = mean JCT / mean JCT alone, watts so that its energy is met.

    The tables have only means over the jobs of a set, so all four jobs get the same work.
    """
    names = models.split("+")
    energy, jct = ROWS[models]
    slowdown = jct / (sum(ROWS[name][1] for name in names) / len(names))
    watts = energy * 3.6e6 / (WORK_S * slowdown) / 8
    return {"types": names, "rates": [1 / slowdown] * len(names), "gpu_power_w": watts}


def paper(copies=(1, 1, 1, 1), **more):
    models = [name for name, n in zip((J1, J2, J3, J4), copies, strict=True) for _ in range(n)]
    count = itertools.count()
    jobs = [{"id": f"{next(count)}", "type": m, "gpus": 8, "work_s": WORK_S} for m in models]
    document = {
        "schema": "optsched/eaco/1",
        "gpu_types": [V100],
        "nodes": [
            {"id": "v100", "gpu": "V100", "gpus": 8, "count": len(jobs), "power": {"base_w": 0}}
        ],
        "types": [{"id": name, "utilisation": 0.5} for name in (J1, J2, J3, J4)],
        "jobs": jobs,
        "interference": {"groups": [measured_group(row) for row in ROWS], "fallback": "none"},
    }
    return EacoInstance.from_document(document | more)


def grouped(instance, *groups):
    """Make a plan from the types of each group's jobs, one node for each."""
    free = {t.id: [j.id for j in instance.jobs if j.type == t.id] for t in instance.types}
    return EacoPlan(
        groups=tuple(
            Group(jobs=tuple(free[name].pop() for name in group), nodes="v100", node=n)
            for n, group in enumerate(groups)
        )
    )


# --- docs/math/eaco.md, Golden values ---------------------------------------------------------


PARTITIONS = [
    ([[J1], [J2], [J3], [J4]], 161.67, 1),
    ([[J1, J4], [J2], [J3]], 136.53, 1.035),
    ([[J1, J3], [J2], [J4]], 140.00, 1.04),
    ([[J2, J4], [J1], [J3]], 133.44, 1.04),
    ([[J1, J3], [J2, J4]], 111.77, 1.04),
    ([[J1, J2, J3], [J4]], 114.39, 1.10),
    ([[J1, J2, J4], [J3]], 113.42, 1.10),
    ([[J1, J2, J3, J4]], 93.66, 1.25),
]


@pytest.mark.parametrize(("groups", "kwh", "least_cap"), PARTITIONS)
def test_partitions_of_the_papers_rows(groups, kwh, least_cap):
    instance = paper()
    plan = grouped(instance, *groups)
    assert violations(instance, plan) == []
    assert objective(instance, plan) == pytest.approx(kwh, rel=1e-12)
    figures = performance(instance, plan)
    assert figures.energy_kwh == objective(instance, plan)
    assert figures.alone_kwh == pytest.approx(161.67, rel=1e-12)
    assert figures.nodes_on == len(groups)
    for cap in (1, 1.03, 1.035, 1.04, 1.10, 1.24, 1.25):
        broken = violations(instance.changed({"jobs.*.max_slowdown": cap}), plan)
        assert {b.rule for b in broken} == (set() if cap >= least_cap else {"slowdown"})


@pytest.mark.parametrize(
    ("cap", "kwh"),
    [
        (1, 161.67),
        (1.03, 161.67),
        (1.035, 136.53),
        (1.04, 111.77),
        (1.24, 111.77),
        (1.25, 93.66),
        (9, 93.66),
    ],
)
def test_least_energy_by_slowdown_cap(cap, kwh):
    instance = paper().changed({"jobs.*.max_slowdown": cap})
    plans = [grouped(instance, *groups) for groups, _, _ in PARTITIONS]
    least = min(objective(instance, plan) for plan in plans if not violations(instance, plan))
    assert least == pytest.approx(kwh, rel=1e-12)


def test_only_the_measured_groups_are_allowed():
    instance = paper()
    broken = violations(instance, grouped(instance, [J2, J3], [J1], [J4]))
    assert [b.rule for b in broken] == ["known-rates"]


@pytest.mark.parametrize(
    ("copies", "cap", "groups", "kwh"),
    [
        ((2, 2, 2, 2), 1.10, [[J1, J4], [J1, J2, J3], [J2, J4], [J3]], 222.69),
        ((4, 2, 3, 1), 1.05, [[J1, J3]] * 3 + [[J2, J4], [J1], [J2]], 272.05),
        ((4, 2, 3, 1), 1.10, [[J1, J3], [J1, J2, J3], [J1, J4], [J1, J2, J3]], 223.92),
    ],
)
def test_copies_of_the_papers_jobs(copies, cap, groups, kwh):
    instance = paper(copies).changed({"jobs.*.max_slowdown": cap})
    plan = grouped(instance, *groups)
    assert violations(instance, plan) == []
    assert objective(instance, plan) == pytest.approx(kwh, rel=1e-12)


# --- energies phase by phase, against a simulation --------------------------------------------

RATES = st.sampled_from([0.25, 0.4, 0.5, 0.8, 1.0])
WATTS = st.sampled_from([None, 50.0, 120.0, 333.25])


@st.composite
def cases(draw):
    """Up to four jobs of up to three types in one group, with some measured groups."""
    names = draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=4))
    works = st.sampled_from([30.0, 60.0, 61.0, 100.0, 7.3])
    jobs = [
        {"id": f"{n}", "type": name, "gpus": 2, "work_s": draw(works)}
        for n, name in enumerate(names)
    ]
    keys = {
        key
        for size in range(1, len(names) + 1)
        for key in itertools.combinations(sorted(names), size)
        if draw(st.booleans()) or size == len(names)
    }
    groups = []
    for key in sorted(keys):
        by_type = {name: draw(RATES) for name in sorted(set(key))}
        rates = [by_type[name] for name in key] if len(key) > 1 else [1.0]
        groups.append({"types": list(key), "rates": rates, "gpu_power_w": draw(WATTS)})
    types = [
        {"id": n, "utilisation": draw(st.sampled_from([0.1, 0.5, 0.9])), "speeds": {"V100": s}}
        for n, s in (("a", 1.0), ("b", 2.0), ("c", 0.7))
    ]
    level = {"id": "low", "limit_w": draw(st.sampled_from([60, 500])), "rate": 0.75, "power": 0.6}
    document = {
        "schema": "optsched/eaco/1",
        "gpu_types": [V100 | {"levels": [level]}],
        "nodes": [
            {
                "id": "v100",
                "gpu": "V100",
                "gpus": 8,
                "count": 2,
                "on": 0,
                "power": {"base_w": 1000, "sleep_w": 40, "wake_s": 5, "wake_w": 800},
            }
        ],
        "types": types,
        "jobs": jobs,
        "interference": {
            "groups": groups,
            "fallback": draw(st.sampled_from(["none", "utilisation"])),
        },
    }
    instance = EacoInstance.from_document(document)
    level_id = draw(st.sampled_from([None, "low"]))
    group = Group(jobs=tuple(j["id"] for j in jobs), nodes="v100", node=1, level=level_id)
    return instance, group


def table_entry(instance, types):
    keys = [(sorted(g.types), g) for g in instance.interference.groups]
    return next((g for key, g in keys if key == sorted(types)), None)


def simulated(instance, group):
    """Run a group second by second event, from the docstring of the instance; in floats."""
    types = {t.id: t for t in instance.types}
    jobs = {j.id: j for j in instance.jobs if j.id in group.jobs}
    left = {n: j.work_s / types[j.type].speeds["V100"] for n, j in jobs.items()}
    level = instance.gpu_types[0].levels[0] if group.level else None
    now = joules = 0.0
    ends, rate_of, gpu_w = {}, {}, 0.0
    while left:
        names = [jobs[n].type for n in left]
        rates = instance.rates["V100"].of(names)
        if rates.is_known:
            rate_of = {n: float(rates.by_type[jobs[n].type]) for n in left}
            entry = table_entry(instance, names)
            gpu_w = entry.gpu_power_w if entry else None
            if gpu_w is None:
                busy = sum(types[jobs[n].type].utilisation * rate_of[n] for n in left)
                gpu_w = 36 + (300 - 36) * min(1, busy)
            if level:
                gpu_w = min(level.limit_w, gpu_w * level.power)
                rate_of = {n: rate * level.rate for n, rate in rate_of.items()}
        step = min(left[n] / rate_of[n] for n in left)
        now += step
        joules += step * (2 * gpu_w + 2 / 8 * (1000 - 40))
        left = {n: work - step * rate_of[n] for n, work in left.items()}
        ends |= {n: now for n, work in left.items() if work < 1e-9}
        left = {n: work for n, work in left.items() if work >= 1e-9}
    return joules, ends


@given(cases())
def test_run_to_completion_is_what_a_simulation_gives(case):
    instance, group = case
    if not instance.rates["V100"].of([j.type for j in instance.jobs]).fits:
        return
    plan = EacoPlan(groups=(group,))
    assert violations(instance, plan) == []
    joules, ends = simulated(instance, group)
    wake = 5 * (800 - 40)
    assert objective(instance, plan) == pytest.approx((joules + wake) / 3.6e6, rel=1e-9)
    figures = performance(instance, plan)
    assert figures.woken == 1
    for job in figures.groups[0].jobs:
        assert job.run_s == pytest.approx(ends[job.id], rel=1e-9)
        assert job.run_s <= job.latest_s
    assert figures.groups[0].run_s == max(job.run_s for job in figures.groups[0].jobs)


@given(cases(), st.sampled_from([2, 0.5, 4]))
def test_works_and_watts_scale_the_energy(case, factor):
    """docs/math/eaco.md, Properties, exactly: all factors are powers of two."""
    instance, group = case
    if not instance.rates["V100"].of([j.type for j in instance.jobs]).fits:
        return
    plan = EacoPlan(groups=(group,))
    base = instance.changed({"nodes.*.on": None})
    before = exact_objective(base, plan)
    slower = base.changed({f"jobs.{j.id}.work_s": j.work_s * factor for j in base.jobs})
    assert exact_objective(slower, plan) == before * Fraction(factor)
    document = base.model_dump(mode="json", by_alias=True, exclude_none=True)
    power = document["gpu_types"][0]["power"]
    power |= {key: power[key] * factor for key in ("bare_w", "context_w", "peak_w")}
    document["gpu_types"][0]["levels"][0]["limit_w"] *= factor
    node = document["nodes"][0]["power"]
    node |= {key: node[key] * factor for key in ("base_w", "sleep_w", "wake_w")}
    for entry in document["interference"]["groups"]:
        if "gpu_power_w" in entry:
            entry["gpu_power_w"] *= factor
    assert exact_objective(EacoInstance.from_document(document), plan) == before * Fraction(factor)


@given(cases())
def test_relabelling_changes_nothing(case):
    instance, group = case
    if not instance.rates["V100"].of([j.type for j in instance.jobs]).fits:
        return
    turned = instance.model_copy(update={"jobs": instance.jobs[::-1]})
    other = group.model_copy(update={"jobs": group.jobs[::-1]})
    one = exact_objective(instance, EacoPlan(groups=(group,)))
    assert one == exact_objective(turned, EacoPlan(groups=(other,)))
