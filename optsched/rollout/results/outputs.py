"""Files of a rollout: summary.json, jobs.csv, epochs.csv, timing.json and intervals.csv.

Equal rollouts write equal bytes, but for timing.json. The metrics can be computed again from
jobs.csv, epochs.csv and the scenario.
"""

from __future__ import annotations

import hashlib
import json
from itertools import chain
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from optsched.documents.json_files import dumps, write_text
from optsched.results.result import versions
from optsched.rollout.declarations.names import became_of
from optsched.rollout.engine.waiting import KINDS
from optsched.rollout.physics.regimes import busy_shares
from optsched.rollout.results.bounds.rows import BoundRow
from optsched.rollout.results.decision_log import all_solves, epoch_column, epoch_solves
from optsched.rollout.results.given_up import is_given_up
from optsched.rollout.results.metrics import METRICS, metrics
from optsched.rollout.results.parts_of_held_time import PARTS
from optsched.rollout.results.record import ACTIVE
from optsched.traces.summary import failing_us
from optsched.traces.trace import STATUSES, US

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pandas as pd

    from optsched.rollout.engine.decision import SolveRecord
    from optsched.rollout.results.record import Integrals, Record
    from optsched.traces.trace import Trace

END = "end"


def write_outputs(record: Record, folder: Path, wall_s: float) -> None:
    """Write the files of a rollout; the summary comes last, when all others are there."""
    write_text(folder / "jobs.csv", _csv(jobs_frame(record)))
    write_text(folder / "epochs.csv", _csv(epochs_frame(record)))
    (folder / "intervals.csv").unlink(missing_ok=True)  # of an earlier rollout
    if record.intervals:
        write_text(folder / "intervals.csv", _csv(intervals_frame(record)))
    write_text(folder / "timing.json", dumps(timing(record, wall_s)))
    write_text(folder / "summary.json", dumps(summary(record)))


def summary(record: Record) -> dict[str, Any]:
    """Return the metrics and what they depend on, as in summary.json."""
    trace, became = record.trace, became_of(record.scenario, record.policy)
    scenario = record.scenario.model_dump(mode="json", by_alias=True, exclude_none=True)
    return {
        "schema": "optsched/rollout/1",
        "policy": record.policy,
        **({"policy_origin": record.origin} if record.origin else {}),
        **({"policy_became": became} if became else {}),
        "seed": record.seed,
        "metrics": metrics(record),
        "end_s": record.end_us / US,
        "window": [_counted(moment) for moment in record.window],
        "events": record.events,
        "trace": {
            "name": trace.name,
            "source": trace.source,
            "jobs": len(trace),
            "sha256": trace_sha256(trace),
        },
        "versions": versions(),
        "scenario": scenario,
    }


def _counted(moment: Integrals) -> dict[str, float]:
    """Return what was counted until a moment, in seconds instead of microseconds."""
    return {
        key.replace("_us", "_s"): value / US if key.endswith("_us") else value
        for key, value in moment._asdict().items()
    }


def summary_schema() -> dict[str, Any]:
    """Return the JSON Schema of summary.json."""
    number = {"type": ["number", "null"]}
    texts = {"type": "object", "additionalProperties": {"type": "string"}}
    measured = {name: number | {"description": text} for name, text in METRICS.items()}
    fields = {
        "schema": {"const": "optsched/rollout/1"},
        "policy": {"type": "string", "description": "Its name and options."},
        "policy_became": {
            "type": "string",
            "description": "What it has become, where the scenario lacks what it is about.",
        },
        "seed": {"type": "integer"},
        "metrics": {"type": "object", "properties": measured},
        "end_s": {"type": "number", "description": "When the rollout ended."},
        "window": {"description": "What was counted until the steady state began, and ended."},
        "events": {"description": "What happened, how often."},
        "trace": {"type": "object", "description": "Name, source, jobs and digest."},
        "versions": texts,
        "scenario": {"type": "object", "description": "See the schema of scenarios."},
        "bound": BoundRow.model_json_schema()
        | {"description": "Printed only: what no schedule of the same jobs can be below."},
    }
    names = {"$id": "optsched/rollout/1", "title": "Summary of a rollout"}
    return names | {
        "type": "object",
        "properties": fields,
        "required": [key for key in fields if key not in ("policy_became", "bound")],
    }


def timing(record: Record, wall_s: float) -> dict[str, Any]:
    """Return the seconds that a rollout took, and its calls of solvers, as in timing.json.

    Seconds of solvers hold those of the verifier, `verification_s`.
    """
    calls = all_solves(record)
    seconds = [call.seconds for call in calls]
    quantiles = {"p50": 50, "p95": 95, "max": 100}
    solver = {
        f"solver_{name}_s": float(np.percentile(seconds, share)) if seconds else None
        for name, share in quantiles.items()
    }
    total = {"wall_s": wall_s, "solver_s": float(sum(seconds)), "solver_calls": len(seconds)}
    verification_s = float(sum(call.verification_s for call in calls))
    share = verification_s / wall_s if wall_s else None
    return total | solver | {"verification_s": verification_s, "verification_share": share}


