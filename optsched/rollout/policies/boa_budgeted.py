"""BOA within an allowance: at every epoch the widths of the jobs at hand, as an integer program.

Source: boa.md 4.2, B1, after EPEW'24, arXiv 2406.15560.
"""

from __future__ import annotations

import itertools
import math
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from optsched.rollout.decision import SolveRecord
from optsched.rollout.policies import streams as known
from optsched.rollout.policies.boa import Boa
from optsched.traces.trace import US

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.rollout.decision import Decision
    from optsched.rollout.scenario import Scenario
    from optsched.rollout.view import View

FEASIBILITY = 1e-9  # of the allowance, added to it: the floor uses it up to the last digit


class Block(NamedTuple):
    """Consecutive phases of a job that get one width.

    Attributes
    ----------
    until
        The first phase behind it.
    gpus, seconds
        The widths that all its phases have, and the expected time that is left at each.
    floor
        The stationary width of all its phases.
    """

    until: int
    gpus: tuple[int, ...]
    seconds: tuple[float, ...]
    floor: int

    @property
    def least(self) -> int:
        """The width of least GPU time."""
        return min(zip(self.gpus, self.seconds, strict=True), key=lambda p: (p[0] * p[1], p[0]))[0]


class Ahead(NamedTuple):
    """A job and what it has before it.

    Attributes
    ----------
    now
        The width that it has, 0 if it waits.
    rescale_s
        Seconds lost at a start or change of width.
    """

    job: int
    blocks: tuple[Block, ...]
    now: int
    rescale_s: float

    @property
    def floor(self) -> tuple[int, ...]:
        """The stationary widths."""
        return tuple(block.floor for block in self.blocks)

    @property
    def least(self) -> tuple[int, ...]:
        """The widths of least GPU time, changes of width aside."""
        return tuple(block.least for block in self.blocks)

    def totals(self, widths: Sequence[int]) -> tuple[float, float]:
        """Return seconds and GPU-seconds at the given widths, changes of width included."""
        seconds = used = 0.0
        before = self.now
        for block, width in zip(self.blocks, widths, strict=True):
            time_s = block.seconds[block.gpus.index(width)]
            time_s += self.rescale_s if width != before else 0.0
            seconds, used = seconds + time_s, used + width * time_s
            before = width
        return seconds, used


