"""EaCO's column generation: the optima over all groups, with proofs that the verifier accepts."""

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import optsched
from benchmarks.generators import sharing_live
from optsched.eaco import EacoInstance
from optsched.eaco.exact import column_generation, large_scale, listed_groups, master
from optsched.eaco.exact import warm_start as warm
from optsched.eaco.exact.certificate_writer import Writer
from optsched.eaco.groups.columns import columns as all_columns
from optsched.eaco.groups.enumeration import job_classes
from optsched.eaco.groups.phase_pricing import PhasePricing
from optsched.eaco.groups.pricing_scope import has_pricing_problems, pricing_problems
from optsched.eaco.plan import Group
from optsched.eaco.primal import diving, large_neighbourhood_search
from optsched.eaco.primal.batch_greedy import filled
from optsched.eaco.settings import SETTINGS
from optsched.eaco.verify.certificate import prove
from optsched.eaco.verify.feasibility import total_j
from optsched.eaco.verify.group_energy import ExactFigures, wakes_j
from optsched.eaco.verify.group_enumeration import GroupOptions
from optsched.eaco.verify.rates import equal_rates_hold
from optsched.search import Search
from optsched.verification import proof_terms
from tests.support.oracles.eaco import brute_force
from tests.support.strategies.common import law
from tests.support.strategies.eaco import eaco_instances, small_instance


def plain(instance):
    """Return an instance whose groups can be searched: no measurements, affine power."""
    text = instance.model_dump(mode="json", by_alias=True, exclude_none=True)
    text["interference"] = {"partner_slowdown": 0.02 + 0.1 * (len(instance.jobs) % 3)}
    for gpu in text["gpu_types"]:
        gpu["power"].pop("curve", None)
    return EacoInstance.from_document(text)


def searchable(max_jobs, **options):
    return eaco_instances(
        max_jobs=max_jobs,
        objectives=("run-to-completion",),
        running=False,
        levels=False,
        caps=False,
        **options,
    ).map(plain)


def affine(instance):
    """Return an instance with its measurements, running jobs and cap, whose groups are priced."""
    text = instance.model_dump(mode="json", by_alias=True, exclude_none=True)
    text["interference"]["fallback"] = "utilisation"
    for gpu in text["gpu_types"]:
        gpu["power"].pop("curve", None)
    return EacoInstance.from_document(text)


def priced(max_jobs, **options):
    every = eaco_instances(
        max_jobs=max_jobs, objectives=("run-to-completion",), levels=False, **options
    )
    return every.map(affine)


def bent(max_jobs, **options):
    """Instances with any power curve and power levels, whose groups are priced by their types."""
    every = eaco_instances(
        max_jobs=max_jobs, objectives=("run-to-completion",), levels=True, **options
    )
    return st.tuples(every, st.sampled_from(BENT)).map(lambda drawn: bent_by(*drawn))


BENT = [
    None,
    {"kind": "power-law", "exponent": 0.48},
    {"kind": "power-law", "exponent": 3.0},
    {"kind": "fan", "exponent": 1.4},
    {"kind": "table", "utilisation": [0.0, 0.2, 0.6, 0.9]},  # it falls, and rises again
]


def bent_by(instance, curve):
    """Return an instance whose last GPU type has a power curve, if one is given."""
    text = instance.model_dump(mode="json", by_alias=True, exclude_none=True)
    text["interference"]["fallback"] = "utilisation"
    power = text["gpu_types"][-1]["power"]
    if curve is not None:
        low, high = power["context_w"], power["peak_w"]
        watts = [low + share * (high - low) for share in (0.5, 0.1, 1.0, 0.7)]
        power["curve"] = curve | ({"power_w": watts} if curve["kind"] == "table" else {})
    return EacoInstance.from_document(text)


def solved(instance, **options):
    result = optsched.solve(instance, "columns", **options)
    optsched.verify(instance, result)
    return result


@law(500, is_costly=True)
@given(searchable(6, feasible=False))
def test_a_wide_gap_is_kept_and_proven(instance):
    result = solved(instance, gap=0.05)
    assert result.status in ("optimal", "infeasible")


