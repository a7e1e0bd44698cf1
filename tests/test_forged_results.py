"""What surrounds a certificate: every field that is forged is refused, and always by a verdict."""

import json
import math

import pytest
from typer.testing import CliRunner

import optsched
from optsched.cli.main import app
from optsched.registry import PROBLEMS, problem
from optsched.results.result import Status
from optsched.verification import LIMIT, Violation, is_proven

NAMES = ("boa/hand", "pal/tiny", "eaco/paper-four", "sia/hand")


@pytest.fixture(scope="module", params=NAMES)
def solved(request):
    instance = optsched.read(request.param)
    return instance, optsched.solve(instance)


def command(*arguments):
    return CliRunner().invoke(app, [str(each) for each in arguments])


def broken(instance, result):
    with pytest.raises(Violation) as error:
        optsched.verify(instance, result)
    return {rule.rule for rule in error.value.broken}


def edited(result, tmp_path, **fields):
    """Return a result read from a file in which fields were changed by hand."""
    path = tmp_path / "edited.json"
    path.write_text(json.dumps(json.loads(result.to_json()) | fields))
    return path


@pytest.mark.parametrize(
    ("rule", "fields"),
    [
        ("status", {"plan": None, "status": "error"}),  # with any objective and gap
        ("status", {"plan": None, "status": "infeasible"}),
        ("status", {"status": "infeasible"}),
        ("status", {"status": "error"}),
        ("objective", {"objective": 1.0}),
        ("bound", {"bound": 1e-3}),
        ("gap", {"gap": 0.5}),
        ("unit", {"objective_unit": "h"}),
        ("unit", {"objective_unit": "s; nothing is better"}),
        ("instance", {"instance": "boa/another"}),
        ("instance", {"instance_sha256": "0" * 64}),
        ("version", {"schema": "optsched/result/1"}),
        ("method", {"method": "exact; touch x; #"}),
        ("seconds", {"verification_s": 1e9}),
        ("versions", {"versions": {}}),
        ("versions", {"versions": {"optsched": "the newest"}}),
        ("certificate", {"certificate": None}),
        ("changes", {"changes": {"name": "another"}}),
    ],
)
def test_a_forged_field_was_taken_for_proven(rule, fields, solved, tmp_path):
    instance, result = solved
    if "schema" in fields:
        old = json.loads(result.to_json())
        for key in ("instance_sha256", "changes", "verification_s"):
            del old[key]
        path = tmp_path / "edited.json"
        path.write_text(json.dumps(old | fields))
    else:
        path = edited(result, tmp_path, **fields)
    again = optsched.read_result(path)
    assert rule in broken(instance, again)
    done = command("verify", instance.name, path)
    assert done.exit_code == 1
    assert "proven:" not in done.stdout


ODD = [
    (field, figure)
    for field in ("bound", "objective", "gap", "gap_limit", "seconds")
    for figure in (math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324)
    if (field, figure) not in (("seconds", 1e308), ("gap_limit", 5e-324))  # which may be so
]


@pytest.mark.parametrize(("field", "figure"), ODD)
def test_figures_that_are_none_ended_in_a_traceback(field, figure, solved):
    """NaN and infinity raised ValueError or OverflowError instead of a verdict."""
    instance, result = solved
    fields = {field: figure}
    if field == "bound":
        fields["certificate"] = result.certificate.model_copy(update=fields)
    assert broken(instance, result.model_copy(update=fields))


@pytest.mark.parametrize("limit", [1.0, 50.0, 1e300, math.inf, math.nan, -1.0])
def test_a_gap_limit_of_any_size_made_any_plan_optimal(limit):
    instance = optsched.read("boa/cbd-85")
    loose = optsched.solve(instance, "same-k").model_copy(
        update={"status": Status.OPTIMAL, "gap_limit": limit}
    )
    assert "gap-limit" in broken(instance, loose)


