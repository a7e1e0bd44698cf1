"""PAL instances for tests: a compact way to write one down, and Hypothesis strategies."""

from __future__ import annotations

from hypothesis import strategies as st

from optsched.cluster import Topology
from optsched.pal import PalInstance
from tests.support.strategies.common import among

LEVELS = ["node", "rack", "row", "cluster"]

# --- instances written by hand ------------------------------------------------------------------


def level_names(count):
    """Names of levels from the lowest up: the last one is always the cluster."""
    return [*LEVELS[: count - 1], "cluster"] if count > 1 else ["node"]


def document(nodes, slowdown=None, jobs=(1,), *, drained=(), **fields):
    """Return the document of an instance from a compact description.

    Parameters
    ----------
    nodes
        What stands in the cluster: ``{"a": 2, "b": 2}`` are two nodes with GPUs "a/0", "a/1", ...
        A mapping inside is a domain: ``{"r0": {"a": 2, "b": 2}, "c": 1}`` are two nodes in a rack,
        and one that skips the level of racks.
    slowdown
        Per class a list over GPUs in that order; class "A" with 1 everywhere by default.
    jobs
        Sizes of gangs, or mappings with `gpus` and whatever else. By default a job has the id
        "j0", "j1", ..., the first class, and the first model.
    drained
        Ids of domains.
    fields
        Of the document. `locality` is by default 1, 1.5, 2, ... for the model "m".
    """
    levels = level_names(1 + _depth(nodes))
    domains = [{"id": "all", "level": levels[-1]}, *_domains(nodes, "all", levels[:-1])]
    gpus = [gpu for d in domains for gpu in d.get("gpus", ())]
    slowdown = slowdown or {"A": [1.0] * len(gpus)}
    locality = fields.pop("locality", {"m": [1 + n / 2 for n in range(len(levels))]})
    defaults = {"application_class": next(iter(slowdown)), "model": next(iter(locality))}
    return {
        "schema": "optsched/pal/1",
        "name": "small",
        "topology": {
            "levels": levels,
            "domains": [d | {"drained": True} if d["id"] in drained else d for d in domains],
        },
        "profile": {"gpus": gpus, "slowdown": slowdown, "kind": "persistent"},
        "locality": locality,
        "jobs": [
            {"id": f"j{n}", **defaults, **(job if isinstance(job, dict) else {"gpus": job})}
            for n, job in enumerate(jobs)
        ],
        **fields,
    }


def small_instance(nodes, slowdown=None, jobs=(1,), *, drained=(), **fields):
    """Return the instance of a compact description: the parameters are those of `document`."""
    return PalInstance.from_document(document(nodes, slowdown, jobs, drained=drained, **fields))


def _depth(nodes):
    inner = (_depth(inside) for inside in nodes.values() if isinstance(inside, dict))
    return 1 + max(inner, default=0)


def _domains(nodes, parent, levels):
    for name, inside in nodes.items():
        if isinstance(inside, dict):
            yield {"id": name, "level": levels[-1], "parent": parent}
            yield from _domains(inside, name, levels[:-1])
        else:
            gpus = [f"{name}/{i}" for i in range(inside)]
            yield {"id": name, "level": levels[0], "parent": parent, "gpus": gpus}


# --- parts of drawn instances -------------------------------------------------------------------

NICE = [0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0]
OUTLIERS = [3.46, 8.0, 40.0]
UGLY = st.floats(0.5, 2.0)
TIMES = st.one_of(among(1.0, 10.0, 60.0, 3600.0), st.floats(0.1, 1e4))
WEIGHTS = st.one_of(among(1.0, 1.0, 2.0, 5.0), st.floats(0.1, 20))


@st.composite
def topologies(draw, max_gpus=9, levels=(2, 3, 4), drained=True):
    """Trees with uneven fan-out, skipped levels, domains without GPUs, and some that are drained.

    At least three GPUs exist, and at least one is not drained.
    """
    names = level_names(draw(among(*levels)))
    domains = [{"id": "all", "level": names[-1]}]
    for height in range(len(names) - 2, 0, -1):
        above = [d["id"] for d in domains]
        for n in range(draw(st.integers(0, 2))):
            domain = {"id": f"{names[height]}{n}", "level": names[height]}
            domains.append(domain | {"parent": draw(among(*above))})
    above = [d["id"] for d in domains]
    left, n = draw(st.integers(3, max_gpus)), 0
    if len(names) == 1:
        domains[0]["gpus"] = [f"all/{i}" for i in range(left)]
        left = 0
    while left:
        size = draw(st.integers(1, min(left, 4)))
        gpus = [f"n{n}/{i}" for i in range(size)]
        parent = draw(among(*above))
        domains.append({"id": f"n{n}", "level": "node", "parent": parent, "gpus": gpus})
        left, n = left - size, n + 1
    if drained and n > 1 and draw(st.integers(0, 3)) == 0:
        draw(st.sampled_from([d for d in domains if d.get("gpus")]))["drained"] = True
    return {"levels": names, "domains": draw(st.permutations(domains))}


@st.composite
def slowdowns(draw, count):
    """One to three classes: constant, few values with many ties, ugly floats, with outliers."""
    classes = {}
    for name in "ABC"[: draw(st.integers(1, 3))]:
        shape = draw(among("constant", "ties", "ties", "nice", "ugly", "outliers"))
        if shape == "constant":
            values = [draw(among(*NICE))] * count
        elif shape == "ties":
            pool = draw(st.lists(st.one_of(among(*NICE), UGLY), min_size=2, max_size=3))
            value = st.sampled_from(pool)
            values = [draw(value) for _ in range(count)]
        elif shape == "ugly":
            values = [draw(UGLY) for _ in range(count)]
        else:
            pool = NICE if shape == "nice" else [*NICE[:3], *OUTLIERS]
            value = st.sampled_from(pool)
            values = [draw(value) for _ in range(count)]
        classes[name] = values
    return classes


