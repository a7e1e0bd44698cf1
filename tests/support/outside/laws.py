"""What a result may state: nothing that an oracle from outside knows to be false.

Results are looked at as documents; the project is called by its public functions only.
"""

from __future__ import annotations

import json
import math
import tempfile
from fractions import Fraction
from pathlib import Path

import optsched
from benchmarks.proving import rounds
from optsched.registry import problem
from optsched.results.result_files import read_result
from tests.support.outside.oracles import ORACLES

ROUNDING = 1e-9  # a gap up to it counts as closed where none is allowed
PROBLEMS = ("boa", "pal", "eaco")


def methods(name, kind):
    return [m.name for m in problem(name).methods if m.kind == kind]


def instance_of(name, document):
    return problem(name).instance.from_document(json.loads(json.dumps(document)))


def as_document(result):
    """A result as its file has it; of a round of choice, what corresponds to that."""
    if isinstance(result, rounds.Chosen):
        plan = None if result.plan is None else [int(n) for n in result.plan]
        keys = ("objective", "bound", "gap", "gap_limit")
        figures = {key: getattr(result, key) for key in keys}
        return {"status": result.status.value, "plan": plan, "objective_unit": "", **figures}
    return json.loads(result.to_json())


def through_file(result):
    """The result as it comes out of a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "result.json"
        optsched.write(result, path)
        return read_result(path)


def round_of(document):
    options = {n: [tuple(option) for option in own] for n, own in enumerate(document["options"])}
    return rounds.Round.of(options, document["capacity"])


class Truth:
    """What an oracle knows of an instance, worked out once."""

    def __init__(self, name, document):
        self.name, self.document, self.oracle = name, document, ORACLES[name]
        self.low, self.high = self.oracle.optimum(document)
        self.unit = self.oracle.unit(document)

    @property
    def has_plan(self):
        """True, False, or None if that hangs on the digits of an irrational number."""
        return self.high is not None if (self.low is None) == (self.high is None) else None

    def false_statements(self, stated):
        """Yield what a result, as a document, states and is not so."""
        fields = {key: stated.get(key) for key in ("status", "objective", "bound", "gap", "plan")}
        limit = stated.get("gap_limit")
        numbers = [fields["objective"], fields["bound"], fields["gap"], limit]
        if any(not _is_number(number) for number in numbers if number is not None):
            yield "a figure is no number"
            return
        yield from self._about_plans(**fields)
        if fields["plan"] is not None:
            yield from self._about_plan(fields["plan"], fields["objective"])
        elif fields["objective"] is not None or fields["gap"] is not None:
            yield "figures of a plan that there is not"
        if stated.get("objective_unit") != self.unit:
            yield f"the unit is {self.unit!r}, stated {stated.get('objective_unit')!r}"
        if None not in (fields["objective"], fields["bound"]):
            yield from self._about_gap(fields, limit)
        elif fields["status"] == "optimal":
            yield "optimal, without objective or bound"

    def _about_plans(self, status, bound, plan, **_):
        if status not in ("optimal", "feasible", "infeasible", "error", "unverified"):
            yield f"status {status!r}"
        if bound is not None and self.high is not None and Fraction(bound) > self.high:
            yield f"the bound {bound!r} is above the optimum {float(self.high)!r}"
        if bound is not None and status == "infeasible":
            yield "infeasible, and a bound on plans"
        if status == "infeasible" and self.has_plan:
            yield f"infeasible, but there is a plan of {float(self.high)!r}"
        if status in ("optimal", "feasible") and plan is None:
            yield f"{status} without a plan"
        if status in ("infeasible", "error") and plan is not None:
            yield f"{status} with a plan"

    def _about_plan(self, plan, objective):
        faults, own = self.oracle.examine(self.document, plan)
        if faults:
            yield f"the plan breaks {faults}"
        elif not isinstance(own[0], Fraction):
            yield "the oracle itself rounds"
        elif objective is None or not float(own[0]) <= objective <= float(own[1]):
            yield f"the objective is {float(own[0])!r}, stated {objective!r}"
        elif self.low is None:
            yield "the oracle knows of no plan, but here is one"
        elif own[1] < self.low:
            yield f"the plan is better than the optimum of the oracle, {float(self.low)!r}"

    def _about_gap(self, fields, limit):
        objective, bound, gap = (
            Fraction(fields[key] or 0) for key in ("objective", "bound", "gap")
        )
        size = max(abs(objective), self.oracle.gap_scale(self.document, fields["plan"]))
        true = (objective - bound) / size if size else Fraction(bound != objective)
        if fields["gap"] is None or abs(gap - true) > abs(true) / 10**12:
            yield f"the gap is {float(true)!r}, stated {fields['gap']!r}"
        if limit is None or not 0 <= limit < 1:
            yield f"a gap of {limit!r} was allowed"
            return
        is_closed = gap <= Fraction(max(limit, ROUNDING))
        if fields["status"] == "optimal" and not is_closed:
            yield f"optimal with a gap of {float(gap)!r}, {limit!r} is allowed"
        if fields["status"] == "feasible" and is_closed:
            yield f"not called optimal, with a gap of {float(gap)!r}"
        if fields["status"] == "optimal" and self.low is not None:
            beyond = objective - self.high
            if beyond > max(limit, ROUNDING) * size * (1 + Fraction(1, 10**9)):
                yield f"optimal, but {float(beyond)!r} above the optimum"


def _is_number(value):
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def solved(truth, method, **options):
    """A result with what is false in it, and why `verify` refuses it, if it does."""
    if truth.name == "sia":
        instance = round_of(truth.document)
        chosen = rounds.Choice(gap=options.get("gap", 1e-4)).decide(instance)
        false = list(truth.false_statements(as_document(chosen)))
        return chosen, false + refusals(lambda: rounds.verify_round(instance, chosen))
    instance = instance_of(truth.name, truth.document)
    result = optsched.solve(instance, method, **options)
    false = list(truth.false_statements(as_document(result)))
    if result.certificate is not None:  # without one nothing is stated that could be verified
        false += refusals(lambda: optsched.verify(instance, result))
        false += refusals(lambda: optsched.verify(instance, through_file(result)))
    return result, false


def is_doubted(result):
    """Whether the project's own verifier refused what a method stated, so that nothing is."""
    return "refused the method's proof" in getattr(result, "message", "")


