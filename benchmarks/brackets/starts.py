"""Where a bill goes, and what starts of nodes could cost at least: a linear program of plans.

Each job may have any mixture of plans: the widths that are best at one of some prices of GPU time,
begun at its arrival or after it. Nodes may be parts of nodes, are known to be needed before a job
arrives, and are paid for from a start-up before they are used. It is no bound, for there are other
plans; but no bound that lets jobs and nodes be mixed so can be above it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import coo_array

from benchmarks.brackets.bills import SCENARIO, proven
from optsched.bounds.places import speedup_at
from optsched.mip import highs
from optsched.rollout.run import simulate
from optsched.rollout.scenario_files import read_scenario
from optsched.rollout.trace_source import jobs_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from optsched.documents.arrays import Floats
    from optsched.rollout.scenario import Model, Scenario
    from optsched.traces.trace import Trace

SLOT_S = 60.0
PRICES = np.geomspace(0.02, 1.5, 9)
DELAYS_S = (0.0, 60.0, 120.0, 240.0)
POLICY = "boa-budgeted"


class Split(NamedTuple):
    """A rollout, its bill in GPU-hours and parts of it, and mean JCTs at that bill in seconds."""

    seed: int
    jct_s: float
    wait_s: float
    billed: float
    held: float
    idle: float
    unready: float
    still_s: float
    bound_s: float
    without_starts_s: float
    with_starts_s: float


class _Speeds(NamedTuple):
    """A model's widths, shares of its phases in the time on one GPU, and speeds over that."""

    widths: list[int]
    shares: Floats
    speeds: Floats
    overhead_s: float


class _Plan(NamedTuple):
    """A job's time in the system, and by slot the GPUs that it holds on average."""

    job: int
    seconds: float
    held: dict[int, float]


def splits(budget: float, seeds: Sequence[int]) -> list[Split]:
    """Return by seed where the bill of `boa-budgeted` goes."""
    scenario = read_scenario(SCENARIO).changed({"budget_gpus": budget})
    return [_split(scenario, jobs_of(scenario, seed=seed), seed) for seed in seeds]


def _split(scenario: Scenario, trace: Trace, seed: int) -> Split:
    told = simulate(scenario, POLICY, trace=trace, seed=seed).metrics
    names = ("rented_gpu_hours", "gpu_hours", "idle_gpu_h", "unready_gpu_h")
    billed, held, idle, unready = (float(told[name] or 0.0) for name in names)
    bounds = proven(scenario, trace, moves=bool(told["migrations"]), bill=billed)
    assert bounds.trade is not None
    assert scenario.rented is not None
    plans = list(_plans(scenario, trace))
    start = math.ceil(scenario.rented.provision_s / SLOT_S)
    least = [_least_s(plans, len(trace), billed, slots) for slots in (0, start)]
    at_bill = (bounds.trade.jct_mean_s_at(billed, len(trace)), bounds.jct_mean_s_at_bill(billed))
    times = (float(told["jct_mean_s"] or 0.0), float(told["first_start_delay_mean_s"] or 0.0))
    return Split(seed, *times, billed, held, idle, unready, *at_bill, *least)


def _plans(scenario: Scenario, trace: Trace) -> Iterator[_Plan]:
    speeds = {name: _speeds(model) for name, model in scenario.models.items()}
    for job in range(len(trace)):
        own, run_s = speeds[trace.model[job]], int(trace.run_us[job]) / 1e6
        known = {_stretches(own, run_s, price) for price in PRICES.tolist()}
        for stretches in sorted(known):
            for delay_s in DELAYS_S:
                begin_s = int(trace.submit_us[job]) / 1e6 + delay_s
                seconds = delay_s + sum(span for span, _ in stretches)
                yield _Plan(job, seconds, _held(stretches, begin_s))


def _speeds(model: Model) -> _Speeds:
    widths = sorted({k for phase in model.phases for k in phase.curve.widths})
    curves = [phase.curve for phase in model.phases]
    speeds = np.array([[float(speedup_at(curve, k)) for k in widths] for curve in curves])
    alone = speeds[:, :1]  # the bundled jobs ask for one GPU
    times = np.array([phase.work_gpu_s for phase in model.phases]) / alone[:, 0]
    return _Speeds(widths, times / times.sum(), speeds / alone, float(model.rescale_s or 0.0))


