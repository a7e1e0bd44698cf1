"""report(): results, frontiers, comparisons and rollouts as one page that needs no network."""

from __future__ import annotations

import shlex
from html import escape
from typing import TYPE_CHECKING, Any

from optsched.reports import html as parts
from optsched.reports.rollout_folders import SimulatedTrace
from optsched.reports.sources import (
    ComparedPolicies,
    SolvedInstance,
    SweptInstance,
    gather,
    version_faults,
)
from optsched.results.result import Status, figure

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from optsched.instance import Document, Instance
    from optsched.reports.sources import Source
    from optsched.results.result import Result
    from optsched.sweeps.points import Frontier

GRADES = {
    Status.OPTIMAL: "proven optimal to the gap asked for",
    Status.FEASIBLE: "a plan and a proven bound",
    Status.UNVERIFIED: "a plan and a proven bound",
    Status.INFEASIBLE: "proven that there is no plan",
    Status.ERROR: "no plan, and no proof that there is none",
}
UNKNOWN = (
    "The instance is not at hand as it was solved, so that decisions and pictures are missing; "
    "name it with --instance."
)
STOPPED = "A clock or Ctrl-C ended the solve, so that another one may end elsewhere."


def report(
    sources: Sequence[str | Path],
    *,
    title: str = "optsched report",
    instances: Iterable[Instance | str | Path] = (),
    any_versions: bool = False,
) -> str:
    """Return a page with tables, pictures, a frontier and timelines to explore.

    Parameters
    ----------
    sources
        Files of results, frontiers and comparisons, and folders of rollouts.
    instances
        What results are of, where that is no bundled instance; or their paths.
    any_versions
        Whether sources may be made with different versions of packages; the page then says so.

    Returns
    -------
    str
        HTML without anything to fetch; the same bytes for the same data.

    Raises
    ------
    InstanceError
        If something cannot be read or shown, or was made with other versions than the rest.

    Examples
    --------
    >>> import optsched
    >>> optsched.write(optsched.solve("boa/hand"), "result.json")
    >>> optsched.report(["result.json"])[:15]
    '<!DOCTYPE html>'
    """
    gathered = gather(sources, instances, any_versions=any_versions)
    solved = [each for each in gathered if isinstance(each, SolvedInstance)]
    swept = [each for each in gathered if isinstance(each, SweptInstance)]
    simulated = [each for each in gathered if isinstance(each, SimulatedTrace)]
    compared = [each for each in gathered if isinstance(each, ComparedPolicies)]
    sections = [*_overview(solved), *map(_result, solved), *map(_frontier, swept)]
    data = {"frontiers": [_points(each.frontier) for each in swept], "timelines": []}
    if compared:
        from optsched.reports.comparisons import comparison

        sections += map(comparison, compared)
    if simulated:
        from optsched.reports.simulations import rollouts, timeline

        sections += rollouts(simulated)
        data["timelines"] = [timeline(each) for each in simulated]
    sections.append(_versions(gathered))
    return parts.page(title, sections, data)


def _versions(sources: Sequence[Source]) -> parts.Section:
    rows = parts.rows_table(next((each.versions for each in sources if each.versions), {}))
    notes = (f"<p class='note'>{escape(text)}</p>" for text in version_faults(list(sources)))
    return parts.section("Made with", rows, *notes)


# --- results ----------------------------------------------------------------------------------


def _overview(solved: list[SolvedInstance]) -> Iterator[parts.Section]:
    if len(solved) < 2:
        return
    head = ("file", "instance", "method", "status", "objective", "unit", "bound", "gap", "seconds")
    rows = [
        (each.label, r.instance, r.method, r.summary()["status"], r.objective, r.objective_unit,
         r.bound if r.is_verified else None, r.summary().get("gap") if r.is_verified else None,
         f"{r.seconds:.3g}")
        for each in solved for r in [each.result]
    ]  # fmt: skip
    yield parts.section("Results", parts.table(head, rows))


def _result(source: SolvedInstance) -> parts.Section:
    result, instance = source.result, source.instance
    rows = {"file": source.label, "status": _grade(source)}
    rows |= {key: text for key, text in result.summary().items() if key not in rows}
    contents = [parts.rows_table(rows | {"seed": str(result.seed)})]
    if instance is not None and result.plan is not None and result.is_verified:
        contents = [*_beside(source, instance), *contents]
    if instance is None:
        contents.append(f"<p class='note'>{escape(UNKNOWN)}</p>")
    elif result.plan is not None:
        contents += _plan(source)
    title = f"{result.instance}, method {result.method}"
    return parts.section(title, *contents, _repeat_result(source))


