"""The independent verifier of plans, and of the certificates that prove bounds.

It imports no solver and no formulation; each problem's rules are in its own
`verify/feasibility.py`.
"""

from __future__ import annotations

import re
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from optsched.documents.faults import InstanceError, shown
from optsched.instance import as_instance
from optsched.registry import problem, renamed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from optsched.instance import Document, Instance
    from optsched.registry import Problem
    from optsched.results.result import Result

ROUNDING = 1e-9
LIMIT = 10_000_000  # terms up to which a certificate is verified without being asked
VERSION = re.compile(r"[0-9][0-9A-Za-z.+!-]{0,49}")
NOT_EVALUATED = (
    ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError,
    ValueError,
)  # fmt: skip
"""What a hostile certificate may make an evaluation end in: it then proves nothing."""


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


def check(instance: Instance | str | Path, plan: Document | Result | None) -> None:
    """Check a plan against every rule of its instance, exactly, without tolerances.

    Parameters
    ----------
    instance, plan
        Or a path or bundled name of the one; or the result that holds the other.

    Raises
    ------
    Violation
        With every broken rule.
    ValueError, TypeError
        If the result holds no plan, or it is none of such an instance.

    Examples
    --------
    >>> import optsched
    >>> optsched.check("boa/hand", optsched.solve("boa/hand"))  # silent: every rule is kept
    """
    instance = as_instance(instance)
    kind, plan = problem(instance.problem).plan, getattr(plan, "plan", plan)
    if plan is None:
        raise ValueError("there is no plan to check: the result holds none")
    if not isinstance(plan, kind):
        found = type(plan).__name__
        raise TypeError(f"expected a {kind.__name__}, or a result with one, found {found}")
    broken = problem(instance.problem).violations(instance, plan)
    if broken:
        raise Violation("rules of the plan", broken)


def verify(instance: Instance | str | Path, result: Result) -> None:
    """Prove the bound of a result from its certificate, in rational arithmetic, without a solver.

    The plan is checked too, the objective recomputed from it, and every other figure that a reader
    is shown recomputed or refused. It always ends in a verdict.

    Raises
    ------
    Violation
        With every part of the result that is not so.

    Examples
    --------
    >>> import optsched
    >>> optsched.verify("boa/hand", optsched.solve("boa/hand"))  # silent: it is proven
    """
    instance = as_instance(instance)
    broken = refusals(instance, result)
    if broken:
        raise Violation("parts of the proof", broken)
    result.confirmed()


def refusals(instance: Instance, result: Result) -> list[BrokenRule]:
    """Return every part of a result that is not so; none means that its bound is proven."""
    try:
        return _contradictions(instance, result)
    except NOT_EVALUATED as error:
        return [_not_evaluated("result", error)]


def is_proven(instance: Instance, result: Result) -> bool:
    """Tell whether what a result states of bounds is proven; for those who show it to a reader.

    It is not if it states nothing of bounds, if its version does not say which data it is of, or if
    the verifier would need more than `LIMIT` terms.

    Raises
    ------
    Violation
        If the verifier refuses the result.
    """
    if result.is_verified and result.instance_sha256 == instance.sha256:
        return True
    certificate, is_claimed = result.certificate, result.status in ("optimal", "infeasible")
    is_small = certificate is None or proof_terms(instance, certificate) <= LIMIT
    states_something = is_claimed or result.bound is not None or certificate is not None
    if states_something and is_small and result.instance_sha256:
        verify(instance, result)
        return True
    broken = broken_parts(instance, result)
    if broken:
        raise Violation("parts of the result", broken)
    return False


def broken_parts(instance: Instance, result: Result) -> list[BrokenRule]:
    """Return what is not so of a result, apart from its certificate and an old version."""
    try:
        broken = _but_for_proof(instance, result)
    except NOT_EVALUATED as error:
        return [_not_evaluated("result", error)]
    return [fault for fault in broken if fault.rule != "version"]


def confirmed(instance: Instance, certificate: Document) -> bool | None:
    """Tell whether the verifier proves it; None if not tried: it takes more than `LIMIT` terms."""
    if proof_terms(instance, certificate) > LIMIT:
        return None
    return not proof_faults(instance, certificate)


def proof_terms(instance: Instance, certificate: Document) -> int:
    """Return how much the verifier has to enumerate, counted beforehand."""
    try:
        return problem(instance.problem).proof_terms(instance, certificate)
    except NOT_EVALUATED:  # the verifier will say why
        return 0


def proof_faults(instance: Instance, certificate: Document) -> list[BrokenRule]:
    """Return every reason why a certificate does not prove what it states."""
    try:
        return problem(instance.problem).prove(instance, certificate)
    except NOT_EVALUATED as error:
        return [_not_evaluated("certificate", error)]


def _not_evaluated(rule: str, error: BaseException) -> BrokenRule:
    return BrokenRule(rule, f"cannot be evaluated: {type(error).__name__}: {str(error)[:200]}")


