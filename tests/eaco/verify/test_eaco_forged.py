"""EaCO's verifier on figures at and beyond the ends of the schema: nothing false is proven."""

import itertools
import math
import random
from fractions import Fraction as F

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.eaco import EacoInstance
from optsched.eaco.plan import EacoCertificate, Leaf, Prices, Split, Together, Unpackable
from optsched.eaco.verify.certificate import prove, terms
from optsched.eaco.verify.group_enumeration import GroupOptions
from tests.support.forgers.eaco import beyond, certificate, classes, instance_of, search
from tests.support.oracles.eaco_by_hand import Groups, optimum
from tests.support.strategies.common import among, law
from tests.support.strategies.eaco import small_instance

JOBS = 8


# --- cases in which false bounds were proven ------------------------------------------------------


def hard(pair_rate, *, level=None, power=(30.0, 36.0, 300.0), work_s=10.0, speed=1.0, **more):
    """Eight types of jobs that share one GPU; rates of groups are products of pairs' rates."""
    types = [f"t{n}" for n in range(JOBS)]
    gpu = {"id": "g", "memory_gb": 80.0, "levels": []}
    gpu["power"] = dict(zip(("bare_w", "context_w", "peak_w"), power, strict=True))
    if level is not None:
        gpu["levels"] = [{"id": "low", "limit_w": 1e9, "rate": level, "power": 0.001}]
    pairs = [{"types": pair, "rates": [pair_rate] * 2} for pair in itertools.combinations(types, 2)]
    return {
        "schema": "optsched/eaco/1",
        "name": "hard",
        "max_jobs_per_gpu": JOBS,
        "gpu_types": [gpu],
        "nodes": [{"id": "n", "gpu": "g", "gpus": 1, "count": 1, "power": {"base_w": 0.0}}],
        "types": [{"id": t, "utilisation": 0.1, "speeds": {"g": speed}} for t in types],
        "jobs": [
            {"id": f"j{n}", "type": t, "work_s": work_s * (1 + 0.037 * n)}
            for n, t in enumerate(types)
        ],
        "interference": {"fallback": "pairs", "groups": pairs},
    } | more


def slow_rates():
    return EacoInstance.from_document(hard(0.00107, level=0.00101))


def tiny_works():
    power = (1.25e11, 2.5e11, 1e12)
    return EacoInstance.from_document(
        hard(0.9, work_s=1e-9, speed=1e12, power=power, price_usd_per_kwh=1e12)
    )


def short_epoch():
    text = hard(0.00107, power=(1e-9, 1e-9, 1e-9), speed=1e12, objective="epoch", epoch_s=1e-9)
    for job in text["jobs"]:
        job["work_credit_w"] = 1e12
    return EacoInstance.from_document(text)


def scaled(instance, *, rates=1.0, works=1.0, levels=1.0, credits=1.0, epoch=1.0):
    """The instance with figures that the schema does not take."""
    groups = [
        group.model_copy(update={"rates": tuple(rate * rates for rate in group.rates)})
        for group in instance.interference.groups
    ]
    gpus = [
        gpu.model_copy(
            update={
                "levels": tuple(
                    level.model_copy(update={"rate": level.rate * levels}) for level in gpu.levels
                )
            }
        )
        for gpu in instance.gpu_types
    ]
    jobs = [
        job.model_copy(
            update={
                "work_s": job.work_s * works,
                "work_credit_w": job.work_credit_w and job.work_credit_w * credits,
            }
        )
        for job in instance.jobs
    ]
    changes = {
        "jobs": tuple(jobs),
        "gpu_types": tuple(gpus),
        "epoch_s": instance.epoch_s and instance.epoch_s * epoch,
        "interference": instance.interference.model_copy(update={"groups": tuple(groups)}),
    }
    fields = {name: getattr(instance, name) for name in type(instance).model_fields}
    return EacoInstance.model_construct(**fields | changes)


CASES = {
    "slow": slow_rates,
    "tiny": tiny_works,
    "epoch": short_epoch,
    "slower than allowed": lambda: scaled(slow_rates(), rates=1e-12, levels=1e-30),
    "tinier than allowed": lambda: scaled(tiny_works(), works=1e-60),
    "shorter than allowed": lambda: scaled(short_epoch(), epoch=1e-50, credits=1e40, rates=1e-9),
}


COSTS = ["slow", "tiny", "slower than allowed", "tinier than allowed"]


