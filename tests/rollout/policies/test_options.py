"""Options of policies: every policy's, as text and from Python; what is refused, and how."""

import pytest
from typer.testing import CliRunner

from optsched.cli.main import app
from optsched.pal.greedy.rules import RULES as PLACEMENT_RULES
from optsched.registry import UnknownNameError
from optsched.rollout import registry
from optsched.rollout.policy_options import OptionError, described, read, validated
from optsched.rollout.registry import make
from optsched.rollout.run import simulate
from optsched.testing.small_worlds import bundled_worlds
from tests.support.builders.rollout_stub import scenario

NAMES = [entry.name for entry in registry.ENTRIES]
FIELDS = [
    (entry.name, option, schema)
    for entry in registry.ENTRIES
    for option, schema in entry.maker().options.model_json_schema()["properties"].items()
]
WORLD = scenario(2, 4, budget_gpus=4.0)


def kinds(schema):
    return {part.get("type") for part in schema.get("anyOf", [schema])}


def refused(policy):
    with pytest.raises(OptionError) as told:
        make(policy, WORLD)
    assert "\n" not in str(told.value)
    return str(told.value)


@pytest.mark.parametrize("name", NAMES)
def test_every_policy_says_what_it_takes(name):
    maker = registry.entry(name).maker()
    assert make(name, WORLD).name == maker(WORLD).name
    defaults = maker.options()
    for option, kind, default, meaning in described(maker.options):
        assert kind
        assert default
        assert meaning, option
    given = {option: getattr(defaults, option) for option in maker.options.model_fields}
    assert validated(maker.options, given) == defaults
    known = ", ".join(maker.options.model_fields)
    assert f"there is no option 'nonsense'; known: {known}" in refused(f"{name}:nonsense=1")


@pytest.mark.parametrize(("name", "option", "schema"), FIELDS)
def test_every_option_of_every_policy_refuses_other_types(name, option, schema):
    """`fifo:backfill=False` once turned backfilling on, as any text did."""
    maker = registry.entry(name).maker()
    told = f"option '{option}': "
    if kinds(schema) != {"string"} or "enum" in schema or option == "method":
        assert told in refused(f"{name}:{option}=maybe")
        assert told in refused(f"{name}:{option}=")
    for wrong in ([], {}, object()):
        with pytest.raises(OptionError, match=told):
            maker(WORLD, 0, **{option: wrong})
    others = {"boolean": "no", "integer": True, "number": "0.5", "string": 7}
    for kind in kinds(schema) & others.keys():
        if kinds(schema) <= {kind, "null"}:
            with pytest.raises(OptionError, match=told):
                maker(WORLD, 0, **{option: others[kind]})
    if kinds(schema) & {"integer", "number"} and "string" not in kinds(schema):
        for wrong in ("nan", "inf", "-1e400", "1e400", "0x10"):
            assert told in refused(f"{name}:{option}={wrong}")


@pytest.mark.parametrize(("name", "option", "schema"), FIELDS)
def test_true_and_false_have_four_words_each(name, option, schema):
    options = registry.entry(name).maker().options
    words = {True: ("true", "True", "YES", "on", "1"), False: ("false", "False", "no", "OFF", "0")}
    if "boolean" not in kinds(schema):
        return
    for value, spelt in words.items():
        assert all(read(options, f"{option}={word}") == {option: value} for word in spelt)
    for word in ("t", "f", "y", "n", "maybe", "2", "null" if "null" not in kinds(schema) else "-"):
        assert f"option '{option}': expected true or false, found" in refused(
            f"{name}:{option}={word}"
        )


def test_a_switch_is_what_it_says():
    for word, wanted in (("False", False), ("no", False), ("0", False), ("Yes", True)):
        assert make(f"fifo:backfill={word}", WORLD).backfill is wanted


def test_the_nearest_name_is_told():
    text = refused("fifo:backfil=1,relax=3")
    assert "there is no option 'backfil'; did you mean 'backfill'? known: relax_s, backfill" in text
    assert "there is no option 'relax'; did you mean 'relax_s'?" in text
    assert "option 'backfill': given twice" in refused("fifo:backfill=yes,backfill=no")
    assert "option 'backfill': expected key=value" in refused("fifo:backfill")


def test_makers_are_as_strict_in_python():
    maker = registry.entry("fifo").maker()
    assert maker(WORLD, 0, backfill=True, relax_s=60).relax_us == 60_000_000
    with pytest.raises(OptionError, match="there is no option 'backfil'; did you mean 'backfill'"):
        maker(WORLD, 0, backfil=True)


@pytest.mark.parametrize("name", NAMES)
def test_the_command_lists_the_options(name):
    shown = CliRunner().invoke(app, ["policies", name])
    assert shown.exit_code == 0
    for option, _, default, _ in described(registry.entry(name).maker().options):
        assert f"{option} " in shown.stdout
        assert default.split(",")[0] in shown.stdout
    unknown = CliRunner().invoke(app, ["policies", name + "x"])
    assert (unknown.exit_code, f"there is no policy '{name}x'" in unknown.stderr) == (2, True)
    with pytest.raises(UnknownNameError):
        make(name + "x", WORLD)


def test_the_command_ends_with_one_line_and_2():
    line = ["rollout", "philly-small", "--policy", "fifo:backfill=maybe"]
    ended = CliRunner().invoke(app, line)
    told = "option 'backfill': expected true or false, found \"maybe\""
    assert (ended.exit_code, ended.stderr) == (
        2, f"error: policy 'fifo:backfill=maybe': {told}\n"
    )  # fmt: skip


KEEPERS = [
    *(
        "fifo",
        "philly",
        "las",
        "srtf",
        "tiresias",
        "tiresias-gittins",
        "pal",
        "wsrpt",
        "wsrpt-lookahead",
        "lrpt",
        "foresight",
        "hindsight",
    ),
    *(rule.name for rule in PLACEMENT_RULES if rule.is_policy),
]


@pytest.mark.parametrize("name", KEEPERS)
def test_quotas_are_kept_by_policies_in_queues_and_rounds(name):
    world = bundled_worlds()[-1]
    assert world.scenario.quotas
    assert simulate(world.scenario, name, trace=world.trace).metrics["jobs"] == len(world.trace)


@pytest.mark.parametrize("name", sorted({*NAMES} - {*KEEPERS}))
def test_quotas_are_refused_before_the_first_event_by_all_others(name):
    """Those that share GPUs out broke them in the middle of a rollout."""
    where = bundled_worlds()[-1].scenario
    with pytest.raises(ValueError, match=f"^policy '{name}': it keeps no quotas of queues, and"):
        make(name, where)
    assert make(name, where.changed({"quotas": {}})).name == name
