"""What a job loses per microsecond, for the second engine: from the definitions, factor by factor.

Of the physics under test it takes the final rate and the speeds of jobs on one GPU (both have tests
of their own); widths, slow GPUs, distance, neighbours and the order of factors are worked out here.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from optsched.rollout.physics.widths import width_speed

PPB = 1_000_000_000
CAUSES = ("width", "slow_gpu", "distance", "neighbour", "sharing")


def nodes_of(gpus, cluster):
    return {next(n for n in reversed(range(cluster.nodes)) if cluster.first[n] <= gpu)
            for gpu in gpus}  # fmt: skip


def model_of(world, job):
    return world.scenario.models.get(world.trace.model[job])


def width_factor(world, job, phase, width):
    model, demand = model_of(world, job), int(world.trace.gpus[job])
    if model is None or not model.phases or width == demand:
        return 1.0
    kind = reference_of(world)
    return speed_at(model, phase, width, kind) / speed_at(model, phase, demand, kind)


def reference_of(world):
    """The type that run times are told of; None where nodes name none."""
    named = world.scenario.reference_gpu_type
    return named or kind_of_node(world, 0)


def kind_of_node(world, node):
    if not isinstance(world.scenario.nodes, tuple):
        return None
    return [group.gpu_type for group in world.scenario.nodes for _ in range(group.count)][node]


def type_factor(world, job, phase, gpus):
    """How many times as long it takes there as on as many GPUs of the reference type."""
    model, reference = model_of(world, job), reference_of(world)
    (kind,) = {kind_of_node(world, node) for node in nodes_of(gpus, world.cluster)}
    if model is None or kind == reference:
        return 1.0
    if model.gpu_speeds:
        return model.gpu_speeds[reference] / model.gpu_speeds[kind]
    if not model.phases:
        return 1.0
    width = len(gpus)
    return speed_at(model, phase, width, reference) / speed_at(model, phase, width, kind)


def speed_at(model, phase, width, kind=None):
    """The speedup of the curve on a type of GPUs, or of goodput if there are batch sizes."""
    curve = model.phases[phase].speedup
    if curve.kind == "by-type":
        (curve,) = (one.speedup for one in curve.curves if one.gpu_type == kind)
    if model.batches is None:
        return width_speed(curve, width)
    widths = curve.widths
    if width < widths[0]:
        return speed_at(model, phase, widths[0]) * width / widths[0]
    below, above = max(k for k in widths if k <= width), min(width, widths[-1])
    if below == above:
        return goodput(model.batches, phase, above, width_speed(curve, above))
    above = min(k for k in widths if k >= width)
    ends = (speed_at(model, phase, below), speed_at(model, phase, above))
    return float(np.interp(width, (below, above), ends))


def goodput(batches, phase, width, speed):
    """The greatest throughput x efficiency of any batch, by halving intervals of the slope.

    The seconds of a step are counted for one example on one GPU a second: `width` GPUs take
    batch / width, and lose what makes the throughput of the whole batch the curve's.
    """
    one, noise = batches.batch_size, batches.noise_scale[-1]
    if len(batches.noise_scale) > 1:
        noise = batches.noise_scale[phase]
    many = max(one, min(one * width, batches.max_batch_size or one * width))
    faster = max(width, speed)
    lost = one * width / speed - one * width / faster

    def value(batch):
        return batch / (batch / faster + lost) * (noise + one) / (noise + batch)

    low, high = float(one), float(many)
    for _ in range(200):
        third = (high - low) / 3
        if value(low + third) < value(high - third):
            low += third
        else:
            high -= third
    return max(value(one), value(low), value(many))


def slow_gpu_factor(world, job, phase, gpus):
    scenario, model = world.scenario, model_of(world, job)
    name = None if model is None else model.application_class
    slow = []
    for gpu in gpus:
        value = 1.0
        if name is not None and scenario.profile is not None:
            value = scenario.profile.slowdown[name][gpu]
        if scenario.events is not None and scenario.events.application_class in (None, name):
            (node,) = nodes_of([gpu], world.cluster)
            value *= world.physics.transients.factor[node]
        slow.append(value)
    return max(slow) * type_factor(world, job, phase, gpus)


def speed_on(ladder, count):
    """A ladder at some number: a straight line between its rungs, both axes in logarithms."""
    logs = (np.log(np.array(axis, dtype=float)) for axis in (ladder.counts, ladder.speed))
    return float(np.exp(np.interp(np.log(count), *logs)))


def factor_on(world, job, gpus):
    """The factor relative to one server of a gang on these GPUs."""
    model, cluster, spread = model_of(world, job), world.cluster, world.scenario.spread
    levels = world.scenario.locality
    if model is not None and model.locality:
        levels = model.locality
    nodes = nodes_of(gpus, cluster)
    meet = min(
        n for n, above in enumerate(cluster.ancestors) if len({above[k] for k in nodes}) == 1
    )
    factor = levels[meet] if levels else 1.0
    if spread is not None:
        factor /= speed_on(spread.servers, len(nodes))
        if spread.domains is not None:
            factor /= speed_on(spread.domains, len({cluster.ancestors[1][n] for n in nodes}))
    return factor


def distance_factor(world, job, gpus):
    """Relative to the best of all places, found by trying every set of nodes of a small cluster."""
    factor = factor_on(world, job, gpus)
    if world.scenario.reference_place == "one-node":
        return factor
    best, cluster = factor, world.cluster
    for count in range(1, cluster.nodes + 1):
        for nodes in combinations(range(cluster.nodes), count):
            inside = [range(cluster.first[n], cluster.first[n] + cluster.size[n]) for n in nodes]
            if len(gpus) >= count and sum(map(len, inside)) >= len(gpus):
                one_each = [span[0] for span in inside]
                best = min(best, factor_on(world, job, one_each))
    return factor / best


def neighbour_factor(world, gpus, state):
    factor = world.scenario.neighbours.shared_server
    if len(gpus) < 2:
        return 1.0
    mine = nodes_of(gpus, world.cluster)
    for other in state.gpus_of:
        if len(other) > 1 and not set(other) & set(gpus) and mine & nodes_of(other, world.cluster):
            return factor
    return 1.0


def busy_of(world, job):
    told, model = world.trace.utilization[job], model_of(world, job)
    if told == told:
        speed = world.scenario.recorded_speed
        alone = 1.0 if speed is None else speed.at(int(world.trace.gpus[job]))
        return min(1.0, float(told) / alone) if alone < 1 else float(told)
    return 1.0 if model is None else model.utilisation


def sharing_factor(world, job, gpus, state):
    """The slowest GPU's speed, and the turns on all of them."""
    colocation = world.physics._colocation
    if world.scenario.sharing.max_jobs_per_gpu == 1:
        return 1.0, float(len(gpus))
    types, speeds, turns = colocation.type_of, [], 0.0
    for gpu in gpus:
        rates = colocation.on(gpu, state).rates
        speeds.append(rates[types[job]])
        wish = sum(busy_of(world, other) * rates[types[other]] for other in state.jobs_on[gpu])
        turns += 1.0 if wish <= 1 else 1 / wish
    return min(speeds), turns


def losses(world, job, state, rate):
    """Billionths of a GPU that are lost to each cause, and those that do not compute."""
    gpus, demand = state.gpus_of[job], int(world.trace.gpus[job])
    distance = distance_factor(world, job, gpus)
    neighbour = neighbour_factor(world, gpus, state)
    sharing, turns = sharing_factor(world, job, gpus, state)
    wide = width_factor(world, job, state.phase[job], len(gpus))
    slow = slow_gpu_factor(world, job, state.phase[job], gpus)
    is_recorded = world.scenario.reference_place == "recorded"  # then run times stay as they are
    left = [wide, wide / slow, wide / (slow * (1.0 if is_recorded else distance))]
    left += [left[-1] * (1.0 if is_recorded else neighbour)]
    work = [
        len(gpus) * PPB,
        *(demand * max(1, round(PPB * speed)) for speed in left),
        demand * rate,
    ]
    lost = {cause: work[n] - work[n + 1] for n, cause in enumerate(CAUSES)}
    computing = round(PPB * turns * min(1.0, neighbour * sharing / distance))
    return lost | {"unused": max(0, len(gpus) * PPB - computing)}
