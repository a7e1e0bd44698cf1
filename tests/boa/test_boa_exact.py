"""BOA's exact method: golden values, brute force, and the laws of docs/math/boa.md, Properties."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import optsched
from optsched.boa import BoaInstance, Table
from optsched.boa.arrays import arrays
from optsched.boa.exact import certificate_writer
from optsched.boa.exact import solver as exact
from optsched.boa.exact.lagrangian_dual import respond
from optsched.boa.settings import SETTINGS
from optsched.boa.speedup_curves import curve, speedup_at
from optsched.boa.verify import certificate as proof
from optsched.boa.verify import feasibility
from optsched.registry import Method
from tests.support.oracles.boa import brute_force, path_lp
from tests.support.strategies.common import boa_instances, curves, law, tables

CBD_TABLE = {  # docs/math/boa.md, Golden values: budget -> mixed, mu, integer, both with rescaling
    20.5: (4115.5071, 6.429974, 4116.9541, 4917.0639, 4918.8465),
    21: (3226.48, 5.289155, 3226.9888, 4067.1866, 4085.9475),
    22: (1951.8292, 2.29645, 1952.4795, 3011.4017, 3207.4259),
    24: (1336.2396, 0.531991, 1336.4055, 1733.9114, 1739.3996),
    26: (1093.9203, 0.305832, 1096.3319, 1418.4354, 1418.5873),
    28: (915.1531, 0.219355, 915.5128, 1250.1234, 1250.9226),
    30: (805.3118, 0.135039, 805.691, 1087.9791, 1091.7653),
    35: (700.1443, 0.035165, 701.5804, 833.2821, 840.0342),
    40: (664.0552, 0.019645, 664.0592, 743.1851, 744.4582),
    48: (638.1496, 0.004207, 638.154, 703.1438, 704.7424),
    60: (622.3105, 0.002227, 622.3301, 687.5546, 691.1807),
    80: (618.5897, 0.0, 618.5897, 682.3137, 682.3158),
}


LP_TOLERANCE = 1e-6  # more than what HiGHS may exceed a row by, relative


def solved(instance, **options):
    """Solve, and have the verifier prove the outcome."""
    result = optsched.solve(instance, **options)
    optsched.verify(instance, result)
    return result


def with_phases(instance, change):
    """The instance with every phase changed by a function."""
    classes = tuple(
        c.model_copy(update={"phases": tuple(map(change, c.phases))}) for c in instance.classes
    )
    return instance.model_copy(update={"classes": classes})


def closed_gap(instance, result):
    """1e-9, and what a hair of the limit is worth where its price is steep."""
    value = result.objective * float(feasibility.objective_divisor(instance))
    worth = result.certificate.price * float(feasibility.limit(instance)) / value
    return 1e-9 + 4 * SETTINGS.limit_tolerance * worth


# --- golden values ----------------------------------------------------------------------------


@pytest.mark.parametrize("budget", np.linspace(0.88, 3, 12))
def test_closed_form_of_epew_figure_1(budget):
    instance = optsched.read("boa/epew-figure1").changed({"budget_gpus": float(budget)})
    result = solved(instance)
    y = (budget - 0.32) / 0.56
    assert result.objective == pytest.approx(0.1 + 0.392 / (budget - 0.32), rel=1e-9)
    assert result.certificate.price == pytest.approx(1 / y**2, rel=1e-6)
    widths = [sequence.gpus[0] for c in result.plan.classes for sequence in c.sequences]
    assert widths == pytest.approx([2 * y, y**2], rel=1e-6)


@pytest.mark.parametrize(
    ("budget", "jct", "widths"),
    [
        (1, 0.676471, (2.42857, 1.47449)),
        (2, 0.333333, (6, 9)),
        (3, 0.246269, (9.57143, 22.90306)),
        (0.8, 1.0, (1, 1)),
        (0.85, 0.6 + 0.4 / 1.625, (1.625, 1)),
    ],
)
def test_golden_epew_figure_1(budget, jct, widths):
    result = solved(optsched.read("boa/epew-figure1").changed({"budget_gpus": budget}))
    assert result.objective == pytest.approx(jct, abs=1e-6)
    assert [c.sequences[0].gpus[0] for c in result.plan.classes] == pytest.approx(widths, abs=1e-5)


def test_golden_hand_mixed():
    instance = optsched.read("boa/hand").changed({"widths": "mixed"})
    result = solved(instance)
    assert result.objective == 1.015625
    assert result.certificate.price == pytest.approx(0.6875)
    a, b = result.plan.classes
    assert [s.gpus for s in a.sequences] == [(2,)]
    shares = {s.gpus: s.share for s in b.sequences}
    assert shares == pytest.approx({(2,): 0.296875, (4,): 0.703125})


def test_golden_hand_integer():
    instance = optsched.read("boa/hand")
    result = solved(instance)
    assert result.objective == pytest.approx(1.151316, abs=1e-6)
    assert [c.sequences[0].gpus for c in result.plan.classes] == [(2,), (2,)]
    figures = optsched.boa.performance(instance, result.plan)
    assert figures.mean_gpus == pytest.approx(2.302632, abs=1e-6)


@pytest.mark.parametrize("budget", CBD_TABLE)
def test_golden_cbd_85(budget):
    instance = optsched.read("boa/cbd-85").changed({"budget_gpus": budget})
    free = instance.changed({"classes.*.rescale_s": 0})
    mixed, price, integer, rescaled_mixed, rescaled = CBD_TABLE[budget]
    result = solved(free.changed({"widths": "mixed"}))
    assert result.objective == pytest.approx(mixed, abs=2e-3)
    assert result.certificate.price == pytest.approx(price, abs=2e-6)
    assert solved(free).objective == pytest.approx(integer, rel=1.2e-6)
    assert solved(instance.changed({"widths": "mixed"})).objective == pytest.approx(
        rescaled_mixed, abs=3e-3
    )
    result = solved(instance)
    assert result.objective == pytest.approx(rescaled, rel=1.2e-6)
    assert result.status == "optimal"


@pytest.mark.parametrize("name", optsched.names("boa"))
def test_known_values(name):
    """Best known values, with SCIP's verdicts: never below a proven optimum, never above it."""
    known = optsched.known_values()[name]
    result = solved(optsched.read(name), gap=1e-9)
    assert result.objective_unit == known["unit"]
    assert result.objective == pytest.approx(known["optimal"], rel=1e-9)