def _contradictions(instance: Instance, result: Result) -> list[BrokenRule]:
    broken, certificate = _but_for_proof(instance, result), result.certificate
    if result.problem != instance.problem:
        return broken
    entry = problem(instance.problem)
    if certificate is None:
        return [*broken, BrokenRule("certificate", "the result has none")]
    if not isinstance(certificate, entry.certificate):
        return [*broken, BrokenRule("certificate", f"is none of '{entry.name}'")]
    stated = getattr(certificate, "bound", None)
    if stated != result.bound:
        text = f"the result states the bound {result.bound!r}, its certificate {stated!r}"
        broken.append(BrokenRule("bound", text))
    return broken + entry.prove(instance, certificate)


def _but_for_proof(instance: Instance, result: Result) -> list[BrokenRule]:
    """Return what is not so, but for what only the certificate can tell."""
    entry = problem(instance.problem)
    if result.problem != instance.problem:
        text = f"the result is of problem '{result.problem}', the instance of '{instance.problem}'"
        return [BrokenRule("problem", text)]
    broken = [*_subject(instance, result), *_status(result), *_origin(entry, result)]
    if result.plan is not None:
        against_rules = entry.violations(instance, result.plan)
        broken += against_rules
        if not against_rules:
            scale = entry.gap_scale(instance)
            broken += _figures(entry.objective(instance, result.plan), result, scale)
    return broken


def _subject(instance: Instance, result: Result) -> Iterator[BrokenRule]:
    """Compare what the result says of its instance with the instance."""
    if not result.instance_sha256:
        text = "a result of version 1 does not say which data it is of: solve again"
        yield BrokenRule("version", text)
    elif result.instance_sha256 != instance.sha256:
        text = f"the result is of other data than '{instance.name}' as it stands: digests differ"
        yield BrokenRule("instance", text)
    elif not _is_left_by(result.changes, instance):
        yield BrokenRule("changes", f"{instance.name} is not as these changes leave it")
    if result.instance != instance.name:
        text = f"the result is of '{result.instance}', this is '{instance.name}'"
        yield BrokenRule("instance", text)
    unit = problem(instance.problem).objective_unit(instance)
    if result.objective_unit != unit:
        yield BrokenRule("unit", f"stated {result.objective_unit!r}, but it is {unit!r}")


def _is_left_by(changes: dict[str, Any], instance: Instance) -> bool:
    """Tell whether changes may have led to an instance: made again, they change nothing."""
    if not changes or changes == instance.changes:
        return True
    try:
        return instance.changed(changes).sha256 == instance.sha256
    except InstanceError:  # a change of an id leaves nothing under the old one
        return True


def _origin(entry: Problem, result: Result) -> Iterator[BrokenRule]:
    """Compare what the result says of the solve with what can be."""
    name, kind = result.method, f"{entry.name} method"
    if ":" not in name and name not in {method.name for method in entry.methods}:  # of others: a:b
        text = f"there is no {kind} {shown(name)}{renamed(kind, name)}"
        yield BrokenRule("method", text)
    if not 0 <= result.gap_limit < 1:
        text = f"{result.gap_limit!r} was asked for; it must be in [0, 1)"
        yield BrokenRule("gap-limit", text)
    if not 0 <= result.verification_s <= result.seconds < inf:
        text = f"{result.seconds!r}, of which {result.verification_s!r} for verification"
        yield BrokenRule("seconds", text)
    odd = [name for name, number in result.versions.items() if not VERSION.fullmatch(number)]
    if odd or "optsched" not in result.versions:
        what = f"{shown(odd[0])} has none" if odd else "that of optsched is missing"
        yield BrokenRule("versions", f"those that it was made with are not told: {what}")


def _status(result: Result) -> Iterator[BrokenRule]:
    """Compare the status with what it says of plan, bound and gap."""
    text = f"'{result.status}' is stated, but the result has "
    if (result.plan is None) != (result.status in ("infeasible", "error")):
        yield BrokenRule("status", text + ("no plan" if result.plan is None else "a plan"))
    if result.status == "infeasible" and result.bound is not None:
        yield BrokenRule("status", text + "a bound on plans")
    if result.plan is None and (result.objective, result.gap) != (None, None):
        yield BrokenRule("status", text + "an objective or a gap without a plan")
    if result.status == "optimal" and not closed(result.gap, result.gap_limit):
        yield BrokenRule("status", text + f"a gap of {result.gap}, {result.gap_limit} is allowed")


def _figures(objective: float, result: Result, scale: float) -> list[BrokenRule]:
    broken = []
    if objective != result.objective:
        text = f"stated {result.objective!r}, but the plan gives {objective!r}"
        broken.append(BrokenRule("objective", text))
    if result.bound is not None and not result.bound <= objective:
        text = f"{result.bound!r} exceeds the objective {objective!r} of the plan"
        broken.append(BrokenRule("bound", text))
    expected = relative_gap(objective, result.bound, scale)
    if result.gap != expected:
        broken.append(BrokenRule("gap", f"stated {result.gap!r}, but it is {expected!r}"))
    return broken


def closed(gap: float | None, allowed: float) -> bool:
    """Tell whether a gap counts as closed; rounding is borne where no gap is allowed."""
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
