"""explain(): why a result is what it is, by solving instances that differ from its own.

An infeasible instance is stripped of its rules until the rest is an irreducible set: without any
one of them there is a plan (deletion filter: Chinneck, "Feasibility and Infeasibility in
Optimization", 2008, section 6.1; here whole parts are tried first, then single rules). A plan is
explained by the prices that prove its bound, and by solving again with slightly wider limits.
"""

from __future__ import annotations

import contextlib
import importlib
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from optsched.documents.faults import InstanceError
from optsched.explanation import remedies
from optsched.explanation.explanation import Explanation, Lever, Price, Rule
from optsched.instance import as_instance, names, read
from optsched.registry import problem
from optsched.results.result import Status
from optsched.search import Infeasible, Search
from optsched.solving import solve
from optsched.verification import ROUNDING, Violation, broken_parts, confirmed, is_proven

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from optsched.instance import Document, Instance
    from optsched.results.result import Result
    from optsched.sweeps.points import Frontier


def explain(
    instance: Instance | str | Path, result: Result, time_limit_s: float | None = 60.0
) -> Explanation:
    """Explain a result of an instance.

    Parameters
    ----------
    instance
        Or a path, or the name of a bundled one.
    time_limit_s
        Seconds for all solves together; what is not known by then is said to be so.

    Raises
    ------
    ValueError
        If the result is not one of this instance.

    Examples
    --------
    >>> import optsched
    >>> instance = optsched.read("boa/cbd-85").changed({"budget_gpus": 10})
    >>> print(optsched.explain(instance, optsched.solve(instance)))
    boa/cbd-85: the budget of 10.0 GPUs is below the least possible cost of 20.1241742334861 GPUs
    <BLANKLINE>
    No plan keeps these 3 rules; without any one of them there is a plan:
      - class 'deepspeech2' needs at least 7.379372 GPUs on average
      - class 'cifar10' needs at least 9.253475 GPUs on average
      - the budget of 10 GPUs on average
    <BLANKLINE>
    Each of these would do, by itself:
      - a budget of 20.2 GPUs on average (20.1 would not)
    """
    instance = as_instance(instance)
    try:
        proven = is_proven(instance, result)
    except Violation as violation:
        listed = "; ".join(map(str, violation.broken[:3]))
        text = f"the result is not one of '{instance.name}' as it stands: {listed}"
        raise ValueError(text) from None
    deadline = None if time_limit_s is None else time.perf_counter() + time_limit_s
    if result.status is Status.INFEASIBLE:
        return _of_conflict(instance, result, deadline, proven=proven)
    if result.plan is None:
        return Explanation(instance.name, result.status, result.message or "no plan was found")
    return _of_plan(instance, result, deadline, proven=proven)


def instance_of(result: Result, given: Iterable[Instance] = ()) -> Instance | None:
    """Return the instance that a result is of: one of those given, or the bundled one of its name.

    The changes that the result names are made to an instance without changes of its own; None if
    nothing has the data that the result is of. A result of version 1 does not say which: one of
    those given whose rules it keeps is taken, and no bundled one.
    """
    near = (*given, *(_bundled(result.instance) if result.instance_sha256 else ()))
    return next((made for each in near if (made := as_solved(each, result))), None)


def frontier_instance(frontier: Frontier, given: Iterable[Instance] = ()) -> Instance | None:
    """Return the instance whose parameter was swept, as `instance_of` does."""
    near = (*given, *_bundled(frontier.instance))
    return next((made for each in near if (made := with_digest(each, frontier))), None)


def _bundled(name: str) -> list[Instance]:
    return [read(name)] if name in names() else []


def as_solved(instance: Instance, result: Result) -> Instance | None:
    """Return an instance with the data that a result is of, changed if need be; else None."""
    if result.instance_sha256:
        return with_digest(instance, result)
    is_kept = result.plan is not None and not broken_parts(instance, result)
    return instance if is_kept else None


def with_digest(instance: Instance, result: Result | Frontier) -> Instance | None:
    """Return an instance with the data whose digest a result has, changed if need be; else None."""
    if instance.problem != result.problem:
        return None
    if instance.sha256 == result.instance_sha256:
        return instance
    if instance.changes:
        return None
    with contextlib.suppress(InstanceError):
        changed = instance.changed(result.changes)
        return changed if changed.sha256 == result.instance_sha256 else None
    return None


# --- why there is no plan ---------------------------------------------------------------------


def _of_conflict(
    instance: Instance, result: Result, deadline: float | None, *, proven: bool
) -> Explanation:
    entry = _reasons(instance)
    rules: list[Rule] = entry.rules(instance)
    known: dict[frozenset[str], bool | None] = {}

    def has_plan(kept: Sequence[Rule]) -> bool | None:
        names = frozenset(rule.id for rule in kept)
        if names not in known:
            dropped = {rule.id for rule in rules} - names
            known[names] = plan_exists(entry.without(instance, dropped), deadline, result.seed)
        return known[names]

    conflict = irreducible(rules, lambda kept: has_plan(kept) is False)
    rests = ([rule for rule in conflict if rule is not left] for left in conflict)
    is_irreducible = all(has_plan(rest) is True for rest in rests)
    wider = entry.remedies(instance, {rule.id for rule in conflict})
    exists = partial(plan_exists, seed=result.seed)
    return Explanation(
        instance=instance.name,
        status=result.status,
        because=_no_plan_because(instance, result, proven=proven),
        conflict=tuple(conflict),
        is_irreducible=is_irreducible,
        remedies=tuple(remedies.told(wider, exists, deadline)),
    )


