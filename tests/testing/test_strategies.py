"""The strategies of optsched.testing: what they draw can be used, and they cost nothing unused."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import optsched
from optsched.registry import PROBLEMS, UnknownNameError
from optsched.testing import instances, traces, worlds
from tests.support.strategies.common import law

PAGE = Path(__file__).parents[2] / "docs" / "policies-own.md"
FILE = re.compile(r"^```\{file\} (\S+\.py)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", PROBLEMS)
@law(30)
@given(st.data())
def test_drawn_instances_are_solved_and_proven(name, data):
    instance = data.draw(instances(name))
    result = optsched.solve(instance)
    optsched.verify(instance, result)
    assert result.status == "optimal" or (name, result.status) == ("sia", "infeasible")


@law(30)
@given(worlds())
def test_every_job_of_a_drawn_world_ends(world):
    assert world.trace.gpus.max() <= world.scenario.gpus
    ended = optsched.simulate(world.scenario, "las", trace=world.trace).metrics
    assert (ended["jobs"], ended["unfinished"]) == (len(world.trace), 0)


@law(30)
@given(traces(most_gpus=2, most_jobs=3, failing=False))
def test_traces_are_drawn_within_what_is_asked_for(trace):
    assert len(trace) <= 3
    assert trace.gpus.max() <= 2
    assert set(trace.frame()["status"]) == {"passed"}


def test_an_unknown_problem_is_named():
    with pytest.raises(UnknownNameError, match="did you mean 'pal'"):
        instances("pall")


def test_hypothesis_is_imported_only_where_it_is_used():
    code = "import sys, optsched.testing as t; t.World; sys.exit('hypothesis' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_laws_that_the_page_shows_hold(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in FILE.findall(PAGE.read_text("utf-8")):
        Path(name).write_text(text)
    laws = [law for name, law in runpy.run_path("test_laws.py").items() if name.startswith("test_")]
    assert len(laws) == 2
    for each in laws:
        each()
