"""Instances of BOA on which `exact` is to prove all that HiGHS on the plain model proves.

Half of them have many classes, or phases, of one speedup curve: all exchange rates are equal, and
the price tells nothing apart. The others are bundled and usual ones, with tight and loose limits.
"""

from __future__ import annotations

import random
from functools import partial
from typing import TYPE_CHECKING, Any

import optsched
from optsched.boa import BoaInstance

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from optsched.instance import Instance

AMDAHL: dict[str, Any] = {"kind": "amdahl", "parallel_fraction": 0.95, "max_gpus": 16}
NARROW = {"kind": "amdahl", "parallel_fraction": 0.95, "max_gpus": 2}
POWER = {"kind": "power", "exponent": 0.7, "max_gpus": 12}
MEASURED: dict[str, Any] = {
    "kind": "table",
    "gpus": [1, 2, 4, 8, 12, 16],
    "speedup": [1, 1.9, 3.4, 5.1, 7.2, 8.6],
}
SECOND = {"kind": "table", "gpus": [1, 2, 4, 8], "speedup": [1, 1.7, 2.9, 4.2]}


def instances() -> Iterator[tuple[str, Callable[[], Instance]]]:
    """Yield names, and what makes the instance of each."""
    for seed in range(8):
        yield f"30 classes of one Amdahl curve, {seed}", partial(teams, 30, [AMDAHL], seed)
    for seed in range(3):
        yield f"20 classes of one curve, 2 widths, {seed}", partial(narrow, 20, seed)
        yield f"60 phases of one Amdahl curve, {seed}", partial(epochs, 60, seed)
        yield f"60 phases of whole hundreds, {seed}", partial(epochs, 60, seed, whole=100)
        yield f"30 classes of one measured curve, {seed}", partial(teams, 30, [MEASURED], seed)
    for seed in range(2):
        yield f"30 classes of one power curve, {seed}", partial(teams, 30, [POWER], seed)
        yield f"40 classes of three curves, {seed}", partial(several, 40, seed)
        yield f"30 classes, rescaling, {seed}", partial(teams, 30, [AMDAHL], seed, rescale_s=30.0)
        yield f"8 classes of 8 phases, rescaling, {seed}", partial(rescaled, 8, 8, seed)
        yield f"30 classes of one curve, a target, {seed}", partial(target, 30, seed)
        yield f"60 classes just below 4 GPUs for all, {seed}", partial(beside, 60, seed, 0.9993)
        yield f"60 classes just above 1 GPU for all, {seed}", partial(beside, 60, seed, 1.0007, 1)
    yield "25 equal classes", partial(equal, 25)
    yield "100 classes of one Amdahl curve", partial(teams, 100, [AMDAHL], 0)
    yield from usual()


def usual() -> Iterator[tuple[str, Callable[[], Instance]]]:
    """Yield bundled instances and changed ones."""
    for name in ("hand", "six-models", "stress"):
        yield f"boa/{name}", partial(optsched.read, f"boa/{name}")
    for budget in (20.5, 22, 24, 26, 30, 35, 48, 60, 80):
        yield f"cbd-85 with {budget} GPUs", partial(changed, budget_gpus=budget)
    for budget in (22, 26, 35, 48):
        free = {"budget_gpus": budget, "classes.*.rescale_s": 0}
        yield f"cbd-85 with {budget} GPUs, free rescaling", partial(changed, **free)
    for budget in (24, 35):
        mixed = {"budget_gpus": budget, "widths": "mixed"}
        yield f"cbd-85 with {budget} GPUs, mixed", partial(changed, **mixed)
    for jct in (800, 1800):
        yield (
            f"cbd-85 with a target of {jct} s",
            partial(changed, budget_gpus=None, target_mean_jct_s=jct),
        )
    for seed in range(3):
        yield f"40 classes of curves of their own, {seed}", partial(unlike, 40, seed)


def changed(**changes: Any) -> Instance:
    """Return cbd-85 with other fields."""
    return optsched.read("boa/cbd-85").changed(changes)


def teams(
    count: int, curves: list[dict[str, Any]], seed: int, rescale_s: float = 0.0
) -> BoaInstance:
    """Return teams that train at rates of their own, with curves in turn, and a middling budget."""
    draw = random.Random(seed)
    classes = [
        {
            "id": f"c{n}",
            "arrival_rate_per_h": round(draw.uniform(0.5, 5), 3),
            "rescale_s": rescale_s,
            "phases": [_phase(round(draw.uniform(300, 3000), 1), curves[n % len(curves)])],
        }
        for n in range(count)
    ]
    return _instance(classes, draw.uniform(1.1, 1.6))