def jobs_frame(record: Record) -> pd.DataFrame:
    """Return one row per job of the trace: what it asked for, and what became of it.

    Times are seconds from the trace's first submission; NaN where something did not happen.
    `run_alone_s` is its work, `failing_s` the run time of its attempts that fail.
    """
    import pandas as pd

    trace, jobs = record.trace, record.jobs
    outcomes = {ACTIVE: "unfinished", **dict(enumerate(STATUSES))}
    ended = jobs.outcome != ACTIVE
    columns = {
        "job": list(trace.ids),
        "submit_s": trace.submit_us / US,
        "gpus": trace.gpus,
        "model": list(trace.model),
        "queue": list(trace.queue),
        "status": [STATUSES[code] for code in trace.status],
        "run_alone_s": trace.run_us / US,
        "failing_s": failing_us(trace) / US,
        "busy_share": busy_shares(record.scenario, trace),
        "deadline_s": _when(trace.deadline_us, trace.deadline_us >= 0),
        "outcome": [outcomes[code] for code in jobs.outcome.tolist()],
        "given_up": is_given_up(record).astype(np.int64),
        "first_start_s": _when(jobs.first_start_us, jobs.first_start_us >= 0),
        "end_s": _when(jobs.end_us, ended),
        "jct_s": _when(jobs.end_us - trace.submit_us, ended),
    }
    for key in ("running", "waiting", *KINDS):
        columns[f"{key}_s"] = getattr(jobs, f"{key}_us") / US
    for kind in KINDS:
        columns[f"{kind}_delays"] = getattr(jobs, f"{kind}_delays")
    for key in ("allocated", *PARTS, "effective"):
        columns[f"{key}_gpu_s"] = getattr(jobs, f"{key}_gpu_us") / US
    for key in ("attempts", "preemptions", "migrations", "rescales", "failures", "outages"):
        columns[key] = getattr(jobs, key)
    return pd.DataFrame(columns)


def epochs_frame(record: Record) -> pd.DataFrame:
    """Return one row per decision: the cluster just after it; and one for the end.

    GPU-seconds and joules are the sums from the start until then. `gap` is the greatest of the
    decision's solves; objective and bound are those of the last. `verified` is whether the verifier
    confirmed what they state: all of them, or not; empty if it was not asked about some.
    """
    import pandas as pd

    rows = len(record.epochs) + 1
    columns: dict[str, Any] = {"now_s": _ended(record, "now_us", record.end_us) / US}
    for key in ("pending", "running", "busy_gpus", "free_gpus", "rented_nodes", "power_w"):
        values = epoch_column(record, key)
        columns[key] = _ended(record, key, values[-1] if len(values) else 0)
    for key in ("busy_gpu_us", "available_gpu_us", "spent_gpu_us"):
        columns[key.replace("_us", "_s")] = _ended(record, key, getattr(record, key)) / US
    columns["energy_j"] = _ended(record, "energy_j", record.energy_j)
    if record.scenario.has_prices:
        columns["billed_usd"] = _ended(record, "billed_usd", record.billed_usd)
    columns["changes"] = _ended(record, "changes", 0)
    columns |= {key: np.zeros(rows, np.int64) for key in ("solves", "fallbacks")}
    columns |= {key: np.full(rows, np.nan) for key in ("gap", "objective", "bound")}
    columns["status"] = [""] * (rows - 1) + [END]
    columns["verified"] = [""] * rows
    for row, calls in epoch_solves(record).items():
        columns["solves"][row] = len(calls)
        columns["fallbacks"][row] = sum(call.fallback for call in calls)
        columns["gap"][row] = max((c.gap for c in calls if isfinite(c.gap)), default=np.nan)
        columns["objective"][row] = calls[-1].objective
        columns["bound"][row] = calls[-1].bound
        columns["status"][row] = " ".join(call.told for call in calls)
        columns["verified"][row] = _all_verified(calls)
    return pd.DataFrame(columns)


def _all_verified(calls: Sequence[SolveRecord]) -> str:
    verdicts = {call.verified for call in calls}
    return "false" if False in verdicts else "" if None in verdicts else "true"


def intervals_frame(record: Record) -> pd.DataFrame:
    """Return one row per stretch of time for which a job held the same GPUs."""
    import pandas as pd

    rows = [
        (record.trace.ids[job], start / US, end / US, " ".join(map(str, gpus)))
        for job, start, end, gpus in record.intervals
    ]
    return pd.DataFrame(rows, columns=["job", "from_s", "to_s", "gpus"])


def trace_sha256(trace: Trace) -> str:
    """Return a hash of all that a rollout reads of a trace."""
    digest = hashlib.sha256()
    for words in (trace.ids, trace.model, trace.queue):
        digest.update(json.dumps(words).encode())
    whole = (trace.submit_us, trace.gpus, trace.run_us, trace.status, trace.deadline_us)
    for array in whole:
        digest.update(array.astype("<i8").tobytes())
    digest.update(trace.utilization.astype("<f8").tobytes())
    failures = [(job, *chain(*((f.reason, f.run_us) for f in trace.failures[job])))
                for job in sorted(trace.failures)]  # fmt: skip
    digest.update(json.dumps(failures).encode())
    return digest.hexdigest()


def _ended(record: Record, key: str, last: float) -> Any:
    """Return a column of the decisions with an entry for the end."""
    return np.append(np.asarray(epoch_column(record, key)), last)


def _when(us: Any, told: Any) -> Any:
    return np.where(told, us / US, np.nan)


def _csv(frame: pd.DataFrame) -> str:
    text: str = frame.to_csv(index=False, lineterminator="\n")
    return text