@pytest.mark.parametrize("case", CASES)
def test_no_bound_above_the_cost_of_the_only_plan_is_proven(case):
    """Rates, works and epochs at the ends of the schema, and beyond, were rounded too coarsely."""
    instance = CASES[case]()
    best = optimum(instance)
    for excess, gpu in itertools.product((1e-3, 1e-6, 1e-9, 1e-12, 1e-15), (10.0, 1000.0)):
        bound = float(best + abs(best) * F(excess))
        more, gpus = F(2) ** 40 if best < 0 else 0, F(gpu) * abs(best)
        each = (F(bound) * (1 + F(1, 10**14)) + gpus) / JOBS + more
        forged = certificate(instance, "prices", bound, [each] * JOBS, gpus + JOBS * more)
        assert F(bound) <= best or prove(instance, forged)


@pytest.mark.parametrize("case", COSTS)
def test_the_cost_of_the_only_plan_is_proven_but_for_a_hair(case):
    instance = CASES[case]()
    best = optimum(instance)
    bound, gpus = float(best * (1 - F(1, 10**12))), 10 * best
    each = (best * (1 - F(1, 10**13)) + gpus) / JOBS
    assert not prove(instance, certificate(instance, "prices", bound, [each] * JOBS, gpus))


def on_a_curve(utilisation, power_w, jobs, utilisation_alone, power, **more):
    curve = {"kind": "table", "utilisation": utilisation, "power_w": power_w}
    watts = dict(zip(("bare_w", "context_w", "peak_w"), power, strict=True)) | {"curve": curve}
    text = {
        "schema": "optsched/eaco/1",
        "name": "falling",
        "gpu_types": [{"id": "g", "memory_gb": 16.0, "power": watts}],
        "nodes": [{"id": "n", "gpu": "g", "gpus": 1, "count": 1, "power": {"base_w": 0.0}}],
        "types": [{"id": "t", "utilisation": utilisation_alone}],
        "jobs": [{"id": f"j{n}", "type": "t", "work_s": 3600.0} for n in range(jobs)],
    }
    return EacoInstance.from_document(text | more)


def test_on_a_power_curve_that_falls_no_bound_above_the_only_plan_is_proven():
    """Utilisation was rounded down, to where the watts are higher."""
    falls = [0.0, 1e-30, 1.0], [300.0, 30.0, 300.0]
    instance = on_a_curve(*falls, 1, 1e-30, (10.0, 30.0, 300.0))
    assert optimum(instance) == F(3, 100)
    assert prove(instance, certificate(instance, "prices", 0.2997, [0.29997]))
    assert prove(instance, certificate(instance, "prices", 0.03 * (1 + 1e-15), [0.0300001]))
    assert not prove(instance, certificate(instance, "prices", 0.03 * (1 - 1e-15), [0.03]))


def test_on_a_power_curve_that_falls_a_feasible_instance_is_not_proven_infeasible():
    falls = [0.0, 1e-30, 1.0], [300.0, 30.0, 300.0]
    instance = on_a_curve(*falls, 1, 1e-30, (10.0, 30.0, 300.0), power_cap_w=100.0)
    for watt in (0.0034482758620689655, 1 / 290, 0.05, 1.0):
        for left_out in (0.3, 1e-12, 5e-324):
            forged = certificate(instance, "infeasible", left_out, [1.0], watt=watt)
            assert prove(instance, forged)


def test_between_neighbouring_points_of_a_power_curve_no_false_bound_is_proven():
    alone = float(3 / 4 * 0.001)
    high = float(2 * alone / 1.5)
    low = float(np.nextafter(high, 0))
    instance = on_a_curve(
        [low, high],
        [3000.0, 1.0],
        2,
        alone,
        (0.0, 1.0, 3000.0),
        interference={"partner_slowdown": 0.5, "saturation_slope": 0.0},
    )
    best = optimum(instance)
    for excess in (1e-15, 1e-12, 1e-9, 1e-7, 1e-3, 1.0, 1000.0):
        bound = float(best * (1 + F(excess)))
        price = float(F(bound) / 2 * (1 + F(1, 10**15)))
        assert prove(instance, certificate(instance, "prices", bound, [price]))
    price = float(best / 2)
    assert not prove(instance, certificate(instance, "prices", 2 * price * (1 - 1e-14), [price]))


# --- groups and forgeries -------------------------------------------------------------------------


