"""What the figures were measured on, and with; nothing of it names a host, a user or a folder."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = (
    "optsched",
    "highspy",
    "numpy",
    "scipy",
    "pyomo",
    "networkx",
    "cvxpy",
    "cylp",
    "cvxopt",
    "ortools",
    "simpy",
)


def machine() -> dict[str, str | int | float]:
    """Return processor, cores that may be used, memory and system."""
    return {
        "processor": _processor(),
        "cores": _cores(),
        "memory_gib": round(_memory_gib(), 1),
        "system": f"{platform.system()} {platform.machine()}",
    }


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that are installed."""
    installed = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            installed[name] = version(name)
        except PackageNotFoundError:
            continue
    return installed


def commit() -> str:
    """Return the commit of the code in short; nothing where there is no git."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    try:
        ended = subprocess.run(
            command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False
        )
    except OSError:
        return ""
    return ended.stdout.strip()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _memory_gib() -> float:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    except (ValueError, OSError, AttributeError):
        return 0.0
