"""Orders: examples by hand on a stub view."""

import pickle

import pytest

from optsched.registry import UnknownNameError
from optsched.rollout import registry
from optsched.rollout.policies import job_orders
from optsched.rollout.policies.job_orders import Fifo, Las, Srtf
from optsched.rollout.policies.tiresias.queues import Tiresias
from optsched.traces.trace import US
from tests.support.builders.rollout_stub import StubView, scenario


@pytest.fixture
def view():
    """Three jobs: 4 GPUs for 100 s, 1 GPU for 200 s, and one of 2 GPUs that has not run."""
    view = StubView(scenario(nodes=2, width=4))
    for size, left in ((4, 300), (1, 1000), (2, 500)):
        view.submit(size, remaining_s=left)
    view.held[0], view.held[1] = (0, 1, 2, 3), (4,)
    view.wait(100)
    view.held[0] = ()
    view.jobs[0]["since"] = view.now_us
    view.wait(100)
    return view


def test_fifo_is_the_order_of_submission(view):
    assert Fifo().sort(view, [2, 0, 1]) == [0, 1, 2]


def test_las_counts_gpu_time_and_the_released_one_time(view):
    assert Las().sort(view, [0, 1, 2]) == [2, 1, 0]  # 400, 200 and 0 GPU-seconds
    assert Las(one_dimensional=True).sort(view, [0, 1, 2]) == [2, 0, 1]  # 100, 200 and 0 s


def test_srtf_takes_what_is_left_with_or_without_gpus(view):
    assert Srtf().sort(view, [0, 1, 2]) == [0, 2, 1]  # 200, 800 and 500 s
    assert Srtf(times_gpus=True).sort(view, [0, 1, 2]) == [0, 1, 2]  # 800, 800 and 1,000


def test_unknown_times_come_last(view):
    view.jobs[0]["left"] = float("nan")
    assert Srtf().sort(view, [0, 1, 2]) == [2, 1, 0]


def test_equal_keys_keep_the_order_of_submission(view):
    for job in range(3):
        view.jobs[job] |= {"left": 7, "served": 7, "ran": 7}
    for order in (Las(), Srtf(), Tiresias()):
        assert order.sort(view, [2, 1, 0]) == [0, 1, 2]


def test_tiresias_is_first_started_first_within_queues(view):
    assert Tiresias(thresholds_gpu_s=1000).sort(view, [0, 1, 2]) == [0, 1, 2]
    assert Tiresias(thresholds_gpu_s=300).sort(view, [0, 1, 2]) == [1, 2, 0]
    assert Tiresias(thresholds_gpu_s="150/300").sort(view, [0, 1, 2]) == [2, 1, 0]


def test_a_job_at_the_threshold_is_in_the_next_queue(view):
    assert Tiresias(thresholds_gpu_s=400).sort(view, [0, 1, 2]) == [1, 2, 0]
    assert Tiresias(thresholds_gpu_s=400.000001).sort(view, [0, 1, 2]) == [0, 1, 2]


def test_tiresias_promotes_who_has_waited_long_for_what_it_ran(view):
    tiresias = Tiresias(thresholds_gpu_s=300, promote=2)
    assert tiresias.sort(view, [0, 1, 2]) == [1, 2, 0]  # ran 100 s, has waited 100 s
    view.wait(99.999999)
    assert tiresias.sort(view, [0, 2]) == [2, 0]
    view.wait(0.000001)
    assert tiresias.sort(view, [0, 2]) == [0, 2]
    view.held[0] = (0, 1, 2, 3)
    view.wait(70)
    assert tiresias.sort(view, [0, 2]) == [0, 2]  # 280 GPU-seconds since then
    view.wait(10)
    assert tiresias.sort(view, [0, 2]) == [2, 0]
    assert pickle.loads(pickle.dumps(tiresias)) == tiresias


def test_names_and_options():
    assert job_orders.order("las", one_dimensional=True) == Las(one_dimensional=True)
    with pytest.raises(UnknownNameError, match="did you mean 'srtf'"):
        job_orders.order("srft")
    with pytest.raises(TypeError):
        job_orders.order("fifo", one_dimensional=True)
    policy = registry.make("packed-sticky:order=las,one_dimensional=true", scenario())
    assert policy.order == Las(one_dimensional=True)
    for text, words in (
        ("beans=3", "policy 'pal-greedy:beans=3': there is no option 'beans'; did you mean 'bins'"),
        ("order=srft", "expected 'fifo', 'las', 'srtf' or 'tiresias', found \"srft\""),
        ("promote=2", "expected options of the order fifo, not 'promote'$"),
        ("order=tiresias,thresholds_gpu_s=3/x", "expected numbers above 0, parted by /, found"),
    ):
        with pytest.raises(ValueError, match=words):
            registry.make(f"pal-greedy:{text}", scenario())
    several = registry.make("tiresias:thresholds_gpu_s=3250/36000,promote=2", scenario())
    assert several.order == Tiresias("3250/36000", 2.0, 60 * US)
