"""BOA: the whole frontier of many phases in one sort, LPs for one budget, and bundled instances."""

from __future__ import annotations

from typing import Any

import numpy as np

import optsched
from benchmarks.generators import WIDTHS, curves
from benchmarks.suite.measure import Outcome, examined, measured
from optsched.boa import BoaInstance
from optsched.boa.exact.budget_frontier import frontier_of_arrays, hull_steps
from optsched.boa.instance import JobClass, Phase, Table

BUDGET = 30  # GPUs, for cbd-85


def _case(phases: int, noise: float) -> str:
    shape = "concave curves" if not noise else f"curves with {noise:.0%} noise"
    return f"{phases:,} phases x {len(WIDTHS)} widths, {shape}"


def frontier(phases: int, noise: float = 0.0) -> Outcome:
    """Find every budget's optimum; the objective is that of the middle budget."""
    frontier_of_arrays(*_arrays(100, noise))  # imports everything
    load, widths, speedup = _arrays(phases, noise)
    outcome = Outcome(_case(phases, noise), note="every budget at once")
    whole = measured(outcome, frontier_of_arrays, load, widths, speedup)
    outcome.objective = float(whole.jobs_at((whole.gpus[0] + whole.gpus[-1]) / 2))
    return outcome


def mixed(phases: int, gap: float, limit_s: float) -> Outcome:
    """Solve an instance of one phase per class for the middle budget, and prove the bound."""
    options = {"gap": gap, "time_limit_s": limit_s}
    optsched.solve(_mixed(10), **options)  # imports everything
    instance = _mixed(phases)
    outcome = Outcome(f"{_case(phases, 0.0)}, a budget of {instance.budget_gpus:,.0f} GPUs")
    return examined(outcome, instance, measured(outcome, optsched.solve, instance, **options))


def _mixed(phases: int) -> Any:
    load, widths, speedup = _arrays(phases, 0.0)
    whole = frontier_of_arrays(load, widths, speedup)
    rows = zip(load.tolist(), speedup.tolist(), strict=True)
    classes = tuple(
        JobClass(id=f"c{n}", arrival_rate_per_h=3600.0, phases=(_phase(work, curve),))
        for n, (work, curve) in enumerate(rows)
    )
    return BoaInstance(
        name=f"{phases:,} classes of one phase",
        budget_gpus=float((whole.gpus[0] + whole.gpus[-1]) / 2),
        widths="mixed",
        classes=classes,
    )


def _phase(work: float, curve: list[float]) -> Phase:
    gpus = tuple(int(width) for width in WIDTHS)
    return Phase(work_gpu_s=work, speedup=Table(gpus=gpus, speedup=tuple(curve)))


def linear_program(phases: int, form: str, limit_s: float, noise: float = 0.0) -> Outcome:
    """Solve HiGHS' LP for the middle budget alone, given as ready arrays."""
    load, widths, speedup = _arrays(phases, noise)
    whole = frontier_of_arrays(load, widths, speedup)
    budget = float((whole.gpus[0] + whole.gpus[-1]) / 2)
    del whole
    outcome = Outcome(_case(phases, noise), note="one budget; ready arrays, only its run is timed")
    make = {"delta": _delta_form, "choice": _choice_form}[form]
    solver, constant = make(load, widths, speedup, budget, limit_s)
    measured(outcome, _run, solver)
    if str(solver.getModelStatus()).endswith("kOptimal"):
        outcome.objective = solver.getInfo().objective_function_value + constant
        outcome.status = "optimal"
    else:
        outcome.status, outcome.note = "feasible", f"stopped by the limit; {outcome.note}"
    return outcome


def _run(solver: Any) -> None:
    """Run HiGHS; a second run would begin at the optimum, so it is cleared before each."""
    solver.clearSolver()
    solver.run()


def instance(method: str | None, gap: float, limit_s: float, budget: float = BUDGET) -> Outcome:
    """Solve boa/cbd-85, integer widths with rescaling, by a method of ours."""
    instance = optsched.read("boa/cbd-85").changed({"budget_gpus": budget})
    optsched.solve(optsched.read("boa/hand"), method)  # imports everything
    phases = sum(len(job_class.phases) for job_class in instance.classes)
    outcome = Outcome(f"boa/cbd-85, {phases} phases, {budget:g} GPUs")
    options = {"gap": gap, "time_limit_s": limit_s}
    return examined(
        outcome, instance, measured(outcome, optsched.solve, instance, method, **options)
    )


