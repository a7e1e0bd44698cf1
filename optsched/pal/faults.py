"""Faults of a PAL instance that concern several fields, found in the raw document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from optsched.cluster.topology_faults import some
from optsched.documents.faults import Fault, is_number, nearest, sequence, shown

ONE_FOR_ALL = "give remaining_s for every job, or for none"


def instance_faults(document: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield faults between the parts of an instance; bears fields of wrong types."""
    cluster = _Cluster(document)
    yield from _profile_faults(document, cluster)
    yield from _locality_faults(document, cluster.levels)
    for n, gpu in enumerate(sequence(document.get("unavailable"))):
        if isinstance(gpu, str) and cluster.gpus and gpu not in cluster.gpus:
            yield ("unavailable", n), _no_gpu(gpu, cluster)
    jobs = [(n, j) for n, j in enumerate(sequence(document.get("jobs"))) if _is_object(j)]
    yield from _id_faults(jobs)
    yield from _holder_faults(jobs)
    for n, job in jobs:
        for tail, text in _job_faults(document, cluster, job):
            yield ("jobs", n, *tail), text
    timed = {job.get("remaining_s") is not None for _, job in jobs}
    if len(timed) == 2:
        n = next(n for n, job in jobs if job.get("remaining_s") is None)
        yield ("jobs", n, "remaining_s"), f"missing: {ONE_FOR_ALL}"


