"""Jobs of the Shanghai AI Lab's Acme clusters: trace_seren.csv and trace_kalos.csv."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.traces.importers.slurm_log import read_log

if TYPE_CHECKING:
    from optsched.traces.trace import Trace

SOURCE = "Acme (Hu et al., NSDI'24), InternLM/AcmeTrace, CC-BY-4.0"


def read(text: str, name: str, origin: str, *, zone: str = "Asia/Shanghai") -> Trace:
    """Read job_id, user, type, gpu_num, state, submit_time, start_time and end_time.

    The queue is the user, the model the type of workload. Run time is from start to end: the
    column duration holds the wait as well in Kalos, but not in Seren.

    Parameters
    ----------
    zone
        Of times that have none; the published files have one.
    """
    words = {"queue": "user", "user": "user", "model": "type"}
    return read_log(text, name, origin, SOURCE, words, zone)