@law(2000)
@given(searchable(6) | priced(6) | bent(6))
def test_the_search_finds_every_group(instance):
    """Without prices all groups, and at prices all of those that pay, at their costs and watts."""
    assert has_pricing_problems(instance)
    classes = job_classes(instance)
    listed = all_columns(instance, classes)
    frame = master.frame(instance, classes)
    generation = column_generation.ColumnGeneration(instance, classes, frame, 0)
    for share in (0.0, 0.6, 1.1):
        duals = generation.bound.duals._replace(jobs=share * generation.bound.duals.jobs)
        reduced = duals.reduced(listed)
        slack = 0.3 * float(abs(reduced).max())
        seen = {tuple(row) for row in _keys(generation.near(duals, slack))}
        clear = abs(reduced - slack) > 1e-9 * abs(reduced).max()
        expected = {tuple(row) for row in _keys(listed.take((reduced < slack) & clear))}
        assert expected <= seen
        assert seen <= {tuple(row) for row in _keys(listed)}


@law(500, is_costly=True)
@given(priced(6) | bent(6), st.floats(0.0, 0.01))
def test_priced_groups_cost_and_draw_what_listed_ones_do(instance, watt):
    """Whatever was measured, whoever runs, and with a price of watts and locations."""
    classes = job_classes(instance)
    listed = all_columns(instance, classes)
    frame = master.frame(instance, classes)
    generation = column_generation.ColumnGeneration(instance, classes, frame, 0)
    size = float(listed.cost.max(initial=0.0)) / max(float(listed.watts.max(initial=0.0)), 1.0)
    duals = generation.bound.duals._replace(places=0.01 * listed.cost.max() * frame.places)
    duals = duals._replace(watt=0.0 if instance.power_cap_w is None else watt * size)
    figures = dict(zip(_keys(listed), zip(listed.cost, listed.watts, strict=True), strict=True))
    reduced = dict(zip(_keys(listed), duals.reduced(listed).tolist(), strict=True))
    near = generation.near(duals, 0.2 * float(listed.cost.max()))
    for key, cost, watts in zip(_keys(near), near.cost, near.watts, strict=True):
        assert cost == pytest.approx(figures[key][0], rel=1e-9)
        if instance.power_cap_w is not None:
            assert watts == pytest.approx(figures[key][1], rel=1e-9, abs=1e-9)
    lower = generation.price(duals)
    slack = 1e-9 * float(abs(listed.cost).max())
    assert min(lower.duals.reduced(listed)) >= -slack
    assert len(near.cost) >= sum(
        r < 0.2 * float(listed.cost.max()) - slack for r in reduced.values()
    )


@law(300)
@given(searchable(7))
def test_groups_of_the_first_plan_cost_what_all_groups_do(instance):
    classes = job_classes(instance)
    listed = all_columns(instance, classes)
    costs = dict(zip(map(tuple, _keys(listed)), listed.cost.tolist(), strict=True))
    frame = master.frame(instance, classes)
    pays = column_generation.ColumnGeneration(instance, classes, frame, 0).bound.duals.jobs
    filling = filled(instance, classes, pricing_problems(instance, classes), pays)
    for key, cost in zip(_keys(filling), filling.cost.tolist(), strict=True):
        assert cost == pytest.approx(costs[tuple(key)], rel=1e-9)


def test_jobs_that_end_in_another_order_on_other_gpus():
    """Once a group's first cost was that of jobs in the order of another type of GPU."""
    job = {"gpus": 1, "work_s": 600.0}
    watts = {"bare_w": 0, "context_w": 0, "peak_w": 100}
    document = {
        "schema": "optsched/eaco/1",
        "name": "two types",
        "max_jobs_per_gpu": 2,
        "gpu_types": [
            {"id": "X", "memory_gb": 16, "power": watts},
            {"id": "Y", "memory_gb": 40, "power": {"bare_w": 30, "context_w": 60, "peak_w": 300}},
        ],
        "nodes": [
            {"id": "x", "gpu": "X", "gpus": 1, "count": 2, "power": {"base_w": 100}},
            {"id": "y", "gpu": "Y", "gpus": 1, "count": 1, "power": {"base_w": 0}},
        ],
        "types": [
            {"id": "a", "utilisation": 0.05, "memory_gb": 0, "speeds": {"X": 2.0}},
            {"id": "b", "utilisation": 0.05, "memory_gb": 0},
        ],
        "jobs": [{"id": f"j{n}", "type": kind} | job for n, kind in enumerate("aab")],
        "interference": {"saturation_slope": 0.56, "partner_slowdown": 0.02},
    }
    result = solved(EacoInstance.from_document(document), gap=0.0)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(0.0213333333)


def _keys(columns):
    where = columns.members, columns.pool, columns.level, columns.gang, columns.place
    for members, *others in zip(*where, strict=True):
        yield (*members.tolist(), *map(int, others))