# --- brute force ------------------------------------------------------------------------------


def test_a_price_whose_bound_reaches_the_plan_by_rounding_alone_is_not_the_proof():
    """The price is so steep that its bound in floats is off by more than is left of the gap."""
    still = {"kind": "amdahl", "parallel_fraction": 0.0, "max_gpus": 1}
    double = {"kind": "table", "gpus": [1, 2], "speedup": [1.0, 2.0]}
    phases = [{"work_gpu_s": 1.0, "speedup": still}] * 2 + [{"work_gpu_s": 30.0, "speedup": double}]
    row = {"id": "c", "arrival_rate_per_h": 7.5, "rescale_s": 2.0**-24, "phases": phases}
    document = {"schema": "optsched/boa/1", "name": "steep", "widths": "integer", "classes": [row]}
    instance = BoaInstance.from_document(document | {"budget_gpus": 0.06666666679084302})
    result = solved(instance, gap=0.0)
    assert result.status == "optimal"
    assert result.bound >= result.objective * (1 - 1e-9)


@law(2000)
@given(boa_instances(widths=("integer",)))
def test_integer_equals_brute_force(instance):
    expected = brute_force(instance)
    result = solved(instance, gap=0.0)
    if expected is None:
        assert result.status == "infeasible"
        return
    assert result.status == "optimal"
    assert result.objective == pytest.approx(float(expected), rel=1e-9)


@law(1000, is_costly=True)
@given(boa_instances(widths=("mixed",)))
def test_mixed_equals_lp_over_all_ways(instance):
    result = solved(instance)
    if result.status == "infeasible":
        return  # proven by `verify`; the LP has tolerances
    assert result.status == "optimal"
    assert result.gap <= closed_gap(instance, result)
    most, least = (path_lp(instance, 1 + side * LP_TOLERANCE) for side in (-1, 1))
    if most is not None:
        assert result.objective <= most * (1 + 1e-5)
    if least is not None:
        assert result.objective >= least * (1 - 1e-5)


