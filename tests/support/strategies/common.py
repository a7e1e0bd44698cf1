"""Hypothesis strategies for instances, made to reach the awkward corners."""

from __future__ import annotations

import math
import tempfile
from functools import lru_cache
from pathlib import Path

from hypothesis import reject, settings
from hypothesis import strategies as st

import optsched
from optsched.boa import (
    Amdahl,
    BoaInstance,
    ByType,
    JobClass,
    Offer,
    Phase,
    Power,
    Table,
    TypeCurve,
)
from optsched.results.result_files import read_result
from tests.support.oracles.boa import extreme_uses

FULL, COSTLY = 2000, 80


def law(examples: int, *, is_costly: bool = False) -> settings:
    """As many examples as a law is to have, unless the profile has fewer.

    Of a law that takes 10 CPU ms or more for each, only the profile `full` tries more than 80.
    """
    most = settings().max_examples
    return settings(max_examples=min(examples, most, COSTLY if is_costly and most < FULL else most))


@lru_cache(maxsize=10_000, typed=True)
def among(*values):
    """`sampled_from`, made once: making and validating one takes longer than drawing from it."""
    return st.sampled_from(values)


NICE = st.integers(1, 12).map(float)
UGLY = st.floats(0.05, 50)
RATES = st.one_of(st.just(0.0), NICE, UGLY)
WIDTHS = [1, 2, 3, 4, 6, 8, 16]


@st.composite
def tables(draw, max_widths=4):
    """Measured curves: non-concave, non-monotone, flat, super-linear, with duplicate points."""
    gpus = sorted(draw(st.sets(st.sampled_from(WIDTHS), min_size=1, max_size=max_widths)))
    shape = draw(st.sampled_from(["any", "nice", "linear", "flat", "amdahl"]))
    if shape == "any":
        speedup = [draw(UGLY) for _ in gpus]
    elif shape == "nice":
        speedup = [draw(NICE) for _ in gpus]
    elif shape == "linear":
        speedup = [float(k) for k in gpus]
    elif shape == "flat":
        speedup = [draw(NICE)] * len(gpus)
    else:
        fraction = draw(st.floats(0.001, 0.999))
        speedup = [1 / (1 - fraction + fraction / k) for k in gpus]
    if draw(st.booleans()):
        twice = draw(st.integers(0, len(gpus) - 1))
        gpus.insert(twice, gpus[twice])
        speedup.insert(twice, speedup[twice])
    return Table(gpus=tuple(gpus), speedup=tuple(speedup))


def curves(max_gpus=4):
    fraction = st.one_of(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.floats(0.001, 0.999))
    most = st.integers(1, max_gpus)
    return st.one_of(
        st.builds(Amdahl, parallel_fraction=fraction, max_gpus=most),
        st.builds(Power, exponent=fraction, max_gpus=most),
    )


@st.composite
def job_classes(draw, name, rescaling, speedups, max_phases):
    phases = draw(
        st.lists(
            st.builds(Phase, work_gpu_s=st.one_of(NICE, UGLY), speedup=speedups),
            min_size=1,
            max_size=max_phases,
        )
    )
    rescale = draw(st.one_of(st.just(0.0), NICE, st.floats(1e-9, 1e3))) if rescaling else 0.0
    return JobClass(id=name, arrival_rate_per_h=draw(RATES), rescale_s=rescale, phases=phases)


@st.composite
def boa_instances(
    draw,
    widths=("integer", "mixed"),
    rescaling=True,
    targets=True,
    speedups=None,
    max_classes=3,
    max_phases=3,
    feasible=False,
):
    """Small instances; limits lie below, at, between and above the least and the greatest use."""
    if speedups is None:
        speedups = st.one_of(tables(), curves())
    count = draw(st.integers(1, max_classes))
    classes = [draw(job_classes(f"c{i}", rescaling, speedups, max_phases)) for i in range(count)]
    if not any(c.arrival_rate_per_h for c in classes):
        classes[0] = classes[0].model_copy(update={"arrival_rate_per_h": 7.5})
    key = draw(st.sampled_from(["budget_gpus", "target_mean_jct_s"])) if targets else "budget_gpus"
    loose = BoaInstance(widths=draw(st.sampled_from(widths)), classes=tuple(classes), **{key: 1.0})
    least, greatest = extreme_uses(loose)
    edge = st.sampled_from([0.0, 1.0] if feasible else [-0.1, 0.0, 1.0])
    where = draw(st.one_of(edge, st.floats(0, 1.1)))
    limit = min(max(least + where * (greatest - least), 1e-9), 1e12)
    if feasible:
        limit *= 1 + 1e-9  # a float cannot always hold the least use itself
    elif where == 0 and draw(st.booleans()):
        limit = math.nextafter(limit, math.inf)
    return loose.model_copy(update={key: limit})


