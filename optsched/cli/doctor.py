"""doctor(): whether everything is here that optsched needs, and computes what it should.

Nothing that is found names a user, a host or a folder, so that the text may go into a bug report.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from optsched.memory import available

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from optsched.mip.highs import Program

# Wrong optima: presolve of 1.14.0 (HiGHS issues 2957, 3043, 3073); a small MIP in 1.13 (2980).
KNOWN_BAD = {"highspy": {"1.14.0": "returns wrong optima", "1.13.0": "may return wrong optima",
                         "1.13.1": "may return wrong optima"}}  # fmt: skip
OPTIONAL = {
    "distributed": ("distributed", "solves and sweeps by Dask, on many machines"),
    "ipywidgets": ("notebook", "the slider of a frontier"),
    "jupyterlab": ("notebook", "the notebooks"),
}
"""What can be installed besides, by the extra that brings it, and what it is for."""
GOLDEN = ("boa/hand", "pal/tiny", "eaco/paper-four", "sia/hand")
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class Finding(NamedTuple):
    """One line of the report: what was looked at, what was found, and whether that is fine.

    Examples
    --------
    >>> import optsched
    >>> optsched.Finding("files", "cache", "no space is left", is_fine=False).is_fine
    False
    """

    topic: str
    name: str
    text: str
    is_fine: bool = True


def doctor(cache: Path | None = None) -> list[Finding]:
    """Examine the installation.

    Parameters
    ----------
    cache
        Folder of a cache whose free space is to be told; by default the current folder.

    Returns
    -------
    list
        A finding for each line: versions, threads, memory, disk, and solves whose optima are known.

    Examples
    --------
    >>> import optsched
    >>> [finding for finding in optsched.doctor() if not finding.is_fine]  # doctest: +SKIP
    []
    """
    findings = [*packages(), *_platform(), *threads(), memory(), disk(cache)]
    for name, test in _self_tests():
        findings.append(_tested(name, test))
    return findings


def packages() -> Iterator[Finding]:
    """Yield the versions of what optsched needs, and of what it can use."""
    yield Finding("versions", "optsched", version("optsched"))
    yield Finding("versions", "Python", f"{platform.python_version()} {sys.implementation.name}")
    for name, least, below in _needed():
        yield package(name, least, below)
    if find_spec("ortools") is not None:
        text = f"{_version('ortools')}; cannot be imported in one process with highspy"
        yield Finding("versions", "ortools", text)
    for name, (extra, purpose) in OPTIONAL.items():
        missing = f"not installed; the extra '{extra}' brings it, for {purpose}"
        yield Finding("optional", name, _version(name) or missing)


def package(name: str, least: str, below: str = "") -> Finding:
    """Return the version of a package, and whether optsched can rely on it.

    Parameters
    ----------
    least, below
        Versions that optsched is tested with: from, and below; any, if there is no text.
    """
    version = _version(name)
    if version is None:
        return Finding("versions", name, "is not installed", is_fine=False)
    reason = KNOWN_BAD.get(name, {}).get(version)
    if reason is not None:
        return Finding("versions", name, f"{version} {reason}; {least} or later", is_fine=False)
    if least and _order(version) < _order(least):
        return Finding("versions", name, f"{version} is too old; {least} or later", is_fine=False)
    if below and _order(version) >= _order(below):
        text = f"{version} is newer than what is tested: below {below}"
        return Finding("versions", name, text, is_fine=False)
    return Finding("versions", name, version)


def threads() -> Iterator[Finding]:
    """Yield how many processors there are, and what else limits threads."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    limit = "" if allowed is None else f", {allowed} of them for this process"
    yield Finding("threads", "processors", f"{os.cpu_count()}{limit}")
    for name in THREAD_VARIABLES:
        if name in os.environ:
            value = os.environ[name]
            text = value if value.isdecimal() else "is no number"
            yield Finding("threads", name, text, is_fine=value.isdecimal())
    from threadpoolctl import threadpool_info

    import optsched.mip.highs  # noqa: F401 - loads what is to be listed

    for pool in threadpool_info():
        yield Finding("threads", pool["internal_api"], f"{pool['num_threads']}")


def memory() -> Finding:
    """Return how much memory a solve may take; small instances in Pyomo take 500 MB."""
    free = available() // 10**6
    return Finding("memory", "free", f"{free:,} MB", is_fine=free >= 500)


