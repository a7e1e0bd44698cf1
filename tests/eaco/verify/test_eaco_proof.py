"""The verifier of EaCO's certificates: what it accepts, and that a single change is refused."""

import json
import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import optsched
from optsched.eaco.groups.columns import columns
from optsched.eaco.groups.enumeration import job_classes
from optsched.eaco.plan import EacoCertificate, Leaf, Split, Unpackable
from optsched.eaco.settings import SETTINGS
from optsched.eaco.verify import certificate as proof
from optsched.eaco.verify.group_enumeration import GroupOptions
from optsched.instance import InstanceError
from tests.support.strategies.common import law
from tests.support.strategies.eaco import eaco_instances, small_instance

SEED = 3
PACKING = {"gpus": 8, "count": 2}


def certified(instance, **options):
    result = optsched.solve(instance, gap=0.0, **options)
    assert proof.prove(instance, result.certificate) == []
    return result.certificate


def rules_broken(instance, certificate, **changes):
    changed = EacoCertificate.model_validate(certificate.model_dump() | changes)
    return {broken.rule for broken in proof.prove(instance, changed)}


def changed_leaf(certificate, n, **changes):
    nodes = list(certificate.model_dump()["nodes"])
    nodes[n] = nodes[n] | changes
    return {"nodes": nodes}


@pytest.fixture(scope="module")
def branched():
    """An instance whose proof needs several leaves and cuts."""
    draw = random.Random(SEED)
    jobs = [
        {"type": f"t{n:02d}", "work_s": float(draw.randint(600, 60_000)), "max_slowdown": 1.25}
        for n in range(16)
    ]
    types = {f"t{n:02d}": round(draw.uniform(0.1, 0.6), 2) for n in range(16)}
    instance = small_instance(jobs, types=types, max_jobs_per_gpu=3)
    with pytest.MonkeyPatch.context() as patch:
        # more of them close the gap at the root
        patch.setitem(vars(SETTINGS), "root_cut_rounds", 1)
        certificate = certified(instance)
    assert sum(isinstance(node, Split) for node in certificate.nodes) >= 2
    return instance, certificate


@pytest.fixture(scope="module")
def unpackable():
    """Five gangs of three GPUs, which two nodes of eight do not hold."""
    instance = small_instance(
        [{"gpus": 3, "max_slowdown": 1} for _ in range(5)], nodes={"x": PACKING}
    )
    certificate = certified(instance)
    assert any(isinstance(node, Unpackable) for node in certificate.nodes)
    return instance, certificate


# --- what is stated -----------------------------------------------------------------------------


@law(200, is_costly=True)
@given(eaco_instances(max_jobs=4), st.floats(1e-6, 0.5))
def test_more_than_is_proven_is_refused(instance, more):
    result = optsched.solve(instance, gap=0.0)
    certificate = result.certificate
    assert proof.prove(instance, certificate) == []
    high = result.objective + more * max(1.0, abs(result.objective))
    assert "bound" in rules_broken(instance, certificate, bound=high)


def test_statements_that_do_not_belong(branched):
    instance, certificate = branched
    assert "left-out" in rules_broken(instance, certificate, left_out=1.0)
    assert "bound" in rules_broken(instance, certificate, bound=None)
    assert "bound" in rules_broken(instance, certificate, bound=float("inf"))
    assert "bound" in rules_broken(instance, certificate, kind="infeasible", left_out=1.0)
    assert "floor" in rules_broken(instance, certificate, kind="below_idle_power")
    assert "tree" in rules_broken(instance, certificate, nodes=())


def test_of_a_feasible_instance_no_infeasibility_is_proven(branched):
    instance, certificate = branched
    broken = rules_broken(instance, certificate, kind="infeasible", bound=None, left_out=0.5)
    assert broken == {"left-out"}


# --- prices -------------------------------------------------------------------------------------


def test_every_price_of_a_job_counts(branched):
    instance, certificate = branched
    n = next(n for n, node in enumerate(certificate.nodes) if isinstance(node, Leaf))
    prices = certificate.nodes[n].prices.model_dump()
    for at in range(0, len(prices["jobs"]), 5):
        for sign in (-1, 1):
            jobs = list(prices["jobs"])
            jobs[at] += sign * 1e3
            changes = changed_leaf(certificate, n, prices=prices | {"jobs": jobs})
            assert rules_broken(instance, certificate, **changes) == {"bound"}


