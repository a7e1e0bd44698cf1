"""solve(): look the method up, time it, recompute the objective, check plan and bound."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from optsched.greedy_rules import try_greedy
from optsched.instance import as_instance
from optsched.memory import must_fit, spared_collections
from optsched.mip.failures import noted_failures
from optsched.progress import Reporter
from optsched.registry import problem
from optsched.results.ending import Ending
from optsched.results.result import Result, Status, versions
from optsched.search import (
    PROGRAM_LIMIT,
    Infeasible,
    Search,
    SolverDisagreement,
    check_begin,
    check_options,
)
from optsched.verification import LIMIT, closed, proof_faults, proof_terms, relative_gap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from concurrent.futures import Executor
    from pathlib import Path

    from optsched.instance import Document, Instance
    from optsched.progress import Progress
    from optsched.registry import Method, Problem


def solve(
    instance: Instance | str | Path,
    method: str | None = None,
    *,
    time_limit_s: float | None = None,
    program_limit: int | None = None,
    gap: float = 1e-6,
    seed: int = 0,
    threads: int = 1,
    start: Result | None = None,
    plans: Iterable[Document] | None = None,
    executor: Executor | None = None,
    memory_gib: float | None = None,
    verify: bool | None = None,
    progress: Callable[[Progress], object] | None = None,
) -> Result:
    """Solve an instance.

    Parameters
    ----------
    instance
        Or a path, or the name of a bundled one, such as ``"boa/hand"``.
    method
        Name of a method; `optsched methods PROBLEM` lists them. The default is the exact one. Or
        one of your own: ``"module:Name"`` or ``"my.py:name"``, a function of (instance, search).
    time_limit_s
        Seconds after which the best plan so far is returned, with an honest bound.
    program_limit
        Linear programs after which it is, so that it is the same one wherever that runs: EaCO
        counts them all, PAL those of the nodes of its tree, beside which no other is then solved.
        For the exact methods of these two.
    gap
        Relative gap at which to stop.
    seed
        Seed of everything that is drawn: the same seed gives the same bytes.
    threads
        Threads for HiGHS.
    start
        The result of the previous epoch, of an instance with many of the same jobs: the exact
        methods of PAL, EaCO and Sia begin with its plan and prices, and with what it still has
        in memory. BOA, `milp`, and EaCO's groups after a result from a file, begin afresh.
    plans
        Plans for an exact method of PAL or EaCO to begin with, made as it takes them: in place of
        the greedy plans of its own, and of those that are tried where a gap stays open.
    executor
        Takes the pieces of a method that parts its work, such as `decomposition` of PAL;
        by default they are worked one after the other.
    memory_gib
        GiB that may be taken; by default what the machine, or the process' control group, has free.
    verify
        Whether the certificate goes to the verifier before anything is stated; by default, if that
        takes no more than `optsched.verification.LIMIT` terms, which are counted beforehand.
    progress
        Called with an `optsched.Progress` at each new phase and better plan or bound, at most ten
        times a second. The log "optsched" tells the same, at INFO; at DEBUG every improvement.

    Returns
    -------
    Result
        With `status` optimal, feasible, infeasible, error, or unverified: optimal and infeasible
        are stated of what the verifier confirmed. Ctrl-C gives the best plan so far.

    Raises
    ------
    UnknownNameError
        If there is no such method.
    ValueError
        If an option is out of range, or the method cannot treat such an instance.
    TooLarge
        If the method needs more memory than that, before it begins; with one that fits.
    SolverDisagreement
        If a bound contradicts a plan.

    Examples
    --------
    >>> import optsched
    >>> result = optsched.solve("boa/hand")
    >>> result.status.value, round(result.objective, 4), result.objective_unit
    ('optimal', 1.1513, 's')
    """
    instance = as_instance(instance)
    check_options(time_limit_s, gap, seed, threads, memory_gib, program_limit)
    entry = problem(instance.problem)
    chosen = entry.methods[0] if method is None else entry.method(method)
    search = Search(
        instance, time_limit_s, gap, seed, threads, start, executor, program_limit, plans
    )
    check_begin(search, chosen)
    search.reporter = Reporter(instance, progress)
    must_fit(instance, chosen, memory_gib)
    with spared_collections(), noted_failures() as search.failures:
        outcome = _run(entry, chosen, search)
        return concluded(chosen, search, outcome, verify=verify)


class Outcome(NamedTuple):
    """What a method ended with.

    Attributes
    ----------
    certificate
        Of a bound, or that no plan exists; None if Ctrl-C came while it was made.
    is_infeasible, message
        Whether the method states that no plan exists, and why.
    """

    certificate: Document | None
    is_infeasible: bool = False
    message: str = ""


def concluded(
    method: Method, search: Search, outcome: Outcome, *, verify: bool | None = None
) -> Result:
    """Return the result of a search: what its certificate states is stated once it is verified.

    Parameters
    ----------
    verify
        As of `solve`.

    Raises
    ------
    SolverDisagreement
        If a bound contradicts a plan.
    """
    instance, certificate = search.instance, outcome.certificate
    entry = problem(instance.problem)
    _refuse_contradiction(method, search, outcome)
    begun = time.perf_counter()
    is_proven, certificate, doubt = _verified(method, instance, certificate, verify)
    is_refused = certificate is None and outcome.certificate is not None
    verification_s = time.perf_counter() - begun
    bound = getattr(certificate, "bound", None)
    difference = relative_gap(search.objective, bound, entry.gap_scale(instance))
    status = _status(search, difference, outcome, is_proven=is_proven)
    told = outcome.message or _message(status, search, method)
    notes = told, search.solver_faults(status), doubt, search.listener_fault
    result = Result(
        problem=instance.problem,
        instance=instance.name,
        instance_sha256=instance.sha256,
        changes=instance.changes,
        method=method.name,
        status=status,
        message="; ".join(filter(None, notes)),
        objective=search.objective,
        objective_unit=entry.objective_unit(instance),
        bound=bound,
        gap=difference,
        gap_limit=search.gap,
        seconds=round(time.perf_counter() - search.started, 6),
        verification_s=round(verification_s, 6),
        deterministic=search.stopped in ("", PROGRAM_LIMIT) and not search.skipped,
        seed=search.seed,
        plan=search.plan,
        certificate=certificate,
        versions=versions(),
    )
    if is_proven:
        result.confirmed()
    is_greedy = search.objective is not None and search.objective == search.begun_with
    ending = Ending(search.is_interrupted, is_refused, search.is_warm, is_greedy)
    return result.solved(ending).attached(instance, search.state)


def _refuse_contradiction(method: Method, search: Search, outcome: Outcome) -> None:
    """Raise `SolverDisagreement` if there is a plan that cannot be by what a method states."""
    bound, objective = getattr(outcome.certificate, "bound", None), search.objective
    is_above = bound is not None and objective is not None and bound > objective
    if not is_above and (objective is None or not outcome.is_infeasible):
        return
    stated = "that there is none" if bound is None else f"the bound {bound!r}, which lies above it"
    plan = concluded(method, search, Outcome(None))
    raise SolverDisagreement(
        f"{search.instance.name}: method '{method.name}' has a plan of {objective!r}, but states "
        f"{stated}",
        plan.solved(plan.ending._replace(is_refused=True)),
    )


def _verified(
    method: Method, instance: Instance, certificate: Document | None, verify: bool | None
) -> tuple[bool, Document | None, str]:
    """Hand a certificate to the verifier; return its verdict, what may be stated, and the doubt."""
    if certificate is None:
        return False, None, ""
    terms = proof_terms(instance, certificate)
    if verify is False or (verify is None and terms > LIMIT):
        reason = "it was asked not to be" if verify is False else f"that takes {terms:.1e} terms"
        doubt = f"not verified, since {reason}: `optsched verify INSTANCE RESULT` does so"
        return False, certificate, doubt
    refused = proof_faults(instance, certificate)
    if not refused:
        return True, certificate, ""
    whose = "optsched, please report it" if method.plugin is None else method.plugin.owner
    doubt = (
        f"the verifier refused the method's proof ({refused[0]}), so that no bound is stated; "
        f"this is a defect of {whose}"
    )
    return False, None, doubt


def _run(entry: Problem, chosen: Method, search: Search) -> Outcome:
    """Run a method; what an exact one leaves open is tried by the greedy ones."""
    begun = time.process_time()
    certificate = None
    try:
        search.enter(chosen.name)
        certificate = chosen(search.instance, search)
    except Infeasible as proof:
        return Outcome(proof.certificate, is_infeasible=True, message=str(proof))
    except KeyboardInterrupt:
        search.interrupt()
        certificate = search.certificate
    try:
        if certificate is None:
            # A certificate may come with a plan; a greedy method is known by its own ones.
            own = Search(search.instance, search.seconds_left())
            taker = search if chosen.kind == "exact" else own
            certificate = entry.certify(search.instance, taker)
        if chosen.kind == "exact" and search.plans is None and not search.is_interrupted:
            try_greedy(entry, search, certificate, time.process_time() - begun)
        search.bounded(getattr(certificate, "bound", None))
        search.enter("verification")
    except Infeasible as proof:
        return Outcome(proof.certificate, is_infeasible=True, message=str(proof))
    except KeyboardInterrupt:
        search.interrupt()
    return Outcome(certificate)


def _status(
    search: Search, difference: float | None, outcome: Outcome, *, is_proven: bool
) -> Status:
    if outcome.is_infeasible and is_proven:
        return Status.INFEASIBLE
    if outcome.is_infeasible or search.plan is None:
        return Status.ERROR
    if difference is not None and not is_proven:
        return Status.UNVERIFIED
    return Status.OPTIMAL if closed(difference, search.gap) else Status.FEASIBLE


def _message(status: Status, search: Search, method: Method) -> str:
    """Return what stopped a solve short of what was asked for."""
    if search.stopped:
        return f"stopped early: {search.stopped}"
    if status is Status.ERROR:
        told = (
            " within the limit" if method.kind == "greedy" else ", and no proof that there is none"
        )
        return f"method '{method.name}' found no plan{told}"
    if status is Status.OPTIMAL or method.kind == "greedy":
        return ""
    skipped = f"; greedy rules not tried: {', '.join(search.skipped)}" if search.skipped else ""
    reason = search.gave_up or f"method '{method.name}' ended without closing it"
    return f"the gap is open: {reason}{skipped}" if status is Status.FEASIBLE else ""
