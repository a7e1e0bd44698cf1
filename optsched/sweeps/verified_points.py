"""Points of frontiers and the verifier: each is a result of the instance with its value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import ValidationError

from optsched.documents.faults import InstanceError
from optsched.registry import problem
from optsched.results.result import Result, Status
from optsched.verification import BrokenRule, Violation, is_proven, verify

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.instance import Instance
    from optsched.sweeps.points import Frontier, Point


def verify_frontier(instance: Instance, frontier: Frontier) -> None:
    """Verify every point of a frontier, whatever it takes.

    Raises
    ------
    Violation
        With every part of a point that is not so.
    """
    broken = [*_subject(instance, frontier)]
    for point in frontier.points if not broken else ():
        try:
            _verify(instance, frontier, point)
        except Violation as violation:
            where = f"{frontier.parameter} {point.value!r}, {point.method}: "
            broken += [BrokenRule(rule, where + text) for rule, text in violation.broken]
    if broken:
        raise Violation("parts of the proofs", broken)
    frontier.confirmed()


def is_frontier_proven(instance: Instance, frontier: Frontier) -> bool:
    """Tell whether every point of a frontier is proven; for those who show it to a reader.

    Returns
    -------
    bool
        False if nothing can be verified: the points are those of a function, the version is old,
        or the verifier would need more than its limit of terms for one of them.

    Raises
    ------
    Violation
        If the verifier refuses a point.
    """
    broken = [*_subject(instance, frontier)]
    if any(rule != "version" for rule, _ in broken):
        raise Violation("parts of the frontier", broken)
    if broken or frontier.by_function:
        return False
    solved = [point for point in frontier.points if point.status != "invalid"]
    if not all([is_proven(*_result(instance, frontier, point)) for point in solved]):
        return False
    frontier.confirmed()
    return True


def _subject(instance: Instance, frontier: Frontier) -> Iterator[BrokenRule]:
    """Yield why a frontier is not one of an instance."""
    if frontier.problem != instance.problem:
        text = f"the frontier is of '{frontier.problem}', the instance of '{instance.problem}'"
        yield BrokenRule("problem", text)
    elif not frontier.instance_sha256:
        yield BrokenRule("version", "a frontier of version 1 has no certificates: sweep again")
    elif frontier.instance_sha256 != instance.sha256:
        text = f"the frontier is of other data than '{instance.name}' as it stands: digests differ"
        yield BrokenRule("instance", text)


def _verify(instance: Instance, frontier: Frontier, point: Point) -> None:
    """Verify a point; raises Violation if it is not so."""
    if frontier.by_function:
        text = f"the values of '{frontier.parameter}' went through a function, which no file holds"
        raise Violation("parts of the point", [BrokenRule("parameter", text)])
    if point.status == "invalid":
        _must_be_invalid(instance, frontier, point)
        return
    changed, result = _result(instance, frontier, point)
    states_nothing = result.certificate is None and result.bound is None
    if not (states_nothing and point.status in ("feasible", "error")):
        verify(changed, result)


def _change(frontier: Frontier, point: Point) -> dict[str, float]:
    """Return a point's change of the instance; whole numbers as such, for fields that ask so."""
    value = point.value
    return {frontier.parameter: int(value) if value.is_integer() else value}


def _must_be_invalid(instance: Instance, frontier: Frontier, point: Point) -> None:
    try:
        instance.changed(_change(frontier, point))
    except InstanceError:
        return
    text = "is stated to give no valid instance, but it does"
    raise Violation("parts of the point", [BrokenRule("status", text)])


def _result(instance: Instance, frontier: Frontier, point: Point) -> tuple[Instance, Result]:
    """Return the instance with a point's value, and the point as a result of it."""
    try:
        changed = instance.changed(_change(frontier, point))
        gap = float(frontier.options.get("gap") or 1e-6)
        return changed, result_of(changed, point, frontier.versions, gap)
    except (InstanceError, ValidationError, ValueError) as error:
        text = str(error).splitlines()[0]
        raise Violation("parts of the point", [BrokenRule("point", text)]) from None


def result_of(instance: Instance, point: Point, versions: dict[str, str], gap: float) -> Result:
    """Return a point as a result of the instance with its value.

    Raises
    ------
    ValidationError
        If its plan or certificate is none.
    """
    entry = problem(instance.problem)
    plan = None if point.plan is None else entry.plan.model_validate(point.plan)
    proof = point.certificate
    certificate = None if proof is None else entry.certificate.model_validate(proof)
    return Result(
        problem=instance.problem,
        instance=instance.name,
        instance_sha256=instance.sha256,
        method=point.method,
        status=Status(point.status),
        message=point.reason,
        objective=point.objective,
        objective_unit=entry.objective_unit(instance),
        bound=point.bound,
        gap=point.gap,
        gap_limit=gap,
        seconds=point.seconds,
        plan=plan,
        certificate=certificate,
        versions=versions,
    )