def test_prices_of_wrong_number(branched):
    instance, certificate = branched
    n = next(n for n, node in enumerate(certificate.nodes) if isinstance(node, Leaf))
    prices = certificate.nodes[n].prices.model_dump()
    for key in ("jobs", "gpus", "locations"):
        longer = prices | {key: (*prices[key], 0.0)}
        changes = changed_leaf(certificate, n, prices=longer)
        assert rules_broken(instance, certificate, **changes) == {"one-price-each"}
    changes = changed_leaf(certificate, n, split_prices=())
    assert rules_broken(instance, certificate, **changes) == {"one-price-per-split"}
    changes = changed_leaf(certificate, n, prices=prices | {"watt": 1.0})
    assert rules_broken(instance, certificate, **changes) == {"watt"}
    cut = {"rule": 999, "price": 1.0}
    changes = changed_leaf(certificate, n, prices=prices | {"cuts": [cut]})
    assert rules_broken(instance, certificate, **changes) == {"known-rule"}


def test_dropping_a_cut_that_matters(branched):
    instance, certificate = branched
    everywhere = certificate.everywhere.model_dump()
    assert everywhere["cuts"]
    leaves = [n for n, node in enumerate(certificate.nodes) if isinstance(node, Leaf)]
    n = max(leaves, key=lambda n: sum(c.price for c in certificate.nodes[n].prices.cuts))
    prices = certificate.nodes[n].prices.model_dump() | {"cuts": ()}
    changes = changed_leaf(certificate, n, prices=prices)
    assert rules_broken(instance, certificate, **changes) == {"bound"}


# --- the tree -----------------------------------------------------------------------------------


def test_a_leaf_left_out(branched):
    instance, certificate = branched
    nodes = list(certificate.model_dump()["nodes"])
    n = next(n for n, node in enumerate(certificate.nodes) if isinstance(node, Split))
    first, second = nodes[n]["cases"]
    for cases in ((first, first), (second, second), (first, 999), (n, second)):
        changes = changed_leaf(certificate, n, cases=cases)
        assert rules_broken(instance, certificate, **changes) == {"tree"}


def test_a_split_by_another_rule_or_number(branched):
    instance, certificate = branched
    n = next(n for n, node in enumerate(certificate.nodes) if isinstance(node, Split))
    changes = changed_leaf(certificate, n, rule=999)
    assert rules_broken(instance, certificate, **changes) == {"known-rule"}
    at_most = certificate.nodes[n].at_most
    changes = changed_leaf(certificate, n, at_most=at_most + 7)
    assert rules_broken(instance, certificate, **changes) == {"bound"}


def test_rules_that_name_what_is_not_there(branched):
    instance, certificate = branched
    rules = certificate.model_dump()["rules"]
    for change, broken in (
        ({"kind": "together", "jobs": ("nobody",)}, "known-job"),
        ({"kind": "together", "nodes": "nowhere"}, "known-nodes"),
        ({"kind": "together", "level": "none"}, "known-level"),
        ({"kind": "together", "location": "none"}, "known-location"),
        ({"kind": "nodes", "nodes": "nowhere"}, "known-nodes"),
    ):
        assert broken in rules_broken(instance, certificate, rules=(*rules, change))


def test_only_rounded_sets_are_cuts(branched):
    instance, certificate = branched
    rules = certificate.model_dump()["rules"]
    cut = {"rule": len(rules), "price": 1.0}
    prices = certificate.everywhere.model_dump() | {"cuts": [cut]}
    changes = {"rules": (*rules, {"kind": "together"}), "everywhere": prices}
    assert rules_broken(instance, certificate, **changes) == {"cut"}


# --- packing ------------------------------------------------------------------------------------


def test_what_can_be_packed_is_no_proof(unpackable):
    instance, certificate = unpackable
    node = {"gpu": "X", "power": {"base_w": 100.0}, "id": "x"}
    for more in ({"gpus": 9, "count": 2}, {"gpus": 8, "count": 3}):
        nodes = (instance.nodes[0].model_validate(node | more),)
        larger = instance.model_copy(update={"nodes": nodes})
        assert rules_broken(larger, certificate) & {"unpackable", "left-out"}


