"""The schedule that a trace's log recorded, measured as a rollout is, without the engine."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from optsched.rollout.physics.cluster import Cluster
from optsched.rollout.results.fairness import jain_index
from optsched.rollout.results.metrics import METRICS
from optsched.traces.summary import duration, seen_us
from optsched.traces.trace import STATUSES, US

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.documents.arrays import Floats, Integers
    from optsched.rollout.scenario import Scenario
    from optsched.traces.trace import RecordedRun, Trace

NAME = "as recorded"
"""The row of this schedule in a comparison."""
TOLERANCE_US = 2 * US
"""Clocks of logs have whole seconds: shorter by more than this is shorter."""
SHORTEST_US = 60 * US


@dataclass(frozen=True, eq=False)
class RecordedSchedule:
    """When and where jobs ran as their log has it, on the cluster of a scenario.

    No engine, policy or physics has part in it: the record is taken as it is, and `warnings` tell
    where it breaks the world of the scenario, so that its row cannot be compared with the others.

    Attributes
    ----------
    trace
        With a record of some of its jobs.
    """

    trace: Trace
    scenario: Scenario

    @cached_property
    def metrics(self) -> dict[str, float | None]:
        """Return a value for each metric that the record tells, None for the others.

        The jobs that have a record count as ended with its last attempt. JCT, waits and makespan
        are as in `optsched.rollout.results.metrics`; utilisation is GPU time held over the GPUs of
        the scenario from the first submission to the last end. A job that started before its
        submission waited for no time.
        """
        found: dict[str, float | None] = dict.fromkeys(METRICS)
        found |= self._counts()
        if len(self._jobs):
            found |= self._times() | self._use() | self._steady()
        return {key: found[key] for key in METRICS}

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Say where the record breaks the modelled world, a line for each way."""
        return tuple(f"{NAME}: {line}" for line in self._breaks())

    @cached_property
    def _jobs(self) -> Integers:
        return np.array(sorted(self.trace.record), dtype=np.int64)

    @cached_property
    def _spans(self) -> tuple[Integers, Integers, Integers, Integers]:
        """By recorded job: first start, last end, time it ran, and GPU time, in microseconds."""
        rows = [
            (
                min(run.start_us for run in runs),
                max(run.end_us for run in runs),
                sum(run.end_us - run.start_us for run in runs),
                sum((run.end_us - run.start_us) * run.gpus for run in runs),
            )
            for runs in (self.trace.record[job] for job in self._jobs.tolist())
        ]
        start, end, ran, held = np.array(rows, dtype=np.int64).reshape(-1, 4).T
        return start, end, ran, held

    def _times(self) -> dict[str, float | None]:
        submit = self.trace.submit_us[self._jobs]
        start, end, ran, _ = self._spans
        jct = np.maximum(end - submit, 0)
        alone = np.maximum(seen_us(self.trace)[self._jobs], SHORTEST_US)
        return {
            "jct_mean_s": _seconds(jct.mean()),
            "jct_median_s": _seconds(np.median(jct)),
            "jct_p95_s": _seconds(np.percentile(jct, 95)),
            "jct_p99_s": _seconds(np.percentile(jct, 99)),
            "jct_geomean_s": float(np.exp(np.log(np.maximum(jct / US, 1 / US)).mean())),
            "makespan_s": _seconds(end.max() - self.trace.submit_us.min()),
            "bounded_slowdown_mean": float(np.maximum(jct / alone, 1.0).mean()),
            "queueing_delay_mean_s": _seconds(np.maximum(jct - ran, 0).mean()),
            "first_start_delay_mean_s": _seconds(np.maximum(start - submit, 0).mean()),
        }

    def _use(self) -> dict[str, float | None]:
        _, end, _, held = self._spans
        span = int(end.max() - self.trace.submit_us.min())
        by_job = np.zeros(len(self.trace), np.int64)
        by_job[self._jobs] = held
        hours = self.scenario.gpus * span / US / 3600
        has_price = self.scenario.rented is None and self.scenario.power is None
        return {
            "utilization": int(held.sum()) / (self.scenario.gpus * span) if span else None,
            "gpu_hours": int(held.sum()) / US / 3600,
            "rented_gpu_hours": hours if self.scenario.rented is None else None,
            "cost_usd": hours * self.scenario.price_usd_per_gpu_h if has_price else None,
            "jain_index": jain_index(self.trace.queue, by_job, self._jobs),
        }

    def _steady(self) -> dict[str, float | None]:
        """Return the metrics of the window of the steady state, and of the time after it."""
        submit, last = self.trace.submit_us, int(self._spans[1].max())
        given = self.scenario.steady_s
        start, end = (submit[0], submit[-1]) if given is None else (given[0] * US, given[1] * US)
        start, end = min(round(start), last), min(round(end), last)
        held = np.array([(run.start_us, run.end_us, run.gpus) for run in self._runs], np.int64)
        waits = np.array(list(self._waits()), np.int64).reshape(-1, 3)
        span, drain = end - start, last - end
        gpus = self.scenario.gpus
        return {
            "steady_s": span / US,
            "steady_utilization": _within(held, start, end) / (gpus * span) if span > 0 else None,
            "steady_waiting_jobs_mean": _within(waits, start, end) / span if span > 0 else None,
            "drain_s": drain / US,
            "drain_utilization": _within(held, end, last) / (gpus * drain) if drain > 0 else None,
        }

    def _waits(self) -> Iterator[tuple[int, int, int]]:
        """Yield the waits of jobs, from and to, before their attempts; each of one job."""
        for job, runs in self.trace.record.items():
            since = int(self.trace.submit_us[job])
            for run in runs:
                if run.start_us > since:
                    yield since, run.start_us, 1
                since = max(since, run.end_us)

    def _counts(self) -> dict[str, float | None]:
        status = self.trace.status[self._jobs]
        deadline = self.trace.deadline_us[self._jobs]
        late = (deadline >= 0) & (self._spans[1] > deadline)
        return {
            "attempts": sum(map(len, self.trace.record.values())),
            "deadline_misses": int(late.sum()),
            "jobs": len(self.trace),
            "unfinished": len(self.trace) - len(self._jobs),
            **{word: int((status == code).sum()) for code, word in enumerate(STATUSES)},
        }

    def _breaks(self) -> Iterator[str]:
        missing = len(self.trace) - len(self._jobs)
        if missing:
            yield f"{missing:,} of {len(self.trace):,} jobs have no record, and are not in its row"
        most, above = _overload(self._runs, self.scenario.gpus)
        if above:
            had = f"{most:,} GPUs held at once, but the scenario has {self.scenario.gpus:,}"
            yield f"{had} (more than these for {duration(above / US)})"
        start, _, ran, _ = self._spans
        early = int((start < self.trace.submit_us[self._jobs]).sum())
        if early:
            yield f"{early:,} jobs started before their submission"
        short = int((ran < seen_us(self.trace)[self._jobs] - TOLERANCE_US).sum())
        if short:
            yield f"{short:,} jobs ran for less than the trace says that they need"
        yield from self._misplaced()

    @cached_property
    def _runs(self) -> list[RecordedRun]:
        return [run for runs in self.trace.record.values() for run in runs]

    def _misplaced(self) -> Iterator[str]:
        """Find nodes that the scenario lacks, or that held more GPUs than they have."""
        by_node: dict[str, list[tuple[int, int, int]]] = {}
        for run in self._runs:
            for node, gpus in run.nodes:
                by_node.setdefault(node, []).append((run.start_us, run.end_us, gpus))
        cluster = Cluster(self.scenario)
        size = dict(zip(cluster.names, cluster.size, strict=True))
        if self.scenario.topology is None:  # equal nodes, whose names are nobody's
            if len(by_node) > cluster.nodes:
                yield f"{len(by_node):,} nodes were used, but the scenario has {cluster.nodes:,}"
            size = dict.fromkeys(by_node, cluster.largest)
        strange = sorted(node for node in by_node if node not in size)
        if strange:
            runs = sum(any(node not in size for node, _ in run.nodes) for run in self._runs)
            yield f"{runs:,} attempts ran on nodes that the scenario lacks, such as '{strange[0]}'"
        full = [
            node
            for node, held in sorted(by_node.items())
            if node in size and _peak(np.array(held, dtype=np.int64))[0] > size[node]
        ]
        if full:
            yield f"{len(full):,} nodes held more GPUs at once than they have, such as '{full[0]}'"


