"""What a solve gives back: a plan, its objective, a bound, and the certificate of the bound."""

from __future__ import annotations

from enum import StrEnum
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self

from pydantic import Field, PrivateAttr

from optsched.documents.base import OfProblem
from optsched.documents.json_files import dumps
from optsched.instance import Document, Instance, html_rows
from optsched.registry import EXPLAIN, loaded, problem
from optsched.results.ending import Ending

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pandas as pd
    from matplotlib.axes import Axes

    from optsched.explanation.explanation import Explanation

SCHEMA_ID: Final = "optsched/result/2"
PACKAGES = ("optsched", "highspy", "numpy", "pyomo", "scipy")

version = cache(metadata.version)  # each is read from a file

Finite = Annotated[float, Field(allow_inf_nan=False)]
Duration = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Status(StrEnum):
    """How a solve ended.

    `optimal`: proven to the gap asked for. `feasible`: a plan, and an honest bound. `unverified`: a
    plan, and a bound that the verifier was not asked to confirm. `infeasible`: proven that no plan
    exists. `error`: no plan, and no verified proof that none exists.
    """

    OPTIMAL = "optimal"
    UNVERIFIED = "unverified"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    ERROR = "error"


class Verifiable(Document):
    """Base of documents that state bounds, which are believed after the verifier confirmed them."""

    _is_verified: bool = PrivateAttr(default=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self.to_json() == other.to_json()

    __hash__ = None  # type: ignore[assignment]

    @property
    def is_verified(self) -> bool:
        """Whether the verifier confirmed it in this process, or in one that it started."""
        return self._is_verified

    def confirmed(self) -> Self:
        """Note that the verifier confirmed it; for those who asked the verifier only."""
        self._is_verified = True
        return self

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy; one with other data is not verified."""
        copied = super().model_copy(update=update, deep=deep)
        copied._is_verified = self._is_verified and not update
        return copied


class Result(Verifiable):
    """The outcome of a solve; `plan` is None exactly when the status is infeasible or error.

    What a file says of bounds is believed only after `optsched.verify`: until then, texts call it
    unverified.

    Attributes
    ----------
    instance, instance_sha256
        Name of the instance, and the digest of its data, `Instance.sha256`; the digest is empty if
        the file is of version 1, which had none.
    changes
        The changes of fields, by path, that made it from the instance of that name.
    objective
        Recomputed exactly from the plan, in `objective_unit`; never the solver's figure.
    bound
        No plan has an objective below it; `certificate` proves that.
    gap, gap_limit
        (objective - bound) / objective; and how much of it was asked for: `optimal` means no more.
    seconds, verification_s
        How long the solve took, and how much of that was the verifier's.
    deterministic
        False if a clock or Ctrl-C ended the solve, so that another run may end elsewhere.

    Examples
    --------
    >>> import optsched
    >>> optsched.solve("pal/tiny").frame()["slowdown"].tolist()
    [1.1, 1.0, 1.0]
    """

    schema_id: Literal["optsched/result/2"] = Field(default=SCHEMA_ID, alias="schema")
    problem: str
    instance: str
    instance_sha256: str = Field(pattern="^([0-9a-f]{64})?$")
    changes: dict[str, Any] = Field(default={})
    method: str
    status: Status
    message: str = ""
    objective: Finite | None = None
    objective_unit: str
    bound: Finite | None = None
    gap: Finite | None = None
    gap_limit: Annotated[float, Field(ge=0, lt=1)] = 1e-6
    seconds: Duration
    verification_s: Duration = 0.0
    deterministic: bool = True
    seed: int = 0
    plan: OfProblem = None
    certificate: OfProblem = None
    versions: dict[str, str]

    _instance: Any = PrivateAttr(default=None)
    _state: Any = PrivateAttr(default=None)
    _ending: Ending | None = PrivateAttr(default=None)

    def of(self, instance: Instance, state: Any = None) -> Self:
        """Attach the instance that the result belongs to; `frame` needs it.

        Parameters
        ----------
        state
            What the method left in memory for the next epoch.

        Raises
        ------
        ValueError
            If it is another instance.
        """
        if self.instance_sha256 not in ("", instance.sha256):
            what = f"another instance than '{instance.name}' as it stands: their digests differ"
            raise ValueError(f"the result is of {what}")
        return self.attached(instance, state)

    def attached(self, instance: Instance | None, state: Any = None) -> Self:
        """Attach an instance that is known to be the result's."""
        self._instance = instance
        self._state = state if state is not None else self._state
        return self

    def to_json(self) -> str:
        """Return the JSON text; of changes, those to None too."""
        document = self.model_dump(mode="json", by_alias=True, exclude_none=True)
        return dumps(document | {"changes": self.changes})

    @property
    def is_solved_here(self) -> bool:
        """Whether it comes from a solve of this process and its workers, not from a file."""
        return self._ending is not None

    @property
    def ending(self) -> Ending:
        """How its solve ended, if it comes from one here."""
        return self._ending or Ending()

    def solved(self, ending: Ending) -> Self:
        """Note that it comes from a solve; for solvers only."""
        self._ending = ending
        return self

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy; one with other data is neither verified nor from a solve."""
        copied = super().model_copy(update=update, deep=deep)
        copied._ending = None if update else self._ending
        return copied

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
            If there is no plan, or no picture, or it was read from a file without `of(instance)`.
        """
        draw = problem(self.problem).plot
        if draw is None:
            raise ValueError(f"results of '{self.problem}' have no picture; see frame()")
        plan = self._decided()
        return draw(self._attached(), plan, ax)

    def explain(self, time_limit_s: float | None = 60.0) -> Explanation:
        """Explain why there is no plan, or why it is this one; see `optsched.explanation`.

        Parameters
        ----------
        time_limit_s
            Seconds for all solves that this takes.

        Raises
        ------
        ValueError
            If it was read from a file without `of(instance)`, or of another instance.
        """
        explanation: Explanation = loaded(EXPLAIN)(self._attached(), self, time_limit_s)
        return explanation

    def summary(self) -> dict[str, str]:
        """Return the headline figures as text, by name; fewer without the instance."""
        head = {"instance": self.instance}
        if self.changes:
            head["changes"] = ", ".join(f"{path}={value}" for path, value in self.changes.items())
        head |= {"method": self.method, "status": self._status_text()}
        if self.message:
            head["message"] = self.message
        if self.objective is not None and self._instance is None:
            head["objective"] = f"{figure(self.objective)} {self.objective_unit}"
        elif self.objective is not None and self.plan is not None:
            head |= problem(self.problem).summary(self._instance, self)
        if self.bound is not None:
            head["bound"] = self._told(f"{figure(self.bound)} {self.objective_unit}")
        if self.gap is not None:
            gap = f"{self.gap:.2e}" if 0 < self.gap < 1e-4 else f"{100 * self.gap:.2f} %"
            head["gap"] = self._told(gap)
        return head | {"time": f"{self.seconds:.3f} s"}

    def _status_text(self) -> str:
        """Return the status; what only a file says of it is not repeated."""
        if self._is_verified or (self.is_solved_here and self.status != Status.INFEASIBLE):
            return str(self.status)
        return "no plan, unverified" if self.plan is None else str(Status.UNVERIFIED)

    def _told(self, text: str) -> str:
        """Return what rests on the bound, marked where the verifier did not confirm it."""
        return text if self._is_verified else f"{text} (unverified)"

    def _decided(self) -> Document:
        if not isinstance(self.plan, Document):
            raise ValueError(f"the result has no plan: {self.status}")
        return self.plan

    def _attached(self) -> Instance:
        if self._instance is None:
            raise ValueError("attach the instance first: result.of(instance)")
        instance: Instance = self._instance
        return instance

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """Yield what names the result, and what came out."""
        told = {"method": self.method, "status": self._status_text()}
        yield from ((None, self.instance), *told.items(), ("objective", self.objective))

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
    return {package: version(package) for package in PACKAGES}