def offered(classes: int, gap: float, limit_s: float, seed: int = 0) -> Outcome:
    """Solve an instance of classes on three types in two markets each, integer widths."""
    options = {"gap": gap, "time_limit_s": limit_s}
    optsched.solve(_offered(10, seed), **options)  # imports everything
    instance = _offered(classes, seed)
    outcome = Outcome(
        f"{classes:,} classes on 3 types x 2 markets, {instance.budget_usd_per_h} USD/h"
    )
    return examined(outcome, instance, measured(outcome, optsched.solve, instance, **options))


def _offered(classes: int, seed: int) -> Any:
    """Return classes like those of boa/three-types, with loads and speeds by type drawn."""
    base, draw = optsched.read("boa/three-types"), np.random.default_rng(seed)
    made = []
    for n in range(classes):
        like = base.classes[n % len(base.classes)]
        document = like.model_dump(mode="json", exclude_none=True)
        [phase] = document["phases"]
        phase["work_gpu_s"] *= float(draw.uniform(0.5, 2))
        for curve in phase["speedup"]["curves"]:
            pace = float(draw.uniform(0.7, 1.4))
            curve["speedup"]["speedup"] = [pace * s for s in curve["speedup"]["speedup"]]
        rate = document["arrival_rate_per_h"] * float(draw.uniform(0.5, 2)) / classes
        made.append(document | {"id": f"c{n}", "arrival_rate_per_h": rate})
    return base.changed({"classes": made, "budget_usd_per_h": 3.5})


def _arrays(phases: int, noise: float) -> Any:
    load, speedup = curves(phases, WIDTHS, noise)
    return load, WIDTHS, speedup


def _choice_form(load: Any, widths: Any, speedup: Any, budget: float, limit_s: float) -> Any:
    """One variable for each phase and width, one row for each phase; interior point."""
    phases, columns = speedup.shape
    jobs = (load[:, None] / speedup).ravel()
    gpus = (load[:, None] * widths / speedup).ravel()
    count = phases * columns
    rows = np.r_[np.ones(phases), -np.inf], np.r_[np.ones(phases), budget]
    start = np.r_[np.arange(0, count + 1, columns), 2 * count]
    matrix = start, np.r_[np.arange(count), np.arange(count)], np.r_[np.ones(count), gpus]
    options = {"solver": "ipm", "run_crossover": "off", "time_limit": limit_s}
    return _highs(jobs, np.full(count, np.inf), rows, matrix, options), 0.0


def _delta_form(load: Any, widths: Any, speedup: Any, budget: float, limit_s: float) -> Any:
    """One variable in [0, 1] for each step of the hulls, and the row of the budget alone."""
    parts = hull_steps(load, widths, speedup)
    jobs, gpus = (np.concatenate([getattr(p, name) for p in parts]) for name in ("jobs", "gpus"))
    first_jobs, first_gpus = (
        sum(getattr(p, f"first_{n}") for p in parts) for n in ("jobs", "gpus")
    )
    count = len(jobs)
    rows = np.array([-np.inf]), np.array([budget - first_gpus])
    matrix = np.array([0, count]), np.arange(count), gpus
    return _highs(-jobs, np.ones(count), rows, matrix, {"time_limit": limit_s}), first_jobs


def _highs(cost: Any, upper: Any, rows: Any, matrix: Any, options: dict[str, Any]) -> Any:
    import highspy

    solver = highspy.Highs()
    solver.silent()
    for name, setting in {"threads": 1, **options}.items():
        if solver.setOptionValue(name, setting) != highspy.HighsStatus.kOk:
            raise ValueError(f"HiGHS refuses {name} = {setting}")
    start, index, value = matrix
    count = len(cost)
    solver.passModel(
        count, len(rows[0]), len(value), 2, 1, 0.0, cost, np.zeros(count), upper, *rows,
        start.astype(np.int32), index.astype(np.int32), value, np.zeros(count, np.int32),
    )  # fmt: skip
    return solver
