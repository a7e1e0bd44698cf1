"""Rates of groups: fallbacks in their order, the monotone repair, and Gavel's tables."""

import gzip
import itertools
import json
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.eaco.gavel_throughputs import read_gavel
from optsched.eaco.interference import GroupRates, Interference, MeasuredGroup
from optsched.instance import InstanceError
from optsched.registry import UnknownNameError

GAVEL = Path(__file__).parents[3] / "shared/data/traces/gavel/simulation_throughputs.json.gz"
UTILISATION = {"a": 0.5, "b": 0.75, "c": 0.25, "d": 0.125}
HALF, THREE_QUARTERS = Fraction(1, 2), Fraction(3, 4)


def group(types, *rates, **more):
    return MeasuredGroup(types=tuple(types), rates=rates, **more)


def rates_of(*groups, gpu="V100", **more):
    return GroupRates(Interference(groups=groups, **more), gpu, UTILISATION)


# --- fallbacks in order -----------------------------------------------------------------------


def test_one_job_alone_runs_at_full_rate():
    assert rates_of().of(["a"]) == ("alone", {"a": 1})
    assert rates_of(fallback="none").of(["a"]).fits


def test_measured_groups_are_found_in_any_order():
    rates = rates_of(group("ba", 0.75, 0.5), group("aac", 0.5, 0.5, 0.25))
    assert rates.of("ab") == rates.of("ba") == ("measured", {"a": HALF, "b": THREE_QUARTERS})
    assert rates.of("caa").by_type == {"a": HALF, "c": Fraction(1, 4)}


def test_a_larger_group_comes_before_pairs_and_the_greatest_rate_counts():
    rates = rates_of(
        group("abcd", 0.25, 0.25, 0.25, 0.25),
        group("abc", 0.5, 0.375, 0.25),
        group("aab", 0.4375, 0.4375, 0.5),
    )
    assert rates.of("ab") == ("larger", {"a": HALF, "b": HALF})
    assert rates.of("aa") == ("larger", {"a": Fraction(7, 16)})
    assert rates.of("cd") == ("larger", {"c": Fraction(1, 4), "d": Fraction(1, 4)})
    assert rates.of("bb").origin == "utilisation"


def test_pairs_multiply_for_each_partner():
    pairs = [group("ab", 0.5, 0.75), group("bc", 0.5, 0.75), group("ac", 0.75, 0.75)]
    rates = rates_of(*pairs, group("aa", 0.5, 0.5))
    expected = {"a": HALF * THREE_QUARTERS, "b": THREE_QUARTERS * HALF, "c": THREE_QUARTERS**2}
    assert rates.of("cab") == ("pairs", expected)
    assert rates.of("aab") == ("pairs", {"a": Fraction(1, 4), "b": THREE_QUARTERS**2})
    assert rates.of("abb").origin == "utilisation"  # two b were not measured


def test_utilisation_formula_by_hand():
    rates = rates_of(saturation_slope=0.5, partner_slowdown=0.25)
    assert rates.of("cd") == ("utilisation", {"c": Fraction(4, 5), "d": Fraction(4, 5)})
    assert rates.of("ab").by_type["a"] == 1 / Fraction(11, 8)  # 1 + 0.25 + 0.5 x 0.25
    assert rates.of("abbc").by_type["a"] == 1 / Fraction(19, 8)  # 1 + 0.75 + 0.5 x 1.25


def test_default_formula_is_the_published_fit():
    """1.02 + 0.56 max(0, u1 + u2 - 1) for pairs of Lucid (docs/math/eaco.md, Rates)."""
    assert float(1 / rates_of().of("ab").by_type["a"]) == pytest.approx(1.02 + 0.56 * 0.25)


@pytest.mark.parametrize(
    ("fallback", "origins"),
    [
        ("none", ["measured", "unknown", "unknown", "unknown"]),
        ("larger", ["measured", "larger", "unknown", "unknown"]),
        ("pairs", ["measured", "larger", "pairs", "unknown"]),
        ("utilisation", ["measured", "larger", "pairs", "utilisation"]),
    ],
)
def test_fallback_says_how_far_to_go(fallback, origins):
    measured = [group("ab", 0.5, 0.5), group("aa", 0.5, 0.5), group("cdd", 0.5, 0.5, 0.5)]
    rates = rates_of(*measured, fallback=fallback)
    beside = [rates.of(types) for types in ("ab", "cd", "aab", "bb")]
    assert [r.origin for r in beside] == origins
    assert [r.fits for r in beside] == [origin != "unknown" for origin in origins]


