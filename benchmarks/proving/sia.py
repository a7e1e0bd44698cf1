"""Rounds of the choice problem, for what HiGHS on the plain program proves and `Choice` does not.

`python -m benchmarks.proving.sia` prints the rounds where HiGHS, in 5 CPU seconds, proves the
optimum or that there is no plan, and `Choice` does not.
"""

from __future__ import annotations

import time
from functools import partial
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array, vstack

from benchmarks.proving.rounds import Choice, Round, verify_round
from benchmarks.suite.sia_rounds import sia_rounds
from optsched.mip import highs
from optsched.mip.program import Program

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LIMIT_S = 5.0
WALL = 4  # HiGHS has this many times as much by the clock: other work may run beside it
GAP = 1e-6


def instances() -> Iterator[tuple[str, Callable[[], Round]]]:
    """Yield rounds by name: usual, tight, of unlike jobs, with a high cost, without a plan."""
    for gpus in (64, 256, 512):
        yield f"sia-{gpus}", partial(_sia, gpus)
    for seed, jobs in product(range(3), (20, 60, 200)):
        yield f"widths-{jobs}-{seed}", partial(widths, seed, jobs=jobs)
    for seed, wait in product(range(4), (1e4, 1e6, 1e9)):
        yield f"expensive-{wait:.0e}-{seed}", partial(widths, seed, jobs=30, wait=wait, share=1.0)
    for seed, jobs in product(range(3), (20, 30, 50, 100, 200)):
        yield f"unlike-{jobs}-{seed}", partial(unlike, seed, jobs=jobs)
    for seed, jobs in product(range(3), (20, 30, 60)):
        yield f"tight-{jobs}-{seed}", partial(unlike, seed, jobs=jobs, capacity=0.25)
    for seed, capacity in product(range(4), (0.12, 0.15, 0.18, 0.2)):
        yield (
            f"scarce-{capacity}-{seed}",
            partial(unlike, seed, jobs=12, options=6, capacity=capacity),
        )
    for seed, capacities in product(range(4), (1, 2)):
        yield f"even-{capacities}-{seed}", partial(even, seed, capacities=capacities)


def _sia(gpus: int) -> Round:
    return sia_rounds(gpus, 1)[0].choice()


def widths(seed: int, jobs: int, wait: float = 9.0, share: float = 0.5) -> Round:
    """Return jobs of up to 4 widths on three types of GPUs, of which there are too few."""
    random, options = np.random.default_rng(seed), {}
    for job in range(jobs):
        pace = random.uniform(1, 4, 3)
        rows = [(wait, [0.0] * 3)]
        for kind, width in product(range(3), (1, 2, 4, 8)[: random.integers(1, 5)]):
            use = [0.0] * 3
            use[kind] = float(width)
            rows.append((float((pace[kind] * width ** random.uniform(0.5, 1)) ** -0.5), use))
        options[job] = rows
    return Round.of(options, [float(int(jobs * part)) for part in (share, share / 2, share / 2)])


def unlike(seed: int, jobs: int, options: int = 5, capacity: float = 0.5) -> Round:
    """Return jobs whose options use something of all of three capacities.

    Parameters
    ----------
    capacity
        The capacities, as a share between the least and the most that jobs use.
    """
    random, rows = np.random.default_rng(seed), {}
    for job in range(jobs):
        uses = random.integers(1, 40, (options, 3)).astype(float)
        costs = 200 / (5 + uses.sum(axis=1)) + random.uniform(0, 1, options)
        rows[job] = list(zip(costs.tolist(), uses.tolist(), strict=True))
    uses = np.array([[use for _, use in own] for own in rows.values()])
    low, high = uses.min(axis=1).sum(axis=0), uses.max(axis=1).sum(axis=0)
    return Round.of(rows, np.floor(low + capacity * (high - low)).tolist())


def even(seed: int, capacities: int) -> Round:
    """Return a round without a plan that fractions do have: even uses, odd sums are wanted."""
    random = np.random.default_rng(seed)
    parts = random.integers(2, 30, (14, capacities)) * 2.0
    half = parts.sum(axis=0) // 2
    odd = half + (half + 1) % 2  # two sides of an odd size, less by one in sum than the parts
    options = {}
    for job, part in enumerate(parts.tolist()):
        options[job] = [(1.0, [*part, *[0.0] * capacities]), (1.0, [*[0.0] * capacities, *part])]
    return Round.of(options, [*odd.tolist(), *(parts.sum(axis=0) - odd).tolist()])


def plain_program(instance: Round) -> Program:
    """Return the integer program of a round as it is: a row for every job and capacity."""
    jobs, options = len(instance.jobs), len(instance.cost)
    places = (np.ones(options), (instance.job, np.arange(options)))
    return Program(
        cost=instance.cost,
        offset=0.0,
        lower=np.zeros(options),
        upper=np.ones(options),
        integer=np.ones(options, dtype=np.bool_),
        matrix=csr_array(vstack([csr_array(places, shape=(jobs, options)), instance.use.T])),
        row_lower=np.concatenate((np.ones(jobs), np.full(len(instance.capacity), -np.inf))),
        row_upper=np.concatenate((np.ones(jobs), instance.capacity)),
    )


def compare(only: str = "", limit_s: float = LIMIT_S) -> list[str]:
    """Print what HiGHS and `Choice` make of the rounds; return where HiGHS alone proves."""
    lost = []
    for name, make in instances():
        if only not in name:
            continue
        instance = make()
        began = time.process_time()
        theirs = highs.solve(plain_program(instance), time_limit_s=WALL * limit_s, gap=GAP)
        their_s, began = time.process_time() - began, time.process_time()
        ours = Choice(gap=GAP).decide(instance)
        our_s = time.process_time() - began
        verify_round(instance, ours)
        proves = theirs.status in ("optimal", "infeasible") and their_s <= limit_s
        print(
            f"{name:16} HiGHS {theirs.status:10} {their_s:6.2f} s {theirs.objective or 0:12.6f}   "
            f"Choice {ours.status:10} {our_s:6.2f} s {ours.objective or 0:12.6f}",
            flush=True,
        )
        if proves and ours.status not in ("optimal", "infeasible"):
            lost.append(name)
    print("HiGHS alone proves:", ", ".join(lost) or "none")
    return lost


if __name__ == "__main__":
    compare()
