"""Figures that the verifier keeps for the next instance follow from tables alone."""

from optsched.eaco import EacoInstance, EacoPlan, Group
from optsched.eaco.kept_by_tables import KeptByTables
from optsched.eaco.verify.feasibility import exact_objective
from optsched.instance import read
from optsched.rollout.run import simulate
from optsched.rollout.scenario_files import read_scenario
from optsched.rollout.trace_source import jobs_of

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
