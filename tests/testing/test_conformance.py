"""optsched.testing: our policies pass, and bad ones are caught, each with what to do about it."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import settings
from typer.testing import CliRunner

from optsched.cli.main import app
from optsched.rollout.registry import ENTRIES
from optsched.testing import World, bundled_worlds, check_policy, conformance
from optsched.testing.small_worlds import drawn_trace

DEEP = settings().max_examples > 100
NEED_BUDGET = {"boa", "boa-budgeted", "one-width-per-class", "fixed-width", "efficiency-threshold"}
DEAR = {"eaco", "pollux-autoscaling"}  # some seconds for each decision
SHORTER = {"hindsight": "hindsight:evaluations=1"}  # each is a rollout: minutes in larger worlds
BAD = """
import random
from optsched.rollout import Decision, RestorablePolicy

class Base(RestorablePolicy):
    def order(self, view, jobs):
        return jobs
    def decide(self, view):
        free = [gpu for node in range(view.cluster.nodes) for gpu in view.free_gpus(node)]
        place = {}
        for job in self.order(view, view.pending.tolist()):
            gang = view.demand(job)
            if gang <= len(free):
                place[job], free = free[:gang], free[gang:]
        return Decision(place=place)

class Good(Base):
    pass

class Peeks(Base):
    def order(self, view, jobs):
        return sorted(jobs, key=lambda job: view._trace.run_us[job])

class Insider(Base):
    def order(self, view, jobs):
        slow = [job for job in view.running.tolist() if view._state.rate[job] < 10**9]
        return [] if slow else jobs

class Random(Base):
    def order(self, view, jobs):
        return random.sample(jobs, len(jobs))

class Sets(Base):
    def order(self, view, jobs):
        models = list({view.model(job) for job in jobs})
        return sorted(jobs, key=lambda job: models.index(view.model(job)))

class Forgets(Base):
    turn = 0
    def order(self, view, jobs):
        self.turn += 1
        return jobs[self.turn % 3:] + jobs[:self.turn % 3]

class Stateful:
    name = "stateful"
    def __init__(self):
        self.turn = 0
    decide = Base.decide
    def order(self, view, jobs):
        self.turn += 1
        return jobs[self.turn % 3:] + jobs[:self.turn % 3]

class Overcommits(Base):
    def decide(self, view):
        return Decision(place={job: range(view.demand(job)) for job in view.pending.tolist()})

class Splits(Base):
    def decide(self, view):
        return Decision(place={job: [view.free_gpus(0)[0]] for job in view.pending.tolist()[:1]
                               if view.free_gpus(0)})

class Nothing(Base):
    def decide(self, view):
        return None

class Fails(Base):
    def decide(self, view):
        return {}[view.now_us]
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("bad.py").write_text(BAD)


def small(world, jobs=5):
    """A shorter trace; of another name, no other processes are begun."""
    return replace(world, name="small", trace=drawn_trace(1, jobs=jobs))


@pytest.mark.parametrize("policy", [entry.name for entry in ENTRIES])
def test_our_policies_conform(policy):
    gangs, _, elastic, *_ = worlds = bundled_worlds()
    world = elastic if policy in NEED_BUDGET else gangs
    chosen = [small(world, jobs=2 if policy in DEAR else 5)]
    named = SHORTER.get(policy, policy) if DEEP else policy
    found = conformance(named, worlds=worlds if DEEP else chosen)
    assert [str(each) for each in found if each.outcome == "failed"] == []
    assert any(each.outcome == "passed" for each in found)


def found_in(policy, *, whole=False):
    world = bundled_worlds()[0]
    worlds = [world if whole else replace(world, name="by hand")]
    return [str(each) for each in conformance(policy, worlds=worlds) if each.outcome == "failed"]


def test_a_good_policy_passes(folder):
    assert found_in("bad.py:Good", whole=True) == []


@pytest.mark.parametrize(
    ("name", "check", "advice"),
    [
        ("Peeks", "no peeking", "take what you know from the methods of the view, not from its"),
        ("Insider", "beliefs, not the truth", "take the scenario from your constructor or from"),
        ("Random", "same seed, same decisions", "draw only from numpy.random.default_rng(seed)"),
        ("Forgets", "goes on after a break", "name all such attributes in `changing`"),
        ("Overcommits", "keeps the rules", "begin with view.free_gpus(node) of each node"),
        ("Splits", "keeps the rules", "a job gets view.demand(job) GPUs, or a width of its model"),
        ("Nothing", "keeps the rules", "returned nothing; expected an optsched.rollout.Decision"),
        ("Fails", "keeps the rules", "decide() at 0 s: it failed: KeyError: 0 ("),
    ],
)
def test_a_bad_policy_is_caught_and_told_what_to_do(folder, name, check, advice):
    faults = found_in(f"bad.py:{name}")
    assert any(fault.startswith(check) and advice in fault for fault in faults), faults


def test_the_order_of_a_set_is_caught_in_other_processes(folder):
    (fault,) = found_in("bad.py:Sets", whole=True)
    assert fault.startswith("no order of sets or dicts")
    assert "PYTHONHASHSEED" in fault
    assert "dict.fromkeys(...)" in fault


def test_a_policy_that_cannot_be_saved_is_told_how(folder):
    world = replace(bundled_worlds()[0], name="by hand")
    told = [each for each in conformance("bad.py:Stateful", worlds=[world])
            if each.outcome == "not tried"]  # fmt: skip
    assert [each.check for each in told] == ["goes on after a break"]
    assert "Derive it from RestorablePolicy" in told[0].message


def test_check_policy_raises_with_all_that_failed(folder, monkeypatch):
    worlds = (replace(bundled_worlds()[0], name="by hand"),)
    monkeypatch.setattr("optsched.testing.findings.bundled_worlds", lambda: worlds)
    check_policy("bad.py:Good")
    with pytest.raises(AssertionError, match=r"policy 'bad\.py:Peeks':\nno peeking"):
        check_policy("bad.py:Peeks")


def test_what_a_policy_is_not_made_for_is_no_fault(folder):
    quotas = bundled_worlds()[-1]
    assert isinstance(quotas, World)
    (fault,) = conformance("bad.py:Good", worlds=[quotas])
    assert "it is not made for this: " in fault.message


def test_the_command_shows_a_table_and_fails_with_the_policy(folder, monkeypatch):
    worlds = (replace(bundled_worlds()[0], name="by hand"),)
    monkeypatch.setattr("optsched.testing.findings.bundled_worlds", lambda: worlds)
    good = CliRunner().invoke(app, ["policies", "bad.py:Good", "--check"])
    assert good.exit_code == 0, good.output
    assert good.stdout.count("passed") == 6
    bad = CliRunner().invoke(app, ["policies", "bad.py:Peeks", "--check"])
    assert bad.exit_code == 1
    assert "failed" in bad.stdout
    assert "take what you know from the methods of the view" in " ".join(bad.output.split())