class Budgeted(Boa):
    """At every epoch: least total time of the jobs at hand within an allowance of GPU-seconds.

    The allowance is what the stationary widths would use, plus `eta` x (budget x time - what was
    spent), but at least what the widths of least GPU time use. So with eta = 0, without rescaling
    and while the cluster has room, the stationary widths are optimal. Jobs that arrive between
    epochs start with their stationary width, and each job keeps to the plan of the last epoch.
    Consecutive phases with the same stationary width get one width here, too.

    Parameters
    ----------
    eta
        How much of what was saved or overspent is given back at once, 0 to 1.
    sizes
        "mean": what a job has left in a phase is the mean work of the phase; "estimates": as the
        oracle tells.
    most_nodes, time_limit_s
        Of the integer program; the first keeps the plan independent of the clock.
    """

    every_epoch = True

    def __init__(
        self,
        name: str,
        scenario: Scenario,
        seed: int,
        *,
        eta: float = 0.0,
        sizes: str = "mean",
        most_nodes: int = 1000,
        program_gap: float = 1e-3,
        **options: Any,
    ) -> None:
        super().__init__(name, scenario, seed, **options)
        if not 0 <= eta <= 1:
            raise ValueError(f"eta must be from 0 to 1, not {eta!r}")
        if sizes not in ("mean", "estimates"):
            raise ValueError(f"sizes must be 'mean' or 'estimates', not '{sizes}'")
        self.eta, self.sizes = eta, sizes
        self.most_nodes, self.program_gap = most_nodes, program_gap
        self.planned: dict[int, list[tuple[int, int]]] = {}
        self.runs_s: dict[int, float] = {}
        self._is_stale = False
        self._held_us = 0
        self._last = (0, 0)

    def width(self, view: View, job: int) -> int:
        """Return the planned width of a job in its phase, or else its stationary one."""
        phase = view.phase(job)
        for until, width in self.planned.get(job, ()):
            if phase < until:
                return width
        return super().width(view, job)

    def arrive(self, view: View, job: int) -> None:
        """Let a job wait, and take note of how long it should run."""
        if self.sizes == "estimates" and job not in self.runs_s:
            self.runs_s[job] = float(view.remaining_us([job])[0]) / US
        super().arrive(view, job)

    def forget(self, job: int) -> None:
        """Let a job want nothing."""
        super().forget(job)
        self.planned.pop(job, None)

    def decide(self, view: View) -> Decision:
        """Plan anew if anything happened since the last plan; then as in `Elastic`."""
        self._count(view.now_us)
        news = (view.arrived, view.ended, view.failed, view.advanced)
        self._is_stale = self._is_stale or any(news)
        decision = super().decide(view)
        self._last = (view.now_us, sum(map(len, self.held.of.values())))
        return decision

    def _count(self, now_us: int) -> None:
        before, gpus = self._last
        self._held_us += (now_us - before) * gpus

    def refresh(self, view: View) -> list[SolveRecord]:
        """Plan anew at an epoch if anything happened since the last plan."""
        if view.is_epoch and self._is_stale and self.wanted:
            self._is_stale = False
            self._plan(view)
            for job in self.waiting:
                self.want(job, self.width(view, job))
            self.stale.update(self.held.of)
        return super().refresh(view)

    # --- the plan -----------------------------------------------------------------------------

    def _plan(self, view: View) -> None:
        started = time.perf_counter()
        ahead = self._admitted([self._ahead(view, job) for job in sorted(self.wanted)])
        allowance = self._allowance(view, ahead)
        program = Program(ahead, allowance, self.scenario.gpus)
        widths, record = program.solve(self.most_nodes, self.time_limit_s, self.program_gap)
        self.planned = {
            a.job: [(block.until, width) for block, width in zip(a.blocks, chosen, strict=True)]
            for a, chosen in zip(ahead, widths, strict=True)
        }
        self._solves.append(record(time.perf_counter() - started))

    def _admitted(self, ahead: list[Ahead]) -> list[Ahead]:
        """Return the jobs from the first on for which the cluster has room at their least."""
        room = self.scenario.gpus
        found = []
        for a in ahead:
            room -= a.blocks[0].gpus[0]
            if room < 0:
                break
            found.append(a)
        return found

    def _ahead(self, view: View, job: int) -> Ahead:
        model, demand = view.model(job), view.demand(job)
        stationary = self.sequence(view, job)
        now = min(view.phase(job), len(stationary) - 1)
        left = self._left(view, job, now)
        blocks, first = [], now
        for width, run in itertools.groupby(stationary[now:]):
            until = first + len(list(run))
            blocks.append(self._block((model, demand), left[first - now : until - now], until, width))
            first = until
        rescale_s = known.rescale_s(self.scenario, model)
        return Ahead(job, tuple(blocks), self.held.width(job), rescale_s)

    def _block(self, key: tuple[str, int], work: Sequence[float], until: int, floor: int) -> Block:
        """Return a block of the last phases before `until`, with so much work in each."""
        curves = self.curves.of(*key)[until - len(work) : until]
        widths = set(curves[0].gpus).intersection(*(curve.gpus for curve in curves[1:]))
        gpus = tuple(sorted(widths))
        pairs = list(zip(work, curves, strict=True))
        seconds = tuple(sum(w / curve.speed_at(k) for w, curve in pairs) for k in gpus)
        return Block(until, gpus, seconds, floor)

    def _left(self, view: View, job: int, now: int) -> list[float]:
        """Return the expected work that a job has left in each phase from the present one on."""
        model, demand = view.model(job), view.demand(job)
        rates = self.curves.works(model, demand)
        run_s = self.runs_s.get(job, float("nan"))
        if math.isnan(run_s):
            stream = self.streams.get(self._sums.key(model, demand))
            works = [60.0 * rate for rate in rates] if stream is None else stream.works_s
            return [max(work, known.LEAST_WORK_S) for work in works[now:]]
        left_s = float(view.remaining_us([job])[0]) / US
        speeds = [curve.speed_at(demand) or 1.0 for curve in self.curves.of(model, demand)]
        behind = sum(run_s * r / s for r, s in zip(rates[now + 1 :], speeds[now + 1 :], strict=True))
        works = [run_s * rate for rate in rates[now:]]
        works[0] = min(works[0], (left_s - behind) * speeds[now])
        return [max(work, known.LEAST_WORK_S) for work in works]

    def _allowance(self, view: View, ahead: Sequence[Ahead]) -> float:
        stationary = sum(a.totals(a.floor)[1] for a in ahead)
        least = sum(a.totals(a.least)[1] for a in ahead)
        spent_us = self._held_us if self.scenario.rented is None else view.spent_gpu_us
        saved = self.budget * view.now_us / US - spent_us / US
        return max(least, stationary + self.eta * saved)


