"""Methods and importers of others: run as ours are, and believed as little."""

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import optsched
from optsched.cli.main import app
from optsched.cluster import import_topology
from optsched.plugins.errors import PluginError
from optsched.registry import UnknownNameError
from optsched.results.result import Status
from optsched.sweeps.verified_points import verify_frontier
from optsched.traces import import_trace
from tests.plugins.test_own_policies import write_distribution

SOURCE = '''
from optsched.cluster import Topology
from optsched.registry import problem
from optsched.traces.trace import trace_of

BOA = problem("boa")

def poor(instance, search):
    """A poor plan."""
    BOA.method("same-k")(instance, search)

def exact(instance, search):
    """Ours by another name."""
    return BOA.methods[0](instance, search)
exact.kind = "exact"

def lies(instance, search):
    certificate = BOA.methods[0](instance, search)
    search.plan = search.objective = None
    poor(instance, search)
    return certificate.model_copy(update={"bound": search.objective})

def invents(instance, search):
    poor(instance, search)
    search.objective, search.instance = 0.0, None

def breaks(instance, search):
    poor(instance, search)
    search.plan = search.plan.model_copy(update={"classes": ()})

def hands_over_a_dict(instance, search):
    search.plan = {}

def states_a_word(instance, search):
    return "optimal"

def fails(instance, search):
    return [][0]

odd = lambda instance, search: None
odd.kind = "quick"
word = "x"

def read(text, name, origin, *, scale="1"):
    """Rows of seconds and GPUs."""
    rows = [tuple(map(float, row.split())) for row in text.splitlines()]
    columns = {"submit_s": [a for a, _ in rows], "gpus": [int(b) for _, b in rows]}
    return trace_of(name, origin, columns | {"run_s": [float(scale)] * len(rows)})

def read_topology(path, gpus_per_node):
    return Topology.model_validate({"levels": ["node"], "domains": [
        {"id": "n", "level": "node", "gpus": ["n/0", "n/1"]}]})

def no_reader(*arguments):
    return None
'''


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("own.py").write_text(SOURCE)
    return tmp_path


def solve(name, **options):
    return optsched.solve(optsched.read("boa/epew-figure1"), f"own.py:{name}", **options)


def run(*arguments):
    return CliRunner().invoke(app, list(arguments))


def test_an_own_method_gets_the_bound_that_ours_get():
    poor, exact = solve("poor"), solve("exact")
    assert (poor.method, poor.status) == ("own.py:poor", Status.FEASIBLE)
    assert exact.status is Status.OPTIMAL
    assert poor.bound <= exact.objective < poor.objective
    optsched.verify(optsched.read("boa/epew-figure1"), exact)
    ran = run("solve", "boa/epew-figure1", "--method", "own.py:poor")
    assert ran.exit_code == 0
    assert "own.py:poor" in ran.stdout


def test_what_the_verifier_refuses_of_an_own_method_is_not_stated():
    result = solve("lies")
    assert result.status is Status.FEASIBLE
    assert result.bound is None
    assert "the verifier refused the method's proof" in result.message
    assert result.message.endswith("this is a defect of file own.py")
    assert solve("lies", verify=False).status is Status.UNVERIFIED


def test_the_objective_of_an_own_method_is_recomputed_from_its_plan():
    assert solve("invents").objective == solve("poor").objective


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("breaks", "method 'own.py:breaks' (file own.py): its plan breaks a rule: "),
        ("hands_over_a_dict", "its plan: expected BoaPlan, found dict"),
        ("states_a_word", "its certificate: expected BoaCertificate or None, found str"),
        ("fails", "it failed: IndexError: list index out of range ("),
        ("odd", "kind: expected exact or greedy, found 'quick'"),
        ("word", "expected a function of (instance, search), found str"),
        ("gone", "there is no 'gone' in it"),
    ],
)
def test_what_is_wrong_with_a_method_is_told_in_one_line(name, text):
    ran = run("solve", "boa/epew-figure1", "--method", f"own.py:{name}")
    assert ran.exit_code == 2
    assert text in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_a_frontier_has_own_methods_and_their_origin():
    curve = optsched.frontier(
        "boa/epew-figure1", budgets=[20, 30], methods=["exact", "own.py:poor"]
    )
    assert curve.origins["own.py:poor"].startswith("file own.py, SHA-256 ")
    assert [p.method for p in curve.points] == ["exact", "own.py:poor"] * 2
    verify_frontier(optsched.read("boa/epew-figure1"), curve)
    optsched.write(curve, "f.json")
    assert optsched.read_frontier("f.json").origins == curve.origins


def test_installed_methods_and_formats_are_listed_and_used(folder, monkeypatch):
    write_distribution(
        folder, "lab", "2.0",
        {"optsched.methods.boa": {"poor-one": "lab_own:poor", "bad": "lab_own:gone"},
         "optsched.trace_importers": {"rows": "lab_own:read"},
         "optsched.topology_importers": {"two": "lab_own:read_topology"}},
    )  # fmt: skip
    Path("lab_own.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(folder)
    result = optsched.solve(optsched.read("boa/epew-figure1"), "poor-one")
    assert result.method == "lab_own:poor"
    listed = " ".join(run("methods", "boa").stdout.split())
    assert "poor-one" in listed
    assert "there is no 'gone' in it" in listed
    Path("jobs.txt").write_text("0 1\n5 2\n")
    assert len(import_trace("jobs.txt", "rows")) == 2
    assert len(import_topology("jobs.txt", "two").gpus) == 2
    assert "lab 2.0" in run("trace", "formats").stdout
    with pytest.raises(UnknownNameError, match="did you mean 'poor-one'"):
        optsched.solve(optsched.read("boa/epew-figure1"), "poor-on")
    sys.modules.pop("lab_own")


def test_own_readers_of_traces_and_topologies():
    Path("jobs.txt").write_text("0 1\n5 2\n")
    trace = import_trace("jobs.txt", "own.py:read", scale="60")
    assert trace.run_us.tolist() == [60_000_000] * 2
    ran = run("trace", "import", "jobs.txt", "--input-format", "own.py:read", "-o", "t.json")
    assert ran.exit_code == 0, ran.stderr
    ran = run("rollout", "philly-small", "--trace", "jobs.txt", "--input-format", "own.py:read")
    assert ran.exit_code == 0, ran.stderr
    source = optsched.rollout.TraceSource(file="jobs.txt", format="own.py:read")
    curve = optsched.frontier("philly-small", "epoch_s", [60.0, 90.0], trace=source, methods="fifo")
    assert [point.status for point in curve.points] == ["simulated"] * 2
    ran = run("topology", "import", "jobs.txt", "--input-format", "own.py:read_topology")
    assert '"n/1"' in ran.stdout
    with pytest.raises(UnknownNameError, match=r"option of format 'own\.py:read' 'scales'"):
        import_trace("jobs.txt", "own.py:read", scales="60")


@pytest.mark.parametrize(
    ("read", "text"),
    [(import_trace, "expected a Trace"), (import_topology, "expected a Topology")],
)
def test_a_reader_that_returns_something_else_is_refused(read, text):
    Path("jobs.txt").write_text("0 1\n")
    with pytest.raises(PluginError, match=text):
        read("jobs.txt", "own.py:no_reader")
