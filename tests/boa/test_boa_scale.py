"""What makes BOA quick at many phases: it leaves no figure, no bound and no plan out."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import optsched
from optsched.boa import BoaInstance, JobClass, Phase, Table
from optsched.boa.arrays import arrays
from optsched.boa.exact import continuous
from optsched.boa.exact.lagrangian_dual import least_priced, maximise, respond
from optsched.boa.settings import SETTINGS
from optsched.boa.speedup_curves import curve, curves, speedup_at
from optsched.boa.verify import certificate as proof
from optsched.boa.verify import feasibility, phase_graphs
from optsched.boa.verify.speedup_bounds import speedup_enclosure, speedup_ratios
from tests.support.strategies.common import boa_instances, law, tables
from tests.support.strategies.common import curves as laws_of_speedup

PRICES = st.one_of(st.just(0.0), st.floats(1e-6, 1e6), st.integers(1, 9).map(float))


# --- out of time ------------------------------------------------------------------------------


def in_a_hurry(instance):
    """What is found at once, proven, and what is found in time."""
    hurried = optsched.solve(instance, time_limit_s=0.0)
    optsched.verify(instance, hurried)
    return hurried, optsched.solve(instance)


@law(150)
@given(boa_instances(widths=("integer", "mixed"), feasible=True))
def test_out_of_time_at_once_there_is_a_plan_and_a_true_bound(instance):
    hurried, whole = in_a_hurry(instance)
    assert hurried.plan is not None
    assert hurried.bound <= whole.objective * (1 + 1e-9)
    assert hurried.objective >= whole.bound * (1 - 1e-9)
    assert hurried.deterministic == (not hurried.message)


@law(100)
@given(boa_instances(widths=("continuous",), rescaling=False, feasible=True))
def test_out_of_time_at_once_there_is_a_plan_of_real_widths(instance):
    hurried, whole = in_a_hurry(instance)
    assert hurried.plan is not None
    assert hurried.bound <= whole.objective * (1 + 1e-9)
    assert hurried.objective >= whole.bound * (1 - 1e-9)


@pytest.mark.parametrize("looks", [0, 1, 3])
def test_the_best_price_so_far_has_a_true_bound(looks):
    """The search for the price looks at the clock: two answers are enough for a plan."""
    problem = arrays(optsched.read("boa/cbd-85").changed({"widths": "mixed"}))
    whole, left = maximise(problem), iter([False] * looks)
    dual = maximise(problem, lambda: next(left, True))
    assert dual.within.use <= problem.limit * (1 + SETTINGS.limit_tolerance)
    assert dual.bound <= whole.bound * (1 + 1e-12)
    assert dual.bound < whole.bound * (1 - 1e-6)
    at_price = respond(problem, dual.price)
    lagrangian = at_price.value + dual.price * (at_price.use - problem.limit)
    assert dual.bound == pytest.approx(lagrangian, rel=1e-12)


@pytest.mark.parametrize("widths", ["integer", "mixed"])
def test_out_of_time_there_are_no_greedy_plans(widths, monkeypatch):
    ran = []
    entry = optsched.registry.problem("boa")
    kind = type(entry.methods[0])
    call = kind.__call__
    monkeypatch.setattr(kind, "__call__", lambda m, *args: ran.append(m.kind) or call(m, *args))
    instance = optsched.read("boa/cbd-85").changed({"widths": widths, "budget_gpus": 22})
    hurried = optsched.solve(instance, time_limit_s=0.0)
    optsched.verify(instance, hurried)
    assert hurried.status == "feasible"
    assert ran == ["exact"]


# --- exact sums -------------------------------------------------------------------------------


def plain_use(instance, plan):
    """What a plan uses of the limited resource, in plain fractions: at least, and at most."""
    known, totals = {c.id: c for c in instance.classes}, [Fraction(0), Fraction(0)]
    for planned in plan.classes:
        job_class = known[planned.id]
        rate = Fraction(job_class.arrival_rate_per_h) / 3600
        for sequence in planned.sequences:
            before = None
            for phase, k in zip(job_class.phases, sequence.gpus, strict=True):
                lost = Fraction(job_class.rescale_s) if k != before else Fraction(0)
                held = Fraction(k) if instance.budget is not None else Fraction(1)
                enclosure = speedup_enclosure(phase.speedup, Fraction(k))
                for n, speedup in enumerate(reversed(enclosure)):
                    seconds = Fraction(phase.work_gpu_s) / speedup + lost
                    totals[n] += rate * Fraction(sequence.share) * held * seconds
                before = k
    return totals


@law(150)
@given(boa_instances(widths=("integer", "mixed", "continuous"), rescaling=False, feasible=True))
def test_exact_sums_equal_plain_fractions(instance):
    plan = optsched.solve(instance).plan
    rates = [Fraction(c.arrival_rate_per_h) for c in instance.classes]
    assert instance.arrival_rate_per_s == sum(rates, Fraction(0)) / 3600
    least, most = plain_use(instance, plan)
    used, terms = feasibility.used(instance, plan), 2 * 3 * 3
    assert used.below <= least * feasibility.SCALE < used.below + 2 * terms
    assert used.above - 2 * terms < most * feasibility.SCALE <= used.above


@law(150)
@given(boa_instances(widths=("integer", "mixed"), feasible=True))
def test_exact_sums_equal_plain_fractions_with_rescaling(instance):
    plan = optsched.solve(instance).plan
    least, most = plain_use(instance, plan)
    used = feasibility.used(instance, plan)
    assert used.below <= least * feasibility.SCALE
    assert (
        most * feasibility.SCALE
        <= used.above
        < used.below + 100 + most * feasibility.SCALE / 10**50
    )


@law(100)
@given(st.one_of(tables(), laws_of_speedup(64)), st.data())
def test_ratios_of_a_speedup_equal_its_enclosure(speedup, data):
    k = data.draw(st.sampled_from(list(speedup.widths)))
    whole = tuple(Fraction(*ratio) for ratio in speedup_ratios(speedup, k))
    assert whole == speedup_enclosure(speedup, Fraction(k))


# --- the verifier's least priced total ------------------------------------------------------------


def scanned(phase, rate, weights):
    """The least weight of a phase over all of its widths."""
    weighed = []
    for k in phase.speedup.widths:
        jobs = rate * Fraction(phase.work_gpu_s) / speedup_enclosure(phase.speedup, Fraction(k))[1]
        mean, held = feasibility.rounded_down(jobs), feasibility.rounded_down(k * jobs)
        weighed.append(weights.value * mean + weights.use * held)
    return min(weighed)


@law(400)
@given(
    boa_instances(rescaling=False, speedups=st.one_of(tables(), laws_of_speedup(64))),
    PRICES.map(Fraction),
    st.booleans(),
)
def test_no_width_is_passed_over_by_the_verifier(instance, price, least_use):
    weights = (
        phase_graphs.PriceWeights(0, 1)
        if least_use
        else phase_graphs.PriceWeights(*price.as_integer_ratio()[::-1])
    )
    expected = weights
    if instance.budget is None:
        expected = phase_graphs.PriceWeights(weights.use, weights.value)
    rates = [Fraction(c.arrival_rate_per_h) / 3600 for c in instance.classes]
    pairs = zip(instance.classes, rates, strict=True)
    total = sum(scanned(phase, rate, expected) for c, rate in pairs for phase in c.phases)
    assert phase_graphs.least_total(instance, weights) == total


@pytest.mark.parametrize("widths", ["mixed", "continuous"])
@pytest.mark.parametrize("figure", ["price", "priced_total", "bound"])
def test_a_forged_certificate_is_refused(widths, figure):
    """Also where widths are passed over: of curves, and of measured ones."""
    free = optsched.read("boa/six-models").changed({"classes.*.rescale_s": 0})
    smooth = optsched.read("boa/epew-figure1").classes
    first = free.model_copy(update={"widths": widths, "classes": (*free.classes, *smooth)})
    least = float(proof.least_use(first) / feasibility.limit_divisor(first))
    key = "budget_gpus" if first.budget is not None else "target_mean_jct_s"
    instance = first.model_copy(update={key: 1.3 * least})
    result = optsched.solve(instance)
    optsched.verify(instance, result)
    stated = getattr(result.certificate, figure)
    wrong = str(int(stated) + 1) if figure == "priced_total" else stated * (1 + 1e-9)
    forged = result.certificate.model_copy(update={figure: wrong})
    with pytest.raises(optsched.Violation):
        optsched.verify(instance, result.model_copy(update={"certificate": forged}))


# --- arrays -----------------------------------------------------------------------------------


@law(100)
@given(st.lists(st.one_of(tables(), laws_of_speedup(6)), min_size=1, max_size=8))
def test_curves_of_equal_widths_go_together(speedups):
    parts = curves(speedups)
    assert sorted(row for part in parts for row in part.rows) == list(range(len(speedups)))
    for rows, gpus, values in parts:
        for row, speedup in zip(rows, values, strict=True):
            assert gpus.tolist() == list(speedups[row].widths)
            alone = curve(speedups[row])[1]
            assert speedup == pytest.approx(alone, rel=1e-15)
            ends = [float(speedup_enclosure(speedups[row], Fraction(k))[0]) for k in gpus]
            assert speedup == pytest.approx(ends, rel=1e-14)


@law(100, is_costly=True)
@given(boa_instances(widths=("mixed",), max_classes=5), PRICES)
def test_stacked_chains_answer_as_each_alone(instance, price):
    twice = instance.model_copy(update={"classes": instance.classes * 2})
    for one in (price, np.inf):
        answer = respond(arrays(twice), one)
        problem = arrays(twice)
        alone = [
            respond(arrays(twice.model_copy(update={"classes": (c,)})), one)
            for c in twice.classes
            if c.arrival_rate_per_h
        ]
        paths = [each.paths[0] for each in alone if each.paths]
        assert [p.columns.tolist() for p in answer.paths] == [p.columns.tolist() for p in paths]
        assert answer.use == pytest.approx(sum(each.use for each in alone), rel=1e-12)
    for chain, least, path in zip(
        problem.chains, least_priced(problem, price), respond(problem, price).paths, strict=True
    ):
        again = chain.path(path.columns)
        assert (again.value, again.use) == pytest.approx((path.value, path.use), rel=1e-14)
        assert least == pytest.approx(path.value + price * path.use, rel=1e-12)


@law(100)
@given(boa_instances(widths=("continuous",), rescaling=False, speedups=st.one_of(
    tables(), laws_of_speedup(64))), st.floats(1e-6, 1e6))  # fmt: skip
def test_real_widths_of_all_phases_are_the_best_of_each(instance, price):
    phases = continuous.smooth(instance)
    widths = phases.respond(price)
    jobs, gpus = (1.0, price) if instance.budget is not None else (price, 1.0)
    listed = [phase for c in instance.classes for phase in c.phases]
    for phase, k in zip(listed, widths.tolist(), strict=True):
        priced = (jobs + gpus * k) / speedup_at(phase.speedup, k)
        most = phase.speedup.widths[-1]
        for other in {*map(float, phase.speedup.widths), min(k * 1.001, most), max(k * 0.999, 1)}:
            if other >= phase.speedup.widths[0]:
                rest = (jobs + gpus * other) / speedup_at(phase.speedup, other)
                assert priced <= rest * (1 + 1e-12)
    mean = phases.load / [
        speedup_at(p.speedup, k) for p, k in zip(listed, widths.tolist(), strict=True)
    ]
    expected = mean * widths if instance.budget is not None else mean
    assert phases.terms(widths)[1] == pytest.approx(expected, rel=1e-12)


def test_an_instance_with_other_classes_has_another_rate():
    """Nothing of an instance is kept that a changed copy would take over."""
    table = Table(gpus=(1, 2), speedup=(1.0, 1.5))
    phases = (Phase(work_gpu_s=1.0, speedup=table),)
    one, two = (JobClass(id=n, arrival_rate_per_h=3600.0, phases=phases) for n in "ab")
    first = BoaInstance(budget_gpus=5.0, classes=(one,))
    assert first.arrival_rate_per_s == 1
    assert first.model_copy(update={"classes": (one, two)}).arrival_rate_per_s == 2
