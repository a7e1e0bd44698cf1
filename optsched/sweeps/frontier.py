"""frontier(): an instance or scenario, solved at every value of a parameter."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any, cast

from optsched.executors.tasks import computed
from optsched.instance import Instance, NamedDocument
from optsched.registry import problem
from optsched.results.result import Status, versions
from optsched.search import Search
from optsched.solving import Outcome, concluded
from optsched.sweeps.arguments import check_options, checked_methods, checked_values, origins_of
from optsched.sweeps.cache import PointCache
from optsched.sweeps.parameters import ROLLOUT
from optsched.sweeps.points import Frontier, Point
from optsched.sweeps.seeds import averaged, checked_seeds
from optsched.sweeps.sweep_plan import planned
from optsched.sweeps.sweep_task import SweepTask, point_of
from optsched.sweeps.verified_points import result_of
from optsched.verification import is_proven

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from concurrent.futures import Executor
    from pathlib import Path

    from optsched.executors.under_way import UnderWay
    from optsched.rollout.scenario import Scenario

    Subject = Instance | Scenario
    Parameter = str | Callable[[float], Subject]
    Points = dict[int, Point]


def frontier(
    subject: Subject | str | Path,
    parameter: Parameter | None = None,
    values: Iterable[float] | None = None,
    *,
    methods: Sequence[str] | str | None = None,
    budgets: Iterable[float] | None = None,
    metric: str = "jct_mean_s",
    executor: Executor | int | None = None,
    cache: str | Path | None = None,
    seeds: int | Iterable[int] | None = None,
    progress: Callable[[float], None] | None = None,
    under_way: Callable[[list[UnderWay]], object] | None = None,
    **options: Any,
) -> Frontier:
    """Solve an instance, or run a scenario, at every value of a parameter.

    Parameters
    ----------
    subject
        An instance or scenario, its file, or the name of a bundled one.
    parameter
        Path of a field as `Instance.changed` takes it, such as ``"budget_gpus"``,
        ``"jobs.*.max_slowdown"``, ``"locality.*.1"``, ``"power_cap_w"`` or ``"jobs.*.restart_s"``;
        or a function that makes an instance of a value. Of scenarios also an option of the
        policies, as ``"policy.budget"``.
    values
        Ascending.
    methods
        Names of methods; the first one's points are the curve. By default the exact one; ``"all"``
        adds the greedy ones. Of scenarios: policies, by default those that the scenario names.
    budgets
        Short for ``parameter="budget_gpus", values=budgets``.
    metric
        Of scenarios: which of `optsched.rollout.METRICS` is the objective; all are kept.
    executor
        Any `concurrent.futures.Executor`; or how many processes on this machine, 1 for the one
        that calls. By default all CPUs, once that saves time.
    cache
        Folder of points computed before, by the hash of instance, method, options and versions. A
        sweep that was killed goes on from there.
    seeds
        Of scenarios: how many seeds, 0, 1, ...; or which. A point is then their mean, with an
        interval; at each value all policies have the same jobs.
    progress
        Called with the share that is done.
    under_way
        Called with the points that are being computed, whenever one of them tells of a new phase,
        a better plan or bound; not of those in an executor of your own.
    **options
        Of `optsched.solve` (time_limit_s, gap, seed, threads) or `optsched.simulate` (trace, seed).

    Returns
    -------
    Frontier
        A value at which there is no plan, or no valid instance, has a point that says why.

    Raises
    ------
    ValueError
        If values are none, unsorted or repeated, the path leads nowhere, or no value gives a valid
        instance.
    UnknownNameError
        If there is no such method, policy or option.

    Examples
    --------
    >>> import optsched
    >>> curve = optsched.frontier("boa/hand", budgets=[2, 3, 4])
    >>> [round(point.objective, 4) for point in curve.points]
    [2.0, 0.9583, 0.8333]
    """
    instance = subject_of(subject)
    if budgets is not None:
        if parameter is not None or values is not None:
            raise ValueError("budgets: stands for parameter and values; give the one or the others")
        parameter, values = "budget_gpus", budgets
    if parameter is None or values is None:
        raise ValueError("frontier: give a parameter and its values, or budgets")
    swept, names = checked_values(values), checked_methods(instance, methods)
    check_options(instance, options)
    blank = _blank(instance, parameter, names, options)
    if blank.problem == ROLLOUT:
        blank.of(metric)  # a misspelt one must not be found after hours
    known = _at_once(instance, parameter, swept, names, options)
    numbers = checked_seeds(instance, seeds, options)
    tasks = planned(instance, parameter, swept, names, options, numbers, known, blank.origins)
    points = known | _computed(tasks, executor, PointCache(cache), progress, under_way)
    if numbers:
        blank = blank.model_copy(update={"seeds": numbers})
        points = averaged(points, len(numbers))
    _check_some_valid(points.values(), parameter)
    whole = blank.model_copy(update={"points": tuple(points[n] for n in sorted(points))})
    whole.confirmed()
    return whole.of(metric) if whole.problem == ROLLOUT else whole


def subject_of(source: Subject | str | Path) -> Subject:
    """Return an instance or scenario, read if it is not one yet."""
    if isinstance(source, Instance):
        return source
    from optsched.rollout.trace_source import scenario_of

    if not isinstance(source, NamedDocument):
        from optsched.instance import find, load, read
        from optsched.rollout.scenario_files import SCHEMA_ID, scenario_names

        if str(source) not in scenario_names():
            document = load(find(source))
            if not isinstance(document, dict) or document.get("schema") != SCHEMA_ID:
                return read(source)
    return scenario_of(source)


def _limits(options: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in options.items() if key in ("gap", "seed")}


def _at_once(
    subject: Subject,
    parameter: Parameter,
    values: list[float],
    names: list[str],
    options: dict[str, Any],
) -> Points:
    """Return the points of the exact method that are found without a sweep, by number."""
    if not isinstance(subject, Instance) or callable(parameter):
        return {}
    entry = problem(subject.problem)
    exact = entry.methods[0].name
    solved = entry.at_once(subject, parameter, values) if exact in names else None
    points = {}
    for n, (value, proven) in enumerate(zip(values, solved or (), strict=solved is not None)):
        if proven is None:
            continue
        search = Search(subject.changed({parameter: value}), **_limits(options))
        search.offer(proven[0])
        result = concluded(entry.methods[0], search, Outcome(proven[1]))
        if result.status == Status.OPTIMAL:
            number = n * len(names) + names.index(exact)
            points[number] = point_of(value, result)
    return points


def _computed(
    tasks: dict[int, SweepTask],
    executor: Executor | int | None,
    cache: PointCache,
    progress: Callable[[float], None] | None,
    under_way: Callable[[list[UnderWay]], object] | None,
) -> Points:
    """Return the points of tasks, from the cache or computed and put there."""
    keys = {number: task.key() for number, task in tasks.items()}
    cached = {number: cache.get(key, tasks[number]) for number, key in keys.items()}
    points = {
        number: point
        for number, point in cached.items()
        if point is not None and _holds(tasks[number], point)
    }
    missing = {number: task for number, task in tasks.items() if number not in points}
    with closing(
        computed(missing, executor, under_way)
    ) as done:  # Ctrl-C here ends its processes, too
        for number, point in done:
            points[number] = point
            cache.put(keys[number], point)
            if progress is not None:
                progress(len(points) / len(tasks))
    return points


def _holds(task: SweepTask, point: Point) -> bool:
    """Tell whether the verifier confirms a point from the cache, which is a file like any other."""
    if point.status in ("invalid", "simulated"):
        return True
    try:
        instance = cast("Instance", task.base.changed(task.changes))
        gap = task.options.get("gap", 1e-6)
        result = result_of(instance, point, versions(), gap)
        return is_proven(instance, result) or point.status not in ("optimal", "infeasible")
    except ValueError:
        return False


def _check_some_valid(points: Iterable[Point], parameter: Parameter) -> None:
    reasons = [point.reason for point in points if point.status == "invalid"]
    if reasons and all(point.status == "invalid" for point in points):
        name = parameter if isinstance(parameter, str) else _name(parameter)
        raise ValueError(f"no value of {name} gives a valid instance: {reasons[0]}")


def _blank(
    subject: Subject, parameter: Parameter, names: list[str], options: dict[str, Any]
) -> Frontier:
    """Return the frontier without its points."""
    name = unit = ""
    if isinstance(subject, Instance):
        entry = problem(subject.problem)
        name, unit = entry.objective_name(subject), entry.objective_unit(subject)
    plain = {k: v for k, v in options.items() if isinstance(v, bool | int | float | str)}
    return Frontier(
        problem=subject.problem if isinstance(subject, Instance) else ROLLOUT,
        instance=subject.name,
        instance_sha256=subject.sha256,
        changes=subject.changes,
        parameter=parameter if isinstance(parameter, str) else _name(parameter),
        by_function=not isinstance(parameter, str),
        objective_name=name,
        objective_unit=unit,
        methods=tuple(names),
        origins=origins_of(subject, names),
        options=plain,
        versions=versions(),
        points=(),
    )


def _name(function: Callable[[float], Subject]) -> str:
    name = getattr(function, "__name__", "value")
    return "value" if name == "<lambda>" else name
