"""What a sweep has to compute: a task for each value, method and seed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from optsched.instance import Instance
from optsched.sweeps.parameters import ROLLOUT
from optsched.sweeps.sweep_task import SweepTask, content_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from optsched.rollout.scenario import Scenario
    from optsched.sweeps.points import Point

    Subject = Instance | Scenario
    Parameter = str | Callable[[float], Subject]
    Points = dict[int, Point]


def planned(
    subject: Subject,
    parameter: Parameter,
    values: list[float],
    names: list[str],
    options: dict[str, Any],
    seeds: Sequence[int],
    known: Points,
    origins: dict[str, str],
) -> dict[int, SweepTask]:
    """Return what is left to compute, by number: values, within them methods, and seeds in these.

    Without seeds there is one task for each value and method.
    """
    name, options = ROLLOUT, dict(options)
    if isinstance(subject, Instance):
        name = subject.problem
    elif "trace" in options:
        subject, options = _with_trace(subject, options)
    swept = _option_of(subject, parameter, names, values)
    tasks = {}
    for n, value in enumerate(values):
        numbers = [n * len(names) + m for m in range(len(names))]
        if all(number in known for number in numbers):
            continue
        base = parameter(value) if callable(parameter) else subject
        changes = {} if callable(parameter) or swept else {parameter: value}
        content = content_of(base.changed_document(changes))
        for number, method in zip(numbers, names, strict=True):
            if number in known:
                continue
            run = with_option(method, swept, value) if swept else method
            task = SweepTask(
                name, base, changes, content, value, run, options, origins.get(method, ""), method
            )
            if not seeds:
                tasks[number] = task
            for s, seed in enumerate(seeds):
                own = task._replace(options=options | {"seed": seed})
                tasks[number * len(seeds) + s] = own
    return tasks


OPTION = "policy."


def _option_of(
    subject: Subject, parameter: Parameter, names: list[str], values: list[float]
) -> str:
    """Return the option of policies that is swept; empty if it is a field.

    Raises
    ------
    ValueError
        If a policy has no such option, or was given it already.
    """
    if callable(parameter) or not parameter.startswith(OPTION) or isinstance(subject, Instance):
        return ""
    from optsched.rollout.registry import make

    option = parameter.removeprefix(OPTION)
    for name in names:
        make(with_option(name, option, values[0]), subject)
    return option


def with_option(policy: str, option: str, value: float) -> str:
    """Return the name of a policy with one more option."""
    from optsched.rollout.registry import named

    _, options = named(policy)
    if option in (part.partition("=")[0] for part in options.split(",")):
        raise ValueError(f"policy '{policy}': its option '{option}' is swept; leave it out")
    return f"{policy}{',' if options else ':'}{option}={value:.12g}"


def _with_trace(scenario: Scenario, options: dict[str, Any]) -> tuple[Scenario, dict[str, Any]]:
    """Move the source of a trace into the scenario; a trace itself stays an option."""
    from optsched.rollout.code_in_files import format_fault
    from optsched.rollout.trace_source import jobs_of, with_trace
    from optsched.traces.trace import Trace

    trace = options["trace"]
    if isinstance(trace, Trace):
        return scenario, options
    if format_fault(with_trace(scenario, trace)):  # a scenario may not name it, the caller may
        return scenario, options | {"trace": jobs_of(scenario, trace)}
    rest = {name: value for name, value in options.items() if name != "trace"}
    return with_trace(scenario, trace), rest
