"""Widths at a price: the best of all sequences, and BOA's optimum whatever the arrival rates."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import optsched
from optsched.boa.instance import BoaInstance
from optsched.rollout.policies.budgets.priced_widths import (
    Work,
    priced_bills,
    priced_plan,
)
from optsched.rollout.policies.width_curves import Curve
from tests.support.strategies.common import law

WORKS = st.integers(1, 400).map(lambda n: n / 4)
PRICES = st.sampled_from([0.0, 1e-4, 0.02, 0.3, 1.0, 40.0])


@st.composite
def works(draw, provision=(0.0, 2.0, 90.0), nodes=(1, 4)):
    """Jobs of up to three phases, whose curves may fall and need not have the same widths."""
    phases = draw(st.lists(WORKS, min_size=1, max_size=3))
    curves = []
    for _ in phases:
        gpus = tuple(sorted(draw(st.sets(st.sampled_from([1, 2, 3, 4, 6, 8]), min_size=1))))
        curves.append(Curve(gpus, tuple(draw(st.integers(1, 60)) / 8 for _ in gpus)))
    rescale_s = draw(st.sampled_from([0.0, 1.0, 30.0]))
    size = draw(st.sampled_from(nodes))
    provision_s = draw(st.sampled_from(provision))
    return Work(tuple(phases), tuple(curves), rescale_s, provision_s, size, 1.0 + (size - 1) / 50)


def totals(work, widths, held, first=0):
    """Time, and GPU time billed, of a sequence of widths from a phase on."""
    seconds = gpu_s = 0.0
    rest = zip(work.works_s[first:], work.curves[first:], widths, strict=True)
    for amount, curve, gpus in rest:
        takes = amount / curve.speed_at(gpus) + (work.rescale_s if gpus != held else 0.0)
        seconds += takes
        billed = work.billed(gpus)
        gpu_s += takes * billed + work.provision_s * max(0, billed - work.billed(held))
        held = gpus
    return seconds, gpu_s


@law(500)
@given(works(), PRICES, st.data())
def test_a_plan_is_the_best_of_all_sequences(work, price, data):
    plan = priced_plan(work, price)
    first = data.draw(st.integers(0, len(work.works_s) - 1))
    held = data.draw(st.sampled_from(plan.widths))
    chosen, now = [], held
    for phase in range(first, len(work.works_s)):
        now = plan.width(phase, now)
        chosen.append(now)
    at = first, plan.place(held)
    told = totals(work, chosen, held, first)
    assert told == pytest.approx((plan.seconds[at], plan.gpu_s[at]))
    every = itertools.product(*(curve.gpus for curve in work.curves[first:]))
    figures = [totals(work, widths, held, first) for widths in every]
    least = min(seconds + price * gpu_s for seconds, gpu_s in figures)
    assert told[0] + price * told[1] == pytest.approx(plan.cost[at]) == pytest.approx(least)


@law(200)
@given(works(), st.lists(PRICES, min_size=1, max_size=4))
def test_bills_at_many_prices_are_those_of_the_plans(work, prices):
    told = priced_bills(work, np.array(prices))
    for column, price in enumerate(prices):
        assert (told[:, :, column] == priced_plan(work, price).gpu_s).all()


@law(100)
@given(st.lists(works(provision=(0.0,), nodes=(1,)), min_size=1, max_size=3), PRICES, st.data())
def test_at_a_fixed_price_the_widths_are_optimal_whatever_the_arrival_rates(jobs, price, data):
    """The same widths for any rates; the budget that they use differs, and the exact method agrees.

    The exact method may not beat them: it knows the rates, and they were made without.
    """
    plans = [priced_plan(work, price) for work in jobs]
    rates = [data.draw(st.sampled_from([0.01, 0.5, 1.0, 7.0, 300.0])) for _ in jobs]
    jct = sum(r * p.seconds[0, 0] for r, p in zip(rates, plans, strict=True)) / sum(rates)
    gpus = sum(r * p.gpu_s[0, 0] for r, p in zip(rates, plans, strict=True)) / 3600
    classes = [
        {"id": f"c{n}", "arrival_rate_per_h": rate, "rescale_s": work.rescale_s, "phases": [
            {"work_gpu_s": amount,
             "speedup": {"kind": "table", "gpus": c.gpus, "speedup": c.speed}}
            for amount, c in zip(work.works_s, work.curves, strict=True)]}
        for n, (rate, work) in enumerate(zip(rates, jobs, strict=True))
    ]  # fmt: skip
    document = {"schema": "optsched/boa/1", "name": "law", "classes": classes}
    document |= {"budget_gpus": gpus * (1 + 1e-9) + 1e-9}
    result = optsched.solve(BoaInstance.from_document(document, "law"), gap=1e-7)
    assert result.bound <= jct * (1 + 1e-6) + 1e-6
    if price:  # at price 0 the least time is taken, whatever it uses
        slack = 2e-9 * max(gpus, 1.0) * 3600 * price / sum(rates)
        assert result.objective >= jct * (1 - 1e-6) - slack - 1e-6


def test_nodes_are_billed_whole_but_those_that_jobs_share():
    curve = Curve((1, 2, 4, 8), (1.0, 1.9, 3.0, 5.0))
    work = Work((100.0,), (curve,), 1.0, 60.0, 4, 1.05)
    billed = [work.billed(gpus) for gpus in (0, 1, 3, 4, 5, 8)]
    assert billed == pytest.approx([0, 1.05, 3.15, 4, 8, 8])
    assert Work((100.0,), (curve,), 1.0, 60.0, 4, 1.5).billed(3) == 4
    six = Work((100.0,), (Curve((4, 6), (3.0, 4.0)),), 0.0, 0.0, 4)
    assert priced_plan(six, 0.6).width(0, 0) == 4  # 6 GPUs would be billed as 8
    assert priced_plan(six._replace(node_gpus=1), 0.6).width(0, 0) == 4
    assert priced_plan(six._replace(node_gpus=1), 0.2).width(0, 0) == 6
    assert priced_plan(six, 0.2).width(0, 0) == 4
