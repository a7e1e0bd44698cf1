"""The bundled instances of EaCO: what they promise, and the measured figures that they hold."""

import csv
from collections import Counter
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace

import pytest

from optsched.documents.json_files import load
from optsched.eaco import EacoInstance, performance
from optsched.eaco.greedy.group_costs import Draft, GroupCosts
from optsched.eaco.verify.feasibility import objective, violations
from optsched.instances import build_eaco, eaco_parts
from optsched.registry import problem

FOLDER = Path(build_eaco.__file__).parent / "eaco"
DATA = Path(__file__).parents[3] / "shared" / "data" / "eaco"
needs_data = pytest.mark.skipif(
    not DATA.is_dir(), reason="the measured files are not part of the project: ../shared/data/eaco"
)
# name: jobs, GPUs that they want, GPUs that there are, jobs per GPU at most, measured groups
FACTS = {
    "paper-four": (4, 32, 32, 4, 10),
    "paper-mixed": (10, 80, 80, 4, 10),
    "pairs-60": (60, 60, 64, 2, 0),
    "quads-60": (60, 60, 64, 4, 0),
    "gavel-v100": (40, 40, 32, 2, 351),
    "gangs": (40, 75, 112, 3, 0),
    "running": (36, 36, 48, 3, 0),
    "power-levels": (36, 202, 224, 2, 0),
}
GREEDY = (
    "fifo_exclusive",
    "fifo_packed",
    "random_pairs",
    "least_utilised",
    "eaco_greedy",
    "best_fit_memory",
    "best_delta_energy",
    "sharing_scores",
    "longest_first",
)


def read(name):
    return EacoInstance.from_document(load(FOLDER / f"{name}.json"), name)


def rows(name):
    with (DATA / name).open() as file:
        return list(csv.DictReader(file))


def best_by(name, instance):
    """Return the least objective of a rule's plans, and the plan."""
    plans = []
    search = SimpleNamespace(seed=0, offer=plans.append, out_of_time=lambda: False)
    problem("eaco").method(name.replace("_", "-"))(instance, search)
    kept = [plan for plan in plans if not violations(instance, plan)]
    return min(((objective(instance, plan), plan) for plan in kept), key=lambda pair: pair[0])


# --- what they promise ------------------------------------------------------------------------


def test_every_file_is_listed():
    assert {path.stem for path in FOLDER.glob("*.json")} == set(FACTS)


@pytest.mark.parametrize("name", FACTS)
def test_sizes(name):
    instance = read(name)
    jobs, demand, gpus, most, measured = FACTS[name]
    assert instance.name == f"eaco/{name}"
    assert len(instance.jobs) == jobs
    assert sum(job.gpus for job in instance.jobs) == demand
    assert sum(nodes.gpus * nodes.count for nodes in instance.nodes) == gpus
    assert instance.max_jobs_per_gpu == most
    assert len(instance.interference.groups) == measured
    assert instance.objective == "run-to-completion"


@pytest.mark.parametrize("name", FACTS)
def test_every_instance_says_where_its_figures_come_from(name):
    instance = read(name)
    assert len(instance.description) > 60
    assert len(instance.source) > 40
    assert all(gpu.power.source for gpu in instance.gpu_types)
    assert all(nodes.power.source for nodes in instance.nodes)
    for text in (instance.description, instance.source, instance.interference.source):
        assert not set("\\~") & set(text)
        assert "/work" not in text


@pytest.mark.parametrize("name", FACTS)
def test_every_rule_has_a_plan(name):
    instance = read(name)
    for rule in GREEDY:
        value, plan = best_by(rule, instance)
        assert not violations(instance, plan)
        assert value > 0


@pytest.mark.parametrize("name", FACTS)
def test_sharing_saves_energy(name):
    instance = read(name)
    exclusive, _ = best_by("fifo_exclusive", instance)
    assert best_by("longest_first", instance)[0] < 0.9 * exclusive


def test_the_papers_jobs():
    four = read("paper-four")
    assert all(job.work_s == pytest.approx(35.5075 * 3600, rel=1e-12) for job in four.jobs)
    assert all(job.max_slowdown is None for job in four.jobs)
    assert "19 in the text, 1.245 by the tables" in four.description
    assert best_by("fifo_exclusive", four)[0] == pytest.approx(161.67, rel=1e-12)
    assert best_by("local_search", four)[0] == pytest.approx(93.66, rel=1e-12)
    capped = four.changed({"jobs.*.max_slowdown": 1.10})
    assert best_by("local_search", capped)[0] == pytest.approx(111.77, rel=1e-12)
    mixed = read("paper-mixed")
    assert Counter(job.type for job in mixed.jobs) == dict(
        zip(eaco_parts.MODELS, (4, 2, 3, 1), strict=True)
    )
    assert {job.max_slowdown for job in mixed.jobs} == {1.1}
    assert best_by("local_search", mixed)[0] == pytest.approx(223.92, rel=1e-12)


