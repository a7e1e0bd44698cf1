"""Faults of a Sia instance that concern several fields, found in the raw document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from optsched.documents.faults import Fault, is_number, mapping, nearest, prefixed, sequence, shown


def instance_faults(document: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield faults between the parts of an instance; bears fields of wrong types."""
    known = mapping(document.get("gpus"))
    first: dict[str, int] = {}
    for n, job in enumerate(sequence(document.get("jobs"))):
        if not isinstance(job, Mapping):
            continue
        name = job.get("id")
        if isinstance(name, str) and first.setdefault(name, n) != n:
            yield ("jobs", n, "id"), f"{shown(name)} is already the id of jobs[{first[name]}]"
        yield from prefixed(("jobs", n), _job_faults(job, known))


def _job_faults(job: Mapping[str, Any], types: Mapping[str, Any]) -> Iterator[Fault]:
    first: dict[tuple[Any, Any], int] = {}
    for n, configuration in enumerate(sequence(job.get("configurations"))):
        here = _group(configuration)
        if here is None:
            continue
        path = "configurations", n
        if types and here[0] not in types:
            text = f"gpus has no type {shown(here[0])}; {nearest(here[0], list(types))}"
            yield (*path, "type"), text
        if first.setdefault(here, n) != n:
            yield path, f"{_text(here)} are configurations[{first[here]}] already"
    current = _group(job.get("current"))
    if current is not None and first and current not in first:
        yield ("current",), f"{_text(current)} are none of the job's configurations"
    if job.get("current") is None:
        if job.get("preemptible") is False:
            yield ("preemptible",), "only a job with a current configuration can keep it"
        factor = job.get("restart_factor")
        if is_number(factor) and factor != 1:
            yield ("restart_factor",), "only a job with a current configuration restarts"


def _group(value: Any) -> tuple[str, int] | None:
    """Return type and number of GPUs, if they are readable."""
    if not isinstance(value, Mapping):
        return None
    name, gpus = value.get("type"), value.get("gpus")
    return (name, gpus) if isinstance(name, str) and isinstance(gpus, int) else None


def _text(group: tuple[str, int]) -> str:
    return f"{group[1]} GPUs of type {shown(group[0])}"