def _stretches(own: _Speeds, run_s: float, price: float) -> tuple[tuple[float, int], ...]:
    """Return seconds and widths, phase by phase, of the least time and priced GPU time."""
    widths, shares, speeds, overhead_s = own
    rate, spans = 1 + price * np.array(widths, float), run_s * shares[:, None] / speeds
    best, back = overhead_s * rate, []
    for number, span in enumerate(spans):
        changed = best.min() + overhead_s * rate if number else best
        back.append(np.where(changed < best, best.argmin(), np.arange(len(widths))))
        best = np.minimum(best, changed) + span * rate
    place, found = int(best.argmin()), list[tuple[float, int]]()
    for number in reversed(range(len(spans))):
        before = int(back[number][place])
        is_new = not number or before != place
        found.append((float(spans[number, place]) + overhead_s * is_new, widths[place]))
        place = before
    return tuple(reversed(found))


def _held(stretches: Sequence[tuple[float, int]], begin_s: float) -> dict[int, float]:
    held: dict[int, float] = {}
    for span, width in stretches:
        end_s = begin_s + span
        for slot in range(int(begin_s // SLOT_S), math.ceil(end_s / SLOT_S)):
            part = min(end_s, (slot + 1) * SLOT_S) - max(begin_s, slot * SLOT_S)
            held[slot] = held.get(slot, 0.0) + width * part / SLOT_S
        begin_s = end_s
    return held


def _least_s(plans: Sequence[_Plan], jobs: int, billed: float, start: int) -> float:
    """Return the least mean JCT of mixtures of plans at a bill, nodes being `start` slots early.

    Columns: plans, GPUs held by slot, GPUs paid for by slot. Rows: each job has one plan; what its
    plans hold is held; what is held is paid for, and has been while it started; the bill.
    """
    slots = 1 + max(slot for plan in plans for slot in plan.held)
    held, paid = len(plans), len(plans) + slots
    cells = [(plan.job, column, 1.0) for column, plan in enumerate(plans)]
    for column, plan in enumerate(plans):
        cells += [(jobs + slot, column, gpus) for slot, gpus in plan.held.items()]
    cells += [(jobs + slot, held + slot, -1.0) for slot in range(slots)]
    row = equal = jobs + slots
    for slot in range(slots):
        for before in range(max(0, slot - start), slot + 1):
            cells += [(row, held + slot, 1.0), (row, paid + before, -1.0)]
            row += 1
    cells += [(row, paid + slot, SLOT_S / 3600) for slot in range(slots)]
    rows, columns, values = (np.array(part) for part in zip(*cells, strict=True))
    count = paid + slots
    cost: Floats = np.zeros(count)
    cost[:held] = [plan.seconds / jobs for plan in plans]
    upper = np.r_[np.ones(jobs), np.zeros(row - jobs), billed]
    program = highs.Program(
        cost=cost,
        offset=0.0,
        lower=np.zeros(count),
        upper=np.full(count, np.inf),
        integer=np.zeros(count, bool),
        matrix=coo_array((values, (rows, columns)), shape=(row + 1, count)).tocsr(),
        row_lower=np.where(np.arange(row + 1) < equal, upper, -np.inf),
        row_upper=upper,
    )
    found = highs.solve(program)
    return math.nan if found.x is None else float(cost @ found.x)


def splits_markdown(found: Sequence[Split], head: str) -> str:
    """Return a table with a row for each seed."""
    lines = [
        head,
        "",
        "| seed | billed, GPU-h | held | idle | not ready | mean JCT, s | first wait |",
    ]
    lines[-1] += " bound without starts | with | program without starts | with |"
    lines.append("|---:|" + "---:|" * 10)
    for row in found:
        hours = [f"{value:,.1f}" for value in (row.billed, row.held, row.idle, row.unready)]
        times = (row.jct_s, row.wait_s, row.still_s, row.bound_s)
        times += (row.without_starts_s, row.with_starts_s)
        cells = [str(row.seed), *hours, *(f"{value:,.0f}" for value in times)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
