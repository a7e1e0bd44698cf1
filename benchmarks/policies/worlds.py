"""The clusters on which policies are measured: as large, with what each kind of policy is about."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.suite.rollout import MODELS as ELASTIC_MODELS
from benchmarks.suite.rollout import PER_NODE, speedup_of
from optsched.rollout.scenario import Scenario
from optsched.rollout.scenario_files import read_scenario
from optsched.traces.generators.registry import generate
from optsched.traces.trace import trace_of

if TYPE_CHECKING:
    from optsched.traces.trace import Trace

EPOCH_S = 300.0
SEED = 1


@dataclass(frozen=True)
class Size:
    """How many jobs come, on how many nodes of 8 GPUs, and at what load.

    Attributes
    ----------
    load
        GPU-seconds that the jobs take as they ask, by those that there are until the last comes;
        None: it is that of `file`.
    file
        philly_jobs_pollux.csv[.gz], whose jobs then replace generated ones.
    """

    jobs: int
    nodes: int
    load: float | None = 0.9
    file: str | None = None


def made(kind: str, size: Size) -> tuple[Scenario, Trace]:
    """Return a scenario and its trace: fixed gangs, "places", "sharing" or "elastic"."""
    parts = KINDS[kind](size)
    scenario = Scenario(
        name=kind,
        nodes=size.nodes,
        gpus_per_node=PER_NODE,
        epoch_s=EPOCH_S,
        trace={"generator": "philly-atc19", "jobs": size.jobs},
        **parts,
    )
    trace = _published(size) if size.file else _generated(size)
    names = sorted(scenario.models)
    if names:
        drawn = np.random.default_rng(SEED).integers(0, len(names), len(trace))
        trace = replace(trace, model=tuple(names[n] for n in drawn))
    return scenario, trace


def _generated(size: Size) -> Trace:
    gpus = size.nodes * PER_NODE
    return generate("philly-atc19", size.jobs, SEED, load=size.load, gpus=gpus)


def _published(size: Size) -> Trace:
    import pandas as pd

    table = pd.read_csv(size.file).head(size.jobs)
    when = pd.to_datetime(table["timestamp"])
    columns = {
        "submit_s": (when - when.min()).dt.total_seconds().to_numpy(),
        "gpus": table["num_gpus"],
        "run_s": table["duration"],
    }
    return trace_of("philly", "philly_jobs_pollux.csv", columns)


def _gangs(size: Size) -> dict[str, Any]:
    return {}


def _places(size: Size) -> dict[str, Any]:
    """PAL's classes and penalty; each GPU is as slow as one of PAL's 64, drawn at random."""
    like = read_scenario("pal-64")
    assert like.profile is not None
    known = like.profile.slowdown
    drawn = np.random.default_rng(SEED).integers(0, 64, size.nodes * PER_NODE)
    profile = {
        "gpus": [f"n{n}/{g}" for n in range(size.nodes) for g in range(PER_NODE)],
        "slowdown": {name: np.array(values)[drawn].tolist() for name, values in known.items()},
        "kind": like.profile.kind,
    }
    return {"profile": profile, "locality": like.locality, "models": like.models}


def _sharing(size: Size) -> dict[str, Any]:
    like = read_scenario("eaco-64")
    return {"sharing": like.sharing, "power": like.power, "models": like.models}


def _elastic(size: Size) -> dict[str, Any]:
    return {"models": {name: speedup_of(fraction) for name, fraction in ELASTIC_MODELS.items()}}


KINDS = {"gangs": _gangs, "places": _places, "sharing": _sharing, "elastic": _elastic}
