"""Figures that the verifier keeps for the next instance follow from tables alone."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from optsched.eaco import EacoInstance, EacoPlan, Group
from optsched.eaco.kept_by_tables import KeptByTables
from optsched.eaco.verify import feasibility, kept_figures
from optsched.eaco.verify.feasibility import exact_objective
from optsched.instance import read
from optsched.rollout.run import simulate
from optsched.rollout.scenario_files import read_scenario
from optsched.rollout.trace_source import jobs_of
from tests.support.strategies.common import law
from tests.support.strategies.eaco import eaco_instances

PAPER = read("eaco/paper-four")


def hotter(instance):
    """Return the same jobs, where every measured set draws twice as much."""
    table = instance.interference
    groups = tuple(
        group.model_copy(update={"gpu_power_w": 2 * group.gpu_power_w}) for group in table.groups
    )
    return instance.model_copy(update={"interference": table.model_copy(update={"groups": groups})})


def all_together(instance):
    jobs = tuple(job.id for job in instance.jobs)
    return EacoPlan(groups=(Group(jobs=jobs, nodes=instance.nodes[0].id),))


def test_figures_of_other_tables_are_not_taken_for_those_of_an_instance():
    plan = all_together(PAPER)
    energy = exact_objective(PAPER, plan)
    assert exact_objective(hotter(PAPER), plan) == 2 * energy
    assert exact_objective(PAPER, plan) == energy


def test_other_jobs_on_the_same_tables_share_rates_and_have_figures_of_their_own():
    longer = PAPER.model_copy(
        update={
            "jobs": tuple(job.model_copy(update={"work_s": 2 * job.work_s}) for job in PAPER.jobs)
        }
    )
    gpu = PAPER.gpu_types[0].id
    assert longer.rates[gpu] is PAPER.rates[gpu]
    assert EacoInstance.model_validate_json(PAPER.to_json()).rates[gpu] is not PAPER.rates[gpu]
    plan = all_together(PAPER)
    assert exact_objective(longer, plan) == 2 * exact_objective(PAPER, plan)


def test_no_more_is_kept_than_is_said():
    kept, tables = KeptByTables(most_tables=2, most_figures=3), [("a",), ("b",), ("c",)]
    for table in tables:
        kept.of(table).of().update(dict.fromkeys(range(4), table))
    assert not len(kept.of(tables[0]))  # the oldest of three
    assert not len(kept.of(tables[2]))  # too many figures


def test_each_round_of_the_exact_policy_on_shared_tables_is_verified():
    scenario = read_scenario("eaco-28").changed({"trace.jobs": 12})
    run = simulate(scenario, "eaco", trace=jobs_of(scenario, None, 0), seed=0)
    calls = [call for epoch in run.record.epochs for call in epoch.solves]
    assert calls
    assert all(call.verified for call in calls)
    assert all(call.objective - call.bound <= 1e-2 * call.objective for call in calls)


# --- groups of plans that were offered before -------------------------------------------------


@st.composite
def plans(draw, instance):
    """Jobs in groups of any kind, on any nodes and at any location; rules may be broken."""
    left, groups = draw(st.permutations([job.id for job in instance.jobs])), []
    while left and draw(st.integers(0, 5)):
        many = draw(st.integers(1, min(3, len(left))))
        nodes = draw(st.sampled_from(instance.nodes))
        places = [place for place in instance.running if place.nodes == nodes.id]
        place = draw(st.sampled_from([None, *places]))
        gpu = next(gpu for gpu in instance.gpu_types if gpu.id == nodes.gpu)
        levels = [None, *(level.id for level in gpu.levels)]
        groups.append(
            Group(
                jobs=tuple(left[:many]),
                nodes=nodes.id,
                node=draw(st.integers(0, 2)) if place is None else place.node,
                level=draw(st.sampled_from(levels)),
                location=None if place is None else place.id,
            )
        )
        left = left[many:]
    return EacoPlan(groups=tuple(groups), waiting=tuple(left))


@law(300)
@given(st.data(), eaco_instances())
def test_a_plan_is_what_it_is_whatever_was_offered_before(data, instance):
    """Or under other limits, on the same tables."""
    names = "memory_headroom", "utilisation_limit", "max_jobs_per_gpu"
    limits = [
        dict(zip(names, own, strict=True)) for own in product((0.0, 0.5), (None, 0.4), (2, 3))
    ]
    offered = data.draw(st.lists(plans(instance), min_size=2, max_size=5))
    under = [(instance.model_copy(update=own), plan) for own, plan in product(limits, offered)]
    kept = [judged(changed, plan) for changed, plan in under]
    for (changed, plan), told in zip(under, kept, strict=True):
        feasibility._last = None
        kept_figures._KEPT = KeptByTables(most_tables=1, most_figures=100)
        assert judged(changed, plan) == told


def judged(instance, plan):
    broken = feasibility.violations(instance, plan)
    return broken, None if broken else exact_objective(instance, plan)
