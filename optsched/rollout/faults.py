"""Faults of scenarios that concern several fields, found in the raw document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from optsched.boa.instance import phase_faults
from optsched.cluster.topology import Topology
from optsched.cluster.topology_faults import some
from optsched.documents.faults import (
    Fault,
    InstanceError,
    is_number,
    mapping,
    nearest,
    prefixed,
    sequence,
    shown,
)
from optsched.rollout.batch_sizes import batch_faults
from optsched.rollout.downtime import downtime_faults
from optsched.rollout.node_groups import levels_of, node_faults, sizes_of
from optsched.rollout.physics.type_faults import gpu_type_faults
from optsched.rollout.prices.markets import market_faults
from optsched.rollout.spread import spread_faults


def scenario_faults(document: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield the faults of a scenario's document; bears fields of wrong types."""
    yield from node_faults(document)
    size = _Size(document)
    yield from _limit_faults(document, size)
    yield from _profile_faults(document.get("profile"), size)
    yield from _belief_faults(document, size)
    yield from prefixed(("locality",), locality_faults(document.get("locality"), size.levels))
    yield from spread_faults(document, size.levels)
    yield from downtime_faults(document, size.nodes)
    yield from market_faults(document)
    yield from _events_faults(document)
    window = sequence(document.get("steady_s"))
    if len(window) == 2 and all(map(is_number, window)) and window[0] > window[1]:
        yield ("steady_s",), f"{shown(window[1])} after {shown(window[0])}: must ascend"
    for name, model in mapping(document.get("models")).items():
        if isinstance(model, Mapping):
            yield from prefixed(("models", name), _model_faults(document, size, model))
    yield from gpu_type_faults(document)
    yield from _sharing_faults(document)
    trace = document.get("trace")
    if isinstance(trace, Mapping):
        yield from prefixed(("trace",), _trace_faults(trace))
        yield from _retry_faults(document, trace)


