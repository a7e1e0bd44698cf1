"""The tables of docs/performance.md about rollouts under every policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.policies.measure import SIMPY, exponent

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from benchmarks.policies.measure import Measured

HEADER = "| policy | CPU s | jobs/s | decisions/s | peak MiB | |"
RULE = "|---|---:|---:|---:|---:|---|"


def markdown(by_size: Iterable[tuple[str, Sequence[Measured]]], head: str) -> str:
    """Return a table for each size, each under a title."""
    parts = [head]
    for title, rows in by_size:
        parts += ["", f"{title}:", "", HEADER, RULE, *map(line, rows)]
    return "\n".join(parts)


def line(row: Measured) -> str:
    """Return a row of a table."""
    found = row.found
    name = row.policy if row.policy == SIMPY else f"`{row.policy}`"
    if found["status"] == "skipped":
        return f"| {name} | | | | | {found['reason']} |"
    jobs = found["ended"] * found["jobs"]
    decisions = "" if row.policy == SIMPY else _rate(found["decisions"] / row.cpu_s)
    rates = f"{_rate(jobs / row.cpu_s)} | {decisions}"
    return (
        f"| {name} | {_number(row.cpu_s)} | {rates} | {found['memory_mib']:,.0f} | {_note(row)} |"
    )


def _note(row: Measured) -> str:
    found, said = row.found, []
    if found["status"] == "stopped":
        said.append(f"stopped with {found['ended']:.0%} of the jobs ended")
    if row.policy == SIMPY:
        said.append("one container of GPUs: no nodes, no policy")
    if found["gap_worst"] is not None:
        median, worst = found["gap_median"], found["gap_worst"]
        said.append(f"gap {median:.2%} in the median, {worst:.2%} at worst")
        said.append(f"{found['unverified']} rounds not verified")
    if found.get("round_worst_s") is not None:
        middle, worst = found["round_median_s"], found["round_worst_s"]
        said.append(f"{middle:.2f} s a round in the median, {worst:.1f} s at worst")
    return "; ".join(said)


def growth(jobs: Sequence[Sequence[Measured]], gpus: Sequence[Sequence[Measured]]) -> str:
    """Return the exponents of CPU seconds, by jobs and by GPUs.

    Parameters
    ----------
    jobs, gpus
        For each policy, in the same order, what it took at two sizes.
    """
    lines = ["| policy | by jobs | by GPUs |", "|---|---:|---:|"]
    for of_jobs, of_gpus in zip(jobs, gpus, strict=True):
        grows = _exponent(of_jobs, is_of_gpus=False), _exponent(of_gpus, is_of_gpus=True)
        lines.append(f"| `{of_jobs[0].policy}` | {grows[0]} | {grows[1]} |")
    return "\n".join(lines)


def _exponent(rows: Sequence[Measured], *, is_of_gpus: bool) -> str:
    if not all(row.is_done for row in rows):
        return next(row.found.get("reason", "stopped") for row in rows if not row.is_done)
    return f"{exponent(*rows, lambda size: size.nodes if is_of_gpus else size.jobs):.2f}"


def _rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
