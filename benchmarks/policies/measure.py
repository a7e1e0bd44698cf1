"""One rollout per policy and size, each in a process of its own, and kept as a small JSON file."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from math import inf, log
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.suite.rows import Row
from benchmarks.suite.run import in_process, skipped
from optsched.documents.json_files import dumps
from optsched.rollout.policies.rounds.moving_rules import COMPILED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.policies.worlds import Size

RESULTS = Path(__file__).parents[1] / "results" / "policies"
WALL = 4.0  # wall seconds for a CPU second, on a machine that is busy
EXACT = ("pal", "eaco")
EXACT_LOAD = 0.8
POLICIES = {
    "gangs": (
        *("fifo", "philly", "las", "srtf", "tiresias", "tiresias-gittins", "lrpt", "wsrpt"),
        *("wsrpt-lookahead", "foresight"),
    ),
    "places": (
        *("packed-sticky", "packed-non-sticky", "random-sticky", "random-non-sticky", "pm-first"),
        *("pal-greedy", "pal-multilevel", "pal"),
    ),
    "sharing": (
        *("time-slicing", "fifo-exclusive", "fifo-packed", "random-pairs", "lucid-ordered"),
        *("least-utilised", "sharing-scores", "eaco-greedy", "eaco-trials", "best-fit-memory"),
        *("best-delta-energy", "longest-first", "eaco"),
    ),
    "elastic": (
        *("fifo-requested", "equi", "srpt-k", "marginal-greedy", "hesrpt", "smartfill", "wham"),
        *("efficiency-threshold", "one-width-per-class", "gavel", "pollux", "sia"),
    ),
}
"""By what the scenario is about, see `worlds`."""
NUMBA = "+numba"
"""At the end of a row's name: rounds are compiled. Those of all other rows are not."""
WITH_NUMBA = ("pm-first", "pal-greedy", "pal-multilevel")


def rows_of(policy: str) -> tuple[str, ...]:
    """Return the names of a policy's rows."""
    return (policy, policy + NUMBA) if policy in WITH_NUMBA else (policy,)


KIND_OF = {
    row: kind for kind, policies in POLICIES.items() for name in policies for row in rows_of(name)
}
"""By row."""
SIMPY = "SimPy"


@dataclass(frozen=True)
class Measured:
    """A policy at a size.

    Attributes
    ----------
    policy
        Of a row: with `NUMBA` at its end or without.
    found
        As `rollout.Rolled`; or status "skipped", and the reason.
    """

    policy: str
    size: Size
    found: dict[str, Any]

    @property
    def is_done(self) -> bool:
        """Whether the rollout came to its end."""
        return self.found["status"] == "done"

    @property
    def cpu_s(self) -> float:
        """CPU seconds of a rollout that came to its end."""
        return float(self.found["cpu_s"])


def measured(policy: str, size: Size, limit_s: float, *, again: bool = False) -> Measured:
    """Return what a rollout took, from its file if there is one.

    With a limit of 0 nothing is measured.
    """
    if policy in EXACT and size.file is None:
        size = replace(size, load=EXACT_LOAD)
    path = _file_of(policy, size)
    if path.is_file() and not again:
        kept = json.loads(path.read_text())
        if kept["status"] == "done" or kept["limit_s"] >= limit_s:
            return Measured(policy, size, kept)
    if not limit_s:
        return Measured(policy, size, skipped("not measured"))
    options: dict[str, Any] = {"size": asdict(size)}
    function, needs = ".policies.rollout:simpy", ("simpy",)
    if policy != SIMPY:
        options |= {"policy": policy.removesuffix(NUMBA), "kind": KIND_OF[policy]}
        options |= {"limit_s": limit_s, "in_rounds": policy in EXACT}
        function, needs = ".policies.rollout:under", ("numba",) * policy.endswith(NUMBA)
    of_row = "rollout", size.jobs, "jobs", policy, function, options
    told = environment_of(policy)
    row = Row(*of_row, limit_s=WALL * limit_s, needs=needs, environment=told)
    if missing := row.missing():
        return Measured(policy, size, skipped(f"{', '.join(missing)} not installed"))
    found = in_process(row)
    if found["status"] != "skipped":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dumps(found))
    return Measured(policy, size, found)


def environment_of(policy: str) -> dict[str, str]:
    """Return the environment variables of a row."""
    return {COMPILED: "1" if policy.endswith(NUMBA) else "0"}


def _file_of(policy: str, size: Size) -> Path:
    named = replace(size, file=None if size.file is None else Path(size.file).name)
    digest = hashlib.sha256(json.dumps([policy, asdict(named)]).encode()).hexdigest()[:12]
    return RESULTS / f"{policy}-{digest}.json"


def in_turn(
    policy: str, sizes: Sequence[Size], limit_s: float, *, again: bool = False
) -> list[Measured]:
    """Measure sizes in ascending order; one that would take longer than the limit is skipped."""
    rows: list[Measured] = []
    for size in sizes:
        seconds = expected_s(rows, size)
        if rows and seconds is None:
            found = skipped("a smaller size did not end")
        elif seconds is not None and seconds > (limit_s or inf):
            found = skipped(f"would take {seconds:,.0f} s") | {"expected_s": seconds}
        else:
            row = measured(policy, size, limit_s, again=again)
            if seconds is not None and row.found["status"] == "skipped":
                row.found["reason"] += f"; would take {seconds:,.0f} s"
                row.found["expected_s"] = seconds
            rows.append(row)
            continue
        rows.append(Measured(policy, size, found))
    return rows


def expected_s(smaller: Sequence[Measured], size: Size) -> float | None:
    """Return how long a size should take by smaller ones; None if none came to its end.

    Beyond the largest of them it goes on as it grew before, at least as the jobs do.
    """
    done = [row for row in smaller if row.is_done]
    if not done or len(done) < len(smaller):
        known = smaller[-1].found.get("expected_s") if smaller else None
        return None if known is None else known * size.jobs / smaller[-1].size.jobs
    last, power = done[-1], 1.0
    if len(done) > 1:
        power = max(power, exponent(done[-2], last, lambda of: of.jobs))
    return last.cpu_s * (size.jobs / last.size.jobs) ** power


def exponent(small: Measured, large: Measured, by: Any) -> float:
    """Return the exponent by which CPU seconds grow with a measure of the size."""
    return log(large.cpu_s / small.cpu_s) / log(by(large.size) / by(small.size))
