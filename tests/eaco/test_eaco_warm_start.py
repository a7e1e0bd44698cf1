"""EaCO's column generation from the last epoch's result: never more work than from nothing."""

import numpy as np
import pytest

import optsched
from benchmarks.generators import sharing
from optsched.eaco import EacoInstance
from optsched.eaco.exact import large_scale
from optsched.eaco.exact.column_generation import ColumnGeneration
from optsched.eaco.exact.master import frame
from optsched.eaco.groups.enumeration import job_classes
from optsched.eaco.primal.annealing import GroupAnnealing
from optsched.eaco.primal.batch_greedy import filled
from optsched.eaco.settings import SETTINGS


def ten_minutes_later(instance):
    """Return the jobs that are left, with less work."""
    document = instance.model_dump(by_alias=True, exclude_none=True)
    left = [job | {"work_s": job["work_s"] - 600} for job in document["jobs"]]
    document["jobs"] = [job for n, job in enumerate(left) if n % 30]
    return EacoInstance.from_document(document)


@pytest.mark.parametrize("seed", [1, 8, 9])
def test_a_warm_start_dives_no_more_than_a_cold_one(monkeypatch, seed):
    """It took up to six times as long: its prices proved more, and made worse greedy plans."""
    dives = []
    dive = large_scale.dive
    monkeypatch.setattr(large_scale, "dive", lambda *args: dives.append(1) or dive(*args))
    before = sharing(110, 3, 0.25, seed)
    last = optsched.solve(before, gap=1e-2)
    after = ten_minutes_later(before)
    dives.clear()
    cold = optsched.solve(after, gap=1e-2)
    from_nothing = len(dives)
    dives.clear()
    warm = optsched.solve(after, gap=1e-2, start=last)
    assert cold.status == warm.status == "optimal"
    assert len(dives) <= from_nothing


def test_a_greedy_plan_keeps_groups_only_as_far_as_there_are_jobs_for_them():
    instance = sharing(12, 3, 0.25)
    classes = job_classes(instance)
    generation = ColumnGeneration(instance, classes, frame(instance, classes), 0)
    members = np.array([[0, 12, 12], [0, 12, 12], [1, 12, 12]])
    kept = generation.known_groups(members)
    pays = generation.bound.duals.jobs
    plan = filled(instance, classes, generation.pricing_problems, pays, kept)
    assert sorted(plan.members[plan.members < 12].tolist()) == list(range(12))
    alone = plan.members[(plan.members < 12).sum(axis=1) == 1][:, 0].tolist()
    assert {0, 1} <= set(alone)


def test_a_warm_start_annealed_for_seconds_towards_what_its_old_prices_could_not_prove(monkeypatch):
    """A large gang came, the bound was loose, and all sweeps were made before it was renewed."""
    before = sharing(90, 4, 0.25, 1)
    last = optsched.solve(before, gap=0.01)
    later = ten_minutes_later(before)
    sweeps = []
    sweep = GroupAnnealing._sweep

    def counted(annealing, number, heat):
        sweeps.append(number)
        sweep(annealing, number, heat)

    def closed(solver, *given):
        assert sweeps, "annealing comes first"
        raise KeyboardInterrupt  # what comes after it is not of interest here

    monkeypatch.setattr(large_scale._Columns, "_goal", lambda solver, share=1.0: -np.inf)
    monkeypatch.setattr(GroupAnnealing, "_sweep", counted)
    monkeypatch.setattr(large_scale._Columns, "_solved", closed)
    optsched.solve(later, gap=1e-4, start=last)
    assert 0 < max(sweeps) < SETTINGS.annealing_warm[2] < SETTINGS.annealing_sweeps
