"""What a solve gives back: a plan, its objective, a bound, and the certificate of the bound."""

from __future__ import annotations

from enum import StrEnum
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import Field, PrivateAttr, SerializeAsAny, ValidationError

from optsched.faults import InstanceError, lines, shown, validation_faults
from optsched.instance import Document, Instance, find, html_rows
from optsched.jsonfile import load
from optsched.problems import ROOMS, problem

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd
    from matplotlib.axes import Axes

    from optsched.faults import Fault
    from optsched.reasons import Explanation

PACKAGES = ("optsched", "highspy", "numpy", "pyomo", "scipy")


class Status(StrEnum):
    """How a solve ended.

    `optimal`: proven to the gap asked for. `feasible`: a plan, and an honest bound. `infeasible`:
    proven that no plan exists. `error`: no plan, and no proof that none exists.
    """

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    ERROR = "error"


class Result(Document):
    """The outcome of a solve; `plan` is None exactly when the status is infeasible or error.

    Attributes
    ----------
    objective
        Recomputed exactly from the plan, in `objective_unit`; never the solver's figure.
    bound
        No plan has an objective below it; `certificate` proves that.
    gap, gap_limit
        (objective - bound) / objective; and how much of it was asked for: `optimal` means no more.
    deterministic
        False if a clock or Ctrl-C ended the solve, so that another run may end elsewhere.
    """

    schema_id: Literal["optsched/result/1"] = Field(default="optsched/result/1", alias="schema")
    problem: str
    instance: str
    method: str
    status: Status
    message: str = ""
    objective: float | None = None
    objective_unit: str
    bound: float | None = None
    gap: float | None = None
    gap_limit: float = 1e-6
    seconds: float
    deterministic: bool = True
    seed: int = 0
    plan: SerializeAsAny[Document] | None = None
    certificate: SerializeAsAny[Document] | None = None
    versions: dict[str, str]

    _instance: Any = PrivateAttr(default=None)
    _state: Any = PrivateAttr(default=None)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Result) and self.to_json() == other.to_json()

    __hash__ = None  # type: ignore[assignment]

    def of(self, instance: Instance, state: Any = None) -> Self:
        """Attach the instance that the result belongs to; `frame` needs it.

        Parameters
        ----------
        state
            What the method left in memory for the next epoch.
        """
        self._instance = instance
        self._state = state if state is not None else self._state
        return self

    @property
    def state(self) -> Any:
        """What the method left in memory for the next epoch; None once it was written and read."""
        return self._state

    def __getstate__(self) -> dict[Any, Any]:
        """Leave out what only lives in this process."""
        copied = super().__getstate__()
        private = copied.get("__pydantic_private__") or {}
        return copied | {"__pydantic_private__": private | {"_state": None}}

    def frame(self) -> pd.DataFrame:
        """Return one row per decision.

        Raises
        ------
        ValueError
            If there is no plan, or the result was read from a file without `of(instance)`.
        """
        plan = self._decided()
        return problem(self.problem).frame(self._attached(), plan)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the plan, and return the axes; by default on a new figure.

        Raises
        ------
        ValueError
            If there is no plan, if the problem has no picture, or if the result was read from a
            file without `of(instance)`.
        """
        draw = problem(self.problem).plot
        if draw is None:
            raise ValueError(f"results of '{self.problem}' have no picture; see frame()")
        plan = self._decided()
        return draw(self._attached(), plan, ax)

    def explain(self, time_limit_s: float | None = 60.0) -> Explanation:
        """Explain why there is no plan, or why it is this one; see `optsched.explain.explain`.

        Parameters
        ----------
        time_limit_s
            Seconds for all solves that this takes.

        Raises
        ------
        ValueError
            If the result was read from a file without `of(instance)`, or of another instance.
        """
        from optsched.explain import explain

        return explain(self._attached(), self, time_limit_s)

    def summary(self) -> dict[str, str]:
        """Return the headline figures as text, by name; fewer without the instance."""
        head = {"instance": self.instance, "method": self.method, "status": str(self.status)}
        if self.message:
            head["message"] = self.message
        if self.objective is not None and self._instance is None:
            head["objective"] = f"{figure(self.objective)} {self.objective_unit}"
        elif self.objective is not None and self.plan is not None:
            head |= problem(self.problem).summary(self._instance, self)
        if self.bound is not None:
            head["bound"] = f"{figure(self.bound)} {self.objective_unit}"
        if self.gap is not None:
            head["gap"] = f"{self.gap:.2e}" if 0 < self.gap < 1e-4 else f"{100 * self.gap:.2f} %"
        return head | {"time": f"{self.seconds:.3f} s"}

    def _decided(self) -> Document:
        if self.plan is None:
            raise ValueError(f"the result has no plan: {self.status}")
        return self.plan

    def _attached(self) -> Instance:
        if self._instance is None:
            raise ValueError("attach the instance first: result.of(instance)")
        found: Instance = self._instance
        return found

    def __str__(self) -> str:
        rows = self.summary()
        width = max(map(len, rows))
        return "\n".join(f"{key:<{width}}  {value}" for key, value in rows.items())

    def _repr_html_(self) -> str:
        rows = html_rows(self.summary())
        if self.plan is None or self._instance is None:
            return rows
        return rows + self.frame().to_html(index=False, max_rows=12)


def figure(value: float) -> str:
    """Write a figure for a reader: six decimals, or two from a hundred on."""
    return f"{value:,.2f}" if abs(value) >= 100 else f"{value:,.6f}"


def versions() -> dict[str, str]:
    """Return the versions that a result depends on."""
    return dict(_versions())


@cache
def _versions() -> dict[str, str]:
    return {package: version(package) for package in PACKAGES}


def read_result(source: str | Path) -> Result:
    """Read a result that was written with `optsched.write`.

    Raises
    ------
    InstanceError
        If the file is not a result, with every fault.
    """
    document, origin = load(find(source)), str(source)
    room = problem(_problem_name(document, origin))
    faults: list[Fault] = []
    for key, cls in (("plan", room.plan), ("certificate", room.certificate)):
        try:
            if document.get(key) is not None:
                document[key] = cls.model_validate(document[key])
        except ValidationError as error:
            faults += (((key, *path), text) for path, text in validation_faults(error, cls))
            document[key] = None
    try:
        result = Result.model_validate(document)
    except ValidationError as error:
        faults += validation_faults(error, Result)
    if faults:
        raise InstanceError(origin, lines(dict(faults).items()))
    return result


def _problem_name(document: Any, origin: str) -> str:
    if not isinstance(document, dict):
        raise InstanceError(origin, [f"document: expected an object, found {shown(document)}"])
    if document.get("schema") != "optsched/result/1":
        found = shown(document["schema"]) if "schema" in document else "none"
        text = f'schema: not a result; expected "optsched/result/1", found {found}'
        raise InstanceError(origin, [text])
    name = document.get("problem")
    if not isinstance(name, str) or name not in ROOMS:
        found = shown(name) if "problem" in document else "none"
        raise InstanceError(origin, [f"problem: expected one of {', '.join(ROOMS)}, found {found}"])
    return name
