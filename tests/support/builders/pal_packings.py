"""Packings of gangs to begin from."""

import numpy as np

from optsched.pal.exact.arrays import arrays
from optsched.pal.exact.rounding import GangPacking
from tests.support.strategies.pal import small_instance


def one_running_one_waiting():
    """A job that runs on a slower GPU, dear to restart, and one that may go anywhere."""
    slowdown = {"A": [1.0, 1.1, 1.0, 1.1]}
    jobs = [{"gpus": 1, "current": ["a/1"], "restart_s": 5.0, "remaining_s": 9.0}]
    jobs.append({"gpus": 1, "remaining_s": 9.0})
    instance = small_instance({"a": 2, "b": 2}, slowdown, jobs=jobs)
    packing = GangPacking(arrays(instance))
    packing.put(0, np.array([1]))
    packing.put(1, np.array([3]))
    return packing
