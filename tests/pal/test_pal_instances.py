"""The bundled instances of PAL: what they promise, and the measured figures that they hold."""

import csv
from itertools import product
from pathlib import Path

import pytest

from optsched import registry
from optsched.cluster import read_profile_csv
from optsched.documents.json_files import load
from optsched.instances import build_pal, pal_parts
from optsched.pal import PalInstance, PalPlan, Placement
from optsched.pal.problem import PROBLEM
from optsched.pal.verify import feasibility
from optsched.search import Search

FOLDER = Path(build_pal.__file__).parent / "pal"
DATA = Path(__file__).parents[3] / "shared" / "data" / "pal"
needs_data = pytest.mark.skipif(
    not DATA.is_dir(), reason="the measured files are not part of the project: ../shared/data/pal"
)
# name: free GPUs, levels, jobs, GPUs that they want, kind of profile
FACTS = {
    "tiny": (4, 2, 3, 4, "persistent"),
    "frontera-32": (32, 2, 10, 28, "persistent"),
    "sia-64": (64, 2, 7, 53, "single-run"),
    "sia-64-persistent": (64, 2, 7, 53, "persistent"),
    "racks-256": (256, 3, 39, 228, "single-run"),
    "sticky": (32, 2, 10, 29, "persistent"),
    "overfull": (64, 2, 16, 96, "single-run"),
}


def read(name):
    return PalInstance.from_document(load(FOLDER / f"{name}.json"), name)


def rows(name):
    with (DATA / name).open() as file:
        return list(csv.DictReader(file))


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setitem(registry.PROBLEMS, "pal", "optsched.pal.problem")


def greedy(instance, name):
    """Return the plan of a greedy method."""
    search = Search(instance)
    PROBLEM.method(name)(instance, search)
    return search


# --- what they promise ------------------------------------------------------------------------


def test_every_file_is_listed():
    assert {path.stem for path in FOLDER.glob("*.json")} == set(FACTS)


@pytest.mark.parametrize("name", FACTS)
def test_sizes(name):
    instance = read(name)
    gpus, levels, jobs, demand, kind = FACTS[name]
    assert instance.name == f"pal/{name}"
    assert len(instance.free_gpus) == gpus
    assert len(instance.topology.levels) == levels
    assert len(instance.jobs) == jobs
    assert sum(job.gpus for job in instance.jobs) == demand
    assert instance.profile.kind == kind
    assert instance.admission == ("optional" if name == "overfull" else "all")
    assert instance.is_timed == (name == "sticky")


@pytest.mark.parametrize("name", FACTS)
def test_every_instance_says_where_its_figures_come_from(name):
    instance = read(name)
    assert len(instance.description) > 60
    if name != "tiny":
        assert "hal-uw/blox-pal, branch artifact, 8a59070" in instance.source
        assert "hal-uw/blox-pal, branch artifact, 8a59070" in instance.profile.source
    for text in (instance.description, instance.source, instance.profile.source):
        assert not set("\\~") & set(text)
        assert "/work" not in text


def test_the_optimum_of_tiny_by_hand():
    """All plans: the best one is missed by packing and by PAL, as the description says."""
    instance = read("tiny")
    gpus = instance.free_gpus
    costs = {}
    for solo, calm in product(gpus, gpus):
        if solo != calm:
            pair = tuple(gpu for gpu in gpus if gpu not in (solo, calm))
            given = {"solo": (solo,), "pair": pair, "calm": (calm,)}
            jobs = tuple(Placement(id=name, gpus=at) for name, at in given.items())
            costs[solo, calm] = feasibility.objective(instance, PalPlan(jobs=jobs))
    best = min(costs, key=costs.__getitem__)
    assert best == ("n0/1", "n0/0")
    assert costs[best] == pytest.approx(3.1)
    assert greedy(instance, "packed-sticky").objective == pytest.approx(3.2)
    assert greedy(instance, "pal-greedy").objective == pytest.approx(3.15)


def test_one_outlier_makes_the_gain_of_sia_64():
    gains = {}
    for name in ("sia-64", "sia-64-persistent"):
        instance = read(name)
        packed = greedy(instance, "packed-sticky").objective
        gains[name] = packed / greedy(instance, "pal-greedy").objective - 1
        slow = [instance.profile.outliers(c) for c in instance.profile.classes]
        assert slow == ([("n8/3",), (), (), ()] if name == "sia-64" else [()] * 4)
    assert gains["sia-64"] > 0.3
    assert gains["sia-64-persistent"] < 0.05
    assert read("sia-64").jobs == read("sia-64-persistent").jobs


def test_penalties_of_racks_differ_by_model_and_level():
    instance = read("racks-256")
    assert {job.model for job in instance.jobs} == set(instance.locality)
    assert len(instance.profile.outliers("A")) == 4
    assert [len(instance.topology.domains_at(n)) for n in range(3)] == [64, 8, 1]
    assert instance.locality["BERT"][1] > instance.locality["resnet50"][1] > 1
    assert instance.locality["DCGAN"] == (1, 1, 1)