def test_gpus_of_gavel_run_out():
    instance = read("gavel-v100")
    value, plan = best_by("fifo_exclusive", instance)
    assert len(plan.waiting) == 8
    packed, packed_plan = best_by("fifo_packed", instance)
    assert packed < value
    assert len(packed_plan.waiting) < 8
    assert all(job.waiting_penalty_kwh for job in instance.jobs)
    pairs = [group for group in instance.interference.groups if len(group.types) == 2]
    assert sum(not any(group.rates) for group in pairs) == 23


def test_exclusive_gangs_wake_nodes():
    instance = read("gangs")
    assert {job.gpus for job in instance.jobs} == {1, 2, 4, 8}
    _, plan = best_by("fifo_exclusive", instance)
    assert performance(instance, plan).woken == 5
    assert performance(instance, best_by("longest_first", instance)[1]).woken == 0
    assert any(job.deadline_s for job in instance.jobs)


def test_running_groups_stay_or_move():
    instance = read("running")
    assert len(instance.location_of) == 24
    assert Counter(len(place.jobs) for place in instance.running) == {1: 8, 2: 8}
    value, plan = best_by("fifo_exclusive", instance)
    figures = performance(instance, plan)
    assert figures.late == ("j05",)
    moved = [job.id for group in figures.groups for job in group.jobs if job.is_moved]
    assert moved == ["j04"]  # it runs beside j05, which cannot be in time, and then runs alone
    better, moved = best_by("longest_first", instance)
    runs = performance(instance, moved)
    assert better < value
    assert any(job.is_moved for group in runs.groups for job in group.jobs)
    assert runs.late == ("j05",)


def test_a_cap_of_40_kw_can_be_kept_by_levels_and_waiting():
    instance = read("power-levels")
    free, plan = best_by("local_search", instance)
    assert performance(instance, plan).power_w > 45_000
    assert {group.level for group in plan.groups} > {None}
    capped = instance.changed({"power_cap_w": 40000})
    value, lower = best_by("local_search", capped)
    assert value > free
    assert performance(capped, lower).power_w <= 40_000
    assert lower.waiting
    assert instance.idle_floor_w == 0


def test_quads_may_share_in_as_many_groups_as_they_say():
    """Pairs are counted here; 17,065 groups of three and 94,797 of four take half a minute."""
    instance = read("quads-60")
    estimates = GroupCosts(instance)
    pairs = sum(estimates.allowed(Draft(pair, 0)) for pair in combinations(range(60), 2))
    assert pairs == 1532
    assert f"{60 + pairs + 17065 + 94797:,} groups" in instance.description


# --- the measured figures ---------------------------------------------------------------------


@needs_data
def test_the_script_gives_the_committed_bytes():
    built = build_eaco.documents(DATA)
    assert {path.name for path in FOLDER.glob("*.json")} == set(built)
    for name, text in built.items():
        assert (FOLDER / name).read_bytes() == text.encode()


@needs_data
@pytest.mark.parametrize("name", ["paper-four", "paper-mixed"])
def test_groups_are_the_rows_of_the_papers_tables(name):
    instance = read(name)
    table = {
        tuple(sorted(eaco_parts.MODELS if row["n_jobs"] == "4" else row["models"].split("+"))): row
        for row in rows("eaco_tables.csv")
    }
    assert len(table) == 10
    for group in instance.interference.groups:
        row = table.pop(tuple(sorted(group.types)))
        hours = 35.5075 / group.rates[0]
        assert group.gpu_power_w * 8 * hours / 1000 == pytest.approx(float(row["total_energy_kwh"]))
        assert group.utilisation == pytest.approx(float(row["avg_gpu_util_pct"]) / 100)
    assert not table


@needs_data
def test_pairs_are_the_measured_ones():
    instance = read("gavel-v100")
    measured = {}
    for row in rows("gavel_pairs_v100.csv"):
        if row["table"] == "motivation_oracle":
            names = eaco_parts.short(row["job_a"]), eaco_parts.short(row["job_b"])
            measured[names] = float(row["rate_a"]), float(row["rate_b"])
    for group in instance.interference.groups:
        rates = measured.pop(group.types)
        if group.types[0] == group.types[1]:
            rates = (sum(rates) / 2,) * 2
        assert group.rates == pytest.approx(rates, abs=1e-6)
    assert not measured


def test_names_of_gavels_jobs_in_fewer_letters():
    assert eaco_parts.short("ResNet-18 (batch size 16)") == "ResNet-18/16"
    assert eaco_parts.short("A3C") == "A3C"


def test_usage_is_one_line(monkeypatch):
    monkeypatch.setattr("sys.argv", ["build_eaco.py"])
    with pytest.raises(SystemExit, match=r"usage: build_eaco\.py DATA_DIR"):
        build_eaco.main()
