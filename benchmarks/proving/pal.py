"""PAL's part of a named set of instances: what HiGHS proves on the plain model, `exact` proves."""

from __future__ import annotations

import random
from functools import partial
from typing import TYPE_CHECKING, Any

import optsched
from optsched.pal import PalInstance

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BUNDLED = ("tiny", "sia-64", "sia-64-persistent", "frontera-32", "sticky", "overfull")
SIZES = (1, 1, 1, 2, 2, 4, 4, 8)
SPREADS = {
    "gaussian": lambda rng: max(0.8, rng.gauss(1.0, 0.03)),
    "uniform": lambda rng: rng.uniform(0.9, 1.3),
    "bins": lambda rng: rng.choice([1.0, 1.0, 1.05, 1.1, 1.3]),
    "outliers": lambda rng: 2.8 if rng.random() < 0.05 else rng.uniform(0.97, 1.06),
}


def instances() -> Iterator[tuple[str, Callable[[], PalInstance]]]:
    """Yield name and maker of each instance; the same ones whenever it is asked."""
    for name in BUNDLED:
        yield f"pal/{name}", partial(_bundled, f"pal/{name}")
    for nodes, racks in ((2, 0), (4, 0), (8, 0), (16, 0), (4, 2), (8, 2), (16, 4)):
        for spread in SPREADS:
            name = f"{nodes * 4} GPUs, {3 if racks else 2} levels, {spread}"
            yield name, partial(drawn, name, nodes, 4, racks, spread)
    for nodes, racks in ((4, 0), (8, 2), (12, 3)):
        for feature in ("running", "capped", "optional", "pinned"):
            name = f"{nodes * 4} GPUs, {3 if racks else 2} levels, {feature}"
            yield name, partial(drawn, name, nodes, 4, racks, "uniform", feature)
    for gangs in ((3,), (8,), (20,), (16, 8, 4), (64, 32)):
        name = f"2,400 GPUs, gangs of {' '.join(map(str, gangs))}"
        yield name, partial(few_on_many, name, gangs)
    name = "2,400 GPUs, all pinned"
    yield name, partial(few_on_many, name, (8,) * 40, restart_s=1e7)


def _bundled(name: str) -> PalInstance:
    instance = optsched.read(name)
    assert isinstance(instance, PalInstance)
    return instance


def drawn(
    name: str, nodes: int, per_node: int, racks: int, spread: str, feature: str = ""
) -> PalInstance:
    """Return an instance with jobs for about 85 % of its GPUs; its name is the seed.

    Parameters
    ----------
    feature
        Of some jobs: running with a restart of a minute, or of 1e7 s ("pinned"); capped at a node
        or rack; or optional with a reward.
    """
    rng = random.Random(name)
    topology = tree(nodes, per_node, racks)
    gpus = [gpu for domain in topology["domains"] for gpu in domain.get("gpus", ())]
    jobs, left = list[dict[str, Any]](), list(gpus)
    while sum(job["gpus"] for job in jobs) < 0.85 * len(gpus) - (feature != "optional") * 4:
        free = len(gpus) - sum(job["gpus"] for job in jobs)
        size = rng.choice([size for size in SIZES if size <= max(1, free)])
        job = {"id": f"j{len(jobs)}", "gpus": size, "model": rng.choice("mn")}
        job |= {"application_class": rng.choice("AB"), "weight": rng.choice([1.0, 1.0, 2.0])}
        job["remaining_s"] = rng.choice([600.0, 3600.0, 7200.0])
        if feature in ("running", "pinned") and rng.random() < 0.7:
            job["current"], left = left[:size], left[size:]
            job["restart_s"] = 60.0 if feature == "running" else 1e7
        if feature == "capped" and size <= per_node and rng.random() < 0.5:
            job["highest_level"] = "node"
        if feature == "optional":
            job["reward"] = job["weight"] * job["remaining_s"] * rng.uniform(1.0, 1.6)
        jobs.append(job)
    admission = "optional" if feature in ("optional", "capped") else "all"
    for job in jobs if admission == "optional" else ():
        job.setdefault("reward", 1e6)
    slowdown = {c: [SPREADS[spread](rng) for _ in gpus] for c in "AB"}
    middle = [1.2] if racks else []
    locality = {"m": [1.0, *middle, 1.7], "n": [1.0, *[1.05] * len(middle), 1.1]}
    return _instance(name, topology, slowdown, locality, jobs, admission)


def few_on_many(name: str, gangs: tuple[int, ...], restart_s: float | None = None) -> PalInstance:
    """Return a few gangs on 2,400 unlike GPUs at three levels; all run if they have a restart."""
    rng = random.Random(5)
    topology = tree(300, 8, 20)
    gpus = [gpu for domain in topology["domains"] for gpu in domain.get("gpus", ())]
    slowdown = {"A": [rng.uniform(0.9, 1.3) for _ in gpus]}
    jobs, start = list[dict[str, Any]](), 0
    for size in gangs:
        job = {"id": f"j{len(jobs)}", "gpus": size, "application_class": "A", "model": "m"}
        if restart_s is not None:
            current = gpus[start : start + size]
            job |= {"remaining_s": 3600.0, "restart_s": restart_s, "current": current}
            start += 2 * size
        jobs.append(job)
    return _instance(name, topology, slowdown, {"m": [1.0, 1.15, 1.4]}, jobs, "all")


def tree(nodes: int, per_node: int, racks: int) -> dict[str, Any]:
    """Return the document of a topology of equal nodes, in racks if there are some."""
    levels = ["node", *(["rack"] if racks else []), "cluster"]
    domains: list[dict[str, Any]] = [{"id": "all", "level": "cluster"}]
    domains += [{"id": f"r{r}", "level": "rack", "parent": "all"} for r in range(racks)]
    for n in range(nodes):
        parent = f"r{n * racks // nodes}" if racks else "all"
        inside = [f"n{n}/{i}" for i in range(per_node)]
        domains.append({"id": f"n{n}", "level": "node", "parent": parent, "gpus": inside})
    return {"levels": levels, "domains": domains}


def _instance(
    name: str,
    topology: dict[str, Any],
    slowdown: dict[str, list[float]],
    locality: dict[str, list[float]],
    jobs: list[dict[str, Any]],
    admission: str,
) -> PalInstance:
    gpus = [gpu for domain in topology["domains"] for gpu in domain.get("gpus", ())]
    return PalInstance.from_document(
        {
            "schema": "optsched/pal/1",
            "name": name,
            "topology": topology,
            "profile": {"gpus": gpus, "slowdown": slowdown, "kind": "persistent"},
            "locality": locality,
            "admission": admission,
            "jobs": jobs,
        }
    )
