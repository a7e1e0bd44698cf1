"""Points of frontiers against oracles from outside, value by value."""

import copy

import pytest
from hypothesis import settings

import optsched
from tests.support.outside.instances import DRAWN
from tests.support.outside.laws import PROBLEMS, Truth, instance_of, of_points

COUNT = min(settings().max_examples, 250)


def swept(name, seed):
    """An instance, the path of a parameter, its values, and the documents at these."""
    document = DRAWN[name](seed)
    if name == "boa":
        key = "target_mean_jct_s" if "target_mean_jct_s" in document else "budget_gpus"
        for other in ("budget_usd_per_h", "price_usd_per_gpu_h"):
            document.pop(other, None)
        limit = document.setdefault(key, 10.0)
        values = [limit * factor for factor in (0.5, 1.0, 1.01, 1.5, 20.0)]
        return document, key, values, [document | {key: value} for value in values]
    field = {"pal": "weight", "eaco": "max_slowdown"}[name]
    values, documents = [1.0, 1.25, 3.0], []
    for value in values:
        changed = copy.deepcopy(document)
        for job in changed["jobs"]:
            job[field] = value
        documents.append(changed)
    return document, f"jobs.*.{field}", values, documents


@pytest.mark.parametrize("name", PROBLEMS)
def test_no_point_of_a_frontier_states_what_an_oracle_knows_to_be_false(name):
    for seed in range(3000, 3000 + max(4, COUNT // 5)):
        document, path, values, documents = swept(name, seed)
        values, documents = zip(
            *((v, d) for v, d in zip(values, documents, strict=True) if 1e-9 <= v <= 1e12),
            strict=True,
        )
        truths = {v: Truth(name, d) for v, d in zip(values, documents, strict=True)}
        frontier = optsched.frontier(instance_of(name, document), path, values, executor=1)
        assert len(frontier.points) == len(values)
        assert not list(of_points(truths, frontier.points)), (name, seed)


def test_speedups_as_one_writes_them_give_no_value_above_the_optimum():
    gpus = [1, 3, 6, 12]
    table = {"kind": "table", "gpus": gpus, "speedup": [0.1 * k for k in gpus]}
    phases = [{"work_gpu_s": 1000.0, "speedup": table}]
    job_class = {"id": "a", "arrival_rate_per_h": 3.6, "phases": phases}
    document = {"schema": "optsched/boa/1", "name": "linear", "widths": "mixed"}
    document |= {"budget_gpus": 20.0, "classes": [job_class]}
    points = optsched.frontier(instance_of("boa", document), budgets=[20.0], executor=1).points
    assert not list(of_points({20.0: Truth("boa", document)}, points))
