"""Faults of scenarios whose nodes have GPUs of several types, found in the raw document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from optsched.boa.offers import curve_documents, one_type_faults
from optsched.documents.faults import Fault, mapping, nearest, prefixed, sequence, shown
from optsched.rollout.node_groups import type_sizes_of
from optsched.rollout.prices.faults import price_faults

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ALIKE = {
    "budget_gpus": "GPUs of several types have no common budget: give budget_usd_per_h",
    "price_usd_per_gpu_h": "GPUs of several types have no common price: give usd_per_gpu_h of each "
    "group of nodes",
    "power": "has the watts of one GPU type, but nodes are of several: leave it out",
}
"""Fields that take all GPUs for alike."""


def gpu_type_faults(document: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield the faults of GPU types, and of what stands beside them; bears wrong types."""
    gpus = type_sizes_of(document.get("nodes"))
    named = document.get("reference_gpu_type")
    reference = named if isinstance(named, str) and named in gpus else next(iter(gpus), None)
    if isinstance(named, str) and named not in gpus:
        text = f"no node has GPUs of type {shown(named)}; {nearest(named, gpus)}"
        yield ("reference_gpu_type",), text
    if len(type_sizes_of(document.get("nodes"), by_market=True)) > 1:
        yield from _alike_faults(document)
    yield from price_faults(document)
    models = mapping(document.get("models"))
    for name, model in models.items():
        if gpus:
            yield from prefixed(("models", name), _model_faults(mapping(model), gpus, reference))
        else:
            yield from prefixed(("models", name), _untyped_faults(mapping(model)))
    yield from _idle_type_faults(document, [_types_of(mapping(model)) for model in models.values()])


def _idle_type_faults(document: Mapping[str, Any], runs_on: list[list[str]]) -> Iterator[Fault]:
    """Yield types that none of the models runs on, if each says what it runs on."""
    known = dict.fromkeys(name for types in runs_on for name in types)
    if not (runs_on and all(runs_on)):
        return
    for n, group in enumerate(sequence(document.get("nodes"))):
        name = mapping(group).get("gpu_type")
        if isinstance(name, str) and name not in known:
            yield (
                ("nodes", n, "gpu_type"),
                f"no model runs on {shown(name)}; {nearest(name, known)}",
            )


def _alike_faults(document: Mapping[str, Any]) -> Iterator[Fault]:
    for key, text in ALIKE.items():
        if document.get(key):
            yield (key,), text
    most = mapping(document.get("sharing")).get("max_jobs_per_gpu", 1)
    if most != 1:
        text = "must be 1: rates of jobs side by side are of one GPU type, but nodes are of several"
        yield ("sharing", "max_jobs_per_gpu"), text


def _untyped_faults(model: Mapping[str, Any]) -> Iterator[Fault]:
    yield from prefixed(("phases",), one_type_faults(model.get("phases")))
    if mapping(model.get("gpu_speeds")):
        yield ("gpu_speeds",), "the nodes have no gpu_type"


def _model_faults(
    model: Mapping[str, Any], gpus: Mapping[str, int], reference: str | None
) -> Iterator[Fault]:
    speeds, types = mapping(model.get("gpu_speeds")), _types_of(model)
    for name in speeds:
        if name not in gpus:
            text = f"no node has GPUs of type {shown(name)}; {nearest(str(name), gpus)}"
            yield ("gpu_speeds", str(name)), text
    for e, phase in enumerate(sequence(model.get("phases"))):
        speedup = mapping(mapping(phase).get("speedup"))
        if speedup.get("kind") == "by-type":
            yield from prefixed(("phases", e, "speedup"), _curve_faults(speedup, gpus, types))
            if speeds:
                yield ("gpu_speeds",), "cannot stand beside speedups by type, which have the speeds"
                speeds = {}
        elif types and not speeds:
            yield ("phases", e, "speedup", "kind"), "expected 'by-type', as the model's first phase"
    is_by_type = bool(types) and not mapping(model.get("gpu_speeds"))
    if is_by_type and mapping(model.get("batches")):
        yield ("batches",), "cannot stand beside speedups by type, which are of goodput"
    if types and reference is not None and reference not in types:
        where = ("phases", 0, "speedup", "curves") if is_by_type else ("gpu_speeds",)
        text = f"run times are told of type {shown(reference)} (reference_gpu_type), which it lacks"
        yield where, text


def _curve_faults(
    speedup: Mapping[str, Any], gpus: Mapping[str, int], expected: list[str]
) -> Iterator[Fault]:
    found: list[str] = []
    for n, entry in enumerate(sequence(speedup.get("curves"))):
        name = mapping(entry).get("gpu_type")
        if not isinstance(name, str):
            continue
        path = ("curves", n, "gpu_type")
        if name in found:
            yield path, f"{shown(name)} has a curve already"
        elif name not in gpus:
            yield path, f"no node has GPUs of type {shown(name)}; {nearest(name, gpus)}"
        found.append(name)
    if {*found} != {*expected}:
        told = ", ".join(map(shown, dict.fromkeys(expected))) or "none"
        yield ("curves",), f"all phases of a model have the same types; the first has {told}"
    for where, curve in curve_documents(speedup):
        number = where[1] if len(where) > 1 else None
        entry = sequence(speedup.get("curves"))[number] if isinstance(number, int) else None
        kind = mapping(entry).get("gpu_type")
        widths = [k for k in sequence(curve.get("gpus")) if isinstance(k, int) and k > 0]
        if widths and isinstance(kind, str) and min(widths) > gpus.get(kind, min(widths)):
            text = (
                f"needs {min(widths)} GPUs at least, but the cluster has {gpus[kind]} of its type"
            )
            yield (*where, "gpus"), text


def _types_of(model: Mapping[str, Any]) -> list[str]:
    """Return the types that a model states a speed on; none if all are alike to it."""
    first = next(iter(sequence(model.get("phases"))), None)
    curves = sequence(mapping(mapping(first).get("speedup")).get("curves"))
    named = [mapping(curve).get("gpu_type") for curve in curves]
    by_type = [name for name in named if isinstance(name, str)]
    return by_type or [name for name in mapping(model.get("gpu_speeds")) if isinstance(name, str)]
