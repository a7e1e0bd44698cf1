"""Memory: estimates, what is free, and methods that are refused before they begin."""

import functools
import gc
import subprocess
import sys
import tracemalloc

import pytest
from typer.testing import CliRunner

import optsched
from optsched import memory
from optsched.cli.main import app
from optsched.eaco.exact import listed_groups
from optsched.eaco.exact import memory as eaco_memory
from optsched.eaco.groups import enumeration
from optsched.eaco.groups.columns import columns
from optsched.eaco.settings import SETTINGS as EACO_SETTINGS
from optsched.pal.node_classes import solver as node_classes
from optsched.pal.settings import SETTINGS as PAL_SETTINGS
from optsched.registry import problem
from optsched.search import Search
from tests.support.strategies.eaco import small_instance as small_eaco
from tests.support.strategies.pal import small_instance

MIB = 2**20
EVERY = [(name, m.name) for name in optsched.names() for m in problem(name.split("/")[0]).methods]


@functools.cache
def bundled(name):
    return optsched.read(name)


def needed(instance, method):
    return problem(instance.problem).memory(instance, method)


def cluster(nodes, distinct=True):
    """Nodes of 8 GPUs, and a job for each; all GPUs of slowdowns of their own, or all alike."""
    slowdown = {"A": [1 + n / 1e5 * distinct for n in range(8 * nodes)]}
    return small_instance({f"n{n}": 8 for n in range(nodes)}, slowdown, [4] * nodes)


# --- estimates --------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "method"), EVERY)
def test_bundled_instances_need_little(name, method):
    instance = bundled(name)
    bytes_ = needed(instance, method)
    if getattr(instance, "widths", "") == "continuous":
        assert bytes_ is None
    else:
        assert MIB < bytes_ < 1024 * MIB


@pytest.mark.parametrize("method", [method.name for method in problem("pal").methods])
def test_larger_clusters_need_more(method):
    needs = [needed(cluster(nodes), method) for nodes in (4, 8, 16, 32)]
    assert needs == sorted(set(needs))


def test_more_widths_and_rescaling_need_more():
    hand = optsched.read("boa/cbd-85")
    free, mixed = (
        hand.changed({k: v}) for k, v in (("classes.*.rescale_s", 0), ("widths", "mixed"))
    )
    assert needed(free, "milp") < needed(hand, "milp")
    assert needed(mixed, "exact") < needed(hand, "exact") < needed(hand, "milp")


@pytest.mark.parametrize("name", optsched.names("eaco"))
def test_groups_are_counted_without_listing_them(name):
    instance = optsched.read(name)
    listed = len(columns(instance, enumeration.job_classes(instance)).cost)
    counted = eaco_memory.groups(instance)
    assert 0.9 * listed <= counted <= 1.3 * max(listed, 4_000)  # few need not be looked at


def test_jobs_that_are_equal_count_once_unless_the_formulation_tells_them_apart():
    alike = small_eaco(["a"] * 60, max_jobs_per_gpu=3)
    assert eaco_memory.classes(alike.jobs) == len(enumeration.job_classes(alike)) == 1
    assert eaco_memory.groups(alike) == 3
    assert eaco_memory.groups(alike, len) > 30_000


@pytest.mark.parametrize("limit", ["most_listed_jobs", "most_wide_classes", "most_groups"])
def test_estimates_of_eaco_go_by_columns_where_exact_does(monkeypatch, limit):
    instance = small_eaco(["a"] * 12, max_jobs_per_gpu=3)
    assert not listed_groups.is_large(instance)
    assert needed(instance, "exact") != needed(instance, "columns")
    monkeypatch.setitem(vars(EACO_SETTINGS), limit, 0)
    assert listed_groups.is_large(instance)
    assert needed(instance, "exact") == needed(instance, "columns")


@pytest.mark.parametrize("large_gpus", [PAL_SETTINGS.large_gpus, 256])
def test_estimates_of_large_clusters_go_the_ways_of_the_settings(large_gpus, monkeypatch):
    monkeypatch.setitem(vars(PAL_SETTINGS), "large_gpus", large_gpus)
    nodes = large_gpus // 8
    for distinct, method in ((True, "decomposition"), (False, "node-classes")):
        instance = cluster(nodes + 1, distinct)
        assert (node_classes.few_node_classes(instance, Search(instance)) is None) == distinct
        assert needed(instance, "exact") == needed(instance, method)
    assert needed(cluster(nodes), "exact") > needed(cluster(nodes + 1, False), "exact")


@pytest.mark.parametrize("method", ["exact", "milp", "decomposition", "pal-greedy"])
def test_an_estimate_builds_next_to_nothing(method):
    """While it counts, it takes a small part of what it says that the method will take."""
    instance = cluster(256)
    needed(instance, method)
    tracemalloc.start()
    bytes_ = needed(instance, method)
    assert tracemalloc.get_traced_memory()[1] < 0.01 * bytes_
    tracemalloc.stop()


