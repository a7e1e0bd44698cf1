"""The methods' figures of groups, against the verifier's, which share no code with them."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from optsched.eaco import group_figures
from optsched.eaco.group_figures import JOULES_PER_KWH, TypeFigures, gang_fits, group_of
from optsched.eaco.groups.columns import columns
from optsched.eaco.groups.enumeration import job_classes
from optsched.eaco.kept_by_tables import KeptByTables
from optsched.eaco.verify import group_energy
from optsched.eaco.verify.group_energy import ExactFigures
from tests.support.oracles.eaco import is_allowed
from tests.support.strategies.common import law
from tests.support.strategies.eaco import eaco_instances, small_instance


def levels(instance, nodes):
    gpu = next(gpu for gpu in instance.gpu_types if gpu.id == nodes.gpu)
    return {None: None} | {level.id: level for level in gpu.levels}


@law(300)
@given(eaco_instances(max_jobs=5, max_nodes=3))
def test_figures_of_jobs_and_nodes_are_those_of_the_verifier(instance):
    own, exact = TypeFigures(instance), ExactFigures(instance)
    assert JOULES_PER_KWH == group_energy.JOULES_PER_KWH
    for nodes in instance.nodes:
        assert own.node_share_w(nodes) == exact.node_share_w(nodes)
        assert own.wake_j(nodes) == exact.wake_j(nodes)
        for gpus in range(1, 2 * nodes.gpus * nodes.count + 2):
            assert gang_fits(gpus, nodes) == group_energy.gang_fits(gpus, nodes)
    for job in instance.jobs:
        assert own.credit_w(job) == exact.credit_w(job)
        assert own.later_j(job) == exact.later_j(job)


@law(300)
@given(eaco_instances(max_jobs=4, max_nodes=3))
def test_figures_of_groups_are_those_of_the_verifier(instance):
    own, exact = TypeFigures(instance), ExactFigures(instance)
    classes = job_classes(instance)
    pool = columns(instance, classes)
    for n in range(len(pool.cost)):
        at = pool.pool[n], pool.level[n], pool.place[n]
        group = group_of(instance, classes, pool.members[n], *map(int, at))
        nodes = exact.nodes[group.nodes]
        types = [exact.jobs[name].type for name in group.jobs]
        level = levels(instance, nodes)[group.level]
        assert own.gpu_w(types, nodes.gpu, level) == exact.gpu_w(group.jobs, group)
        assert instance.rates[nodes.gpu].busy(types) == exact.utilisation(group.jobs, nodes)
        for name in group.jobs:
            job = exact.jobs[name]
            is_moved = exact.is_moved(job, group)
            assert own.work_s(job, nodes, is_moved=is_moved) == exact.work_s(job, group)


@law(300)
@given(eaco_instances(max_jobs=4, max_nodes=3))
def test_groups_are_allowed_that_the_verifier_allows_and_no_others(instance):
    """Of all sets of one or two jobs with equal gangs that fit, on all nodes, at all levels."""
    own, classes = TypeFigures(instance), job_classes(instance)
    for pool, nodes in enumerate(instance.nodes):
        gpu = next(gpu for gpu in instance.gpu_types if gpu.id == nodes.gpu)
        for a, first in enumerate(classes):
            for b in [None, *range(a, len(classes))]:
                members = np.array([a] if b is None else [a, b])
                same = [classes[n].job.gpus for n in members] == [first.job.gpus] * len(members)
                enough = b != a or len(first.jobs) > 1
                few = len(members) <= instance.max_jobs_per_gpu
                if not (same and enough and few and gang_fits(first.job.gpus, nodes)):
                    continue
                for level in range(-1, len(gpu.levels)):
                    group = group_of(instance, classes, members, pool, level, -1)
                    allowed = own.is_allowed(classes, members, pool, level)
                    assert allowed == is_allowed(instance, group), group


@law(60)
@given(
    st.lists(st.integers(1, 9), min_size=5, max_size=5),
    st.sampled_from([1.2, 1.5, 2.1]),
    st.sampled_from([0.0, 0.1, 0.25]),
)
def test_memory_in_tenths_that_fills_a_gpu_is_decided_exactly(tenths, memory_gb, headroom):
    """In floats 0.1 + 0.2 is more than 0.3, and 0.7 + 0.1 less than 0.8."""
    types = {
        name: {"utilisation": 0.1, "memory_gb": n / 10}
        for name, n in zip("abcde", tenths, strict=True)
    }
    instance = small_instance(
        [{"type": name, "max_slowdown": 1.5} for name in "abcde"],
        types=types,
        gpus={"X": {"memory_gb": memory_gb}},
        max_jobs_per_gpu=4,
        memory_headroom=headroom,
    )
    classes, own = job_classes(instance), TypeFigures(instance)
    listed = {
        tuple(classes[c].job.type for c in row if c < len(classes))
        for row in columns(instance, classes).members.tolist()
    }
    for size in (1, 2, 3, 4):
        for group in itertools.combinations("abcde", size):
            assert (group in listed) == own.memory_fits(group, "X"), group


@law(100)
@given(eaco_instances(), st.integers(0, 99))
def test_groups_are_allowed_or_not_whatever_was_decided_before(instance, seed):
    """On the same tables, under other limits, too."""
    draw, told = np.random.default_rng(seed), []
    names = "memory_headroom", "utilisation_limit", "max_jobs_per_gpu"
    for own in itertools.product((0.0, 0.5), (None, 0.4), (2, 3)):
        changed = instance.model_copy(update=dict(zip(names, own, strict=True)))
        classes = job_classes(changed)
        for _ in range(5):
            members = draw.integers(0, len(classes), draw.integers(1, 4))
            pool = int(draw.integers(len(instance.nodes)))
            gpu = TypeFigures(instance).gpus[instance.nodes[pool].gpu]
            level = int(draw.integers(-1, len(gpu.levels)))
            asked = classes, members, pool, level
            told.append((changed, asked, TypeFigures(changed).is_allowed(*asked)))
    for changed, asked, allowed in told:
        group_figures._KEPT = KeptByTables(most_tables=1, most_figures=100)
        assert TypeFigures(changed).is_allowed(*asked) == allowed