@law(2000)
@given(searchable(6) | priced(6) | bent(6))
def test_the_verifier_leaves_out_only_what_does_not_pay(instance):
    groups = GroupOptions(instance, is_free=False)
    every = list(groups.options())
    gpus = {nodes.id: 0 for nodes in instance.nodes}
    alone = {o.members[0]: o.cost for o in every if len(o.members) == 1}
    for share in (0, 6, 9, 13):
        pays = [share * alone.get(n, 0) // 10 for n in range(len(groups.equal))]
        threshold = max(alone.values()) // 10
        below = groups.below(pays, gpus, threshold)
        seen = {(o.members, o.nodes, o.level, o.place) for o in below}
        near = threshold >> 30
        for option in every:
            reduced = option.cost - sum(pays[n] for n in option.members)
            if reduced < threshold - near:
                assert (option.members, option.nodes, option.level, option.place) in seen


@law(2000)
@given(searchable(3, max_nodes=2) | priced(3, max_nodes=2) | bent(3, max_nodes=2))
def test_columns_equal_brute_force(instance):
    result, least = solved(instance, gap=0.0), brute_force(instance)
    assert result.status == ("infeasible" if least is None else "optimal")
    if least is not None:
        assert result.objective == pytest.approx(least, rel=2e-9, abs=1e-12)


def test_exact_takes_columns_where_groups_are_too_many(monkeypatch):
    jobs = [{"type": t, "work_s": 600.0 * (n + 1)} for n, t in enumerate("abcd")]
    instance = small_instance(jobs)
    listed = optsched.solve(instance)
    monkeypatch.setitem(vars(SETTINGS), "most_groups", 1)
    result = optsched.solve(instance)
    optsched.verify(instance, result)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(listed.objective, rel=1e-9)


@pytest.mark.parametrize("besides", ["formula", "pair", "cap", "running"])
def test_a_pair_a_cap_or_a_running_job_once_switched_column_generation_off(besides):
    """Then all groups were listed, far beyond the time limit, and few bounds could be verified."""
    instance = sharing_live(90, 3, 0.25, besides)
    assert listed_groups.is_large(instance)
    result = optsched.solve(instance, gap=0.1)
    assert result.status == "optimal"
    assert proof_terms(instance, result.certificate) < 10_000


@pytest.mark.parametrize(("jobs", "besides"), [(26, "pair"), (30, "pair"), (24, "running")])
def test_groups_of_few_measured_types_among_many_are_all_found(jobs, besides):
    instance = sharing_live(jobs, 4, 0.25, besides)
    classes = job_classes(instance)
    listed, frame = all_columns(instance, classes), master.frame(instance, classes)
    generation = column_generation.ColumnGeneration(instance, classes, frame, 0)
    for share in (0.8, 1.0):
        duals = generation.bound.duals._replace(jobs=share * generation.bound.duals.jobs)
        slack = 0.02 * float(listed.cost.max())
        expected = set(_keys(listed.take(duals.reduced(listed) < slack - 1e-9)))
        assert expected
        assert expected <= set(_keys(generation.near(duals, slack)))
        assert min(generation.price(duals).duals.reduced(listed)) >= -1e-9


def test_a_listing_of_all_groups_once_went_on_after_the_time_limit(monkeypatch):
    monkeypatch.setitem(vars(SETTINGS), "listed_at_once", 10)
    listed = {"objective": "epoch", "epoch_s": 3600.0}  # cannot be priced
    instance = small_instance(["a"] * 3 + ["b"] * 3 + ["c", "d"], **listed)
    assert optsched.solve(instance).status == "optimal"
    result = optsched.solve(instance, time_limit_s=0.0)
    assert result.status == "feasible"
    assert result.bound is None
    assert "time limit" in result.message


def test_equal_jobs_are_integer_columns():
    jobs = [{"type": t, "max_slowdown": 1.25} for t in "abc" * 40]
    types = {"a": 0.2, "b": 0.3, "c": 0.55}
    instance = small_instance(jobs, types=types, nodes={"x": {"gpus": 8, "count": 15}})
    result = solved(instance, gap=0.01)
    assert result.status == "optimal"
    assert len(pricing_problems(instance, job_classes(instance))[0].work) == 3


@law(500, is_costly=True)
@given(searchable(7), st.integers(0, 3))
def test_a_repaired_plan_is_complete_and_no_worse(instance, seed):
    """From the worst plan there is, every job alone, where there are GPUs for that."""
    classes = job_classes(instance)
    frame = master.frame(instance, classes)
    generation = column_generation.ColumnGeneration(instance, classes, frame, seed)
    generation.prove_first_bound()
    alone = (generation.pool.members < len(classes)).sum(axis=1) == 1
    where = {tuple(row): n for n, row in enumerate(generation.pool.members.tolist()) if alone[n]}
    x = np.zeros(len(alone))
    x[list(where.values())] = [len(classes[row[0]].jobs) for row in where]
    on, weights = generation.pool.pool, x * generation.pool.gang
    gpus = np.bincount(on, weights=weights, minlength=len(instance.nodes))
    assume(len(where) == len(classes))
    assume((gpus <= generation.frame.gpus * generation.frame.number).all())
    better = large_neighbourhood_search.repaired(generation, x, -np.inf, seed, lambda: None)
    held = diving.held(generation.pool.members, better, len(classes))
    left = generation.frame.copies - held
    assert (left >= 0).all()
    assert not left[generation.frame.must].any()
    assert large_neighbourhood_search.total(generation, better) <= large_neighbourhood_search.total(
        generation, x
    ) * (1 + 1e-9)


def test_a_repaired_plan_is_much_better():
    """Of 40 jobs of types of their own, to one per cent, beyond the plan that comes first."""
    instance = many(40)
    result = solved(instance, gap=0.01)
    assert result.status == "optimal"
    first = solved(instance, time_limit_s=0)
    assert result.objective < first.objective


@law(500)
@given(eaco_instances(max_jobs=6))
def test_joules_at_one_rate_are_those_of_the_phases(instance):
    figures = ExactFigures(instance)
    for nodes in instance.nodes:
        if not equal_rates_hold(instance, figures.gpus[nodes.gpu]):
            continue
        for count in range(1, len(instance.jobs) + 1):
            group = Group(jobs=tuple(job.id for job in instance.jobs[:count]), nodes=nodes.id)
            expected = figures.energy_j(group, figures.phases(group))
            assert total_j(figures, [group]) - wakes_j(figures, [group]) == expected


# --- the next epoch -----------------------------------------------------------------------------


def without(instance, n):
    """Return an instance without one of its jobs, and with less work for the others."""
    jobs = [job for m, job in enumerate(instance.jobs) if m != n % len(instance.jobs)]
    jobs = jobs or list(instance.jobs)
    shorter = [job.model_copy(update={"work_s": 0.9 * job.work_s}) for job in jobs]
    return instance.model_copy(update={"jobs": tuple(shorter)})


def many(count):
    jobs = [
        {"type": f"t{n}", "work_s": 600.0 + 7 * n * n % 9001, "max_slowdown": 1.25}
        for n in range(count)
    ]
    types = {f"t{n}": 0.05 + n * 37 % 50 / 100 for n in range(count)}
    return small_instance(jobs, types=types, nodes={"x": {"gpus": 8, "count": count // 8 + 1}})


def test_groups_of_jobs_that_are_still_there_are_taken_over():
    instance = many(60)
    first = solved(instance, gap=0.1)
    classes = job_classes(without(instance, 7))
    matched = warm.matched_start(first, classes, np.ones(len(classes)), 4)
    gone_class = next(n for n, c in enumerate(first.state.classes) if "j7" in c.jobs)
    gone = sum(gone_class in row for row in first.state.members.tolist())
    assert 0 < len(matched.members) == len(first.state.members) - gone
    assert (matched.jobs > 0).all()


def test_no_time_gives_a_plan_and_a_bound():
    """The greedy one, from arrays; the bound is of prices that need no linear program."""
    result = solved(many(450), time_limit_s=0)
    assert result.status == "feasible"
    assert 0 < result.gap < 0.3
    assert "time limit" in result.message


@pytest.mark.parametrize("gpu", [*({"curve": curve} for curve in BENT[1:4]), "levels"])
def test_a_bent_power_curve_once_left_many_jobs_without_a_bound(gpu):
    """Groups were listed there, far beyond the time limit of a policy's call."""
    jobs = [{"type": "abcd"[n % 4], "work_s": 600.0 * 1.03**n} for n in range(100)]
    power = {"bare_w": 20.0, "context_w": 50.0, "peak_w": 300.0}
    if gpu == "levels":
        gpus = {"X": {"power": power, "levels": [(150.0, 0.8, 0.6)]}}
    else:
        gpus = {"X": {"power": power | gpu}}
    types = dict(zip("abcd", (0.05, 0.2, 0.4, 0.7), strict=True))
    instance = small_instance(jobs, types=types, gpus=gpus)
    result = optsched.solve(instance, time_limit_s=0.0)
    assert result.is_verified
    assert result.bound >= 0.5 * result.objective
    assert proof_terms(instance, result.certificate) < 10_000


def test_a_plan_of_before_further_groups_came_can_be_offered():
    search = Search(optsched.read("eaco/quads-60"), gap=0.2)
    columns = large_scale._Columns(search.instance, search)
    columns.relaxed()
    before = search.objective
    assert len(columns.generation.pool.cost) > 1
    columns._take(np.zeros(1))
    assert search.objective == before


def _cut_bound(instance):
    """Return column generation to its end, what cuts prove besides, and its certificate."""
    columns = large_scale._Columns(instance, Search(instance, gap=1e-2))
    columns.generation.prove_first_bound()
    columns.generation.run(0.0, lambda: None)
    columns.cuts.tighten()
    proof, value = columns.cuts.proof
    certificate = Writer(instance, columns.classes).single(proof, value, np.inf)
    return columns.generation.bound.value, value, certificate


@law(500)
@given(priced(5, max_nodes=3) | bent(5, max_nodes=3))
def test_cuts_within_gang_sizes_prove_no_more_than_the_optimum(instance):
    assume(has_pricing_problems(instance))
    relaxed, value, certificate = _cut_bound(instance)
    assume(np.isfinite(value))
    assert value >= relaxed
    assert not prove(instance, certificate)
    least = brute_force(instance)
    assert least is None or certificate.bound <= least


def test_a_third_large_job_was_thought_to_share_halves():
    """Ten jobs of 16 GPUs held a gap of 1 % open: the relaxation shares them out in halves."""
    jobs = [{"work_s": 3600.0 + n, "gpus": 4} for n in range(3)]
    jobs += [{"work_s": 600.0 * (n + 1)} for n in range(3)]
    nodes = {"x": {"gpus": 4, "count": 6, "power": {"base_w": 0.0}}}
    instance = small_instance(jobs, nodes=nodes, max_jobs_per_gpu=2, fallback="utilisation")
    relaxed, value, certificate = _cut_bound(instance)
    assert value > 1.01 * relaxed
    assert not prove(instance, certificate)
    assert value == pytest.approx(optsched.solve(instance).objective, rel=1e-6)


def test_parting_a_gang_size_anew_loses_no_job_and_costs_no_more():
    search = Search(optsched.read("eaco/quads-60"), gap=1e-3)
    columns = large_scale._Columns(search.instance, search)
    columns.relaxed()
    generation = columns.generation
    alone = generation.pool.take(np.arange(len(columns.classes)))
    assert sorted(alone.members[:, 0].tolist()) == list(range(len(columns.classes)))
    x = generation.frame.copies[alone.members[:, 0]]
    better = large_neighbourhood_search.repaired_by_gangs(generation, x, 0.0, 0, lambda: None)
    members = generation.pool.members
    held = diving.held(members[: len(better)], better, len(columns.classes))
    assert (held == generation.frame.copies).all()
    before = large_neighbourhood_search.total(generation, x)
    assert large_neighbourhood_search.total(generation, better) < 0.9 * before


@law(100)
@given(bent(6), st.integers(0, 99))
def test_kept_figures_of_sets_are_those_of_their_jobs(instance, seed):
    """Whatever instances on the same tables came before, with other jobs and under other limits."""
    draw, types = np.random.default_rng(seed), {job.type for job in instance.jobs}
    for headroom, limit, gone in product((0.0, 0.6), (None, 0.3), sorted(types)):
        jobs = tuple(job for job in instance.jobs if job.type != gone) or instance.jobs
        update = {"memory_headroom": headroom, "utilisation_limit": limit, "running": ()}
        changed = instance.model_copy(update=update | {"jobs": jobs})
        if not has_pricing_problems(changed):
            continue
        for pricing in pricing_problems(changed, job_classes(changed)):
            for size in range(1, instance.max_jobs_per_gpu + 1):
                at = draw.integers(0, len(pricing.work), (4, size))
                alike(pricing._sets_of(at), PhasePricing._sets_of(pricing, at))


def alike(kept, fresh):
    """Assert that groups have the same figures, to the bit."""
    for mine, own in zip(kept.sets, fresh.sets, strict=True):
        np.testing.assert_array_equal(mine[:, kept.of], own[:, fresh.of])
    np.testing.assert_array_equal(kept.kept, fresh.kept)
    np.testing.assert_array_equal(kept.near, fresh.near)
