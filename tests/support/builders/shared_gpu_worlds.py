"""Worlds of two models that share GPUs, and who held which GPU there."""

from optsched.rollout.engine.engine import Engine
from optsched.rollout.registry import make
from tests.support.builders.rollout_parts import scenario


def world(rate, *, gpus=1, tolerance=1.5, most=2, **parts):
    """Two models that use a fifth of a GPU each, and truly run beside each other at a rate."""
    model = {"utilisation": 0.2, "max_slowdown": tolerance}
    groups = [{"types": ["a", "b"], "rates": [rate, rate]}]
    return scenario(
        nodes=1,
        gpus_per_node=gpus,
        models={"a": model, "b": model},
        sharing={"max_jobs_per_gpu": most, "interference": {"groups": groups}},
        **parts,
    )


def rolled(where, jobs, policy):
    """The record of a policy, with its intervals."""
    return Engine(where, jobs, make(policy, where, 0), 0, keep_intervals=True).run()


def held(record, job):
    """When a job held which GPUs, in seconds."""
    rows = sorted(each for each in record.intervals if each[0] == job)
    return [(row[1] / 1e6, row[2] / 1e6, tuple(row[3])) for row in rows]
