"""Hints for likely slips: figures in another unit than that of their field."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from optsched.cli.printing import output

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from optsched.traces import Trace

LEAST_LOAD = 0.01
"""Share of a budget: jobs that keep fewer GPUs busy are likely stated in other units."""
SHORTEST_S = 60.0
"""Jobs of which the longest takes less than this are likely stated in hours or minutes."""


def of_document(document: dict[str, Any]) -> Iterator[str]:
    """Yield what looks like another unit than the one that a field has."""
    kind = str(document.get("schema", "")).split("/")[1:2]
    for look in _LOOKS.get(kind[0] if kind else "", ()):
        text = look(document)
        if text:
            yield text


def of_trace(trace: Trace) -> Iterator[str]:
    """Yield what looks like seconds where microseconds are meant."""
    longest = int(trace.run_us.max()) if len(trace) else 0
    if 0 < longest < 10**6:
        yield (
            f"run_us is in microseconds: the longest job runs {longest / 1e6:g} s; "
            "a second is 1000000"
        )


def tell(texts: Iterable[str]) -> None:
    """Print hints on stderr, a line each."""
    for text in texts:
        output.say(f"hint: {text}", err=True)


def _short_work(document: dict[str, Any]) -> str:
    longest = max((_number(job, "work_s") for job in _list(document, "jobs")), default=0.0)
    if 0 < longest < SHORTEST_S:
        return f"work_s is in seconds: the longest job takes {longest:g} s; an hour is 3600"
    return ""


def _short_deadlines(document: dict[str, Any]) -> str:
    late = [
        job for job in _list(document, "jobs")
        if 0 < _number(job, "deadline_s") < SHORTEST_S <= _number(job, "work_s")
    ]  # fmt: skip
    if late:
        shown = f"{late[0].get('id')} has {_number(late[0], 'deadline_s'):g} s"
        return f"deadline_s is in seconds from now: job {shown}; an hour is 3600"
    return ""


def _low_cap(document: dict[str, Any]) -> str:
    cap = _number(document, "power_cap_w")
    peak = max((_number(gpu.get("power"), "peak_w") for gpu in _list(document, "gpu_types")),
               default=0.0)  # fmt: skip
    if 0 < cap < peak:
        return (
            f"power_cap_w is in watts: {cap:g} W is less than one GPU takes; "
            f"for {cap:g} kW give {1000 * cap:g}"
        )
    return ""


def _low_watts(document: dict[str, Any]) -> str:
    for gpu in _list(document, "gpu_types"):
        peak = _number(gpu.get("power"), "peak_w")
        if 0 < peak < 2:
            return f"peak_w is in watts: {gpu.get('id')} has {peak:g} W; for kW times 1000"
    return ""


def _much_memory(document: dict[str, Any]) -> str:
    for gpu in _list(document, "gpu_types"):
        memory = _number(gpu, "memory_gb")
        if memory >= 1000:
            return f"memory_gb is in GB: {gpu.get('id')} has {memory:g}; 1024 MiB are 1.074"
    return ""


def _little_load(document: dict[str, Any]) -> str:
    """Return what looks like hours for seconds of work, or jobs a second for jobs an hour."""
    budget = _number(document, "budget_gpus")
    busy = sum(
        _number(entry, "arrival_rate_per_h") * _number(phase, "work_gpu_s") / 3600
        for entry in _list(document, "classes")
        for phase in _list(entry, "phases")
    )
    if 0 < busy < LEAST_LOAD * budget:
        return (
            f"all jobs together keep {busy:.2g} of {budget:g} GPUs busy: work_gpu_s is in seconds, "
            "arrival_rate_per_h in jobs an hour"
        )
    return ""


_LOOKS: dict[str, tuple[Callable[[dict[str, Any]], str], ...]] = {
    "boa": (_little_load,),
    "eaco": (_low_cap, _low_watts, _much_memory, _short_work, _short_deadlines),
}


def _list(document: dict[str, Any], key: str) -> list[dict[str, Any]]:
    entries = document.get(key)
    return [each for each in entries if isinstance(each, dict)] if isinstance(entries, list) else []


def _number(document: object, key: str) -> float:
    value = document.get(key) if isinstance(document, dict) else None
    return float(value) if isinstance(value, int | float) else 0.0
