"""Jobs of SenseTime's Helios clusters: cluster_log.csv of Venus, Earth, Saturn or Uranus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.traces.importers.slurm_log import read_log

if TYPE_CHECKING:
    from optsched.traces.trace import Trace

SOURCE = "SenseTime Helios (Hu et al., SC'21), S-Lab-System-Group/HeliosData"


def read(text: str, name: str, origin: str, *, zone: str = "Asia/Shanghai") -> Trace:
    """Read job_id, user, vc, gpu_num, state, submit_time, start_time and end_time.

    Jobs of CPUs only are left out. TIMEOUT and NODE_FAIL count as failures, as in the paper.

    Parameters
    ----------
    zone
        Where the clock hangs: times have no zone.
    """
    return read_log(text, name, origin, SOURCE, {"queue": "vc", "user": "user"}, zone)