class _Cluster:
    """What of the topology can be read, whatever is wrong with it."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        topology = document.get("topology")
        topology = topology if isinstance(topology, Mapping) else {}
        self.levels = [x for x in sequence(topology.get("levels")) if isinstance(x, str)]
        domains = [d for d in sequence(topology.get("domains")) if _is_object(d)]
        parents = {str(d.get("id")): d.get("parent") for d in domains}
        drained = {str(d.get("id")) for d in domains if d.get("drained") is True}
        taken = {x for x in sequence(document.get("unavailable")) if isinstance(x, str)}
        self.gpus: dict[str, bool] = {}  # whether anything may be placed there
        shut: dict[str, bool] = {}
        for domain in domains:
            open_for_jobs = not _is_shut(str(domain.get("id")), parents, drained, shut)
            for gpu in sequence(domain.get("gpus")):
                if isinstance(gpu, str):
                    self.gpus[gpu] = open_for_jobs and gpu not in taken
        self.size = sum(self.gpus.values())


def _is_shut(
    name: str, parents: Mapping[str, Any], drained: set[str], known: dict[str, bool]
) -> bool:
    """Tell whether a domain or one around it is drained; a cycle ends where it began.

    What is found for those on the way is put into `known`.
    """
    way: list[str] = []
    here: Any = name
    while isinstance(here, str) and here in parents and here not in known and here not in drained:
        known[here] = False
        way.append(here)
        here = parents[here]
    if isinstance(here, str) and (here in drained or known.get(here, False)):
        known.update(dict.fromkeys(way, True))
    return name in drained or known.get(name, False)


def _profile_faults(document: Mapping[str, Any], cluster: _Cluster) -> Iterator[Fault]:
    profile = document.get("profile")
    known = profile.get("gpus") if isinstance(profile, Mapping) else None
    if not isinstance(known, list | tuple):
        return
    missing = sorted(set(cluster.gpus) - {gpu for gpu in known if isinstance(gpu, str)})
    if missing:
        count = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
        text = f"has no slowdowns of GPU {shown(missing[0])}{count} of the topology"
        yield ("profile", "gpus"), text


def _locality_faults(document: Mapping[str, Any], levels: list[str]) -> Iterator[Fault]:
    locality = document.get("locality")
    is_given = document.get("locality_kind", "given") == "given"
    for model, values in locality.items() if isinstance(locality, Mapping) else ():
        if not isinstance(values, list | tuple):
            continue
        path = ("locality", model)
        if levels and len(values) != len(levels):
            yield path, f"has {len(values)} penalties for {len(levels)} levels of the topology"
        if is_given:
            yield from ((path + tail, text) for tail, text in _penalty_faults(values))


def _penalty_faults(values: Sequence[Any]) -> Iterator[Fault]:
    hint = "; locality_kind 'measured' takes the monotone envelope"
    for n, value in enumerate(values):
        if not is_number(value):
            continue
        before = values[n - 1] if n else None
        if value < 1:
            yield (n,), f"a penalty must be at least 1, found {shown(value)}{hint}"
        elif is_number(before) and value < before:
            text = f"{shown(value)} after {shown(before)}: penalties must not decrease to the root"
            yield (n,), text + hint


def _id_faults(jobs: list[tuple[int, Mapping[str, Any]]]) -> Iterator[Fault]:
    first: dict[str, int] = {}
    for n, job in jobs:
        name = job.get("id")
        if isinstance(name, str) and first.setdefault(name, n) != n:
            yield ("jobs", n, "id"), f"{shown(name)} is already the id of jobs[{first[name]}]"


def _holder_faults(jobs: list[tuple[int, Mapping[str, Any]]]) -> Iterator[Fault]:
    holder: dict[str, int] = {}
    for n, job in jobs:
        for i, gpu in enumerate(sequence(job.get("current"))):
            if not isinstance(gpu, str):
                continue
            if gpu in holder:
                m = holder[gpu]
                other = dict(jobs)[m].get("id")
                twice = "twice" if m == n else f"by jobs[{m}], {shown(other)}, too"
                yield ("jobs", n, "current", i), f"GPU {shown(gpu)} is held {twice}"
            holder.setdefault(gpu, n)


def _job_faults(
    document: Mapping[str, Any], cluster: _Cluster, job: Mapping[str, Any]
) -> Iterator[Fault]:
    size = job.get("gpus")
    if isinstance(size, int) and cluster.gpus and size > cluster.size:
        name = shown(job.get("id"))
        yield ("gpus",), f"job {name} needs {size} GPUs, but the cluster has {cluster.size} free"
    profile = document.get("profile")
    slowdown = profile.get("slowdown") if isinstance(profile, Mapping) else None
    yield from _reference(job, "application_class", slowdown, "the profile has no class")
    locality = document.get("locality")
    yield from _reference(job, "model", locality, "locality has no model")
    levels = dict.fromkeys(cluster.levels) or None
    yield from _reference(job, "highest_level", levels, "the topology has no level")
    if document.get("admission") == "optional" and job.get("reward") is None:
        yield ("reward",), "missing: admission 'optional' needs it"
    yield from _running_faults(cluster, job)


def _running_faults(cluster: _Cluster, job: Mapping[str, Any]) -> Iterator[Fault]:
    current, size = sequence(job.get("current")), job.get("gpus")
    if not current:
        return
    if isinstance(size, int) and len(current) != size:
        yield ("current",), f"holds {len(current)} GPUs, but the gang has {shown(size)}"
    if job.get("restart_s") is None:
        yield ("restart_s",), "missing: a job with current GPUs needs it (0 for free moves)"
    if job.get("remaining_s") is None:
        yield ("remaining_s",), "missing: a restart takes seconds, so the work must too"
    for i, gpu in enumerate(current):
        if isinstance(gpu, str) and cluster.gpus and gpu not in cluster.gpus:
            yield ("current", i), _no_gpu(gpu, cluster)


def _reference(job: Mapping[str, Any], key: str, known: Any, text: str) -> Iterator[Fault]:
    name = job.get(key)
    if isinstance(name, str) and isinstance(known, Mapping) and known and name not in known:
        yield (key,), f"{text} {shown(name)}; {nearest(name, known)}"


def _no_gpu(gpu: str, cluster: _Cluster) -> str:
    known = some(gpu, cluster.gpus)
    return f"the topology has no GPU {shown(gpu)}; {nearest(gpu, known)}"


def _is_object(value: Any) -> bool:
    return isinstance(value, Mapping)