def refusals(examine):
    """Why a verifier refuses, as a list of one text or none; any other exception is one, too."""
    try:
        examine()
    except optsched.Violation as violation:
        return ["refused: " + "; ".join(map(str, violation.broken))]
    except Exception as error:
        return [f"crash of the verifier: {type(error).__name__}: {error}"]
    return []


def may_run(truth, method):
    """Whether a method treats such an instance: a linear model needs finitely many widths."""
    return method != "milp" or truth.document.get("widths") != "continuous"


def is_open(result):
    """Whether a method left open what an exact one is to close."""
    return result.status.value not in ("optimal", "infeasible")


def of_points(truths, points):
    """Yield what points of a frontier state and is not so; truths by value of the parameter."""
    for point in points:
        truth, value = truths[point.value], f"at {point.value!r}: "
        if truth is None:
            if point.status != "invalid":
                yield value + f"{point.status} of an instance that is not valid"
            continue
        if point.bound is not None and truth.high is not None and point.bound > truth.high:
            yield value + f"the bound {point.bound!r} is above {float(truth.high)!r}"
        if point.objective is not None and point.objective < float(truth.low or 0):
            yield value + f"the objective {point.objective!r} is below {float(truth.low)!r}"
        if point.status == "infeasible" and truth.has_plan:
            yield value + "infeasible, but there is a plan"
        if point.status == "optimal" and None in (point.objective, point.bound, truth.low):
            yield value + "optimal, without figures or plans"
        elif point.status == "optimal":
            scale = truth.oracle.gap_scale(truth.document, None)
            size = max(abs(Fraction(point.objective)), scale)
            if point.objective - truth.high > 1e-6 * size * (1 + Fraction(1, 10**9)):
                yield value + f"optimal, {point.objective!r} above {float(truth.high)!r}"


# --- forgeries ------------------------------------------------------------------------------------


def accepted(instance, text):
    """What `verify` lets pass of a result's text, as a document; None if it is refused.

    Whatever a reader and a verifier raise but their own two exceptions goes through.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "forged.json"
        path.write_text(text, encoding="utf-8")
        try:
            result = read_result(path)
            optsched.verify(instance, result)
        except (optsched.InstanceError, optsched.Violation):
            return None
    return as_document(result)


def false_in_accepted(truth, stated):
    """Yield what is false in a result that was accepted; to state less than is known is honest."""
    for text in truth.false_statements(stated):
        if not text.startswith("not called optimal"):
            yield text
    if stated.get("instance") != truth.document["name"]:
        yield f"of another instance, {stated.get('instance')!r}"
    if stated.get("method") not in methods(truth.name, "exact") + methods(truth.name, "greedy"):
        yield f"there is no method {stated.get('method')!r}"
    if not _is_number(stated.get("seconds")) or stated["seconds"] < 0:
        yield f"it took {stated.get('seconds')!r} s"