# --- what is free -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "use", "stat", "free"),
    [
        ("1000", "400", "anon 400\ninactive_file 0", 600),
        ("1000", "900", "anon 400\ninactive_file 500", 600),
        ("1000", "900", "inactive_file 100\ntotal_inactive_file 500", 600),
        ("1000", "2000", "", 0),
        ("max", "400", "", None),
        ("", "", "", None),
    ],
)
def test_the_least_of_machine_and_control_group_is_free(
    limit, use, stat, free, tmp_path, monkeypatch
):
    paths = [tmp_path / name for name in ("limit", "use", "stat")]
    for path, text in zip(paths, (limit, use, stat), strict=True):
        path.write_text(f"{text}\n")
    missing = [tmp_path / "none"] * 3
    monkeypatch.setattr(memory, "CGROUPS", [missing, paths])
    available = memory.available()
    assert available == free if free is not None else available > 1000


# --- refusals ---------------------------------------------------------------------------------


def test_the_message_has_the_estimate_and_a_method_that_fits():
    with pytest.raises(optsched.TooLarge) as caught:
        optsched.solve(optsched.read("pal/racks-256"), "milp", memory_gib=0.1)
    text = "pal/racks-256: method 'milp' needs about 0.4 GiB, but 0.1 GiB are given; "
    assert str(caught.value) == text + "method 'exact' needs about 0.1 GiB"
    assert isinstance(caught.value, ValueError)


def test_the_method_that_is_named_fits():
    result = optsched.solve(optsched.read("pal/racks-256"), "exact", gap=0.02, memory_gib=0.1)
    assert result.status == "optimal"


def test_if_none_fits_the_message_says_so():
    with pytest.raises(
        optsched.TooLarge, match=r"no method fits: 'node-classes' needs least, about 0\.1 GiB$"
    ):
        optsched.solve(optsched.read("pal/sia-64"), memory_gib=1e-3)


def test_large_estimates_are_in_whole_gib():
    with pytest.raises(optsched.TooLarge, match=r"needs about [1-9][0-9,]+ GiB, but 4\.0 GiB"):
        optsched.solve(cluster(256), "milp", memory_gib=4)


def test_by_default_what_is_free_is_given(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 50 * MIB)
    with pytest.raises(optsched.TooLarge, match=r"'milp' needs about .* are free; method 'exact'"):
        optsched.solve(optsched.read("boa/hand"), "milp")
    assert optsched.solve(optsched.read("boa/hand")).status == "optimal"


@pytest.mark.parametrize("given", [0, -1, float("nan")])
def test_memory_must_be_positive(given):
    with pytest.raises(ValueError, match="the memory must be more than 0 GiB, not"):
        optsched.solve(optsched.read("boa/hand"), memory_gib=given)


def test_the_command_line_ends_with_bad_input():
    line = ["solve", "eaco/quads-60", "--method", "milp", "--memory", "0.3"]
    outcome = CliRunner().invoke(app, line)
    assert outcome.exit_code == 2
    assert "'milp' needs about" in outcome.stderr
    assert "but 0.3 GiB are given; method 'exact' needs about 0.1 GiB" in outcome.stderr
    assert outcome.stdout == ""


def test_comparisons_leave_out_what_does_not_fit(monkeypatch):
    entry = problem("boa")
    monkeypatch.setitem(entry.__dict__, "memory", lambda _, name: 2**30 * (name == "marginal"))
    outcome = CliRunner().invoke(app, ["solve", "boa/hand", "--memory", "0.5"])
    assert outcome.exit_code == 0
    assert "compared only so far: boa/hand: method 'marginal' needs about 1.0 GiB" in outcome.stderr
    assert "equal-share" in outcome.stdout
    assert "pollux-like" not in outcome.stdout


@pytest.mark.parametrize("name", ["boa/cbd-85", "pal/racks-256", "eaco/quads-60"])
def test_nothing_is_built_before_a_refusal(name):
    """Neither a solver nor Pyomo is imported, nor any module that builds what they solve."""
    code = f"""
import sys, optsched
instance = optsched.read({name!r})
for method in ("exact", "milp"):
    try:
        optsched.solve(instance, method, memory_gib=1e-4)
    except optsched.TooLarge:
        continue
    raise AssertionError(method)
room = {name.split("/")[0]!r}
built = {{f"optsched.{{room}}.{{m}}" for m in ("exact.solver", "exact.arrays", "milp", "arrays")}}
built |= {{"highspy", "pyomo"}}
assert not built & set(sys.modules), built & set(sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr


def test_many_solves_leave_nothing_behind():
    """Once what each of them left was frozen by the next one, and never collected."""
    instance = small_instance({"a": 2, "b": 2}, jobs=[2, 1])
    sizes = []
    for solves in (3, 60):
        for _ in range(solves):
            optsched.solve(instance)
        sizes.append(len(gc.get_objects()))
    assert sizes[1] - sizes[0] < 1000
