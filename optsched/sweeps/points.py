"""What a frontier holds: a point for each value and method; the efficient ones, and the knee."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import Field

from optsched.documents.faults import nearest
from optsched.documents.json_files import dumps
from optsched.instance import Document, html_rows
from optsched.results.result import Verifiable, figure
from optsched.sweeps.parameters import split_unit

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

SCHEMA_ID: Final = "optsched/frontier/2"
HIGHER_IS_BETTER = ("utilization", "utilization_effective", "steady_utilization",
    "steady_utilization_effective", "goodput_gpu_h", "jain_index", "passed")  # fmt: skip


class Point(Document):
    """The outcome of one method, or policy, at one value of the parameter.

    Attributes
    ----------
    status
        As of a `Result`; besides, `invalid`: the value gives no valid instance, and `simulated`:
        by a rollout.
    plan, certificate
        As JSON: what proves the point, as of a `Result`.
    objective
        None where there is no plan; `reason` says why, or how many jobs a rollout left out.
    bound
        No plan, or schedule of a rollout's trace, has an objective below it.
    metrics
        Of a rollout: what was measured, by name; and bounds where they are quick, as
        ``jct_mean_s_bound``. Of several seeds, their means.
    draws
        Of rollouts with several seeds: each metric, seed by seed.
    """

    value: float
    method: str
    status: Literal[
        "optimal", "unverified", "feasible", "infeasible", "error", "invalid", "simulated"
    ]
    objective: float | None = None
    bound: float | None = None
    gap: float | None = None
    seconds: float = 0.0
    deterministic: bool = True
    reason: str = ""
    metrics: dict[str, float] = Field(default={})
    draws: dict[str, tuple[float, ...]] = Field(default={}, repr=False)
    plan: dict[str, Any] | None = Field(default=None, repr=False)
    certificate: dict[str, Any] | None = Field(default=None, repr=False)


class Frontier(Verifiable):
    """Results over a swept parameter.

    What a file says of bounds is believed only after `optsched.verify`: until then, texts, frames
    and pictures leave bounds out and call such points unverified.

    Attributes
    ----------
    problem
        Name of the problem, or ``"rollout"``.
    instance, instance_sha256
        Name of the instance or scenario whose parameter was swept, and the digest of its data.
    changes
        The changes of fields, by path, that made it from the instance of that name.
    parameter
        Path of the field, as `Instance.changed` takes it; or, with `by_function`, the name of a
        function, so that no file has what its points were made of.
    methods, origins
        The first one's points are the curve; whose those are that are not ours, with their hashes.
    points
        Values ascend; for each of them there is a point of every method, in their order.

    Examples
    --------
    >>> import optsched
    >>> frontier = optsched.frontier("boa/cbd-85", budgets=[22, 24, 30, 40], executor=1)
    >>> frontier.point_text(frontier.knee())
    '24 GPUs: 1,739.40 s'
    """

    schema_id: Literal["optsched/frontier/2"] = Field(default=SCHEMA_ID, alias="schema")
    problem: str
    instance: str
    instance_sha256: str = ""
    changes: dict[str, Any] = Field(default={})
    parameter: str
    by_function: bool = False
    objective_name: str
    objective_unit: str
    higher_is_better: bool = False
    methods: tuple[str, ...]
    origins: dict[str, str] = Field(default={})
    options: dict[str, float | int | str | None] = Field(default={})
    seeds: tuple[int, ...] = Field(default=(), description="Of each point of rollouts, if several.")
    metric: str = Field(default="", description="Of rollouts: which is the objective.")
    versions: dict[str, str]
    points: tuple[Point, ...]

    def to_json(self) -> str:
        """Return the JSON text; of changes, those to None too."""
        document = self.model_dump(mode="json", by_alias=True, exclude_none=True)
        return dumps(document | {"changes": self.changes})

    @property
    def told(self) -> tuple[Point, ...]:
        """The points as they may be shown: of one that only a file speaks of, no bound."""
        return self.points if self._is_verified else tuple(map(_unverified, self.points))

    @property
    def values(self) -> tuple[float, ...]:
        """The values of the parameter."""
        return tuple(dict.fromkeys(point.value for point in self.points))

    def of_method(self, method: str) -> tuple[Point, ...]:
        """Return the points of a method, those without an objective too."""
        if method not in self.methods:
            raise ValueError(f"no method '{method}' was run; {nearest(method, self.methods)}")
        return tuple(point for point in self.told if point.method == method)

    def pareto(self) -> tuple[Point, ...]:
        """Return the efficient points: to better the objective, the parameter has to be greater.

        A point drops out if another one with a value as low or lower is as good or better; among
        equals the method named first stays. So where a greater value never helps, as with a
        penalty, only the point of the least value is left.
        """
        sign = -1 if self.higher_is_better else 1
        kept: list[Point] = []
        best = math.inf
        for value in self.values:
            here = [p for p in self.points if p.value == value and p.objective is not None]
            point = min(here, key=lambda p: sign * (p.objective or 0.0), default=None)
            if point is not None and sign * (point.objective or 0.0) < best:
                best = sign * (point.objective or 0.0)
                kept.append(point)
        return tuple(kept)

    def knee(self) -> Point | None:
        """Return where the efficient points bend most: beyond it more of the parameter pays less.

        It is the point farthest from the chord between the first and the last, both axes scaled to
        the range in between; None if no point lies on the better side of the chord.

        Source: Satopaa et al., "Finding a 'Kneedle' in a Haystack", ICDCS Workshops 2011.
        """
        points = self.pareto()
        if len(points) < 3:
            return None
        first, last = points[0], points[-1]
        width, height = last.value - first.value, _drop(first, last)

        def depth(point: Point) -> float:
            return _drop(first, point) / height - (point.value - first.value) / width

        deepest = max(points, key=depth)
        return deepest if depth(deepest) > 1e-9 else None

    def of(self, metric: str) -> Frontier:
        """Return the frontier of another metric of the same rollouts.

        Raises
        ------
        ValueError
            If these are no rollouts, or there is no such metric.
        """
        from optsched.rollout.results.metrics import METRICS

        if self.problem != "rollout":
            raise ValueError(f"a frontier of '{self.problem}' has one objective and no metrics")
        if metric not in METRICS:
            raise ValueError(f"there is no metric '{metric}'; {nearest(metric, METRICS)}")
        changes: dict[str, Any] = {
            "metric": metric,
            "objective_name": METRICS[metric],
            "objective_unit": split_unit(metric)[1],
            "higher_is_better": metric in HIGHER_IS_BETTER,
            "points": tuple(_measured(point, metric) for point in self.points),
        }
        return self.model_copy(update=changes).confirmed()

    def frame(self) -> pd.DataFrame:
        """Return one row per point.

        Returns
        -------
        pandas.DataFrame
            Columns: the parameter's name, method, status, objective, bound, gap, seconds, reason;
            and of rollouts `difference`, by how much the objective is above that of the first
            policy at the same value and with the same jobs, and the metrics. With several seeds
            `objective_low`, `objective_high`, `difference_low` and `difference_high`: 95 %
            intervals over them, of differences seed by seed.
        """
        import pandas as pd

        from optsched.sweeps.intervals import interval_columns, paired_columns

        keys = ("method", "status", "objective", "bound", "gap", "seconds", "reason")
        rows = [
            {self.parameter: point.value, **{key: getattr(point, key) for key in keys},
             **interval_columns(self, point), **paired_columns(self, point), **point.metrics}
            for point in self.told
        ]  # fmt: skip
        return pd.DataFrame(rows).astype({"objective": float, "bound": float, "gap": float})

    def plot(self, ax: Axes | None = None, against: str = "") -> Axes:
        """Draw the frontier, and return the axes; see `optsched.sweeps.plot.plot`."""
        from optsched.sweeps.plot import plot

        return plot(self, ax, against)

    def slider(self) -> Any:
        """Return a slider over the values, for notebooks; see `optsched.sweeps.slider`."""
        from optsched.sweeps.slider import slider

        return slider(self)

    def point_text(self, point: Point) -> str:
        """Write value and objective of a point, with their units."""
        name, unit = split_unit(self.parameter)
        value = f"{point.value:,.6g} {unit}".strip() if unit else f"{name} {point.value:,.6g}"
        if point.objective is None:
            return f"{value}: {point.reason or point.status}"
        return f"{value}: {figure(point.objective)} {self.objective_unit}".strip()

    def summary(self) -> dict[str, str]:
        """Return the headline figures as text, by name."""
        values, knee = self.values, self.knee()
        swept = f"{len(values)} values from {values[0]:,.6g} to {values[-1]:,.6g}"
        rows = {"instance": self.instance, "parameter": f"{self.parameter}, {swept}"}
        rows["objective"] = f"{self.objective_name} ({self.objective_unit})".replace(" ()", "")
        for method in self.methods:
            counts = Counter(point.status for point in self.of_method(method))
            rows[method] = ", ".join(f"{count} {status}" for status, count in counts.items())
            rows[method] += f"; {self.origins[method]}" if method in self.origins else ""
        gaps = [p for p in self.of_method(self.methods[0]) if p.objective is None]
        if gaps:
            more = f" (and {len(gaps) - 1} more)" if len(gaps) > 1 else ""
            rows["no plan"] = f"{self.point_text(gaps[-1])}{more}"
        rows |= {} if knee is None else {"knee": self.point_text(knee)}
        if self.problem == "rollout":
            seed = self.options.get("seed", 0)
            each = f"one rollout a point, seed {seed}"
            if self.seeds:
                each = f"means over {len(self.seeds)} seeds, with 95 % intervals"
            rows["pairs"] = f"{each}; at each value the same jobs for all"
        return rows | {"time": f"{sum(point.seconds for point in self.points):.3f} s in methods"}

    def __str__(self) -> str:
        rows = self.summary()
        width = max(map(len, rows))
        return "\n".join(f"{key:<{width}}  {value}" for key, value in rows.items())

    def __repr__(self) -> str:
        methods, count = ", ".join(self.methods), len(self.points)
        return f"<Frontier of {self.instance} over {self.parameter}: {count} points of {methods}>"

    def _repr_html_(self) -> str:
        table = self.frame().dropna(axis="columns", how="all")
        return html_rows(self.summary()) + table.to_html(index=False, max_rows=12, max_cols=10)


def _unverified(point: Point) -> Point:
    """Return a point without what was not verified."""
    if point.status in ("invalid", "simulated"):
        measured, draws = (
            {k: v for k, v in told.items() if not k.endswith(("_bound", "_above"))}
            for told in (point.metrics, point.draws)
        )
        return point.model_copy(update={"bound": None, "metrics": measured, "draws": draws})
    changes: dict[str, Any] = {"status": "unverified", "bound": None, "gap": None}
    if point.objective is None:
        changes |= {"status": "error", "reason": "no plan, unverified"}
    return point.model_copy(update=changes)


def _drop(first: Point, point: Point) -> float:
    return (first.objective or 0.0) - (point.objective or 0.0)


def _measured(point: Point, metric: str) -> Point:
    value = point.metrics.get(metric)
    changes: dict[str, Any] = {"objective": value, "bound": point.metrics.get(f"{metric}_bound")}
    if value is None and point.status == "simulated":
        changes["reason"] = f"{metric} was not measured"
    return point.model_copy(update=changes)
