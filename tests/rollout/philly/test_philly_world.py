"""What ATC'19 saw of Philly, seen again in a rollout of a generated trace."""

from optsched.rollout import why_jobs_wait
from optsched.rollout.engine.engine import Engine
from optsched.rollout.registry import make
from optsched.rollout.scenario_files import read_scenario
from optsched.traces.generators.registry import generate

NODES = 64


def test_gangs_above_four_gpus_are_delayed_by_fragmentation_more_than_smaller_ones():
    """Table 2: 59.4 % for 2 to 4 GPUs, 74.2 % for 5 to 8, 97.9 % above; none for 1 GPU.

    Gangs insist on locality for ten hours. Without quotas the share is in the delays for GPUs:
    for a place, or since too few are free.
    """
    scenario = read_scenario("philly-small").changed({"nodes": NODES, "gpus_per_node": 8})
    trace = generate("philly-atc19", 6000, 1, load=0.7, gpus=NODES * 8, max_gpus=64)
    record = Engine(scenario, trace, make("philly:relax_after=200", scenario), seed=0).run()
    table = why_jobs_wait(record)
    delays = table.fragmentation_delays + table.capacity_delays
    assert (delays.iloc[1:] >= 15).all()
    shares = table.fragmentation_delays / delays
    assert shares.iloc[0] == 0 < shares.iloc[1] < shares.iloc[2:].min()