@st.composite
def localities(draw, levels, measured=True):
    """Kind and penalties of one or two models: flat, plateaus, steep, ugly; measured ones dip."""
    kind = draw(among("given", "given", "measured") if measured else among("given"))
    models = {}
    for name in ["m", "n"][: draw(st.integers(1, 2))]:
        shape = draw(among("one", "plateau", "steep", "ugly"))
        if kind == "measured" and draw(st.booleans()):
            models[name] = [draw(st.floats(0.5, 3)) for _ in range(levels)]
        elif shape == "one":
            models[name] = [1.0] * levels
        elif shape == "steep":
            models[name] = [draw(among(1.0, 1.5)) * 5.0**n for n in range(levels)]
            models[name].sort()
        else:
            value = among(1.0, 1.3, 1.7) if shape == "plateau" else st.floats(1, 3)
            models[name] = sorted(draw(value) for _ in range(levels))
    return kind, models


@st.composite
def pal_instances(
    draw,
    running=True,
    optional=True,
    caps=True,
    unavailable=True,
    measured=True,
    max_gpus=9,
    max_jobs=5,
    levels=(2, 3, 4),
    feasible=True,
):
    """Small instances, every feature of which can be switched off.

    With `feasible` every instance has a plan. Gangs exceed the free GPUs only if jobs may be left
    out, or without `feasible`; then caps that cannot be kept come too.
    """
    topology = draw(topologies(max_gpus, levels, drained=unavailable))
    text = {
        "schema": "optsched/pal/1",
        "name": "drawn",
        "topology": topology,
        "admission": draw(among("all", "optional") if optional else among("all")),
    }
    existing = [gpu for d in topology["domains"] for gpu in d.get("gpus", ())]
    text["profile"] = {
        "gpus": existing,
        "slowdown": draw(slowdowns(len(existing))),
        "kind": "persistent",
    }
    text["locality_kind"], text["locality"] = draw(localities(len(topology["levels"]), measured))
    text["unavailable"], free = _unavailable(draw, topology, unavailable)
    is_safe = feasible and text["admission"] == "all"
    sizes = _sizes(draw, len(free), max_jobs, is_safe)
    text["jobs"] = [{"id": f"j{n}", "gpus": size} for n, size in enumerate(sizes)]
    some_run = running and draw(st.integers(0, 3)) > 0
    _describe(draw, text, some_run or draw(st.booleans()))
    if text["admission"] == "optional":
        for job in text["jobs"]:
            scale = job["weight"] * job.get("remaining_s", 1.0)
            job["reward"] = scale * draw(among(0.01, 1.0, 1.5, 3.0, 1000.0))
    if some_run:
        _let_run(draw, text["jobs"], existing)
    if caps and draw(st.booleans()):
        _cap(draw, text, free, is_safe)
    return PalInstance.from_document(text)


def _unavailable(draw, topology, switched_on):
    """Return what is unavailable, and the free GPUs: at least one, in the order of the tree."""
    open_gpus = [
        gpu for d in topology["domains"] if not d.get("drained") for gpu in d.get("gpus", ())
    ]
    taken = []
    if switched_on and draw(st.integers(0, 2)) == 0:
        taken = draw(st.lists(st.sampled_from(open_gpus), max_size=2, unique=True))
    taken = taken[: len(open_gpus) - 1]
    return taken, [gpu for gpu in open_gpus if gpu not in taken]


def _sizes(draw, free, max_jobs, is_safe):
    sizes = [draw(st.integers(1, free))]
    while len(sizes) < max_jobs and draw(st.integers(0, 4)):
        most = free - sum(sizes) if is_safe else free
        if most < 1:
            break
        sizes.append(draw(st.integers(1, min(most, 4))))
    return sizes


def _describe(draw, text, is_timed):
    """Give every job a class, a model, a weight and a time; some jobs are like the one before."""
    classes = among(*text["profile"]["slowdown"])
    models = among(*text["locality"])
    before = None
    for job in text["jobs"]:
        if before is None or draw(st.booleans()):
            before = {"application_class": draw(classes), "model": draw(models)}
            before["weight"] = draw(WEIGHTS)
            if is_timed:
                before["remaining_s"] = draw(TIMES)
        job.update(before)


def _let_run(draw, jobs, existing):
    """Let some jobs hold GPUs, of those that are drained or unavailable too."""
    left = existing
    if draw(st.booleans()):
        left = draw(st.permutations(existing))
    for job in jobs:
        if job["gpus"] <= len(left) and draw(st.booleans()):
            job["current"], left = left[: job["gpus"]], left[job["gpus"] :]
            share = draw(among(0.0, 0.01, 0.2, 1000.0))
            job["restart_s"] = share * job["remaining_s"]


def _cap(draw, text, free, is_safe):
    """Cap some jobs; if a plan must be left, above where their GPUs meet in one plan."""
    names = text["topology"]["levels"]
    topology = Topology.from_document(text["topology"])
    order = {gpu: n for n, gpu in enumerate(topology.gpus)}
    left = sorted(free, key=lambda gpu: order[gpu])
    for job in text["jobs"]:
        gpus, left = left[: job["gpus"]], left[job["gpus"] :]
        lowest = topology.lowest_common_level(gpus) if is_safe else 0
        if draw(st.booleans()):
            job["highest_level"] = draw(among(*names[lowest:]))
