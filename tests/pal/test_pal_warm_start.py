"""The previous epoch is used where it helps, and does no harm if it is odd."""

import functools

import numpy as np
import pytest

import optsched
from optsched.mip.incremental_lp import LinearProgram
from optsched.pal.exact import bounding
from optsched.pal.exact import warm_start as warm
from optsched.pal.exact.arrays import arrays
from optsched.pal.plan import Keeps, Leaf, PalCertificate, PalPlan, Split, Within
from optsched.pal.settings import SETTINGS
from optsched.results.result_files import read_result
from tests.support.strategies.pal import small_instance


def resumed(instance, start, method=None, **options):
    """Solve after a previous epoch, and have the verifier prove the outcome."""
    result = optsched.solve(instance, method, start=start, **options)
    optsched.verify(instance, result)
    return result


# --- what it saves ------------------------------------------------------------------------------


@functools.cache
def racks():
    """A bundled cluster of 256 GPUs, solved to one per cent."""
    instance = optsched.read("pal/racks-256")
    return instance, optsched.solve(instance, gap=0.01)


def next_epoch(instance):
    """The last two jobs have ended, and three like the first ones have come."""
    new = [job.model_copy(update={"id": f"new-{n}"}) for n, job in enumerate(instance.jobs[2:5])]
    return instance.model_copy(update={"jobs": (*instance.jobs[:-2], *new)})


@pytest.fixture
def no_linear_program(monkeypatch):
    racks()

    def solve(*arguments):
        raise AssertionError("a linear program is solved")

    monkeypatch.setattr(LinearProgram, "solve", solve)


def test_no_linear_program_is_solved_if_old_prices_are_enough(no_linear_program):
    instance, result = racks()
    after = resumed(next_epoch(instance), result, gap=0.02)
    assert (after.status, after.deterministic) == ("optimal", True)
    again = resumed(next_epoch(instance), after, gap=0.02)
    assert again.objective <= after.objective


def test_blocks_are_not_solved_if_old_prices_are_enough(monkeypatch, no_linear_program):
    monkeypatch.setitem(vars(SETTINGS), "block_gpus", 64)
    monkeypatch.setitem(vars(SETTINGS), "few_options", 0)
    monkeypatch.setitem(vars(SETTINGS), "block_gangs", 1)
    instance, result = racks()
    assert resumed(next_epoch(instance), result, "decomposition", gap=0.02).gap <= 0.02


def test_a_result_from_a_file_does_as_well(tmp_path, no_linear_program):
    instance, result = racks()
    optsched.write(result, tmp_path / "result.json")
    start = read_result(tmp_path / "result.json")
    assert start.state is None
    assert resumed(next_epoch(instance), start, gap=0.02).gap <= 0.02


def test_prices_go_by_the_names_of_gpus(no_linear_program):
    """A GPU that is down takes its price along, and one that is up again gets the greatest."""
    instance, result = racks()
    used = {gpu for placement in result.plan.jobs for gpu in placement.gpus}
    idle = next(gpu for gpu in instance.free_gpus if gpu not in used)
    down = instance.model_copy(update={"unavailable": (idle,)})
    without = resumed(down, result, gap=0.02)
    assert without.gap <= 0.02
    assert resumed(instance, without, gap=0.02).gap <= 0.02


def test_times_may_be_in_another_unit(no_linear_program):
    instance, result = racks()
    assert resumed(instance.changed({"jobs.*.weight": 250.0}), result, gap=0.011).gap <= 0.011


def test_fewer_options_are_left_below_the_old_prices(monkeypatch):
    """Where the old prices do not close the gap, they still fix options."""
    instance, result = racks()
    sizes = []
    relaxation = bounding.NodeRelaxation
    monkeypatch.setattr(
        bounding,
        "NodeRelaxation",
        lambda *args: sizes.append(len(args[1].type)) or relaxation(*args),
    )
    resumed(instance, result, gap=0.004)
    optsched.solve(instance, gap=0.004)
    assert 0 < sizes[0] < 0.9 * max(sizes)


# --- what is odd --------------------------------------------------------------------------------