@law(500, is_costly=True)
@given(
    boa_instances(widths=("continuous",), rescaling=False, speedups=st.one_of(tables(), curves(64)))
)
def test_continuous_is_proven_and_no_worse_than_mixed(instance):
    result = solved(instance)
    mixed = solved(instance.model_copy(update={"widths": "mixed"}))
    if mixed.status == "infeasible":
        return
    assert result.status == "optimal"
    assert result.gap <= closed_gap(instance, result)
    assert result.objective <= mixed.objective * (1 + 1e-9)
    if all(isinstance(p.speedup, Table) for c in instance.classes for p in c.phases):
        assert result.objective == pytest.approx(mixed.objective, rel=1e-9)


# --- laws -------------------------------------------------------------------------------------


@law(300, is_costly=True)
@given(boa_instances(widths=("mixed", "continuous"), rescaling=False))
def test_tightness(instance):
    """The limit is used up wherever its price is positive."""
    result = solved(instance)
    assume(result.plan is not None and result.certificate.price > 1e-12)
    figures = optsched.boa.performance(instance, result.plan)
    used = figures.mean_gpus if instance.budget is not None else figures.mean_jobs
    assert used == pytest.approx(float(feasibility.limit(instance)), rel=1e-9)


@law(200, is_costly=True)
@given(boa_instances(widths=("mixed",), targets=False, feasible=True), st.floats(1.01, 2))
def test_mixed_frontier_is_convex_and_its_slope_is_the_price(instance, factor):
    budgets = [instance.budget_gpus * factor**n for n in range(3)]
    results = [solved(instance.changed({"budget_gpus": b})) for b in budgets]
    jobs = [r.objective * float(instance.arrival_rate_per_s) for r in results]
    for n in range(2):
        step = budgets[n + 1] - budgets[n]
        tolerance = 1e-9 * jobs[0]
        steepest, flattest = results[n].certificate.price, results[n + 1].certificate.price
        assert jobs[n] - jobs[n + 1] <= steepest * step + tolerance
        assert jobs[n] - jobs[n + 1] >= flattest * step - tolerance


@law(300, is_costly=True)
@given(boa_instances(feasible=True), st.floats(1, 1.5), st.floats(0, 1))
def test_more_room_never_hurts(instance, factor, shorter):
    """Raising the limit, or lowering the rescaling time, never worsens the optimum."""
    key = "budget_gpus" if instance.budget is not None else "target_mean_jct_s"
    loose = instance.changed({key: getattr(instance, key) * factor})
    quick = instance.model_copy(
        update={
            "classes": tuple(
                c.model_copy(update={"rescale_s": c.rescale_s * shorter}) for c in instance.classes
            )
        }
    )
    base = solved(instance, gap=0.0)
    for eased in (loose, quick):
        assert solved(eased, gap=0.0).objective <= base.objective * (1 + 1e-9)


@law(300, is_costly=True)
@given(boa_instances(rescaling=False, feasible=True))
def test_integer_is_at_most_one_step_above_mixed(instance):
    mixed = solved(instance.model_copy(update={"widths": "mixed"}))
    integer = solved(instance.model_copy(update={"widths": "integer"}), gap=0.0)
    groups = arrays(instance).groups
    finite = np.where(np.isfinite(groups.value), groups.value, np.nan)
    longest = np.nanmax(np.nanmax(finite, axis=1) - np.nanmin(finite, axis=1), initial=0)
    longest /= float(feasibility.objective_divisor(instance))
    assert mixed.objective * (1 - 1e-9) <= integer.objective
    assert integer.objective <= mixed.objective + longest + 1e-9 * integer.objective


