"""Hypothesis profiles: quick by default, deeper with HYPOTHESIS_PROFILE=ci, all with =full.

`full` runs as many examples as each law names (two thousand where it names none), which takes some
forty minutes on two cores; `ci` at most 200 of each, and 80 of those that take longest, so that all
of CI stays well below that; the default has 10, so that all tests take some minutes.
"""

import functools
import gc
import os
import signal

# What a shell runs by "&" does not hear Ctrl-C; tests press it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ.setdefault("OMP_NUM_THREADS", "1")  # each core has a process of pytest-xdist

import typer.testing
from hypothesis import HealthCheck, settings

gc.disable()  # until all tests are collected: a million objects are made, and few of them die
gc.set_threshold(10_000, 20, 20)  # less often than by default

# Each call of the command line in a test would build all commands anew, most of its time.
typer.testing._get_command = functools.cache(typer.testing._get_command)

COMMON = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}
settings.register_profile("default", max_examples=10, **COMMON)
settings.register_profile("ci", max_examples=200, derandomize=True, **COMMON)
settings.register_profile("full", max_examples=2000, derandomize=True, **COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_collection_finish():
    gc.freeze()
    gc.unfreeze()  # what was collected is old now, and is not looked through as if it were new
    gc.enable()