HUGE = [{"rule": 0, "price": 1e308}, {"rule": 1, "price": 1e308}]
SMALL = small_instance({"a": 2, "b": 2}, {"A": [1.0, 1.25, 1.5, 2.0]}, jobs=[2, 1])


def with_certificate(**fields):
    start = optsched.solve(SMALL)
    return start.model_copy(update={"certificate": PalCertificate(**fields)})


@pytest.mark.parametrize(
    "fields",
    [
        {"nodes": [Split(rule=0, at_most=1, cases=(1, 2))]},
        {"nodes": [Leaf(gpu_prices=[1e308] * 4)]},
        {"nodes": [Leaf(gpu_prices=[0.5] * 3)]},
        {"nodes": [Leaf(gpu_prices=[0.1] * 4, split_prices=[3.0])]},
        {"nodes": [Leaf(gpu_prices=[0.1] * 4, cuts=[{"rule": 7, "price": 1.0}])]},
        {
            "nodes": [
                Leaf(gpu_prices=[0.1] * 4, cuts=[{"rule": n, "price": 1e308} for n in (0, 1)])
            ],
            "rules": [Within(types=["j0", "gone"], domain="a"), Keeps(job="j1")],
        },
        {
            "nodes": [Leaf(gpu_prices=[0.1] * 4, cuts=[{"rule": n, "price": 0.2} for n in (0, 1)])],
            "rules": [Within(types=["gone"], domain="a"), Within(types=["j0"], domain="gone")],
        },
        {"kind": "infeasible", "left_out": 1.0, "nodes": [Leaf(gpu_prices=[0.1] * 4)]},
        {"nodes": [Leaf(gpu_prices=[0.0] * 4)], "exclusions": [Leaf(gpu_prices=[0.3] * 4)]},
    ],
)
@pytest.mark.parametrize("method", ["exact", "decomposition"])
def test_odd_certificates_do_no_harm(fields, method, monkeypatch):
    monkeypatch.setitem(vars(SETTINGS), "block_gpus", 2)
    monkeypatch.setitem(vars(SETTINGS), "few_options", 0)
    monkeypatch.setitem(vars(SETTINGS), "block_gangs", 1)
    result = resumed(SMALL, with_certificate(**fields), method)
    assert result.objective == optsched.solve(SMALL).objective


def test_odd_plans_do_no_harm():
    plans = [
        [("j0", ["a/0", "a/0"]), ("j1", ["b/0"])],
        [("j0", ["a/0", "a/1"]), ("j1", ["a/1"])],
        [("j0", ["a/0"]), ("gone", ["b/0"])],
        [("j0", ["nowhere", "a/0"])],
        [],
    ]
    best = optsched.solve(SMALL)
    for places in plans:
        plan = PalPlan.model_validate({"jobs": [{"id": n, "gpus": gpus} for n, gpus in places]})
        start = best.model_copy(update={"plan": plan})
        assert resumed(SMALL, start).objective == best.objective


def test_cuts_are_carried_over_to_new_jobs_of_their_class():
    """A cut of gangs of two or more counts those that are new, too, and proves as much."""
    rule = Within(types=["j0"], domain="a", slowest=1.25)
    leaf = Leaf(gpu_prices=[0.3, 0.2, 0.1, 0.0], cuts=[{"rule": 0, "price": 0.4}])
    certificate = PalCertificate(rules=[rule], nodes=[leaf])
    start = optsched.solve(SMALL).model_copy(update={"certificate": certificate})
    after = small_instance(
        {"a": 2, "b": 2}, {"A": [1.0, 1.25, 1.5, 2.0]}, jobs=[2, 1, {"gpus": 2, "weight": 3.0}]
    )
    problem = arrays(after)
    (solution,) = warm.previous_duals(after, problem, start, start.objective)
    (rule,) = solution.rules
    assert [problem.types[t].gpus for t in rule.types] == [2, 2]
    assert solution.duals.cuts == {0: 0.4}
    np.testing.assert_array_equal(solution.duals.gpus, leaf.gpu_prices)