@law(400)
@given(st.randoms(use_true_random=False), st.booleans())
def test_the_verifier_bounds_every_group_from_below_and_closely(draw, validated):
    instance = instance_of(random.Random(draw.random()), validated=validated, jobs=3)
    groups, verified = Groups(instance), GroupOptions(instance, is_free=False)
    number = {job.id: n for n, jobs in enumerate(classes(instance)) for job in jobs}
    options = {(o.members, o.nodes, o.level, o.place): o for o in verified.options()}
    expected = set()
    for size in range(1, instance.max_jobs_per_gpu + 1):
        for jobs in itertools.combinations(instance.jobs, size):
            for nodes, level, location in groups.options(jobs):
                members = tuple(sorted(number[job.id] for job in jobs))
                key = members, nodes.id, level and level.id, location
                expected.add(key)
                exact = groups.cost(jobs, nodes, level, location)
                low = F(options[key].cost, 2**verified.bits)
                assert low <= exact
                unit = F(jobs[0].gpus * 64, 2**verified.bits)
                assert exact - low <= unit * most_rounded(instance)
                watts = max(w for _, w, _ in groups.run(jobs, nodes, level, location))
                watts -= F(groups.gpu[nodes.gpu].power.bare_w)
                drawn = F(options[key].watts, 2**verified.watt_bits)
                assert drawn <= jobs[0].gpus * watts < drawn + F(1, 2**60) * jobs[0].gpus
    assert set(options) == expected


def most_rounded(instance):
    """Return by how much a rounding may count: hours alone are divided by rates."""
    if instance.objective != "eaco":
        return 1
    table = instance.interference
    rates = [r for g in table.groups for r in g.rates if r] + [1]
    levels = [level.rate for gpu in instance.gpu_types for level in gpu.levels] + [1]
    slope = 1 + F(table.saturation_slope) * 4 + F(table.partner_slowdown) * 4
    return slope / F(min(rates)) ** 6 / F(min(levels))


AFFINE = {"kind": "affine"}
BENT = (
    {"kind": "power-law", "exponent": 0.48},
    {"kind": "power-law", "exponent": 4.0},
    {"kind": "fan", "exponent": 2.0},
)


@st.composite
def one_rate(draw):
    """Up to thirty jobs whose rates come from utilisations, on extreme figures."""
    slope = draw(among(0.0, 0.56, 3.0, 1e12))
    partner = draw(among(0.0, 0.02, 1e-9, 5.0, 1e12))
    types = {name: draw(among(0.0, 5e-324, 0.05, 0.3, 0.7, 1.0)) for name in "abcd"}
    scale = draw(among(1.0, 1.0, 1e-9, 1e8))
    jobs = [
        {
            "type": draw(among(*"abcd")),
            "work_s": scale * draw(among(1.0, 1.0 + 2.0**-50, 60.0, 3600.5)),
            "max_slowdown": draw(among(None, None, 1.0, 1.1, 2.0, 1e6)),
        }
        for _ in range(draw(among(3, 5, 30)))
    ]
    power = draw(among((10, 20, 120), (0, 0, 1e12), (1e-9, 1e-9, 1e-9), (0, 1e-9, 1e12)))
    watts = dict(zip(("bare_w", "context_w", "peak_w"), map(float, power), strict=True))
    watts["curve"] = draw(st.sampled_from([AFFINE, AFFINE, *BENT]))
    memory = {name: {"utilisation": u, "memory_gb": 4.0 * (u > 0.5)} for name, u in types.items()}
    return small_instance(
        [{key: value for key, value in job.items() if value is not None} for job in jobs],
        types=memory,
        gpus={"X": {"memory_gb": draw(among(8.0, 4.5, 1e12)), "power": watts}},
        saturation_slope=slope,
        partner_slowdown=partner,
        max_jobs_per_gpu=3,
    )


