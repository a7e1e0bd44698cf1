"""The independent judge of plans, and of the certificates that prove bounds.

It imports no solver and no formulation; each problem's rules are in its own `check.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from optsched.problems import problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.instance import Document, Instance
    from optsched.result import Result


ROUNDING = 1e-9


class BrokenRule(NamedTuple):
    """A rule's name, and in words what breaks it."""

    rule: str
    message: str

    def __str__(self) -> str:
        return f"[{self.rule}] {self.message}"


class Violation(ValueError):
    """A plan or a proof that breaks rules; `broken` lists every one of them."""

    def __init__(self, what: str, broken: list[BrokenRule]) -> None:
        self.broken = broken
        lines = "\n".join(f"  {rule}" for rule in broken)
        super().__init__(f"{what}: {len(broken)} broken\n{lines}")


def check(instance: Instance, plan: Document) -> None:
    """Check a plan against every rule of its instance, exactly, without tolerances.

    Raises
    ------
    Violation
        With every broken rule.
    """
    broken = problem(instance.problem).violations(instance, plan)
    if broken:
        raise Violation("rules of the plan", broken)


def verify(instance: Instance, result: Result) -> None:
    """Prove the bound of a result from its certificate, in rational arithmetic, without a solver.

    The plan is checked too, and the objective recomputed from it.

    Raises
    ------
    Violation
        With every part of the result that is not so.
    """
    broken = list(_contradictions(instance, result))
    if broken:
        raise Violation("parts of the proof", broken)


def _contradictions(instance: Instance, result: Result) -> list[BrokenRule]:
    room = problem(instance.problem)
    if result.problem != instance.problem:
        text = f"the result is of problem '{result.problem}', the instance of '{instance.problem}'"
        return [BrokenRule("problem", text)]
    broken = list(_status(result))
    if result.plan is not None:
        against_rules = room.violations(instance, result.plan)
        broken += against_rules
        if not against_rules:
            scale = room.gap_scale(instance)
            broken += _figures(room.objective(instance, result.plan), result, scale)
    certificate = result.certificate
    if certificate is None:
        return [*broken, BrokenRule("certificate", "the result has none")]
    stated = getattr(certificate, "bound", None)
    if stated != result.bound:
        text = f"the result states the bound {result.bound!r}, its certificate {stated!r}"
        broken.append(BrokenRule("bound", text))
    return broken + room.prove(instance, certificate)


def _status(result: Result) -> Iterator[BrokenRule]:
    """Compare the status with what it says of plan, bound and gap."""
    text = f"'{result.status}' is stated, but the result has "
    if (result.plan is None) != (result.status in ("infeasible", "error")):
        yield BrokenRule("status", text + ("no plan" if result.plan is None else "a plan"))
    if result.status == "infeasible" and result.bound is not None:
        yield BrokenRule("status", text + "a bound on plans")
    if result.status == "infeasible" and result.objective is not None:
        yield BrokenRule("status", text + "an objective")
    if result.status == "optimal" and not closed(result.gap, result.gap_limit):
        yield BrokenRule("status", text + f"a gap of {result.gap}, {result.gap_limit} is allowed")


def _figures(objective: float, result: Result, scale: float) -> list[BrokenRule]:
    broken = []
    if objective != result.objective:
        text = f"stated {result.objective!r}, but the plan gives {objective!r}"
        broken.append(BrokenRule("objective", text))
    if result.bound is not None and result.bound > objective:
        text = f"{result.bound!r} exceeds the objective {objective!r} of the plan"
        broken.append(BrokenRule("bound", text))
    expected = relative_gap(objective, result.bound, scale)
    if result.gap != expected:
        broken.append(BrokenRule("gap", f"stated {result.gap!r}, but it is {expected!r}"))
    return broken


def closed(gap: float | None, allowed: float) -> bool:
    """Tell whether a gap counts as closed; rounding gets room where no gap is allowed."""
    return gap is not None and gap <= max(allowed, ROUNDING)


def relative_gap(objective: float | None, bound: float | None, scale: float = 0.0) -> float | None:
    """Return (objective - bound) / |objective|, the share of the objective that is not proven.

    Parameters
    ----------
    scale
        Least denominator: the size of terms that may cancel in the objective. Without it, the gap
        is all of an objective of zero, 1, if the bound is another.
    """
    if objective is None or bound is None:
        return None
    size = max(abs(objective), scale)
    return (objective - bound) / size if size else float(bound != objective)
