"""Small pieces that many files share: raw documents, pictures, options, attempts of jobs."""

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.cli.console import ExitCode, assignments
from optsched.documents.faults import is_number, mapping, path_text, prefixed, sequence
from optsched.results.drawing import COLOURS, DASHES, styled
from optsched.traces import FAILED, KILLED, PASSED, seen_us, trace_of
from optsched.traces.summary import failing_us
from optsched.traces.trace import US, Failure
from tests.support.strategies.common import law

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=5
)
PATHS = st.lists(st.integers(0, 9) | st.sampled_from(["jobs", "id"]), max_size=3).map(tuple)


@law(100)
@given(VALUES)
def test_what_stands_in_a_raw_document_is_one_kind_of_thing(value):
    is_object, is_list = isinstance(value, dict), isinstance(value, list)
    assert mapping(value) == (value if is_object else {})
    assert list(sequence(value)) == (value if is_list else [])
    assert is_number(value) == (json.dumps(value)[:1] in "-0123456789NI")
    assert is_object + is_list + is_number(value) <= 1


@law(100)
@given(PATHS, st.lists(st.tuples(PATHS, st.text())))
def test_faults_of_a_part_stand_below_it(path, faults):
    below = list(prefixed(path, iter(faults)))
    assert [text for _, text in below] == [text for _, text in faults]
    assert all(full[: len(path)] == path for full, _ in below)
    if path:
        assert all(path_text(full).startswith(path_text(path)) for full, _ in below)


def test_lines_differ_until_every_colour_has_had_every_dash():
    count = len(COLOURS) * len(DASHES)
    styles = [tuple(style.items()) for _, style in styled(range(count))]
    assert len(set(styles)) == count
    assert [n for n, _ in styled(range(3 * count))] == list(range(3 * count))


@law(50)
@given(st.dictionaries(st.text("abc._*", min_size=1), SCALARS))
def test_options_are_assigned_as_json_or_as_words(values):
    texts = [f"{key}={json.dumps(value)}" for key, value in values.items()]
    assert assignments("--set", "PATH=VALUE", texts) == values
    assert assignments("--set", "PATH=VALUE", ["x=word", "x=two=words"]) == {"x": "two=words"}


def test_an_option_without_a_value_is_named():
    with pytest.raises(ValueError, match=r"^--set x: expected KEY=VALUE$"):
        assignments("--set", "KEY=VALUE", ["x"])


def test_exit_codes_are_those_of_the_help():
    from optsched.cli import main

    said = dict(part.strip().split(" ", 1)[::-1] for part in _codes(main.__doc__))
    names = {"a check or proof failed": "FAILED", "no plan within the limits": "NO_PLAN"}
    told = {names.get(text, text.upper().replace(" ", "_")): int(n) for text, n in said.items()}
    assert told == {code.name: code for code in ExitCode if code != ExitCode.BROKEN_PIPE}


def _codes(doc):
    text = " ".join(doc.split("Exit codes: ")[1].split())
    return text.rstrip(".").split(", ")


@law(50)
@given(st.lists(st.tuples(st.sampled_from([PASSED, KILLED, FAILED]), st.lists(
    st.integers(1, 10**9), max_size=3), st.integers(1, 10**6)), max_size=5))  # fmt: skip
def test_seen_time_is_what_fails_and_the_work_of_those_that_do_not(jobs):
    columns = {
        "submit_s": list(range(len(jobs))), "gpus": [1] * len(jobs),
        "run_s": [run for *_, run in jobs], "status": [status for status, *_ in jobs],
        "failures": [tuple(Failure("x", us) for us in runs) for _, runs, _ in jobs],
    }  # fmt: skip
    trace = trace_of("t", "", columns)
    work = [0 if status == FAILED else run * US for status, _, run in jobs]
    assert failing_us(trace).tolist() == [sum(runs) for _, runs, _ in jobs]
    pairs = itertools.zip_longest(seen_us(trace).tolist(), failing_us(trace).tolist(), work)
    assert all(seen == failing + rest for seen, failing, rest in pairs)