def disk(folder: Path | None = None) -> Finding:
    """Return how much a cache may still take."""
    place = "." if folder is None else folder
    name = "current folder" if folder is None else "cache"
    try:
        free = shutil.disk_usage(place).free // 10**6
    except OSError as error:
        return Finding("disk", name, str(error.strerror), is_fine=False)
    if not os.access(place, os.W_OK):
        return Finding("disk", name, "cannot be written to", is_fine=folder is None)
    return Finding("disk", name, f"{free:,} MB free", is_fine=free >= 100)


def _platform() -> Iterator[Finding]:
    yield Finding("platform", "system", f"{platform.system()} {platform.machine()}")
    libc = " ".join(platform.libc_ver()).strip()
    if libc:
        yield Finding("platform", "C library", libc)
    yield Finding("platform", "encoding", sys.getfilesystemencoding())


def _needed() -> Iterator[tuple[str, str, str]]:
    """Yield what optsched requires: names, least versions, and versions that are too new."""
    for line in requires("optsched") or ():
        if "extra ==" in line:
            continue
        name = re.match(r"[A-Za-z0-9._-]+", line)
        least, below = (re.search(rf"{sign}\s*([0-9.]+)", line) for sign in (">=", "<"))
        if name:
            yield name[0], least[1] if least else "", below[1] if below else ""


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _order(text: str) -> list[int]:
    return [int(part) for part in re.findall(r"[0-9]+", text.split("+")[0])[:4]]


# --- self-test --------------------------------------------------------------------------------


def _self_tests() -> Iterator[tuple[str, Callable[[], str]]]:
    yield "HiGHS, linear program", _linear_program
    yield "HiGHS, integer program", _integer_program
    for name in GOLDEN:
        yield f"{name}, exact", _Golden(name, "exact")
        yield f"{name}, milp", _Golden(name, "milp")


def _tested(name: str, test: Callable[[], str]) -> Finding:
    try:
        return Finding("self-test", name, test())
    except Exception as error:  # whatever is wrong, it belongs into the report
        lines = str(error).strip().splitlines() or [""]
        text = f"{type(error).__name__}: {_without_folders(lines[0])}"
        return Finding("self-test", name, text, is_fine=False)


def _without_folders(text: str) -> str:
    """Leave out folders, which may hold names of users."""
    return re.sub(r"(?:[A-Za-z]:)?(?:[/\\][^\s/\\'\":]+)+[/\\]", "", text)


class WrongValue(ArithmeticError):
    """A value is not what it is known to be."""


class _Golden:
    """Solves a bundled instance of known optimum, and proves the bound."""

    def __init__(self, name: str, method: str) -> None:
        self.name, self.method = name, method

    def __call__(self) -> str:
        from optsched.instance import known_values, read
        from optsched.solving import solve
        from optsched.verification import verify

        instance = read(self.name)
        result = solve(instance, self.method)
        expected = known_values()[self.name]["optimal"]
        _compare(result.objective, expected)
        verify(instance, result)
        return f"{result.objective} {result.objective_unit}, proven"


def _linear_program() -> str:
    """Solve max 3x + 5y where x <= 4, 2y <= 12, 3x + 2y <= 18: 36 at (2, 6)."""
    rows = [[1.0, 0.0], [0.0, 2.0], [3.0, 2.0]]
    return _solved(_program([-3.0, -5.0], rows, [4.0, 12.0, 18.0], integer=False), -36.0)


def _integer_program() -> str:
    """Solve a knapsack, max 8a + 11b + 6c + 4d with weights 5, 7, 4, 3 within 14: 21, not 22."""
    rows = [[5.0, 7.0, 4.0, 3.0]]
    return _solved(_program([-8.0, -11.0, -6.0, -4.0], rows, [14.0], integer=True), -21.0)


def _program(
    cost: list[float], rows: list[list[float]], most: list[float], *, integer: bool
) -> Program:
    import numpy as np
    from scipy.sparse import csr_array

    from optsched.mip.highs import Program

    columns = len(cost)
    return Program(
        cost=np.array(cost),
        offset=0.0,
        lower=np.zeros(columns),
        upper=np.full(columns, 1.0 if integer else np.inf),
        integer=np.full(columns, integer),
        matrix=csr_array(np.array(rows)),
        row_lower=np.full(len(most), -np.inf),
        row_upper=np.array(most),
    )


def _solved(program: Program, expected: float) -> str:
    from optsched.mip.highs import solve

    outcome = solve(program)
    if outcome.status != "optimal":
        raise WrongValue(f"HiGHS says '{outcome.message}', expected an optimum of {expected}")
    _compare(outcome.objective, expected)
    return f"{outcome.objective:.6g}"


def _compare(value: float | None, expected: float) -> None:
    if value is None or abs(value - expected) > 1e-6 * abs(expected):
        raise WrongValue(f"{value} was found, it is known to be {expected}")
