"""reproduce(): the published figures of systems beside ours, each with a verdict."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from optsched.reproduction.claim import row_of
from optsched.reproduction.measuring import digest_of, measure_all
from optsched.reproduction.registry import STUDIES, chosen_systems, claims_of
from optsched.reproduction.reproduction import Reproduction
from optsched.reproduction.studies import Level
from optsched.reproduction.verdicts import Basis

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from concurrent.futures import Executor
    from pathlib import Path

    from optsched.executors.under_way import Listener
    from optsched.reproduction.claim import Claim, Row
    from optsched.reproduction.studies import Measured, Study

WITH_FILES = ("boa", "pal")
"""Systems that take a file of their authors."""


def reproduce(
    systems: Iterable[str] | str = "all",
    *,
    level: str = "default",
    only: Iterable[str] = (),
    seed: int = 0,
    data: Mapping[str, str | Path] | None = None,
    executor: Executor | int | None = None,
    progress: Callable[[float], None] | None = None,
    under_way: Listener | None = None,
) -> Reproduction:
    """Measure what published systems claim, and set it beside their figures.

    Parameters
    ----------
    systems
        Of ``"boa"``, ``"pal"``, ``"eaco"``, ``"philly"``, one or several; or ``"all"``.
    level
        ``"quick"``: few seeds and jobs, a minute on two cores; ``"default"``: ten; ``"full"``: 20
        seeds.
    only
        Patterns of keys, such as ``"pal-penalty-*"``: only these rows, and what they need.
    seed
        The first; the others follow it.
    data
        By system the file of its authors, in the place of what is generated.
    executor
        What runs the rollouts, such as a `concurrent.futures.ProcessPoolExecutor`; or in how many
        processes, 1 for this one alone. By default all CPUs, once that saves time. It changes no
        figure.
    progress
        Called with the share of the rollouts that have ended.
    under_way
        Called with the rollouts that are running; not of those in an executor of your own.

    Returns
    -------
    Reproduction
        A row for each claim, with `frame`, `to_json` and `page`.

    Raises
    ------
    UnknownNameError
        If there is no such system.
    ValueError
        If there is no such level, no row of these patterns, or a system takes no file; and whatever
        reading a file raises.

    Examples
    --------
    >>> import optsched
    >>> found = optsched.reproduce("eaco", only=["eaco-set-*"]).frame()
    >>> found.loc["eaco-set-least", ["what", "verdict"]].tolist()
    ['energy saved by a set of jobs, the least', 'reproduced']
    """
    names = chosen_systems([systems] if isinstance(systems, str) else systems)
    if level not in list(Level):
        raise ValueError(f"level: expected one of {', '.join(Level)}, found {level}")
    files = _files(names, data or {})
    claims = _claims(names, list(only))
    tasks = [
        task
        for study in (STUDIES[name] for name in dict.fromkeys(c.study for c in claims) if name)
        for task in study.tasks(Level(level), seed, _file(study, claims, files))
        if any(task.cell in c.cells for c in claims if c.study == study.name)
    ]
    found = measure_all(tasks, executor, progress, under_way)
    rows = [_row(claim, found, files) for claim in claims]
    digests = {name: digest_of(path) for name, path in files.items()}
    return Reproduction(tuple(names), Level(level), seed, tuple(rows), found, digests)


def _claims(systems: Iterable[str], patterns: list[str]) -> list[Claim]:
    """Return the claims of systems whose keys fit one of some patterns, or all.

    Raises
    ------
    ValueError
        If a pattern fits none.
    """
    claims = claims_of(systems)
    for pattern in patterns:
        if not any(fnmatchcase(claim.key, pattern) for claim in claims):
            raise ValueError(f"only: '{pattern}' fits no key, such as {claims[0].key}")
    return [
        claim
        for claim in claims
        if not patterns or any(fnmatchcase(claim.key, pattern) for pattern in patterns)
    ]


def _file(study: Study, claims: Iterable[Claim], files: Mapping[str, str]) -> str | None:
    """Return the file that is given for the system of a study."""
    return files.get(next(claim.system for claim in claims if claim.study == study.name))


def _files(systems: Iterable[str], data: Mapping[str, str | Path]) -> dict[str, str]:
    """Return the path of each file that is given.

    Raises
    ------
    ValueError
        If its system is not asked for, or takes none.
    """
    for name in data:
        if name not in WITH_FILES:
            raise ValueError(f"data: '{name}' takes no file; {' and '.join(WITH_FILES)} do")
        if name not in systems:
            raise ValueError(f"data: there is a file for '{name}', which is not asked for")
    return {name: str(path) for name, path in data.items()}


def _row(claim: Claim, found: Measured, files: Mapping[str, str]) -> Row:
    if claim.study is None:
        return row_of(claim, None, ())
    study = STUDIES[claim.study]
    is_real = study.workloads_of is not None and claim.system in files
    return row_of(claim, Basis.AUTHORS if is_real else study.basis, found.of(study.name))
