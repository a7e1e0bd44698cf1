"""What `frontier` is asked for: values, methods and options, checked."""

from __future__ import annotations

import math
from inspect import signature
from numbers import Real
from typing import TYPE_CHECKING, Any

from optsched.documents.faults import shown
from optsched.instance import Instance
from optsched.registry import UnknownNameError, problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from optsched.rollout.scenario import Scenario

    Subject = Instance | Scenario


def checked_values(values: Iterable[float]) -> list[float]:
    """Return the values as numbers, whole ones as integers, since some fields take no others."""
    numbers = [_number(n, value) for n, value in enumerate(values)]
    if not numbers:
        raise ValueError("values: expected at least one, found none")
    for n in range(1, len(numbers)):
        if numbers[n] == numbers[n - 1]:
            raise ValueError(f"values[{n}]: {numbers[n]!r} stands twice")
        if numbers[n] < numbers[n - 1]:
            text = f"{numbers[n]!r} after {numbers[n - 1]!r}; they must ascend"
            raise ValueError(f"values[{n}]: {text}")
    return numbers


def _number(n: int, value: Any) -> float:
    if not isinstance(value, Real) or isinstance(value, bool):
        raise ValueError(f"values[{n}]: expected a number, found {shown(value)}")
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"values[{n}]: expected a finite number, found {shown(number)}")
    return int(number) if number.is_integer() else number


def checked_methods(subject: Subject, methods: Sequence[str] | str | None) -> list[str]:
    """Return the names of the methods or policies; by default the first, or the scenario's."""
    if isinstance(subject, Instance):
        known = problem(subject.problem).methods
        if methods == "all":
            return [m.name for m in known if m is known[0] or m.kind == "greedy"]
        names = [methods] if isinstance(methods, str) else list(methods or [known[0].name])
        for name in names:
            problem(subject.problem).method(name)
    else:
        from optsched.rollout.code_in_files import refuse_policies
        from optsched.rollout.registry import make

        if methods is None:
            refuse_policies(subject)
        names = [methods] if isinstance(methods, str) else list(methods or subject.policies)
        for name in names:
            make(name, subject, 0)
    twice = [name for n, name in enumerate(names) if name in names[:n]]
    if twice:
        raise ValueError(f"methods: '{twice[0]}' stands twice")
    return names


def origins_of(subject: Subject, names: Sequence[str]) -> dict[str, str]:
    """Return whose methods or policies are that are not ours, with the hashes of their sources."""
    if isinstance(subject, Instance):
        entry = problem(subject.problem)
        origins = {name: entry.method(name).origin() for name in names}
    else:
        from optsched.rollout.registry import origin

        origins = {name: origin(name) for name in names}
    return {name: whose for name, whose in origins.items() if whose}


def check_options(subject: Subject, options: dict[str, Any]) -> None:
    """Raise `UnknownNameError` for what is no option of `solve`, or of a rollout."""
    if isinstance(subject, Instance):
        from optsched.solving import solve

        known = [p.name for p in signature(solve).parameters.values() if p.kind == p.KEYWORD_ONLY]
    else:
        known = ["trace", "seed"]
    for name in options:
        if name not in known:
            raise UnknownNameError("option", name, known)
