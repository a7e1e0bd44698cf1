"""Records of rollouts as plain data: all that a rollout left, but for its scenario and trace."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from optsched.rollout.engine.decision import SolveRecord
from optsched.rollout.results.decision_log import EpochLog
from optsched.rollout.results.record import Integrals, JobsRecord, Record

if TYPE_CHECKING:
    from optsched.rollout.scenario import Scenario
    from optsched.traces.trace import Trace

JOBS = tuple(field.name for field in fields(JobsRecord))
APART = ("scenario", "trace", "jobs", "epochs", "intervals", "window")
FIGURES = tuple(field.name for field in fields(Record) if field.name not in APART)


def plain_record(record: Record) -> dict[str, Any]:
    """Return what a record holds but for its scenario and trace; see `plain_data`."""
    log = record.epochs
    assert isinstance(log, EpochLog), "records of the engine have one"
    return {
        "figures": {name: getattr(record, name) for name in FIGURES},
        "jobs": {name: getattr(record.jobs, name) for name in JOBS},
        "epochs": log.snapshot(),
        "intervals": list(record.intervals),
        "window": [list(moment) for moment in record.window],
    }


def record_of(plain: dict[str, Any], scenario: Scenario, trace: Trace) -> Record:
    """Return the record that `plain_record` was given.

    Raises
    ------
    ValueError
        If it is not one of such a trace.
    """
    try:
        return _record(plain, scenario, trace)
    except (TypeError, LookupError, AttributeError) as error:
        raise ValueError(f"no record: {type(error).__name__}: {error}") from None


def _record(plain: dict[str, Any], scenario: Scenario, trace: Trace) -> Record:
    jobs, log = plain["jobs"], EpochLog()
    log.restore(plain["epochs"])
    if any(np.shape(jobs[name]) != (len(trace),) for name in JOBS):
        raise ValueError("not of as many jobs as the trace has")
    if any(jobs[name].dtype != np.int64 for name in JOBS):
        raise ValueError("jobs have whole numbers")
    if not all(isinstance(each, SolveRecord) for some in log.solves.values() for each in some):
        raise ValueError("solves are of another kind")
    begun, ended = (Integrals(*moment) for moment in plain["window"])
    return Record(
        scenario=scenario,
        trace=trace,
        jobs=JobsRecord(**{name: jobs[name] for name in JOBS}),
        epochs=log,
        intervals=tuple(plain["intervals"]),
        window=(begun, ended),
        **{name: plain["figures"][name] for name in FIGURES},
    )
