"""Linear and mixed-integer programming by HiGHS (Huangfu & Hall, Math. Prog. Computation 10, 2018).

It is the only file that talks to HiGHS. Arrays go in and arrays come out.
"""

# mypy: allow-untyped-calls

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import highspy
import numpy as np
from highspy import HighsModelStatus, HighsStatus

from optsched.mip.outcome import HighsOutcome as HighsOutcome
from optsched.mip.outcome import Status as Status
from optsched.mip.outcome import failed, is_within, trusted
from optsched.mip.program import Compiled as Compiled
from optsched.mip.program import Program as Program
from optsched.mip.program import compile_model as compile_model
from optsched.mip.program import cost_scale as cost_scale
from optsched.mip.program import scaled

if TYPE_CHECKING:
    from optsched.documents.arrays import Floats


STOP_S = 0.3  # CPU seconds that HiGHS has to end in when it is asked to

_STATUS: dict[Any, Status] = {
    HighsModelStatus.kOptimal: "optimal",
    HighsModelStatus.kTimeLimit: "limit",
    HighsModelStatus.kIterationLimit: "limit",
    HighsModelStatus.kSolutionLimit: "limit",
    HighsModelStatus.kObjectiveTarget: "limit",
    HighsModelStatus.kObjectiveBound: "limit",
    HighsModelStatus.kMemoryLimit: "out of memory",
    HighsModelStatus.kInterrupt: "interrupted",
    HighsModelStatus.kInfeasible: "infeasible",
    HighsModelStatus.kUnbounded: "unbounded",
}


def solve(
    program: Program,
    *,
    time_limit_s: float | None = None,
    gap: float = 0.0,
    most_nodes: int | None = None,
    seed: int = 0,
    threads: int = 1,
    start: Floats | None = None,
    keep_best: bool = False,
    target: float = -np.inf,
    cutoff: float = np.inf,
    restarts: bool = True,
) -> HighsOutcome:
    """Solve a program. Ctrl-C stops HiGHS.

    Whatever else befalls HiGHS is told by the outcome: the caller has plans without it.

    Parameters
    ----------
    gap
        Relative gap between objective and bound at which to stop.
    most_nodes
        Branch-and-bound nodes after which to stop; None for no limit.
    threads
        May differ from one solve to the next.
    start
        Shape (columns,): a point to start an integer program from.
    keep_best
        After Ctrl-C, return the best point so far and the status "interrupted".
    target, cutoff
        Objective of an integer program at which to stop, and above which no point is looked for.
    restarts
        Whether an integer program may be presolved anew after its root, which pays in large trees.

    Raises
    ------
    ValueError
        If HiGHS refuses an option.
    KeyboardInterrupt
        After Ctrl-C, unless the best point is to be kept.
    """
    to_load, scale, row_scale = scaled(program)
    highs = new(seed=seed, threads=threads)
    set_option(highs, "mip_rel_gap", gap)
    set_option(highs, "mip_abs_gap", 0.0)
    limits = {
        "mip_max_nodes": most_nodes,
        "time_limit": time_limit_s,
        "objective_target": target * scale if target > -np.inf else None,
        "objective_bound": cutoff * scale if cutoff < np.inf else None,
        "mip_allow_restart": None if restarts else False,
    }
    for name, value in limits.items():
        if value is not None:
            set_option(highs, name, value)
    try:
        load(highs, to_load)
    except ValueError as refusal:
        return failed(str(refusal))
    if start is not None and program.integer.any():
        highs.setSolution(len(start), np.arange(len(start), dtype=np.int32), start)
    outcome = run(highs, is_integer=bool(program.integer.any()))
    if outcome.status == "interrupted" and not keep_best:
        raise KeyboardInterrupt
    if outcome.x is not None and not is_within(program, outcome.x):
        return failed("a point that is not within the bounds of its columns")
    duals = outcome.row_duals
    return outcome._replace(
        objective=None if outcome.objective is None else outcome.objective / scale,
        bound=outcome.bound / scale,
        row_duals=None if duals is None else duals * row_scale / scale,
    )


def new(*, seed: int, threads: int) -> highspy.Highs:
    """Return a HiGHS without a program. It writes no log, and can be asked to stop.

    Descriptors are left alone: they belong to all threads of the process.
    """
    highs = highspy.Highs()
    set_option(highs, "output_flag", False)
    set_option(highs, "log_to_console", False)
    highs.HandleUserInterrupt = True  # once: each time adds callbacks that every iteration calls
    set_option(highs, "threads", threads)
    set_option(highs, "random_seed", seed)
    return highs