@pytest.mark.parametrize("fault", [OverflowError, ZeroDivisionError, RecursionError, MemoryError])
def test_a_verifier_that_cannot_evaluate_refuses(fault, solved, monkeypatch):
    instance, result = solved

    def fails(*_):
        raise fault("out of range")

    entry = problem(instance.problem)
    monkeypatch.setitem(vars(entry), "prove", fails)
    assert broken(instance, result) == {"result"}
    assert optsched.solve(instance).bound is None


def test_a_method_whose_proof_is_refused_states_no_bound(monkeypatch):
    """`solve` returned `optimal` with certificates that `verify` refused."""
    from optsched.boa.exact import solver as exact

    certificate = exact.certificate

    def too_good(*arguments, **options):
        made = certificate(*arguments, **options)
        return made.model_copy(update={"bound": math.nextafter(made.bound, math.inf)})

    instance = optsched.read("boa/cbd-85")
    greedy = optsched.solve(instance, "same-k")
    monkeypatch.setattr(exact, "certificate", too_good)
    result = optsched.solve(instance, "same-k")
    assert (result.plan, result.bound, result.certificate) == (greedy.plan, None, None)
    assert result.status == "feasible"
    assert "the verifier refused the method's proof" in result.message
    assert not is_proven(instance, result)


@pytest.mark.parametrize("name", NAMES)
def test_what_takes_more_terms_than_the_limit_is_told_as_unverified(name, monkeypatch, tmp_path):
    instance = optsched.read(name)
    entry = problem(instance.problem)
    monkeypatch.setitem(vars(entry), "proof_terms", lambda *_: LIMIT + 1)
    result = optsched.solve(instance)
    assert result.status == "unverified"
    assert "`optsched verify INSTANCE RESULT`" in result.message
    assert "(unverified)" in str(result)
    assert optsched.solve(instance, verify=True).status == "optimal"
    assert not is_proven(instance, result)
    optsched.write(result, tmp_path / "r.json")
    done = command("verify", name, tmp_path / "r.json")
    assert (done.exit_code, "proven: no plan has a" in done.stdout) == (0, True)
    for name in ("report", "explain"):
        arguments = ("-o", tmp_path / "p.html") if name == "report" else ()
        assert "optimal" not in command(name, tmp_path / "r.json", *arguments).stdout
    text = (tmp_path / "p.html").read_text().split("<script")[0]
    assert "optimal" not in text


def test_a_copy_with_other_data_is_not_verified(solved):
    _, result = solved
    assert result.is_verified
    assert result.model_copy().is_verified
    assert not result.model_copy(update={"seed": 1}).is_verified


def test_a_result_is_not_attached_to_another_instance():
    hand = optsched.read("boa/hand")
    result = optsched.solve(hand)
    with pytest.raises(ValueError, match="another instance than 'boa/hand' as it stands"):
        result.of(hand.changed({"budget_gpus": 2.4}))


def test_changes_need_not_be_named_again(tmp_path):
    changes = {"budget_gpus": 30, "price_usd_per_gpu_h": 2.0}
    instance = optsched.read("boa/cbd-85").changed(changes).changed({"price_usd_per_gpu_h": None})
    path = tmp_path / "r.json"
    optsched.write(optsched.solve(instance), path)
    done = command("verify", "boa/cbd-85", path)
    assert done.exit_code == 0
    assert "for boa/cbd-85 with budget_gpus=30, price_usd_per_gpu_h=None" in done.stdout
    assert command("check", "boa/cbd-85", path).exit_code == 0
    assert command("verify", "boa/cbd-85", "--set", "budget_gpus=31", path).exit_code == 1


def test_terms_are_counted_for_every_problem():
    for name in PROBLEMS:
        instance = optsched.read(next(each for each in NAMES if each.startswith(name)))
        result = optsched.solve(instance)
        assert 0 < problem(name).proof_terms(instance, result.certificate) < LIMIT
