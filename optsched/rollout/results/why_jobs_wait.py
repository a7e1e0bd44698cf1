"""Why jobs wait, as in table 2 and figure 3 of ATC'19."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optsched.rollout.engine.waiting import KINDS
from optsched.rollout.results.size_classes import by_size
from optsched.traces.trace import US

if TYPE_CHECKING:
    import pandas as pd

    from optsched.documents.arrays import Integers
    from optsched.rollout.results.record import JobsRecord, Record

PERCENTILES = (50, 75, 90, 95)


def delays_of(jobs: JobsRecord, chosen: Integers) -> dict[str, float | int | None]:
    """Return how many starts of some jobs were delayed, and the share of fragmentation in them."""
    counts = {kind: int(getattr(jobs, f"{kind}_delays")[chosen].sum()) for kind in KINDS}
    both = counts["fragmentation"] + counts["fair_share"]
    share = counts["fragmentation"] / both if both else None
    return {"delayed_starts": sum(counts.values()), "fragmentation_share": share}


def why_jobs_wait(record: Record) -> pd.DataFrame:
    """Return why jobs of each class of size wait (ATC'19, table 2).

    Returns
    -------
    pandas.DataFrame
        A row for each class of size that has jobs. By kind the starts that were delayed by more
        than 60 s and the hours waited; `fragmentation_share` is fragmentation / (fragmentation +
        fair share) of the delayed starts, NaN if there are none. The rule is in docs/rollouts.md.
    """
    import pandas as pd

    rows = {}
    for name, chosen in by_size(record.trace).items():
        if not len(chosen):
            continue
        jobs = record.jobs
        delays = {f"{kind}_delays": getattr(jobs, f"{kind}_delays")[chosen].sum() for kind in KINDS}
        hours = {
            f"{kind}_h": getattr(jobs, f"{kind}_us")[chosen].sum() / US / 3600 for kind in KINDS
        }
        rows[name] = {"jobs": len(chosen), **delays_of(jobs, chosen), **delays, **hours}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("size")


def first_waits(record: Record, by_queue: bool = True) -> pd.DataFrame:
    """Return percentiles of the time until the first start, in minutes (ATC'19, figure 3).

    Returns
    -------
    pandas.DataFrame
        A row for each queue and class of size with jobs that have started, or for each class.
    """
    import pandas as pd

    start, queues = record.jobs.first_start_us, np.array(record.trace.queue, dtype=object)
    wait = np.where(start >= 0, start - record.trace.submit_us, -1) / US / 60
    rows = {}
    for queue in sorted(set(record.trace.queue)) if by_queue else [None]:
        mine = np.ones(len(queues), dtype=bool) if queue is None else queues == queue
        for name, chosen in by_size(record.trace).items():
            waits = wait[chosen[mine[chosen] & (wait[chosen] >= 0)]]
            if len(waits):
                values = np.percentile(waits, PERCENTILES)
                row = {f"p{share}": value for share, value in zip(PERCENTILES, values, strict=True)}
                rows[(queue, name) if by_queue else name] = {"jobs": len(waits), **row}
    frame = pd.DataFrame.from_dict(rows, orient="index")
    return frame.rename_axis(["queue", "size"] if by_queue else "size")