@law(300)
@given(boa_instances(widths=("mixed",), rescaling=False, targets=False, feasible=True))
def test_kkt(instance):
    """Every width in use minimises (1 + mu k) / s(k)."""
    result = solved(instance)
    price = result.certificate.price
    for job_class, planned in zip(instance.classes, result.plan.classes, strict=True):
        for e, phase in enumerate(job_class.phases):
            widths, speedup = curve(phase.speedup)
            priced = (1 + price * widths) / speedup
            for sequence in planned.sequences:
                used = priced[widths == sequence.gpus[e]]
                assert used == pytest.approx(priced.min(), rel=1e-9)


@law(200)
@given(boa_instances(widths=("mixed",), rescaling=False, feasible=True))
def test_at_most_one_phase_is_mixed(instance):
    result = solved(instance)
    mixed = [
        {sequence.gpus[e] for sequence in planned.sequences}
        for planned in result.plan.classes
        for e in range(len(planned.sequences[0].gpus))
    ]
    assert sum(len(widths) > 1 for widths in mixed) <= 1
    assert max(map(len, mixed)) <= 2


@law(200, is_costly=True)
@given(
    boa_instances(
        widths=("mixed",), rescaling=False, targets=False, speedups=tables(), feasible=True
    )
)
def test_widths_off_the_hull_do_not_matter(instance):
    from optsched.boa.exact.hull import hull_vertices

    def pruned(phase):
        widths, speedup = curve(phase.speedup)
        kept = hull_vertices(widths, speedup[:, None])[:, 0]
        kept |= np.isclose(speedup / widths, (speedup / widths).max())  # least cost, exactly
        table = Table(gpus=widths[kept].astype(int).tolist(), speedup=speedup[kept].tolist())
        return phase.model_copy(update={"speedup": table})

    hulls = with_phases(instance, pruned)
    assert solved(hulls).objective == pytest.approx(solved(instance).objective, rel=1e-9)


@law(200, is_costly=True)
@given(boa_instances(targets=False, feasible=True), st.sampled_from([0.25, 2, 1024]))
def test_invariance_to_the_unit_of_time_between_arrivals(instance, factor):
    """(lambda, b) -> (c lambda, c b): same optimum; c is a power of two, so floats stay exact."""
    scaled = instance.model_copy(
        update={
            "budget_gpus": instance.budget_gpus * factor,
            "classes": tuple(
                c.model_copy(update={"arrival_rate_per_h": c.arrival_rate_per_h * factor})
                for c in instance.classes
            ),
        }
    )
    assert solved(scaled, gap=0.0).objective == pytest.approx(
        solved(instance, gap=0.0).objective, rel=1e-9
    )


@law(200)
@given(boa_instances(feasible=True, speedups=tables()), st.sampled_from([0.5, 4]))
def test_invariance_to_the_unit_of_work(instance, factor):
    def rescaled(phase):
        speedup = tuple(s * factor for s in phase.speedup.speedup)
        table = Table(gpus=phase.speedup.gpus, speedup=speedup)
        return phase.model_copy(update={"work_gpu_s": phase.work_gpu_s * factor, "speedup": table})

    base, other = (solved(i, gap=0.0) for i in (instance, with_phases(instance, rescaled)))
    assert other.objective == pytest.approx(base.objective, rel=1e-9)


@law(200, is_costly=True)
@given(boa_instances(feasible=True, max_classes=2, max_phases=2), st.data())
def test_invariance_to_order_and_splitting(instance, data):
    """Permuting or splitting classes changes nothing; nor, without rescaling, permuting phases."""
    order = data.draw(st.permutations(instance.classes))
    half = order[0].model_copy(update={"arrival_rate_per_h": order[0].arrival_rate_per_h / 2})
    twin = half.model_copy(update={"id": "twin"})
    mixed = instance.model_copy(update={"widths": "mixed"})
    base = solved(mixed).objective
    split = mixed.model_copy(update={"classes": (half, twin, *order[1:])})
    assert solved(split).objective == pytest.approx(base, rel=1e-9)
    turned = tuple(
        c if c.rescale_s else c.model_copy(update={"phases": c.phases[::-1]}) for c in order
    )
    reordered = instance.model_copy(update={"classes": turned})
    expected = solved(instance, gap=0.0).objective
    assert solved(reordered, gap=0.0).objective == pytest.approx(expected, rel=1e-9)


