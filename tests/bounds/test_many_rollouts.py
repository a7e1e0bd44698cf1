"""`python -m tests.support.builders.any_bounds`: as many examples as asked for, and what fails."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.builders import any_bounds

drawn = []


@settings(max_examples=5)
@given(st.integers(0, 10**9))
def holds(number):
    drawn.append(number)


@given(st.integers(0, 10**9))
def fails(number):
    assert number < 7, "below its bound"


@pytest.fixture(autouse=True)
def _own_laws(monkeypatch):
    drawn.clear()
    laws = {"times": (__name__, "holds"), "bills": (__name__, "fails")}
    monkeypatch.setattr(any_bounds, "LAWS", laws)


def test_other_seeds_draw_other_examples(capsys):
    assert any_bounds.main(["401", "--laws", "times", "--seed", "7"]) == 0
    assert len(drawn) == 15, "three seeds of five examples each"
    assert len({*drawn}) > 5
    again = [*drawn]
    drawn.clear()
    any_bounds.main(["401", "--laws", "times", "--seed", "7"])
    assert drawn == again
    assert capsys.readouterr().out.splitlines() == ["times: none below"] * 2


def test_what_refutes_a_law_is_told_and_is_the_exit_code(capsys):
    assert any_bounds.main(["1", "--laws", "bills", "times"]) == 1
    first, second = capsys.readouterr().out.splitlines()
    assert "below its bound" in first
    assert second == "times: none below"
