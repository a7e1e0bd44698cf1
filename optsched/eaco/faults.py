"""Faults of an EaCO instance that concern several fields, found in the raw document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from optsched.cluster.topology_faults import some
from optsched.documents.faults import Fault, is_number, nearest, prefixed, sequence, shown

_MOST = 100_000
Entry = tuple[int, Mapping[str, Any]]


def instance_faults(document: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield faults between the parts of an instance; bears fields of wrong types."""
    parts = _Parts(document)
    for key in ("gpu_types", "nodes", "types", "jobs", "running"):
        yield from _id_faults(key, parts.entries[key])
    for n, gpu in parts.entries["gpu_types"]:
        yield from prefixed(("gpu_types", n), _level_faults(gpu))
    for n, nodes in parts.entries["nodes"]:
        yield from prefixed(("nodes", n), _nodes_faults(parts, nodes))
    for n, kind in parts.entries["types"]:
        speeds = kind.get("speeds")
        for gpu in speeds if isinstance(speeds, Mapping) else ():
            yield from prefixed(("types", n, "speeds", gpu), _unknown(parts, "gpu_types", gpu))
    for n, job in parts.entries["jobs"]:
        yield from prefixed(("jobs", n), _job_faults(parts, job))
    yield from _running_faults(parts)
    yield from _interference_faults(parts, document.get("interference"))
    yield from _objective_faults(document, parts.entries["jobs"])