def test_entries_for_a_gpu_type_come_first():
    groups = [group("ab", 0.5, 0.5), group("ab", 0.75, 0.75, gpu="A100"), group("aa", 0.5, 0.5)]
    assert rates_of(*groups, gpu="A100").of("ab").by_type == {"a": 0.75, "b": 0.75}
    assert rates_of(*groups, gpu="V100").of("ab").by_type == {"a": 0.5, "b": 0.5}
    assert rates_of(*groups, gpu="A100").of("aa").by_type == {"a": 0.5}
    only = rates_of(group("ab", 0.5, 0.5, gpu="A100"), gpu="V100", fallback="none")
    assert not only.of("ab").is_known


def test_what_does_not_fit_does_not_fit_in_a_larger_group():
    rates = rates_of(group("ab", 0, 0), group("abc", 0.5, 0.5, 0.5), group("ac", 0.75, 0.75))
    assert rates.of("ab").is_known
    assert not any(rates.of(types).fits for types in ("ab", "abc", "abd", "aabd"))
    assert rates.of("ac").fits
    assert rates.of("bc").origin == "utilisation"  # the larger group tells nothing: it cannot run
    assert len(rates.repairs) == 3


# --- repair -----------------------------------------------------------------------------------


def test_repair_lowers_and_reports():
    pair, three = group("ab", 0.5, 0.75), group("abc", 0.625, 0.5, 0.5)
    rates = rates_of(pair, three, group("abcd", 0.5625, 0.25, 0.125, 0.25))
    assert rates.of("abc").by_type == {"a": HALF, "b": HALF, "c": HALF}
    assert rates.of("abcd").by_type["a"] == HALF
    assert rates.repairs == [
        (("a", "b", "c"), "a", 0.625, 0.5),
        (("a", "b", "c", "d"), "a", 0.5625, 0.5),
    ]
    assert str(rates.repairs[0]) == "a + b + c: rate of a lowered from 0.625 to 0.5"
    assert rates_of(pair, group("abc", 0.5, 0.5, 0.5)).repairs == []


def test_measured_rates_are_not_lowered_by_formulas():
    rates = rates_of(group("abc", 1, 1, 1), saturation_slope=9.0)
    assert rates.of("abc").by_type["a"] == rates.of("ab").by_type["a"] == 1


@st.composite
def tables(draw):
    keys = draw(
        st.sets(
            st.lists(st.sampled_from("abcd"), min_size=2, max_size=4).map(
                lambda k: tuple(sorted(k))
            )
        )
    )
    groups = []
    for key in sorted(keys):
        by_type = {t: draw(st.sampled_from([0.25, 0.5, 0.7, 0.9, 1.0])) for t in sorted(set(key))}
        zero = draw(st.integers(0, 9)) == 0
        groups.append(group(key, *(0.0 if zero else by_type[t] for t in key)))
    fallback = draw(st.sampled_from(["none", "larger", "pairs", "utilisation"]))
    return Interference(groups=tuple(groups), fallback=fallback)


@given(tables())
def test_rates_never_rise_as_a_group_grows(table):
    rates = GroupRates(table, "V100", UTILISATION)
    for size in (2, 3, 4):
        for key in itertools.combinations_with_replacement("abcd", size):
            whole = rates.of(key)
            for inner in itertools.combinations(key, size - 1):
                part = rates.of(inner)
                if not (whole.is_known and part.is_known):
                    continue
                assert part.fits or not whole.fits
                for name in set(inner) if part.fits else ():
                    assert whole.by_type[name] <= part.by_type[name] <= 1


@given(tables())
def test_repair_keeps_what_is_monotone_and_is_done_once(table):
    rates = GroupRates(table, "V100", UTILISATION)
    repaired = [
        group(g.types, *(float(rates.of(g.types).by_type[name]) for name in g.types))
        for g in table.groups
    ]
    again = GroupRates(table.model_copy(update={"groups": tuple(repaired)}), "V100", UTILISATION)
    assert again.repairs == []
    for g in table.groups:
        assert again.of(g.types) == rates.of(g.types)


# --- Gavel's tables ---------------------------------------------------------------------------

A, B, C, WIDE = "('A (batch size 1)', 1)", "('B', 1)", "('C', 1)", "('A (batch size 1)', 4)"
SMALL = {
    "v100": {
        A: {"null": 4.0, A: [2.0, 2.0], B: [3.0, 5.0], C: [0.0, 0.0], WIDE: [0.0, 0.0]},
        B: {"null": 10.0, A: [5.0, 3.0], WIDE: [0.0, 0.0]},
        C: {"null": 1.0, A: [0.0, 0.0]},
        WIDE: {"null": 9.0, A: [0.0, 0.0]},
    }
}