class Program:
    """B1 as arrays: a column for each (job, block, width), and for each change between blocks."""

    def __init__(self, ahead: Sequence[Ahead], allowance: float, cap: int) -> None:
        self.ahead, self.allowance, self.cap = ahead, allowance, cap
        self.keys: list[tuple[int, int, int]] = []  # (job, block, place of the width)
        self.cost: list[float] = []
        self.used: list[float] = []
        self._rows: list[tuple[list[int], list[float], float, float]] = []
        for n in range(len(ahead)):
            self._add_job(n)
        self.binaries = len(self.keys)
        self._add_changes()
        everything = list(range(len(self.cost)))
        limit = allowance * (1 + FEASIBILITY)
        self._rows.append((everything, self.used, -np.inf, limit))
        first = [c for c, (n, e, _) in enumerate(self.keys) if e == 0]
        gpus = [float(self._width(c)) for c in first]
        self._rows.append((first, gpus, -np.inf, float(cap)))

    def _width(self, column: int) -> int:
        n, e, at = self.keys[column]
        return self.ahead[n].blocks[e].gpus[at]

    def _add_job(self, n: int) -> None:
        a = self.ahead[n]
        for e, block in enumerate(a.blocks):
            first = len(self.keys)
            for at, (gpus, seconds) in enumerate(zip(block.gpus, block.seconds, strict=True)):
                if e == 0 and gpus != a.now:
                    seconds += a.rescale_s
                self.keys.append((n, e, at))
                self.cost.append(seconds)
                self.used.append(gpus * seconds)
            columns = list(range(first, len(self.keys)))
            self._rows.append((columns, [1.0] * len(columns), 1.0, 1.0))

    def _add_changes(self) -> None:
        """Add y >= x of a block - x of the one before it, for the rescaling between them."""
        column = {(n, e, self._width(c)): c for c, (n, e, _) in enumerate(self.keys)}
        for (n, e, gpus), now in column.items():
            rescale_s = self.ahead[n].rescale_s
            if e == 0 or not rescale_s:
                continue
            change = len(self.cost)
            self.cost.append(rescale_s)
            self.used.append(gpus * rescale_s)
            before = column.get((n, e - 1, gpus))
            columns = [change, now] if before is None else [change, now, before]
            self._rows.append((columns, [1.0, -1.0, 1.0][: len(columns)], 0.0, np.inf))

    def solve(self, most_nodes: int, time_limit_s: float, gap: float) -> tuple[Any, Any]:
        """Return the widths of each job, those of the floor if there is nothing better."""
        from optsched import highs

        floor = [a.floor for a in self.ahead]
        outcome = highs.solve(
            self._program(),
            time_limit_s=time_limit_s,
            gap=gap,
            most_nodes=most_nodes,
            start=self._point(floor) if self._is_within(floor) else None,
        )
        widths = floor if outcome.x is None else self._widths(outcome.x)
        value = sum(a.totals(w)[0] for a, w in zip(self.ahead, widths, strict=True))

        def record(seconds: float) -> SolveRecord:
            status, bound = outcome.status, outcome.bound
            return SolveRecord(status, value, bound, seconds, fallback=outcome.x is None)

        return widths, record

    def _program(self) -> Any:
        from scipy.sparse import csr_array

        from optsched import highs

        count = len(self.cost)
        integer = np.zeros(count, dtype=bool)
        integer[: self.binaries] = True
        starts = np.cumsum([0, *(len(row[0]) for row in self._rows)])
        columns = list(itertools.chain.from_iterable(row[0] for row in self._rows))
        values = list(itertools.chain.from_iterable(row[1] for row in self._rows))
        shape = (len(self._rows), count)
        return highs.Program(
            cost=np.array(self.cost),
            offset=0.0,
            lower=np.zeros(count),
            upper=np.ones(count),
            integer=integer,
            matrix=csr_array((values, columns, starts), shape=shape),
            row_lower=np.array([row[2] for row in self._rows]),
            row_upper=np.array([row[3] for row in self._rows]),
        )

    def _is_within(self, widths: Sequence[Sequence[int]]) -> bool:
        used = sum(a.totals(w)[1] for a, w in zip(self.ahead, widths, strict=True))
        return used <= self.allowance and sum(w[0] for w in widths) <= self.cap

    def _point(self, widths: Sequence[Sequence[int]]) -> Any:
        x = np.zeros(len(self.cost))
        for column, (n, e, _) in enumerate(self.keys):
            x[column] = self._width(column) == widths[n][e]
        for columns, signs, _, _ in self._rows:
            if signs[:2] == [1.0, -1.0]:
                x[columns[0]] = max(0.0, x[columns[1]] - sum(x[columns[2:]]))
        return x

    def _widths(self, x: Any) -> list[tuple[int, ...]]:
        found: list[list[int]] = [[0] * len(a.blocks) for a in self.ahead]
        best: dict[tuple[int, int], float] = {}
        for column, (n, e, _) in enumerate(self.keys):
            if x[column] > best.get((n, e), 0.0):
                best[n, e] = x[column]
                found[n][e] = self._width(column)
        return [tuple(row) for row in found]


def boa_budgeted(scenario: Scenario, seed: int, **options: Any) -> Budgeted:
    """Plan the widths of the jobs at hand within an allowance."""
    return Budgeted("boa-budgeted", scenario, seed, **options)