def test_moving_pays_for_one_job_of_sticky_and_not_for_another():
    instance = read("sticky")
    jobs = {job.id: job for job in instance.jobs}
    node = ["n3/0", "n3/1", "n3/2", "n3/3"]
    torn = jobs["resnet50-71"]
    stays = feasibility.performance(instance, torn, torn.current)
    moves = feasibility.performance(instance, torn, node)
    assert (stays.level, moves.level) == (1, 0)
    assert moves.moved
    assert moves.cost < stays.cost
    done = jobs["vgg19-112"]
    fastest = min(instance.free_gpus, key=instance.slowdowns[done.application_class].get)
    kept = feasibility.performance(instance, done, done.current)
    assert kept.cost < feasibility.performance(instance, done, [fastest]).cost
    assert sum(bool(job.current) for job in instance.jobs) == 5


def test_rewards_of_overfull_grow_with_the_wait():
    instance = read("overfull")
    assert all(job.reward >= 2 * job.gpus for job in instance.jobs)
    assert all(job.weight == job.gpus for job in instance.jobs)
    waits = [job.reward / job.gpus for job in instance.jobs]
    assert waits == pytest.approx(sorted(waits, reverse=True), abs=1e-3)


# --- the measured figures ---------------------------------------------------------------------


@needs_data
def test_the_script_gives_the_committed_bytes():
    built = build_pal.documents(DATA)
    assert {path.name for path in FOLDER.glob("*.json")} == set(built)
    for name, text in built.items():
        assert (FOLDER / name).read_bytes() == text.encode()


@needs_data
@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("frontera-32", "frontera32_profile.csv"),
        ("sticky", "frontera32_profile.csv"),
        ("sia-64", "artifact_sim_profile_64gpu_seed42.csv"),
        ("overfull", "artifact_sim_profile_64gpu_seed42.csv"),
        ("racks-256", "artifact_sim_profile_256gpu_seed42.csv"),
    ],
)
def test_profiles_are_the_measured_ones(name, file):
    profile, measured = read(name).profile, read_profile_csv(DATA / file, "persistent")
    assert list(profile.slowdown) == list(measured.slowdown) == ["A", "B", "C", "D"]
    for label, values in profile.slowdown.items():
        assert values == pytest.approx(measured.slowdown[label], abs=5.1e-7)
    nodes = [int(row["node"]) for row in rows(file)]
    assert [int(gpu.split("/")[0][1:]) for gpu in profile.gpus] == nodes


@needs_data
def test_persistent_slowdowns_are_medians_of_measured_gpus():
    slowdown = read("sia-64-persistent").profile.slowdown
    assert slowdown["B"] == slowdown["C"]
    for label, application in (("A", "resnet50"), ("B", "bert"), ("D", "pagerank")):
        table = rows("longhorn_variability_per_gpu.csv")
        medians = {float(row["norm_median"]) for row in table if row["app"] == application}
        assert set(slowdown[label]) <= medians


@needs_data
@pytest.mark.parametrize(
    ("name", "workload"), [("frontera-32", 6), ("sia-64", 5), ("sticky", 1), ("overfull", 6)]
)
def test_jobs_are_those_of_the_trace(name, workload):
    table = rows("sia_philly_pal_traces.csv")
    trace = {row["job_id"]: row for row in table if row["workload"] == str(workload)}
    for job in read(name).jobs:
        model, number = job.id.rsplit("-", 1)
        row = trace[number]
        assert (job.model, job.gpus) == (model, int(row["num_gpus"])) == (row["model"], job.gpus)
        assert job.application_class == row["pal_class"]
        if name == "sticky" and not job.current:
            work = float(row["iterations"]) * float(row["iter_time_s"])
            assert job.remaining_s == pytest.approx(work, abs=0.051)


@needs_data
def test_measured_penalties_are_the_medians_over_two_nodes():
    median = {
        (row["app"], row["gpu"]): float(row["median"])
        for row in rows("sia_locality_ratio_summary.csv")
        if row["k"] == "4" and row["nodes"] == "2"
    }
    locality = read("racks-256").locality
    for model, application in (("BERT", "bert"), ("GPT2", "bert"), ("resnet50", "imagenet")):
        assert locality[model] == (1, median[application, "rtx"], median[application, "aws"])


# --- parts of the script ----------------------------------------------------------------------


def jobs_of(*sizes):
    return [{"num_gpus": str(size)} for size in sizes]


def test_a_prefix_skips_no_job_and_fitting_skips_those_that_are_too_large():
    jobs = jobs_of(4, 9, 5, 2, 1)
    assert list(pal_parts.prefix(jobs, 10)) == jobs[:1]
    assert list(pal_parts.fitting(jobs, 10)) == [jobs[0], jobs[2], jobs[4]]
    assert list(pal_parts.prefix(jobs, 13)) == jobs[:2]


def test_first_fit_takes_what_is_free_when_a_job_comes():
    table = [("0", 2, 10), ("5", 1, 100), ("10", 1, 100), ("11", 2, 9), ("12", 1, 9), ("99", 1, 9)]
    jobs = [
        {"submit_time": at, "num_gpus": str(size), "iterations": str(work), "iter_time_s": "1"}
        for at, size, work in table
    ]
    running = pal_parts.first_fit(jobs, ["a", "b", "c"], 50)
    assert [(row["submit_time"], held) for row, held in running] == [
        ("5", ["c"]),
        ("10", ["a"]),
        ("12", ["b"]),
    ]


def test_usage_is_one_line(monkeypatch):
    monkeypatch.setattr("sys.argv", ["build_pal.py"])
    with pytest.raises(SystemExit, match=r"usage: build_pal\.py DATA_DIR"):
        build_pal.main()