def written(tmp_path, document):
    path = tmp_path / "throughputs.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


def test_gavel_pairs_are_relative_to_alone(tmp_path):
    table = read_gavel(written(tmp_path, SMALL), "v100", source="Gavel")
    assert table.source == "Gavel"
    assert table.groups == (
        group(["A (batch size 1)"] * 2, 0.5, 0.5),
        group(["A (batch size 1)", "B"], 0.75, 0.5),
        group(["A (batch size 1)", "C"], 0, 0),
    )


def test_gavel_plain_names(tmp_path):
    document = {"k80": {"A": {"null": 2, "B": [1, 1]}, "B": {"null": 4, "A": [1, 1]}}}
    assert read_gavel(written(tmp_path, document), "k80").groups == (group("AB", 0.5, 0.25),)


@pytest.mark.parametrize(
    ("row", "key", "value", "fault"),
    [
        (A, B, [5.0, 5.0], f'v100["{A}"]["{B}"]: 5.0 steps/s of "{A}" are 1.25 of those alone'),
        (A, B, [1e-6, 5.0], "are 2.5e-07 of those alone; expected 0 (does not fit) or from 0.001"),
        (A, B, [3.0], "expected the steps/s of both jobs, found a list of 1"),
        (A, B, [3.0, -1], "expected the steps/s of both jobs, found a list of 2"),
        (A, B, [3.0, 10**400], "expected the steps/s of both jobs"),
        (A, B, "x", 'expected the steps/s of both jobs, found "x"'),
        (A, B, [0, 5.0], "0 means that the pair does not fit; then both are 0"),
        (A, B, [3.0, 4.0], f'contradicts "{B}" beside "{A}": [3.0, 4.0] and [5.0, 3.0]'),
        (A, A, [2.0, 1.0], "contradicts"),
        (A, "null", 0, "expected positive steps/s of the job alone, found 0"),
        (A, "null", None, "expected positive steps/s of the job alone, found null"),
        (A, "D", [1.0, 1.0], 'the table has no job "D"'),
    ],
)
def test_gavel_faults_have_paths(tmp_path, row, key, value, fault):
    document = json.loads(json.dumps(SMALL))
    document["v100"][row][key] = value
    with pytest.raises(InstanceError) as error:
        read_gavel(written(tmp_path, document), "v100")
    assert any(fault in line for line in error.value.faults), error.value.faults
    assert all(line.startswith(f"v100[{json.dumps(row)[0]}") for line in error.value.faults)


@pytest.mark.parametrize(
    ("document", "fault"),
    [
        ("{", "line 1, column 2"),
        ([], "document: expected GPU types with their jobs, found a list of 0"),
        ({"v100": 3}, "v100: expected jobs, found 3"),
        ({"v100": {}}, "v100: holds no one-GPU job"),
        ({"v100": {A: 3}}, "expected an object, found 3"),
        ({"v100": {"('', 1)": {"null": 1}}}, "the type must not be empty"),
        ({"v100": {"B": {"null": 1}, B: {"null": 1}}}, 'is the same type as "B"'),
    ],
)
def test_gavel_files_that_are_no_tables(tmp_path, document, fault):
    with pytest.raises(InstanceError) as error:
        read_gavel(written(tmp_path, document), "v100")
    assert fault in str(error.value)


def test_gavel_gpu_types_are_named(tmp_path):
    with pytest.raises(UnknownNameError, match="did you mean 'v100'"):
        read_gavel(written(tmp_path, SMALL), "v10")


@pytest.mark.skipif(not GAVEL.exists(), reason="the shared measurements are not there")
def test_gavel_as_published(tmp_path):
    """Counts of Gavel's table: 351 pairs of 26 types, 21 of them do not fit."""
    path = written(tmp_path, gzip.decompress(GAVEL.read_bytes()).decode())
    table = read_gavel(path, "v100")
    sums = [sum(g.rates) for g in table.groups if any(g.rates)]
    assert (len(table.groups), len(sums)) == (351, 330)
    assert (min(sums), max(sums)) == (pytest.approx(0.35, abs=0.005), 2.0)
    assert {len(read_gavel(path, gpu).groups) for gpu in ("p100", "k80")} == {351}