def set_option(highs: highspy.Highs, name: str, value: float) -> None:
    """Set an option of HiGHS, which by itself only logs what it refuses.

    Raises
    ------
    ValueError
        If there is no such option or the value is out of its range.
    """
    if highs.setOptionValue(name, value) != HighsStatus.kOk:
        raise ValueError(f"HiGHS refuses the option '{name}' = {value!r}")


def load(highs: highspy.Highs, program: Program) -> None:
    """Pass a program to HiGHS as it is.

    Raises
    ------
    ValueError
        If HiGHS refuses it.
    """
    matrix = program.matrix
    rows, columns = matrix.shape
    status = highs.passModel(
        columns,
        rows,
        matrix.nnz,
        int(highspy.MatrixFormat.kRowwise),
        int(highspy.ObjSense.kMinimize),
        program.offset,
        program.cost,
        program.lower,
        program.upper,
        program.row_lower,
        program.row_upper,
        matrix.indptr.astype(np.int32),
        matrix.indices.astype(np.int32),
        matrix.data,
        program.integer.astype(np.int32),
    )
    if status == HighsStatus.kError:
        raise ValueError(f"HiGHS refuses the program of {rows} rows and {columns} columns")


def run(
    highs: highspy.Highs, *, is_integer: bool = False, pool: ThreadPoolExecutor | None = None
) -> HighsOutcome:
    """Run HiGHS on the program that was loaded; Ctrl-C gives what it has by then.

    The status is "interrupted" then, even if HiGHS was as good as done: it must not be lost.
    For many short runs, `pool` is where they all take place: one thread of its own.
    """
    try:
        executor = pool or ThreadPoolExecutor(1)
        returned, is_interrupted = _run(highs, executor, keep=pool is not None)
        if returned is None:
            text = "left behind after Ctrl-C"
            return HighsOutcome("interrupted", None, None, -np.inf, None, 0, text)
        outcome = _outcome(highs, returned, is_integer=is_integer)
        if is_interrupted:
            outcome = outcome._replace(status="interrupted")
    except Exception as error:  # it comes out of C++: of any type
        return failed(f"{type(error).__name__}: {error}")
    return trusted(outcome)


def _run(
    highs: highspy.Highs, pool: ThreadPoolExecutor, *, keep: bool
) -> tuple[HighsStatus | None, bool]:
    """Run HiGHS in a thread of its own, so that Ctrl-C reaches this one; tell whether it came.

    What HiGHS returns is None if it hangs on then.

    HiGHS fixes the number of its threads once for each thread that calls it; a fresh one may have
    any number. (highspy's own way to do so prints, and allows one solve at a time.) HiGHS does not
    listen in presolve; a run that does not end soon after Ctrl-C is left to itself, and the process
    ends after it.
    """
    running: Future[HighsStatus] | None = None
    try:
        running = pool.submit(highs.run)
        if not keep:
            pool.shutdown(wait=False)
        return running.result(), False
    except KeyboardInterrupt:
        if running is None:
            raise
        return _stopped(highs, running), True


def _stopped(highs: highspy.Highs, running: Future[HighsStatus]) -> HighsStatus | None:
    """Ask HiGHS to stop until it does: what it is asked before it begins it forgets.

    It is left behind after so much work of this process; after so long where others work, too.
    """
    work_s, wait_s = time.process_time() + STOP_S, time.monotonic() + 10 * STOP_S
    while time.process_time() < work_s and time.monotonic() < wait_s:
        highs.cancelSolve()
        with suppress(TimeoutError):
            return running.result(timeout=0.02)
    return None


def _outcome(highs: highspy.Highs, returned: HighsStatus, *, is_integer: bool) -> HighsOutcome:
    info, solution, model_status = highs.getInfo(), highs.getSolution(), highs.getModelStatus()
    feasible = info.primal_solution_status == int(highspy.SolutionStatus.kSolutionStatusFeasible)
    status: Status = _STATUS.get(model_status, "error")
    if returned == HighsStatus.kError or (status == "optimal" and not feasible):
        status = "error"
    is_optimal = status == "optimal"
    objective = info.objective_function_value
    bound = objective if is_optimal else -np.inf
    if is_integer and status in ("optimal", "limit", "interrupted"):
        bound = info.mip_dual_bound
    return HighsOutcome(
        status=status,
        x=np.array(solution.col_value) if feasible else None,
        objective=objective if feasible else None,
        bound=bound,
        row_duals=np.array(solution.row_dual) if is_optimal and not is_integer else None,
        nodes=max(info.mip_node_count, 0),
        message=highs.modelStatusToString(model_status),
    )
