"""CPU seconds of rollouts of Philly's jobs under every policy, and of SimPy beside them.

    python -m benchmarks.policies                          # 1,000, 10,000 and 82,247 jobs
    python -m benchmarks.policies --csv FILE               # and philly_jobs_pollux.csv[.gz]
    python -m benchmarks.policies --growth                 # and exponents in jobs and in GPUs
    python -m benchmarks.policies --policies fifo,las --jobs 1000 --again
    python -m benchmarks.policies --profile fifo --jobs 1000      # where the time goes
    python -m benchmarks.policies --limit-s 600 --csv FILE --growth --to-docs

Jobs of `philly-atc19` on 311 nodes of 8 GPUs at load 0.9, those of the file on 52 nodes. Exact
policies are called in rounds of 300 s alone, at load 0.8. Each rollout has a process of its own.
Rows such as `pm-first+numba` are with the extra `compiled`, all others without it.
What it took is kept in benchmarks/results/policies, so that the tables can be printed again at
once; after a change of the code: --again. A size that would take longer than the limit is skipped,
and the table says so.
"""

from __future__ import annotations

import argparse
import cProfile
import datetime
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.philly_tables.report import put
from benchmarks.policies.measure import (
    EXACT,
    KIND_OF,
    NUMBA,
    SIMPY,
    Measured,
    environment_of,
    in_turn,
)
from benchmarks.policies.report import growth, markdown
from benchmarks.policies.rollout import under
from benchmarks.policies.worlds import Size
from benchmarks.suite.rollout import NODES

if TYPE_CHECKING:
    from collections.abc import Sequence

PAGE = Path(__file__).parents[2] / "docs" / "performance.md"
BEGIN = "<!-- begin: python -m benchmarks.policies --to-docs -->"
JOBS = (1_000, 10_000, 82_247)
FILE_NODES = 52
GROWN_JOBS, GROWN_NODES = 100_000, 1_250
OF_GROWTH = 10_000
LIMIT = "CPU seconds of a rollout; 0: print what is kept, and measure nothing"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables, and return the exit code."""
    chosen = _parser().parse_args(arguments)
    if chosen.profile:
        size = vars(Size(chosen.jobs[0], NODES))
        os.environ.update(environment_of(chosen.profile))
        policy = chosen.profile.removesuffix(NUMBA)
        called = (policy, KIND_OF[policy], size, chosen.limit_s)
        names = {"under": under, "called": called, "rounds": policy in EXACT}
        cProfile.runctx("under(*called, in_rounds=rounds)", names, {}, sort="tottime")
        return 0
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    head = f"On {today}, one core of a machine that others used, too."
    if chosen.limit_s:
        head += f" A rollout ends after {chosen.limit_s:,.0f} CPU s."
    tables = _tables(chosen, head)
    print(tables)
    if chosen.to_docs:
        put(PAGE, tables, BEGIN)
    return 0


def _tables(chosen: argparse.Namespace, head: str) -> str:
    found = [_in_turn(chosen, name, [Size(n, NODES) for n in chosen.jobs]) for name in chosen.rows]
    at = [list(rows) for rows in zip(*found, strict=True)]
    titles = [f"{n:,} generated jobs, {NODES} nodes of 8 GPUs" for n in chosen.jobs]
    if chosen.csv is not None:
        size = Size(JOBS[-1], FILE_NODES, None, chosen.csv)
        at.append([_of_file(chosen, rows, size) for rows in found])
        titles.append(f"The public {JOBS[-1]:,} jobs, {FILE_NODES} nodes of 8 GPUs")
    text = markdown(zip(titles, at, strict=True), head)
    return f"{text}\n\n{_growth(chosen)}" if chosen.growth else text


def _in_turn(chosen: argparse.Namespace, policy: str, sizes: Sequence[Size]) -> list[Measured]:
    rows = in_turn(policy, sizes, chosen.limit_s, again=chosen.again)
    for row in rows:
        what = row.found.get("reason") or f"{row.cpu_s:.1f} CPU s"
        print(f"{policy}, {row.size.jobs:,} jobs, {row.size.nodes} nodes: {what}", file=sys.stderr)
    return rows


def _of_file(chosen: argparse.Namespace, smaller: Sequence[Measured], size: Size) -> Measured:
    """Return what the jobs of the file took, unless by generated ones they would take too long."""
    policy = smaller[0].policy
    if not Path(chosen.csv).is_file():
        return Measured(policy, size, {"status": "skipped", "reason": "the file is not there"})
    if smaller[-1].found["status"] == "skipped":
        return Measured(policy, size, smaller[-1].found)
    return _in_turn(chosen, policy, [size])[0]


def _growth(chosen: argparse.Namespace) -> str:
    by_jobs = [Size(OF_GROWTH, NODES), Size(GROWN_JOBS, NODES)]
    by_gpus = [Size(OF_GROWTH, NODES), Size(OF_GROWTH, GROWN_NODES)]
    names = [name for name in chosen.rows if name not in (*EXACT, SIMPY)]
    of_jobs = [_in_turn(chosen, name, by_jobs) for name in names]
    of_gpus = [_in_turn(chosen, name, by_gpus) for name in names]
    told = f"Exponents of CPU seconds, from {OF_GROWTH:,} to {GROWN_JOBS:,} jobs, and from "
    told += f"{8 * NODES:,} to {8 * GROWN_NODES:,} GPUs with {OF_GROWTH:,} jobs at equal load:"
    return f"{told}\n\n{growth(of_jobs, of_gpus)}"


def _names(text: str) -> list[str]:
    names = text.split(",")
    if unknown := sorted({*names} - {*KIND_OF, SIMPY}):
        known = ", ".join([*KIND_OF, SIMPY])
        raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; known: {known}")
    return names


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.policies", description=(__doc__ or "").partition("\n")[0]
    )
    everything = [*KIND_OF, SIMPY]
    parser.add_argument(
        "--policies", dest="rows", type=_names, default=everything, help="by commas"
    )
    parser.add_argument(
        "--jobs", type=lambda text: [int(n) for n in text.split(",")], default=list(JOBS)
    )
    parser.add_argument("--csv", help="philly_jobs_pollux.csv[.gz]")
    parser.add_argument("--growth", action="store_true", help="exponents besides")
    parser.add_argument("--limit-s", type=float, default=600.0, help=LIMIT)
    parser.add_argument("--profile", metavar="POLICY", choices=list(KIND_OF))
    parser.add_argument("--again", action="store_true", help="roll out, whatever is kept")
    parser.add_argument("--to-docs", action="store_true", help="put the tables on the page")
    return parser


if __name__ == "__main__":
    sys.exit(main())