@law(300)
@given(boa_instances(rescaling=False, targets=False), st.floats(0, 50), st.floats(1, 10))
def test_widths_fall_with_the_price_and_do_not_ask_for_rates(instance, price, factor):
    rates = [1.0] * len(instance.classes)
    low, high = (respond(arrays(instance, rates), p) for p in (price, price * factor + 1e-3))
    groups = arrays(instance, rates).groups
    rows = np.arange(len(low.columns))
    assert (groups.options[rows, high.columns] <= groups.options[rows, low.columns]).all()
    other = respond(arrays(instance, [3.5] * len(rates)), price)
    chosen = groups.priced(price)[rows, other.columns]
    assert chosen == pytest.approx(groups.priced(price).min(axis=1), rel=1e-12)


@law(300, is_costly=True)
@given(boa_instances(widths=("integer",)), st.one_of(st.just(0.0), st.floats(1e-6, 1e6)))
def test_weak_duality_at_every_price(instance, price):
    expected = brute_force(instance)
    assume(expected is not None)
    exact = Fraction(price)
    total = Fraction(proof.priced_total(instance, exact), feasibility.SCALE * exact.denominator)
    value = total - exact * feasibility.limit(instance)
    assert value <= expected * feasibility.objective_divisor(instance) * (1 + Fraction(1, 10**50))


@law(200)
@given(boa_instances(widths=("integer",), targets=False, feasible=True, max_classes=2))
def test_dear_rescaling_leaves_one_width_per_class(instance):
    """R -> infinity: a width that all phases share is kept through the whole job."""
    common = [
        set.intersection(*(set(p.speedup.widths) for p in c.phases)) for c in instance.classes
    ]
    assume(all(common))
    dear = instance.model_copy(
        update={
            "budget_gpus": 1e12,
            "classes": tuple(c.model_copy(update={"rescale_s": 1e9}) for c in instance.classes),
        }
    )
    for planned in solved(dear, gap=0.0).plan.classes:
        assert len(set(planned.sequences[0].gpus)) == 1


@law(200, is_costly=True)
@given(boa_instances(rescaling=False, targets=False, speedups=curves(64), widths=("continuous",)))
def test_continuous_kkt(instance):
    """Interior widths have s' / (s - k s') equal to the price (docs/math/boa.md, Closed forms)."""
    result = solved(instance)
    assume(result.plan is not None and result.certificate.price > 1e-9)
    price = result.certificate.price
    for job_class, planned in zip(instance.classes, result.plan.classes, strict=True):
        for phase, k in zip(job_class.phases, planned.sequences[0].gpus, strict=True):
            if not 1 < k < phase.speedup.max_gpus:
                continue
            near = [
                (1 + price * w) / speedup_at(phase.speedup, w)
                for w in (k, k * (1 - 1e-4), k * (1 + 1e-4))
            ]
            assert near[0] <= min(near[1:]) * (1 + 1e-9)


def test_target_and_budget_are_dual():
    """The least budget for the JCT that a budget buys is no more than that budget (A5)."""
    for widths in ("integer", "mixed"):
        instance = optsched.read("boa/cbd-85").changed({"widths": widths})
        forward = solved(instance)
        jct = math.nextafter(forward.objective, math.inf)  # the exact JCT may be a rounding above
        turned = instance.changed({"budget_gpus": None, "target_mean_jct_s": jct})
        back = solved(turned)
        assert back.objective_unit == "GPUs"
        assert back.objective <= 24 * (1 + 1e-12)
        figures = optsched.boa.performance(turned, back.plan)
        assert figures.mean_jct_s <= jct
    assert back.objective == pytest.approx(24, rel=1e-9)


def test_money_is_a_budget_of_gpus():
    instance = optsched.read("boa/cbd-85")
    money = instance.changed(
        {"budget_gpus": None, "budget_usd_per_h": 24 * 3.75, "price_usd_per_gpu_h": 3.75}
    )
    assert solved(money).objective == solved(instance).objective