def recorded_schedule(trace: Trace, scenario: Scenario) -> RecordedSchedule | None:
    """Return the schedule that a trace recorded, None if it recorded none."""
    return RecordedSchedule(trace, scenario) if trace.record else None


def _within(rows: Integers, start: int, end: int) -> int:
    """Return the time of (from, to, how many) within a stretch, times how many."""
    inside = np.minimum(rows[:, 1], end) - np.maximum(rows[:, 0], start)
    return int(np.maximum(inside, 0) @ rows[:, 2])


def _overload(runs: list[RecordedRun], limit: int) -> tuple[int, int]:
    """Return the most GPUs held at once, and for how long more than the limit were."""
    rows = np.array([(run.start_us, run.end_us, run.gpus) for run in runs], dtype=np.int64)
    most, times, held = _peak(rows)
    return most, int(np.diff(times)[held[:-1] > limit].sum()) if len(times) else 0


def _peak(rows: Integers) -> tuple[int, Integers, Integers]:
    """Return the most GPUs of (start, end, GPUs), and from each moment on how many are held."""
    if not len(rows):
        return 0, np.zeros(0, np.int64), np.zeros(0, np.int64)
    moments = np.concatenate([rows[:, 0], rows[:, 1]])
    times, place = np.unique(moments, return_inverse=True)
    change = np.concatenate([rows[:, 2], -rows[:, 2]])
    held = np.cumsum(np.bincount(place, change, len(times)).astype(np.int64))
    return int(held.max()), times, held


def _seconds(us: Floats | Integers | float) -> float:
    return float(us) / US
