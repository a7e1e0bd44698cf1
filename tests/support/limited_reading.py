"""Reads the hostile files one by one, within limits of memory and CPU time; run in a child.

``python -m tests.support.limited_reading FOLDER SHARE [NAME...]`` prints a line of JSON for each
file: its name, how the reading ended, CPU seconds, and the greatest memory so far in MiB.
"""

import json
import resource
import sys
import time
import traceback
import warnings
from pathlib import Path

from tests.support.hostile_files import HOSTILE

MEMORY, SECONDS = 2 << 30, 35
REFUSALS = (ValueError, LookupError, OSError)


def readers():
    """The functions that read files, by name."""
    import optsched
    from optsched.cluster import import_topology, read_profile_csv, read_topology
    from optsched.results.result_files import read_result
    from optsched.rollout.scenario_files import read_scenario
    from optsched.sweeps.frontier_files import read_frontier
    from optsched.traces import import_trace, read_trace

    every = (
        optsched.read, import_topology, read_profile_csv, read_topology, read_result, read_scenario,
        read_frontier, import_trace, read_trace,
    )  # fmt: skip
    return {function.__name__: function for function in every}


def outcome(read, path, arguments):
    """Read a file: what came of it, in a few words; a traceback if it ended otherwise."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            read(path, *arguments)
    except REFUSALS as error:
        return ["refused", str(error)[:200]]
    except BaseException as error:
        return ["traceback", "".join(traceback.format_exception(error))[-1500:]]
    return ["read", ""]


def main(folder, share, *names):
    known = readers()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for each in HOSTILE:
        if names and each.name not in names:
            continue
        path = Path(folder) / each.name
        path.write_bytes(each.content(max(2, int(each.count * float(share)))))
        began = time.process_time()
        resource.setrlimit(resource.RLIMIT_CPU, (int(began) + 10 * SECONDS, -1))
        told = outcome(known[each.reader], path, each.arguments)
        size = path.stat().st_size
        path.unlink()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        spent = round(time.process_time() - began, 2)
        print(json.dumps([each.name, size, *told, spent, peak]), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