def _no_plan_because(instance: Instance, result: Result, *, proven: bool) -> str:
    """Return that there is no plan; the method's own words where they are not a file's."""
    words = result.message.removeprefix(f"{instance.name}: ")
    if not proven:
        return "its result states that there is no plan, which was not verified"
    return words if result.is_solved_here else "there is no plan: it is proven"


def irreducible(rules: Sequence[Rule], conflicts: Callable[[Sequence[Rule]], bool]) -> list[Rule]:
    """Return rules that conflict, of which none can be left out; the first ones go first.

    Parameters
    ----------
    rules
        Rules that conflict.
    conflicts
        Whether no plan keeps some of them. Where more rules may conflict less, the outcome is still
        such that none can be left out by itself.
    """
    kept = list(rules)
    size = max(1, len(kept) // 2)
    while True:
        shorter = _without_parts(kept, size, conflicts)
        if size == 1 and len(shorter) == len(kept):
            return kept
        kept, size = shorter, max(1, size // 2)


def _without_parts(
    kept: list[Rule], size: int, conflicts: Callable[[Sequence[Rule]], bool]
) -> list[Rule]:
    start = 0
    while start < len(kept):
        rest = kept[:start] + kept[start + size :]
        if conflicts(rest):
            kept = rest
        else:
            start += size
    return kept


def plan_exists(
    instance: Instance | None, deadline: float | None = None, seed: int = 0
) -> bool | None:
    """Tell whether an instance has a plan; None if time does not suffice.

    None as an instance stands for one without anything to plan.
    """
    if instance is None:
        return True
    left = None if deadline is None else max(0.0, deadline - time.perf_counter())
    if left == 0.0:
        return None
    search = _AnyPlan(instance, left, seed=seed)
    try:
        problem(instance.problem).methods[0](instance, search)
    except _PlanExists:
        return True
    except Infeasible as claim:
        return False if confirmed(instance, claim.certificate) else None
    if search.is_interrupted:
        raise KeyboardInterrupt
    return None


class _PlanExists(Exception):
    """A plan was found; which one does not matter."""


class _AnyPlan(Search):
    """A search that ends with the first plan."""

    def offer(self, plan: Document) -> bool:
        if super().offer(plan):
            raise _PlanExists
        return False


# --- why this plan ----------------------------------------------------------------------------


def _of_plan(
    instance: Instance, result: Result, deadline: float | None, *, proven: bool
) -> Explanation:
    entry = _reasons(instance)
    levers: list[Lever] = list(entry.levers(instance, result))
    if result.status is not Status.OPTIMAL:
        levers.insert(0, Lever("the best plan, with the same data", instance))
    prices: list[Price] = list(entry.prices(instance, result)) if proven else []
    return Explanation(
        instance=instance.name,
        status=result.status,
        because=_because(result, proven=proven),
        binding=tuple(entry.binding(instance, result)),
        prices=(*prices, *_savings(levers, result, deadline)),
    )


def _because(result: Result, *, proven: bool) -> str:
    rows = result.summary()
    if result.bound is not None and not proven:
        return f"a plan of method '{result.method}', whose bound was not verified"
    if result.status is Status.OPTIMAL:
        return f"no plan is better by more than the gap of {rows['gap']}: it is proven"
    if result.bound is None:
        return f"a plan of method '{result.method}', of which nothing is proven"
    return f"a plan of method '{result.method}'; a better one by {rows['gap']} is not ruled out"


def _savings(levers: list[Lever], result: Result, deadline: float | None) -> Iterator[Price]:
    """Solve with wider limits, each time with an equal part of the time that is left."""
    for number, lever in enumerate(levers):
        left = None if deadline is None else max(0.0, deadline - time.perf_counter())
        yield _saving(lever, result, None if left is None else left / (len(levers) - number))


def _saving(lever: Lever, result: Result, left: float | None) -> Price:
    """Solve an instance with wider limits, and compare."""
    unit = result.objective_unit
    if left == 0.0:
        return Price(lever.change, None, unit, "solved again", note="no time was left")
    again = solve(lever.instance, time_limit_s=left, gap=result.gap_limit, seed=result.seed)
    if again.ending.is_interrupted:
        raise KeyboardInterrupt
    assert result.objective is not None
    if again.objective is None:
        return Price(lever.change, None, unit, "solved again", note=str(again.status))
    saves = result.objective - again.objective
    is_bounded = again.bound is not None and again.is_verified
    most = result.objective - (again.bound or 0.0) if is_bounded else None
    if most is not None and most <= max(result.gap_limit, ROUNDING) * abs(result.objective):
        return Price(lever.change, 0.0, unit, "solved again", note="to within the gap")
    is_optimal = again.status is Status.OPTIMAL
    if most is not None and is_optimal and most - saves <= 1e-3 * saves:  # not worth stating
        most = saves
    note = lever.note(again) if lever.note is not None and saves > 0 else ""
    return Price(lever.change, max(saves, 0.0), unit, "solved again", most=most, note=note)


def _reasons(instance: Instance) -> Any:
    return importlib.import_module(problem(instance.problem).reasons)
