"""Names that were given up: whoever uses one is told the new one, wherever it stands."""

import json

import pytest
from typer.testing import CliRunner

import optsched
from optsched.cli.main import app
from optsched.eaco.greedy.group_costs import GroupCosts
from optsched.eaco.greedy.rules import BY_NAME
from optsched.registry import PROBLEMS, RENAMED, UnknownNameError, problem
from optsched.rollout import registry
from optsched.rollout.policy_options import OptionError

LOOK_UP = {f"{name} method": problem(name).method for name in PROBLEMS} | {"policy": registry.entry}
OPTIONS = "policy option"
OLD = [
    (kind, old, new)
    for kind, names in RENAMED.items()
    if kind != OPTIONS
    for old, new in names.items()
]


@pytest.mark.parametrize(("kind", "old", "new"), OLD)
def test_an_old_name_is_refused_with_the_new_one(kind, old, new):
    assert LOOK_UP[kind](new).name == new
    with pytest.raises(UnknownNameError) as error:
        LOOK_UP[kind](old)
    assert str(error.value) == f"there is no {kind} '{old}'; it is now called '{new}'"


@pytest.mark.parametrize(("old", "new"), [*RENAMED[OPTIONS].items()])
def test_an_old_option_is_refused_with_the_new_one(old, new):
    with pytest.raises(OptionError, match=f"no option '{old}'; it is now called '{new}'"):
        registry.make(f"pal:{old}=5", optsched.read_scenario("pal-64"))


@pytest.mark.parametrize("name", ["eaco/gangs", "eaco/gavel-v100"])
def test_a_method_and_a_policy_of_eaco_of_one_name_are_one_algorithm(name):
    """`gandiva` once drew random pairs as a policy, and packed by utilisation as a method."""
    instance = optsched.read(name)
    shared = {*BY_NAME} & {method.name for method in problem("eaco").methods}
    assert shared == {*BY_NAME}
    assert not {entry.name for entry in registry.ENTRIES} & {"exact", "gandiva", "lucid"}
    for rule in sorted(shared):
        plan = BY_NAME[rule].grouping(GroupCosts(instance), 0).plan()
        assert optsched.solve(instance, method=rule).plan == plan


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["solve", "eaco/paper-four", "--method", "gandiva"], "called 'least-utilised'"),
        (["solve", "pal/tiny", "--method", "kinds"], "called 'node-classes'"),
        (["rollout", "eaco-28", "--policy", "lucid:window=3"], "called 'sharing-scores'"),
        (["compare", "eaco-28", "--policy", "eaco-greedy,gandiva"], "called 'random-pairs'"),
        (["policies", "gandiva-paper"], "called 'least-utilised'"),
        (["rollout", "pal-64", "--policy", "pal:work=5"], "called 'programs'"),
    ],
)
def test_a_command_with_an_old_name_tells_the_new_one(arguments, text):
    outcome = CliRunner().invoke(app, arguments)
    assert outcome.exit_code == 2
    assert text in outcome.stderr


def test_files_with_an_old_name_tell_the_new_one(tmp_path):
    result, scenario = tmp_path / "result.json", tmp_path / "scenario.json"
    solved = optsched.solve(optsched.read("eaco/paper-four"), method="best-fit-memory")
    result.write_text(json.dumps(json.loads(solved.to_json()) | {"method": "best-fit"}))
    outcome = CliRunner().invoke(app, ["verify", "eaco/paper-four", str(result)])
    assert outcome.exit_code
    told = " ".join((outcome.stdout + outcome.stderr).split())
    assert told.endswith("""no eaco method "best-fit"; it is now called 'best-fit-memory'""")
    document = json.loads(optsched.read_scenario("eaco-28").to_json()) | {"policies": ["gandiva"]}
    scenario.write_text(json.dumps(document))
    with pytest.raises(UnknownNameError, match="now called 'random-pairs'"):
        optsched.compare(str(scenario))