@law(300, is_costly=True)
@given(one_rate(), st.integers(0, 12), st.integers(0, 3))
def test_the_filter_loses_no_group_that_pays(instance, share, wide):
    groups = GroupOptions(instance, is_free=False, bits=160)
    every = list(groups.options())
    alone = {o.members[0]: o.cost for o in every if len(o.members) == 1}
    pays = [alone[n] * (8 + share) // 12 for n in range(len(groups.equal))]
    free = {nodes.id: 0 for nodes in instance.nodes}
    for threshold in (0, 1, sum(alone.values()) * wide // 50, -min(alone.values()) // 9):
        seen = {o.members: o.cost for o in groups.below(pays, free, threshold)}
        for option in every:
            reduced = option.cost - sum(pays[n] for n in option.members)
            assert reduced >= threshold or option.members in seen
            if option.members in seen:
                assert seen[option.members] == pytest.approx(option.cost, rel=1e-15, abs=8)


@pytest.mark.parametrize("validated", [True, False])
def test_no_forgery_is_accepted_and_bounds_near_the_optimum_are(validated):
    tried, accepted, near = search(300, 15, validated=validated)
    assert tried >= 300
    assert accepted == []
    assert near


# --- always a verdict -----------------------------------------------------------------------------

FIGURES = among(
    math.nan,
    math.inf,
    -math.inf,
    1.8e308,
    1e308,
    -1e308,
    5e-324,
    -5e-324,
    0.0,
    -0.0,
    -1.0,
    1.0,
    10**400,
)


@st.composite
def odd_prices(draw):
    def some(count):
        return tuple(draw(FIGURES) for _ in range(max(0, count + draw(among(0, 0, 0, -1, 1)))))

    return Prices.model_construct(
        jobs=some(3), gpus=some(1), locations=some(0), watt=draw(FIGURES), cuts=()
    )


KINDS = ("prices", "infeasible", "below_idle_power")


@law(1000)
@given(odd_prices(), odd_prices(), FIGURES, among(*KINDS), st.booleans())
def test_whatever_a_certificate_holds_there_is_a_verdict(prices, others, stated, kind, splits):
    jobs = [{"work_s": 60.0 * n, "type": "a"} for n in (1, 2, 3)]
    instance = small_instance(jobs, power_cap_w=3000.0)
    leaf = Leaf.model_construct(prices=prices, split_prices=())
    nodes, rules = [leaf], ()
    if splits:
        rules = (Together(jobs=("j0", "j1")),)
        nodes = [
            Split.model_construct(rule=0, at_most=10**50, cases=(1, 2)),
            Leaf.model_construct(prices=prices, split_prices=(1e308,)),
            Leaf.model_construct(prices=others, split_prices=(5e-324,)),
        ]
    forged = EacoCertificate.model_construct(
        kind=kind,
        bound=stated if kind == "prices" else None,
        left_out=stated if kind == "infeasible" else None,
        everywhere=others if splits else None,
        rules=rules,
        nodes=tuple(nodes),
    )
    assert terms(instance, forged) > 0
    broken = prove(instance, forged)
    assert isinstance(broken, list)
    if not broken:  # then it is true
        assert kind == "prices"
        assert F(stated) <= optimum(instance.model_copy(update={"power_cap_w": None}))


def chain(length, at_most):
    """Splits, one below the other, each with a case that nothing is said to fit into."""
    nodes = []
    for n in range(length):
        nodes.append(Split(rule=0, at_most=at_most, cases=(2 * n + 1, 2 * n + 2)))
        nodes.append(Unpackable(nodes="x"))
    return (*nodes, Unpackable(nodes="x"))


@pytest.mark.parametrize("gang", [1, 4, 100_000])
def test_asking_for_any_number_of_gangs_ends_in_a_verdict(gang):
    """Each gang that a case asks for was listed, 10**15 of them and more."""
    node = {"gpus": 4, "count": 100_000}
    instance = small_instance(["a"], nodes={"x": node})
    for at_most in (0, 700, 20_000, 10**6, 10**15, 10**400):
        certificate = EacoCertificate(
            bound=1.0,
            rules=(Together(nodes="x", gpus=gang, location=""),),
            nodes=chain(1, at_most),
        )
        assert {rule.rule for rule in prove(instance, certificate)} == {"unpackable"}


def test_a_long_chain_of_splits_ends_in_a_verdict():
    """The way to each case was a list of its own: together as long as the chain squared."""
    instance = small_instance(["a"], nodes={"x": 4})
    certificate = EacoCertificate(
        bound=1.0, rules=(Together(nodes="x", gpus=1, location=""),), nodes=chain(300, 10**9)
    )
    assert {rule.rule for rule in prove(instance, certificate)} == {"unpackable"}


def test_a_proof_that_takes_too_much_is_given_up():
    jobs = [{"type": "abc"[n % 3], "work_s": 60.0 + n} for n in range(40)]
    instance = small_instance(jobs, max_jobs_per_gpu=3, objective="epoch", epoch_s=60.0)
    forged = certificate(instance, "prices", 1e9, [0.0] * 40)
    assert {rule.rule for rule in prove(instance, forged)} == {"bound"}
    assert terms(instance, forged) > 100_000
    assert {rule.rule for rule in prove(instance, forged, most_terms=10_000)} == {"terms"}


def test_figures_beyond_the_schema_are_drawn():
    """What the search over unvalidated instances rests on."""
    source = random.Random(4)
    pushed = [beyond(source, instance_of(source)) for _ in range(30)]
    assert any(job.work_s < 1e-60 for instance in pushed for job in instance.jobs)
    assert any(job.work_s > 1e60 for instance in pushed for job in instance.jobs)