def several(count: int, seed: int) -> BoaInstance:
    """Return classes of three curves."""
    return teams(count, [AMDAHL, MEASURED, SECOND], seed)


def narrow(count: int, seed: int) -> BoaInstance:
    """Return classes of one curve with widths 1 and 2 only."""
    instance = teams(count, [NARROW], seed)
    return instance.changed(
        {"budget_gpus": _work(instance) * random.Random(seed).uniform(1.01, 1.04)}
    )


def beside(count: int, seed: int, factor: float, width: int = 4) -> BoaInstance:
    """Return classes of one curve, with about the budget that one width takes for all of them."""
    instance = teams(count, [MEASURED], seed)
    cost = width / dict(zip(MEASURED["gpus"], MEASURED["speedup"], strict=True))[width]
    return instance.changed({"budget_gpus": _work(instance) * cost * factor})


def target(count: int, seed: int) -> BoaInstance:
    """Return classes of one curve, with a target of their mean JCT."""
    instance = teams(count, [AMDAHL], seed)
    jct = _work(instance) / sum(c.arrival_rate_per_h for c in instance.classes) * 3600
    factor = random.Random(seed).uniform(0.15, 0.5)
    return instance.changed({"budget_gpus": None, "target_mean_jct_s": jct * factor})


def epochs(count: int, seed: int, whole: float | None = None) -> BoaInstance:
    """Return one class with so many phases of one curve, of works that are whole multiples."""
    draw = random.Random(seed)
    works = [draw.uniform(300, 3000) for _ in range(count)]
    rounded = [round(work, 1) if whole is None else whole * round(work / whole) for work in works]
    phases = [_phase(work, AMDAHL) for work in rounded]
    one = {"id": "a", "arrival_rate_per_h": 2, "phases": phases}
    return _instance([one], draw.uniform(1.1, 1.6))


def rescaled(count: int, phases: int, seed: int) -> BoaInstance:
    """Return classes of several phases of one curve, with rescaling between them."""
    draw = random.Random(seed)
    classes = [
        {
            "id": f"c{n}",
            "arrival_rate_per_h": round(draw.uniform(0.5, 5), 3),
            "rescale_s": 20.0,
            "phases": [_phase(round(draw.uniform(300, 3000), 1), AMDAHL) for _ in range(phases)],
        }
        for n in range(count)
    ]
    return _instance(classes, draw.uniform(1.2, 1.6))


def equal(count: int) -> BoaInstance:
    """Return classes that are all the same."""
    classes = [
        {"id": f"c{n}", "arrival_rate_per_h": 2.0, "phases": [_phase(1234.5, AMDAHL)]}
        for n in range(count)
    ]
    return _instance(classes, 1.333)


def unlike(count: int, seed: int) -> BoaInstance:
    """Return classes with noisy curves of their own."""
    draw = random.Random(seed)
    classes = []
    for n in range(count):
        share = draw.uniform(0.6, 0.99)
        speedup = [draw.lognormvariate(0, 0.05) / (1 - share + share / k) for k in (1, 2, 4, 8, 16)]
        curve = {"kind": "table", "gpus": [1, 2, 4, 8, 16], "speedup": speedup}
        phase = _phase(draw.uniform(10, 500), curve)
        rate = draw.lognormvariate(0, 1)
        classes.append({"id": f"c{n}", "arrival_rate_per_h": rate, "phases": [phase]})
    return _instance(classes, draw.uniform(1.2, 1.8))


def _phase(work_gpu_s: float, curve: dict[str, Any]) -> dict[str, Any]:
    return {"work_gpu_s": work_gpu_s, "speedup": curve}


def _instance(classes: list[dict[str, Any]], factor: float) -> BoaInstance:
    """Return an instance whose budget is so many times what all work takes on single GPUs."""
    document = {"schema": "optsched/boa/1", "name": "proving", "classes": classes, "budget_gpus": 1}
    loose = BoaInstance.from_document(document)
    return loose.changed({"budget_gpus": _work(loose) * factor})


def _work(instance: BoaInstance) -> float:
    """Return the mean GPUs that all work takes on single GPUs, rescaling included."""
    return sum(
        c.arrival_rate_per_h * (c.rescale_s + sum(phase.work_gpu_s for phase in c.phases)) / 3600
        for c in instance.classes
    )