class _Size:
    """How large the cluster is, as far as that can be told; None or empty where it cannot.

    Attributes
    ----------
    ids
        Of the GPUs that jobs may use; empty without a topology.
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.levels: tuple[str, ...] = ()
        self.ids: tuple[str, ...] = ()
        self.nodes: int | None = None
        self.gpus: int | None = None
        topology = document.get("topology")
        if topology is None:
            nodes = document.get("nodes")
            self.levels = levels_of(nodes)
            if sizes := sizes_of(nodes, document.get("gpus_per_node")):
                self.nodes, self.gpus = len(sizes), sum(sizes)
        elif isinstance(topology, Mapping):
            self._read(topology)

    def _read(self, document: Mapping[str, Any]) -> None:
        try:
            topology = Topology.from_document(dict(document))
        except InstanceError:
            return  # its own faults are named elsewhere
        self.levels, self.ids = tuple(topology.levels), topology.gpus
        self.gpus = len(self.ids)
        self.nodes = len(set(topology.ancestors[:, 0].tolist()))


def _limit_faults(document: Mapping[str, Any], size: _Size) -> Iterator[Fault]:
    if size.gpus is None:
        return
    if size.gpus == 0:
        yield ("topology",), "has no GPU that is not drained"
    at_start = mapping(document.get("rented")).get("at_start")
    if is_number(at_start) and size.nodes is not None and at_start > size.nodes:
        text = f"{shown(at_start)} nodes are rented, but the cluster has {size.nodes}"
        yield ("rented", "at_start"), text
    for queue, quota in mapping(document.get("quotas")).items():
        if is_number(quota) and quota > size.gpus:
            yield ("quotas", queue), f"{shown(quota)} GPUs, but the cluster has {size.gpus}"
    budget = document.get("budget_gpus")
    if is_number(budget) and budget > size.gpus:
        yield ("budget_gpus",), f"{shown(budget)} GPUs, but the cluster has {size.gpus}"


def _profile_faults(profile: Any, size: _Size) -> Iterator[Fault]:
    known = sequence(mapping(profile).get("gpus"))
    if not known or not size.gpus:
        return
    missing = sorted(set(size.ids) - {gpu for gpu in known if isinstance(gpu, str)})
    if missing:
        more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
        text = f"has no slowdowns of GPU {shown(missing[0])}{more} of the topology"
        yield ("profile", "gpus"), text
    elif not size.ids and len(known) < size.gpus:
        yield ("profile", "gpus"), f"has {len(known)} GPUs, but the cluster has {size.gpus}"


def _belief_faults(document: Mapping[str, Any], size: _Size) -> Iterator[Fault]:
    """Yield the faults of a profile that policies are told in place of the true one."""
    told = mapping(document.get("beliefs")).get("profile")
    if told is None:
        return
    yield from prefixed(("beliefs",), _profile_faults(told, size))
    true = mapping(mapping(document.get("profile")).get("slowdown"))
    if not true:
        yield ("beliefs", "profile"), "the scenario has no profile, so that all GPUs are alike"
    for name in true:
        if name not in mapping(mapping(told).get("slowdown")):
            yield ("beliefs", "profile", "slowdown"), f"lacks class {shown(name)} of the profile"


def locality_faults(factors: Any, levels: Sequence[str]) -> Iterator[Fault]:
    """Yield the faults of locality factors: one by level, at least 1, not falling to the root."""
    values = sequence(factors)
    if values and levels and len(values) != len(levels):
        names = ", ".join(levels)
        yield (), f"has {len(values)} factors for {len(levels)} levels ({names})"
    for n, value in enumerate(values):
        before = values[n - 1] if n else 1
        if not is_number(value):
            continue
        if value < 1:
            yield (n,), f"a factor must be at least 1, found {shown(value)}"
        elif is_number(before) and value < before:
            text = f"{shown(value)} after {shown(before)}: factors must not fall towards the root"
            yield (n,), text


def _events_faults(document: Mapping[str, Any]) -> Iterator[Fault]:
    events = mapping(document.get("events"))
    name = events.get("application_class")
    yield from prefixed(("events", "application_class"), _class_faults(document, name))
    factor = sequence(events.get("factor"))
    if len(factor) != 2 or not all(is_number(value) for value in factor):
        return
    low, high = factor
    if low > high:
        yield ("events", "factor"), f"{shown(high)} after {shown(low)}: must ascend"
    if min(low, high) < 1:
        text = f"trouble does not make a node faster: at least 1, found {shown(min(low, high))}"
        yield ("events", "factor"), text


def _class_faults(document: Mapping[str, Any], name: Any) -> Iterator[Fault]:
    """Compare the name of an application class with the profile."""
    if not isinstance(name, str):
        return
    if document.get("profile") is None:
        yield (), f"{shown(name)} is a class of a profile, but there is none"
    known = mapping(mapping(document.get("profile")).get("slowdown"))
    if known and name not in known:
        yield (), f"the profile has no class {shown(name)}; {nearest(name, some(name, known))}"


def _model_faults(
    document: Mapping[str, Any], size: _Size, model: Mapping[str, Any]
) -> Iterator[Fault]:
    name = model.get("application_class")
    yield from prefixed(("application_class",), _class_faults(document, name))
    yield from prefixed(("locality",), locality_faults(model.get("locality"), size.levels))
    yield from prefixed(("phases",), phase_faults(model.get("phases")))
    yield from prefixed(("phases",), _width_faults(model.get("phases"), size))
    batches = model.get("batches")
    if isinstance(batches, Mapping):
        yield from prefixed(("batches",), batch_faults(batches, model.get("phases")))
    memory = model.get("memory_gb")
    limit = mapping(document.get("sharing")).get("memory_gb")
    if is_number(memory) and is_number(limit) and memory > limit:
        text = f"{shown(memory)} GB, but each GPU has {shown(limit)} (sharing.memory_gb)"
        yield ("memory_gb",), text


def _width_faults(phases: Any, size: _Size) -> Iterator[Fault]:
    """Name the phases that cannot run, since the least of their widths is above the cluster."""
    for e, phase in enumerate(sequence(phases)):
        widths = sequence(mapping(mapping(phase).get("speedup")).get("gpus"))
        counts = [width for width in widths if _is_count(width)]
        if counts and size.gpus and min(counts) > size.gpus:
            text = f"needs {min(counts)} GPUs at least, but the cluster has {size.gpus}"
            yield (e, "speedup", "gpus"), text


def _sharing_faults(document: Mapping[str, Any]) -> Iterator[Fault]:
    interference = mapping(mapping(document.get("sharing")).get("interference"))
    known = document.get("models", {})
    for n, group in enumerate(sequence(interference.get("groups"))):
        path = ("sharing", "interference", "groups", n)
        if mapping(group).get("gpu") is not None:
            yield (*path, "gpu"), "a scenario has GPUs of one kind: leave it out"
        for i, name in enumerate(sequence(mapping(group).get("types"))):
            if isinstance(name, str) and isinstance(known, Mapping) and name not in known:
                hint = nearest(name, some(name, known))
                yield (*path, "types", i), f"models has no {shown(name)}; {hint}"


def _trace_faults(trace: Mapping[str, Any]) -> Iterator[Fault]:
    given = {key for key, value in trace.items() if value is not None}
    if not given & {"generator", "file"}:
        yield ("generator",), "missing: give generator (with jobs), or file"
    elif {"generator", "file"} <= given:
        yield ("file",), "cannot stand beside generator: give one of them"
    elif "generator" in given:
        if "jobs" not in given:
            yield ("jobs",), "missing: a generator needs to know how many"
        for key in ("format", "workload"):
            if key in given:
                yield (key,), "belongs to a file, but the trace is from a generator"
    elif "jobs" in given:
        yield ("jobs",), "belongs to a generator, but the trace is from a file"


def _retry_faults(document: Mapping[str, Any], trace: Mapping[str, Any]) -> Iterator[Fault]:
    """Compare reasons with Philly's, which all generators use; those of a file are its own."""
    limits = mapping(mapping(document.get("retries")).get("limits"))
    if not limits or not isinstance(trace.get("generator"), str):
        return
    from optsched.traces.generators.philly_statistics import REASONS

    known = [reason.name for reason in REASONS]
    for name in limits:
        if isinstance(name, str) and name not in known:
            path = ("retries", "limits", name)
            yield path, f"no job fails for this reason; {nearest(name, some(name, known))}"


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 1_000_000