class _Parts:
    """The entries of the document's lists that are objects, and those that have ids by them."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.entries: dict[str, list[Entry]] = {}
        self.by_id: dict[str, dict[str, Mapping[str, Any]]] = {}
        for key in ("gpu_types", "nodes", "types", "jobs", "running"):
            objects = [(n, e) for n, e in enumerate(sequence(document.get(key))) if _is_object(e)]
            self.entries[key] = objects
            self.by_id[key] = {}
            for _, entry in objects:
                if isinstance(entry.get("id"), str):
                    self.by_id[key].setdefault(entry["id"], entry)


_NOUNS = {"gpu_types": "GPU type", "nodes": "entry in nodes", "types": "job type", "jobs": "job"}


def _unknown(parts: _Parts, key: str, name: Any) -> Iterator[Fault]:
    known = parts.by_id[key]
    if isinstance(name, str) and known and name not in known:
        yield (), f"there is no {_NOUNS[key]} {shown(name)}; {nearest(name, some(name, known))}"


def _id_faults(key: str, entries: Sequence[Entry]) -> Iterator[Fault]:
    first: dict[str, int] = {}
    for n, entry in entries:
        name = entry.get("id")
        if isinstance(name, str) and first.setdefault(name, n) != n:
            yield (key, n, "id"), f"{shown(name)} is already the id of {key}[{first[name]}]"


def _level_faults(gpu: Mapping[str, Any]) -> Iterator[Fault]:
    levels = [(n, e) for n, e in enumerate(sequence(gpu.get("levels"))) if _is_object(e)]
    yield from _id_faults("levels", levels)
    power = gpu.get("power")
    context = power.get("context_w") if isinstance(power, Mapping) else None
    for n, level in levels:
        limit = level.get("limit_w")
        if is_number(limit) and is_number(context) and limit < context:
            text = f"{shown(limit)} W is below context_w, {shown(context)} W: no job could run"
            yield ("levels", n, "limit_w"), text


def _nodes_faults(parts: _Parts, nodes: Mapping[str, Any]) -> Iterator[Fault]:
    yield from prefixed(("gpu",), _unknown(parts, "gpu_types", nodes.get("gpu")))
    on, count = nodes.get("on"), nodes.get("count")
    if is_number(on) and is_number(count) and on > count:
        yield ("on",), f"{shown(on)} nodes are on, but there are {shown(count)}"


def _job_faults(parts: _Parts, job: Mapping[str, Any]) -> Iterator[Fault]:
    yield from prefixed(("type",), _unknown(parts, "types", job.get("type")))
    kind = parts.by_id["types"].get(str(job.get("type")), {})
    nodes = parts.by_id["nodes"]
    reasons = [_unsuitable(parts, job, kind, name) for name in nodes]
    if reasons and all(reasons):
        few = [str(r) for r in reasons[:4]] + (["..."] if len(reasons) > 4 else [])
        yield (), f"job {shown(job.get('id'))} fits no GPU: {'; '.join(few)}"


def _unsuitable(
    parts: _Parts, job: Mapping[str, Any], kind: Mapping[str, Any], name: str
) -> str | None:
    """Say why a job alone fits no nodes of this id; None if it does, or if that is not known."""
    nodes = parts.by_id["nodes"][name]
    sizes = _counts(job.get("gpus", 1), nodes.get("gpus"), nodes.get("count"))
    if sizes is None:
        return None
    size, each, count = sizes
    if size > each * count:
        return f"{shown(name)} has {each * count} GPUs, it needs {shown(size)}"
    if size > each and size % each:
        return f"{shown(name)} has nodes of {each} GPUs, a gang of {size} does not fill them"
    gpu = parts.by_id["gpu_types"].get(str(nodes.get("gpu")), {})
    memory, need = gpu.get("memory_gb"), kind.get("memory_gb", 0)
    if is_number(memory) and is_number(need) and need > memory:
        return f"{shown(name)} has {shown(memory)} GB on each, it needs {shown(need)}"
    return None


def _running_faults(parts: _Parts) -> Iterator[Fault]:
    holder: dict[str, int] = {}
    load: dict[tuple[Any, int], int] = {}
    for n, place in parts.entries["running"]:
        path = ("running", n)
        yield from prefixed((*path, "nodes"), _unknown(parts, "nodes", place.get("nodes")))
        for i, name in enumerate(sequence(place.get("jobs"))):
            yield from prefixed((*path, "jobs", i), _unknown(parts, "jobs", name))
            if isinstance(name, str) and holder.setdefault(name, n) != n:
                yield (*path, "jobs", i), f"job {shown(name)} runs in running[{holder[name]}], too"
            elif isinstance(name, str) and name in sequence(place.get("jobs"))[:i]:
                yield (*path, "jobs", i), f"job {shown(name)} stands here twice"
        yield from prefixed(path, _gang_faults(parts, place, load))


def _gang_faults(
    parts: _Parts, place: Mapping[str, Any], load: dict[tuple[Any, int], int]
) -> Iterator[Fault]:
    """Compare the gangs of a running group with each other and with its nodes."""
    jobs = [parts.by_id["jobs"].get(str(name), {}) for name in sequence(place.get("jobs"))]
    gangs = [job.get("gpus", 1) for job in jobs if job]
    other = [gang for gang in gangs if gang != gangs[0]]
    if other:
        two = f"{shown(gangs[0])} and {shown(other[0])}"
        yield ("jobs",), f"gangs of {two} GPUs cannot share: they must be of one size"
    nodes = parts.by_id["nodes"].get(str(place.get("nodes")), {})
    on = nodes.get("on") if nodes.get("on") is not None else nodes.get("count")
    sizes = _counts(*gangs[:1], nodes.get("gpus"))
    if not other and sizes is not None and len(sizes) == 2:
        yield from _node_faults(place, *sizes, on, load)


def _node_faults(
    place: Mapping[str, Any], gang: int, each: int, on: Any, load: dict[tuple[Any, int], int]
) -> Iterator[Fault]:
    """Compare the nodes of a running group with those that are on, and with what they hold."""
    if gang > each and gang % each:
        yield ("jobs",), f"a gang of {gang} GPUs does not fill nodes of {each}"
        return
    node = place.get("node", 0)
    if not isinstance(node, int) or node < 0:
        return
    last = node + max(1, gang // each) - 1
    if isinstance(on, int) and last >= on:
        yield ("node",), f"node {last} is not on: {shown(on)} are, numbered from 0"
    for number in range(node, last + 1):
        key = (place.get("nodes"), number)
        load[key] = load.get(key, 0) + min(gang, each)
        if load[key] > each:
            yield ("node",), f"node {number} has {each} GPUs, but {load[key]} are in use there"


def _interference_faults(parts: _Parts, interference: Any) -> Iterator[Fault]:
    groups = interference.get("groups") if isinstance(interference, Mapping) else None
    for n, group in enumerate(sequence(groups)):
        if not isinstance(group, Mapping):
            continue
        path = ("interference", "groups", n)
        yield from prefixed((*path, "gpu"), _unknown(parts, "gpu_types", group.get("gpu")))
        for i, name in enumerate(sequence(group.get("types"))):
            yield from prefixed((*path, "types", i), _unknown(parts, "types", name))


def _objective_faults(document: Mapping[str, Any], jobs: Sequence[Entry]) -> Iterator[Fault]:
    objective = document.get("objective", "run-to-completion")
    has = {key for key, value in document.items() if value is not None}
    if {"price_usd_per_kwh", "carbon_g_per_kwh"} <= has:
        yield ("carbon_g_per_kwh",), "cannot stand beside price_usd_per_kwh: give one of them"
    for key, owner in (("epoch_s", "epoch"), ("energy_weight", "eaco")):
        if objective == owner and key not in has:
            yield (key,), f"missing: objective '{owner}' needs it"
    if objective != "eaco":
        return
    for key in ("price_usd_per_kwh", "carbon_g_per_kwh"):
        if key in has:
            yield (key,), "objective 'eaco' weighs kWh against hours, not money or carbon"
    for n, job in jobs:
        if job.get("training_epoch_s") is None:
            yield ("jobs", n, "training_epoch_s"), "missing: objective 'eaco' needs it"
        if job.get("waiting_penalty_kwh") is not None:
            yield ("jobs", n, "waiting_penalty_kwh"), "with objective 'eaco' no job waits"


def _is_object(value: Any) -> bool:
    return isinstance(value, Mapping)


def _counts(*values: Any) -> tuple[int, ...] | None:
    """Return values that are counts, or None if one of them is not."""
    fine = all(isinstance(value, int) and 1 <= value <= _MOST for value in values)
    return values if fine else None