@st.composite
def offers_and_phases(draw, speedups):
    """Up to four offers of three types, and a strategy for phases that run on some of them."""
    types = draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=4))
    offers = [
        Offer(
            id=f"{name}{n}",
            gpu_type=name,
            market=draw(st.sampled_from(["on-demand", "spot"])),
            usd_per_gpu_h=draw(st.one_of(NICE, UGLY)),
            gpus_per_node=draw(st.integers(1, 4)),
            bills=draw(st.sampled_from(["gpus", "nodes"])),
        )
        for n, name in enumerate(types)
    ]
    offers = [draw(interrupted(o)) if o.market == "spot" else o for o in offers]
    offers = [draw(ordered(o)) for o in offers]
    names = sorted(set(types))
    curves_of = st.sets(st.sampled_from(names), min_size=1).flatmap(
        lambda chosen: st.tuples(
            *(st.builds(TypeCurve, gpu_type=st.just(t), speedup=speedups) for t in sorted(chosen))
        )
    )
    return tuple(offers), st.builds(ByType, curves=curves_of)


def ordered(offer):
    """Half of the time an offer whose orders of nodes cost something."""
    waits = st.sampled_from([0.0, 0.0, 60.0, 7.3, 3600.0])
    changed = st.builds(
        lambda start, stop, least: offer.model_copy(
            update={"start_s": start, "stop_s": stop, "least_billed_s": least}
        ),
        waits,
        waits,
        waits,
    )
    return st.one_of(st.just(offer), changed)


def interrupted(offer):
    rates, waits = st.one_of(st.just(0.0), st.floats(0.01, 3)), st.sampled_from([0.0, 60.0, 7.3])
    return st.builds(
        lambda rate, wait: offer.model_copy(
            update={"interruptions_per_node_h": rate, "restart_s": wait}
        ),
        rates,
        waits,
    )


@st.composite
def offered_instances(
    draw, widths=("integer", "mixed"), targets=True, feasible=False, max_classes=3
):
    """Small instances with offers; limits as in `boa_instances`."""
    offers, speedups = draw(offers_and_phases(st.one_of(tables(3), curves(3))))
    count = draw(st.integers(1, max_classes))
    classes = [draw(job_classes(f"c{i}", True, speedups, 2)) for i in range(count)]
    checkpoints = st.sampled_from([None, None, 60.0, 600.0, 1800.0])
    classes = [c.model_copy(update={"checkpoint_s": draw(checkpoints)}) for c in classes]
    used = {curve.gpu_type for c in classes for p in c.phases for curve in p.speedup.curves}
    offers = tuple(o for o in offers if o.gpu_type in used)
    if not any(c.arrival_rate_per_h for c in classes):
        classes[0] = classes[0].model_copy(update={"arrival_rate_per_h": 7.5})
    key = draw(st.sampled_from(["budget_usd_per_h", "target_mean_jct_s"])) if targets else None
    key = key or "budget_usd_per_h"
    try:
        loose = BoaInstance(
            widths=draw(st.sampled_from(widths)),
            offers=offers,
            classes=tuple(classes),
            **{key: 1.0},
        )
    except optsched.InstanceError:  # interruptions eat all
        reject()
    least, greatest = extreme_uses(loose)
    edge = st.sampled_from([0.0, 1.0] if feasible else [-0.1, 0.0, 1.0])
    where = draw(st.one_of(edge, st.floats(0, 1.1)))
    limit = min(max(least + where * (greatest - least), 1e-9), 1e12)
    limit *= 1 + 1e-9 if feasible else 1
    return loose.model_copy(update={key: limit})


# --- epochs -------------------------------------------------------------------------------------


def as_document(part):
    return part.model_dump(mode="json", by_alias=True, exclude_none=True)


@st.composite
def left_by(draw, result):
    """What may be left of a result for the next epoch: all, what a file has, or not even that."""
    kept = draw(among("all", "all", "file", "no state", "no plan", "no certificate"))
    if kept == "all":
        return result
    if kept == "file":
        return through_a_file(result)
    lost = {"no plan": {"plan": None}, "no certificate": {"certificate": None}}.get(kept, {})
    left = result.model_copy(update=lost)
    if kept == "no state" or draw(st.booleans()):
        left._state = None
    return left


def through_a_file(result):
    with tempfile.TemporaryDirectory() as folder:
        optsched.write(result, Path(folder) / "result.json")
        return read_result(Path(folder) / "result.json")
