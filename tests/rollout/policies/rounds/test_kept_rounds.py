"""Rounds that look at what has changed alone decide as those that look at every job."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.rollout.engine.engine import Engine
from optsched.rollout.policies.round_based import Rounds
from optsched.rollout.registry import make
from optsched.traces.trace import Failure
from tests.rollout.test_invariants import fingerprint
from tests.support.builders.rollout_parts import scenario, trace
from tests.support.strategies.common import law
from tests.support.strategies.rollout_random import REASONS, SMALL, SPREAD

ORDERS = (
    *("las", "las:one_dimensional=true", "las:backfill=true", "srtf", "srtf:times_gpus=true"),
    *("srtf:backfill=true", "tiresias:thresholds_gpu_s=9/40", "tiresias:thresholds_gpu_s=20"),
    *("tiresias:thresholds_gpu_s=9/40,backfill=false", "tiresias:promote=1", "packed-sticky"),
    *("tiresias:thresholds_gpu_s=9/40,lease_s=12", "tiresias-gittins:thresholds_gpu_s=9/40"),
    *("tiresias-gittins:lease_s=0,backfill=false", "tiresias-gittins:promote=1"),
    *("packed-sticky:backfill=true", "packed-sticky:order=srtf", "random-sticky:order=las"),
    *("random-sticky:backfill=true,order=srtf", "packed-non-sticky", "pal-greedy", "pm-first"),
    *("packed-non-sticky:order=srtf", "packed-non-sticky:order=las,backfill=true"),
    *("pal-greedy:order=srtf,backfill=true", "pm-first:order=tiresias", "pal-multilevel:order=las"),
    *("random-non-sticky", "random-non-sticky:order=srtf", "wsrpt", "wsrpt:backfill=false"),
    *("wsrpt:horizon_s=20", "wsrpt:width_exponent=1,stay=0", "wsrpt-lookahead", "lrpt"),
    *("lrpt:backfill=false", "lrpt:width_exponent=1,stay=0.5", "lrpt:horizon_s=20,stay=1"),
    *("wsrpt-lookahead:most_jobs=4", "foresight:simulated=30,expects_s=20"),
)


@st.composite
def still_scenarios(draw):
    """Clusters whose nodes stay, without quotas: as few as let rounds keep what they know."""
    nodes, each = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    parts = {"decide_on": draw(st.sampled_from([("arrival", "finish"), (), ("finish",)]))}
    parts["costs"] = {
        "start_s": draw(SMALL),
        "restore_s": draw(SMALL),
        "checkpoint_every_s": draw(st.sampled_from([None, 3.0])),
        "stop_loses_work": draw(st.booleans()),
    }
    parts["retries"] = {"delay_s": draw(SMALL), "limits": {}}
    parts["estimates"] = draw(
        st.sampled_from(
            [
                *({"kind": "exact"}, {"kind": "noisy", "sigma": 0.8}),
                *({"kind": "none"}, {"kind": "history"}),
            ]
        )
    )
    if draw(st.booleans()):
        parts |= {"neighbours": {"shared_server": 0.77}, "spread": SPREAD}
    if draw(st.booleans()):
        count = nodes * each
        slow = st.lists(st.sampled_from([0.9, 1.0, 1.3]), min_size=count, max_size=count)
        slowdown = {"A": draw(slow), "B": draw(slow)}
        parts["profile"] = {
            "gpus": [f"g{n}" for n in range(count)],
            "slowdown": slowdown,
            "kind": "persistent",
        }
        parts["models"] = {
            "a": {"application_class": "A"},
            "b": {"application_class": "B", "locality": [1.0, 1.5]},
        }
    parts["end_s"] = 300.0
    return scenario(nodes, each, **parts)


@st.composite
def busy_traces(draw, world):
    """More jobs than fit, of many sizes, many of them alike."""
    count = draw(st.integers(0, 14))
    when = st.sampled_from([0.0, 0.0, 1.0, 5.0, 10.0, 12.0, 30.0])
    size = st.sampled_from([n for n in (1, 1, 2, 3, 4, 8, 16) if n <= world.gpus])
    length = st.sampled_from([0.0, 1.0, 5.0, 5.0, 12.0, 33.333333, 47.0])
    rows = draw(st.lists(st.tuples(when, size, length), min_size=count, max_size=count))
    failure = st.builds(Failure, st.sampled_from(REASONS), st.sampled_from([0, 2_000_000]))
    failures = [draw(st.lists(failure, max_size=1)) for _ in range(count)]
    status = [draw(st.sampled_from(["passed", "killed", "failed"])) for _ in range(count)]
    model = [draw(st.sampled_from(["", "unknown", *world.models])) for _ in range(count)]
    return trace(*rows, failures=failures, status=status, model=model)


def rolled_out(world, jobs, policy, cut=None):
    """A rollout's bytes; cut short, it goes on from what was saved."""
    engine = Engine(world, jobs, make(policy, world), 0, keep_intervals=True)
    for _ in range(cut or 0):
        engine.step()
    if cut is not None:
        saved = pickle.loads(pickle.dumps(engine.saved()))
        engine = Engine(world, jobs, make(policy, world), 0, keep_intervals=True)
        engine.go_on_from(saved)
    return fingerprint(engine.run())


def check_against(data, world, policy, *patches, traces=busy_traces):
    """A rollout, whole and cut short, has the bytes of one in which methods are replaced."""
    jobs = data.draw(traces(world))
    kept = rolled_out(world, jobs, policy)
    cut = rolled_out(world, jobs, policy, data.draw(st.integers(0, 30)))
    with pytest.MonkeyPatch.context() as patched:
        for patch in patches:
            patched.setattr(*patch)
        anew = rolled_out(world, jobs, policy)
    assert kept == anew == cut


@law(2000)
@given(st.data(), st.sampled_from(ORDERS))
def test_rounds_that_keep_what_they_know_decide_as_those_that_ask_anew(data, policy):
    never = Rounds, "_can_keep", lambda rounds, scenario: False
    check_against(data, data.draw(still_scenarios()), policy, never)