def test_every_leaf_as_unpackable(branched):
    instance, certificate = branched
    name = instance.nodes[0].id
    for n, node in enumerate(certificate.nodes):
        if isinstance(node, Leaf):
            nodes = list(certificate.model_dump()["nodes"])
            nodes[n] = {"nodes": name}
            assert rules_broken(instance, certificate, nodes=nodes) == {"unpackable"}


# --- infeasible ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("old", "new"), [("misfit", "infeasible"), ("floor", "below_idle_power")])
def test_the_old_name_of_a_kind_gets_an_error_that_names_the_new_one(old, new, tmp_path):
    result = optsched.solve(small_instance(["a"]))
    document = json.loads(result.to_json())
    document["certificate"]["kind"] = old
    path = tmp_path / "old.json"
    path.write_text(json.dumps(document))
    text = f"certificate.kind: expected '{new}', as this kind is called now, found \"{old}\""
    with pytest.raises(InstanceError, match=re.escape(text)):
        optsched.read_result(path)


def test_the_floor_is_compared_exactly():
    node = {"gpus": 4, "count": 2, "power": {"base_w": 100.0, "sleep_w": 15.0}}
    instance = small_instance(["a"], nodes={"x": node}, power_cap_w=29.0)
    certificate = EacoCertificate(kind="below_idle_power")
    assert proof.prove(instance, certificate) == []
    assert rules_broken(instance, certificate, bound=1.0) == {"floor"}
    enough = instance.model_copy(update={"power_cap_w": 30.0})
    assert rules_broken(enough, certificate) == {"floor"}
    without = instance.model_copy(update={"power_cap_w": None})
    assert rules_broken(without, certificate) == {"floor"}


def test_infeasibility_states_a_number(unpackable):
    instance, certificate = unpackable
    for stated in (None, 0.0, -1.0, float("inf")):
        assert "left-out" in rules_broken(instance, certificate, left_out=stated)
    assert "bound" in rules_broken(instance, certificate, bound=1.0)


# --- groups -------------------------------------------------------------------------------------


@law(500)
@given(eaco_instances(max_jobs=6))
def test_the_verifier_knows_every_group_and_none_dearer(instance):
    """Two enumerations that share no code: what a plan may hold, and at least what it costs."""
    classes, groups = job_classes(instance), GroupOptions(instance, is_free=False)
    number = {name: n for n, c in enumerate(classes) for name in c.jobs}
    levels = {g.id: [None, *(level.id for level in g.levels)] for g in instance.gpu_types}
    options = {
        (
            tuple(sorted(number[groups.equal[n].jobs[0]] for n in option.members)),
            option.nodes,
            option.level,
            option.place,
        ): option
        for option in groups.options()
    }
    mine = columns(instance, classes)
    gross = 1.0 + max(abs(mine.cost))
    for n, members in enumerate(mine.members.tolist()):
        nodes = instance.nodes[mine.pool[n]]
        place = None if mine.place[n] < 0 else instance.running[mine.place[n]].id
        key = tuple(m for m in members if m < len(classes))
        level = levels[nodes.gpu][mine.level[n] + 1]
        option = options.pop((tuple(sorted(key)), nodes.id, level, place))
        assert option.cost / 2**96 <= mine.cost[n] + 1e-13 * gross
        assert option.cost / 2**96 == pytest.approx(mine.cost[n], rel=1e-9, abs=1e-12 * gross)
        assert option.watts / 2**96 == pytest.approx(mine.watts[n], rel=1e-9, abs=1e-9)
    assert not options


def test_a_group_that_is_in_time_only_where_it_runs_is_known():
    """Moved, its first job would be late: once the verifier left the group out everywhere."""
    jobs = [
        {"type": "a", "work_s": 600.0, "deadline_s": 600.0, "migration_s": 62.0},
        {"type": "b", "work_s": 600.0},
    ]
    running = [{"id": "r", "nodes": "x", "node": 0, "jobs": ["j0"]}]
    instance = small_instance(jobs, max_jobs_per_gpu=2, running=running, partner_slowdown=0.0)
    every = GroupOptions(instance, is_free=False).options()
    options = {(len(option.members), option.place) for option in every}
    assert options == {(1, None), (1, "r"), (2, "r")}
    optsched.verify(instance, optsched.solve(instance))