def _beside(source: SolvedInstance, instance: Instance) -> Iterator[str]:
    """Yield what a result is worth beside the greedy rules: a sentence, and a table."""
    from optsched.comparison import LEAST_S, Options, compared
    from optsched.registry import problem

    result, name = source.result, problem(instance.problem).objective_name(instance)
    assert result.objective is not None
    made = compared(instance, result, Options(seed=result.seed), LEAST_S, is_timed=False)
    plans = [(row.objective, row.method) for row in made.tried if row.objective is not None]
    grade = "proven optimal" if result.status is Status.OPTIMAL else "with a proven bound"
    subject = name[0].upper() + name[1:]
    text = f"{subject} {figure(result.objective)} {result.objective_unit}, {grade}"
    if plans and result.objective > 0:
        least, best = min(plans)
        less = 1 - result.objective / least
        told = f"{less:.1%} less than" if less > 0 else "as good as"
        text += f": {told} {best}, the best of {len(plans)} greedy rules"
    yield f"<p class='lead'>{escape(text)}.</p>"
    if plans:
        rows = [(row.method, row.objective, _above(row.objective, result)) for row in made.tried]
        caption = "Greedy rules beside it"
        table = parts.table(("method", name, "above"), rows)
        yield f"<details><summary>{caption}</summary>{table}</details>"


def _above(objective: float | None, result: Result) -> str:
    if objective is None:
        return "no plan"
    if not result.objective or result.objective < 0:
        return ""
    return f"{objective / result.objective - 1:+.2%}"


def _grade(source: SolvedInstance) -> str:
    """Return what is known of the result, after the verifier had it."""
    result = source.result
    if result.is_verified:
        return f"{result.status}: {GRADES[result.status]}"
    if source.instance is None:
        return f"{result.summary()['status']}: nothing of it was verified"
    return f"{result.summary()['status']}: `optsched verify` tells whether its bound holds"


def _plan(source: SolvedInstance) -> Iterator[str]:
    from optsched.registry import problem

    result = source.result
    if problem(result.problem).plot is not None:
        drawing = result.plot().get_figure(root=True)
        assert drawing is not None
        yield parts.picture(drawing, f"Plan of {result.instance} by method {result.method}")
    yield f"<details><summary>Decisions</summary>{parts.frame_table(result.frame())}</details>"


def _repeat_result(source: SolvedInstance) -> str:
    result, instance = source.result, source.instance
    name, link = "INSTANCE", ""
    if instance is not None:
        name = f"{result.instance.replace('/', '-')}.json"
        link = f"<p>Instance: {_download(instance, name)}</p>"
    line = f"optsched solve {shlex.quote(name)} --method {shlex.quote(result.method)}"
    line += f" --seed {result.seed}"
    line += f" --gap {result.gap_limit:g}"
    chance = "" if result.deterministic else f"<p class='note'>{STOPPED}</p>"
    command = f"{parts.command(line)}{parts.code_note(result.method)}"
    return f"<h3>To repeat it</h3>{link}{command}{chance}"


def _download(document: Document, name: str) -> str:
    return parts.download(document.to_json(), name)


# --- frontiers --------------------------------------------------------------------------------


def _frontier(source: SweptInstance) -> parts.Section:
    frontier = source.frontier
    number = escape(f"{frontier.instance} over {frontier.parameter}", quote=True)
    return parts.section(
        f"Frontier of {frontier.instance} over {frontier.parameter}",
        parts.rows_table({"file": source.label, **frontier.summary()}),
        f"<div class='frontier' data-label='{number}'></div>",
        f"<details><summary>All points</summary>{parts.frame_table(frontier.frame())}</details>",
        _repeat_frontier(source),
    )


def _repeat_frontier(source: SweptInstance) -> str:
    frontier, instance = source.frontier, source.instance
    name, link = "INSTANCE", ""
    if instance is not None:
        name = f"{frontier.instance.replace('/', '-')}.json"
        link = f"<p>Instance: {_download(instance, name)}</p>"
    options = {key: value for key, value in frontier.options.items() if value is not None}
    rows = {key: str(value) for key, value in options.items()}
    if frontier.instance_sha256:
        rows["SHA-256 of the instance"] = frontier.instance_sha256
    values = ",".join(f"{value:.17g}" for value in frontier.values)
    line = f"optsched frontier {shlex.quote(name)} --parameter {shlex.quote(frontier.parameter)}"
    line += f" --values {values}"
    line += f" --seed {shlex.quote(str(options['seed']))}" if "seed" in options else ""
    line += "".join(f" --method {shlex.quote(method)}" for method in frontier.methods)
    shown = f"{parts.rows_table(rows)}{parts.command(line)}{parts.code_note(*frontier.methods)}"
    return f"<h3>To repeat it</h3>{link}{shown}"


def _points(frontier: Frontier) -> dict[str, Any]:
    """Return what the picture of a frontier shows."""
    from optsched.sweeps.parameters import split_unit

    name, unit = split_unit(frontier.parameter)
    knee = frontier.knee()
    keys = ("value", "objective", "bound", "gap", "status", "reason")
    return {
        "name": f"{name} ({unit})" if unit else name,
        "parameter": frontier.parameter,
        "objective": f"{frontier.objective_name} ({frontier.objective_unit})".replace(" ()", ""),
        "values": list(frontier.values),
        "knee": None if knee is None else knee.value,
        "methods": [
            {"name": method, "points": [[getattr(p, key) for key in keys]
                                        for p in frontier.of_method(method)]}
            for method in frontier.methods
        ],
    }  # fmt: skip