def test_same_seed_same_bytes():
    instance = optsched.read("boa/cbd-85")
    texts = {
        optsched.solve(instance)
        .model_copy(update={"seconds": 0.0, "verification_s": None})
        .to_json()
        for _ in range(3)
    }
    assert len(texts) == 1


@pytest.mark.parametrize("name", optsched.names("boa"))
@pytest.mark.parametrize("limit_s", [0.0, 0.005])
def test_time_limit_leaves_a_plan_and_an_honest_bound(name, limit_s):
    instance = optsched.read(name)
    result = solved(instance, time_limit_s=limit_s)
    best = optsched.known_values()[name]["optimal"]
    assert result.bound <= best * (1 + 1e-9)
    assert result.objective >= best * (1 - 1e-9)
    assert result.deterministic == (result.message == "")


def test_least_budget_is_named_and_works():
    instance = optsched.read("boa/cbd-85").changed({"budget_gpus": 1})
    result = solved(instance)
    assert result.status == "infeasible"
    assert "below the least possible cost of 20.12417" in result.message
    least = result.certificate.least
    enough = instance.changed({"budget_gpus": math.nextafter(least, math.inf)})
    assert solved(enough).status == "optimal"


def test_out_of_time_greedy_rules_are_left_out(monkeypatch):
    ran = []
    call = Method.__call__

    def noted(method, *arguments):
        ran.append(method.kind)
        return call(method, *arguments)

    monkeypatch.setattr(Method, "__call__", noted)
    instance = optsched.read("boa/cbd-85").changed({"budget_gpus": 20.5})
    result = solved(instance, time_limit_s=0.0)
    assert result.message == "stopped early: time limit"
    assert result.plan is not None
    assert "greedy" not in ran


# --- many phases ------------------------------------------------------------------------------


@law(500)
@given(boa_instances(), st.one_of(st.just(0.0), st.floats(0, 1e6), st.floats(0, 1e-9)))
def test_the_methods_write_what_the_verifier_adds_up(instance, price):
    """Two sums: the methods' own leaves out widths that floats rule out, and walks forwards."""
    written = exact.certificate(instance, price)
    if instance.widths != "continuous":
        assert written == exact.certificate(instance, price, arrays(instance))
    assert certificate_writer.priced_total(instance, Fraction(price)) == proof.priced_total(
        instance, Fraction(price)
    )
    assert certificate_writer.least_use(instance) == proof.least_use(instance)
    assert proof.prove(instance, written) == []


@law(500)
@given(boa_instances())
def test_the_verifier_accepts_that_no_plan_exists(instance):
    least = certificate_writer.least_use(instance)
    if least > feasibility.limit(instance):
        assert proof.prove(instance, certificate_writer.infeasible(instance).certificate) == []
    tight = least * feasibility.limit_divisor(instance) ** -1 * Fraction(1, 2)
    key = "budget_gpus" if instance.budget is not None else "target_mean_jct_s"
    assume(1e-9 < tight < 1e12)
    hopeless = instance.model_copy(
        update={"budget_usd_per_h": None, "price_usd_per_gpu_h": None, key: float(tight)}
    )
    assert proof.prove(hopeless, certificate_writer.infeasible(hopeless).certificate) == []


@pytest.mark.parametrize("widths", ["mixed", "integer"])
def test_many_phases_need_one_whole_check(widths, monkeypatch):
    first = optsched.read("boa/six-models").changed({"widths": widths})
    classes = tuple(
        c.model_copy(
            update={
                "id": f"{c.id} {n}",
                "rescale_s": 0.0,
                "arrival_rate_per_h": c.arrival_rate_per_h * (1 + n / 997),
            }
        )
        for n in range(8)
        for c in first.classes
    )
    instance = first.model_copy(update={"classes": classes, "budget_gpus": 12 * first.budget_gpus})
    search_type = optsched.solve.__globals__["Search"]  # `optsched.solve` is the function
    offers, offer = [], search_type.offer
    monkeypatch.setattr(search_type, "offer", lambda *given: offers.append(given) or offer(*given))
    solved(instance)
    assert len(offers) == 1
