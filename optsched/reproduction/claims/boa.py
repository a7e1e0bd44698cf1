"""BOA (Li et al., 2026): mean JCT against what rented nodes are billed, beside other policies."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING

from optsched.reproduction.claim import Claim
from optsched.reproduction.claims.boa_rollouts import (
    AUTOSCALING,
    BELIEVING,
    BILL,
    BOA,
    COSTS,
    ERRORS,
    JCT,
    LARGE_COSTS,
    LARGE_SWEEPS,
    SIGMAS,
    SWEEPS,
    believing,
)
from optsched.reproduction.claims.boa_rollouts import STUDIES as STUDIES
from optsched.reproduction.envelopes import at_cost
from optsched.reproduction.estimates import Reading, estimate, in_per_cent, level
from optsched.reproduction.pictures import curves
from optsched.reproduction.verdicts import Published, printed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from optsched.reproduction.envelopes import Point
    from optsched.reproduction.estimates import Draw
    from optsched.reproduction.pictures import Drawing
    from optsched.reproduction.studies import Measured, Study

TITLE = "BOA: mean JCT against the bill"
ABSTRACT = "BOA, arXiv 2602.01404, abstract"
ASSUMED = (
    "exponential sizes around the mean of each class, nodes that take 2 minutes to start; speedups "
    "are those of Pollux's traces, since the authors' measurements are not at hand"
)
UNREAD = "the abstract has none, and the text could not be read"
UNKNOWN = "budgets and bands of utility are not in what could be read"
UNTRACED = f"trace, {UNKNOWN}; an author's page has 2 to 3 times for a preliminary simulation"


# --- readings ---------------------------------------------------------------------------------


def points(draw: Draw, cells: Sequence[str]) -> list[Point]:
    """Return bill and mean JCT of the cells in which all jobs ended."""
    told = [draw[cell] for cell in cells if cell in draw]
    return [
        (float(bill), float(jct))
        for figures in told
        if not figures["unfinished"]
        for bill, jct in [(figures[BILL], figures[JCT])]
        if bill is not None and jct is not None
    ]


def ratio(sweeps: dict[str, list[str]], other: str, costs: Sequence[float]) -> Reading:
    """Return how many times BOA's mean JCT another policy has, at equal bills.

    Each curve is the lower hull of a policy's sweep; over costs and seeds: the geometric mean. A
    seed whose curves do not reach all costs has none.
    """

    def of_draw(draw: Draw) -> float | None:
        curves = points(draw, sweeps[other]), points(draw, sweeps[BOA])
        told = [[at_cost(curve, cost) for cost in costs] for curve in curves]
        logs = [math.log(a / b) for a, b in zip(*told, strict=True) if a and b]
        return sum(logs) / len(logs) if len(logs) == len(costs) else None

    return Reading(of_draw, (*sweeps[other], *sweeps[BOA]), math.exp)


def loss(cell: str) -> Reading:
    """Return how far a cell's mean JCT is above BOA's curve at the same bill, in %."""

    def of_draw(draw: Draw) -> float | None:
        for bill, jct in points(draw, [cell]):
            best = at_cost(points(draw, SWEEPS[BOA]), bill)
            return None if best is None else math.log(jct / best)
        return None

    return Reading(of_draw, (cell, *SWEEPS[BOA]), in_per_cent)


def off_budget(cell: str) -> Reading:
    """Return how far a cell's bill is from that with true beliefs, signs aside, in %."""
    true = cell.partition(BELIEVING)[0]

    def of_draw(draw: Draw) -> float | None:
        bill, other = (draw.get(name, {}).get(BILL) for name in (cell, true))
        return abs(math.log(bill / other)) if bill and other else None

    return Reading(of_draw, (cell, true), in_per_cent)


# --- claims -----------------------------------------------------------------------------------

TIMES, PER_CENT = "times", "%"
NAMES = {
    AUTOSCALING: "Pollux with autoscaling",
    "pollux": "Pollux on a fixed cluster",
    "sia": "Sia on a fixed cluster",
    "equi": "equal share of a fixed cluster",
    "fixed-width": "one width for all jobs",
    "one-width-per-class": "one width for each class",
}


@cache
def claims() -> tuple[Claim, ...]:
    """Return the claims of BOA."""
    return (*_headlines(), *_along_the_curve(), *_others(), *_errors())


def _headlines() -> Iterator[Claim]:
    for key, times, where, study, sweeps, costs in (
        ("testbed", 1.6, "on a testbed", STUDIES[0], SWEEPS, COSTS),
        ("simulated", 2.0, "in large-scale simulation", STUDIES[1], LARGE_SWEEPS, LARGE_COSTS),
    ):
        told = ", ".join(map(str, costs))
        yield _claim(
            key, f"mean JCT, {NAMES[AUTOSCALING]} to BOA, {where}; ours: at {told} GPUs billed",
            study, ratio(sweeps, AUTOSCALING, costs), printed(times), is_setting_published=False,
            note=UNTRACED if study is STUDIES[1] else UNKNOWN,
        )  # fmt: skip


def _along_the_curve() -> Iterator[Claim]:
    curves = (STUDIES[0], SWEEPS, COSTS), (STUDIES[1], LARGE_SWEEPS, LARGE_COSTS)
    for study, sweeps, costs in curves:
        for cost in costs:
            yield _claim(
                f"{study.name[4:] or 'cloud'}-at-{cost}",
                f"mean JCT, {NAMES[AUTOSCALING]} to BOA, at {cost} GPUs billed", study,
                ratio(sweeps, AUTOSCALING, [cost]), note="a point of the curve", is_detail=True,
            )  # fmt: skip


def _others() -> Iterator[Claim]:
    what = "mean JCT, Pollux on a fixed cluster to BOA, at equal bills, large workload"
    ours = ratio(LARGE_SWEEPS, "pollux", LARGE_COSTS)
    yield _claim("to-pollux-large", what, STUDIES[1], ours, note=UNREAD)
    for other, name in NAMES.items():
        if other in SWEEPS and other != AUTOSCALING:
            yield _claim(f"to-{other}", f"mean JCT, {name} to BOA, at equal bills", STUDIES[0],
                         ratio(SWEEPS, other, COSTS), note=UNREAD)  # fmt: skip


def _errors() -> Iterator[Claim]:
    note = "no study of errors is in what could be read"
    for kind, name in ERRORS.items():
        for sigma in SIGMAS:
            cell, told = believing(kind, sigma), f"{name} known with sigma {sigma:g}"
            for key, what, ours in (
                ("error", "mean JCT above BOA's curve at its bill", loss(cell)),
                ("bill", "bill off that of true beliefs", off_budget(cell)),
            ):
                yield _claim(
                    f"{key}-{kind}-{sigma:g}", f"{what}, {told}", STUDIES[0], ours, unit=PER_CENT,
                    note=note, is_detail=sigma != SIGMAS[-1],
                )  # fmt: skip


def _claim(
    key: str,
    what: str,
    study: Study,
    ours: Reading,
    published: Published | None = None,
    *,
    unit: str = TIMES,
    is_setting_published: bool = True,
    note: str = "",
    is_detail: bool = False,
) -> Claim:
    return Claim(
        key=f"boa-{key}", system="boa", where=ABSTRACT, what=what, unit=unit, published=published,
        setting=study.world, assumed=ASSUMED, study=study.name, ours=ours, note=note,
        is_setting_published=is_setting_published, is_detail=is_detail,
    )  # fmt: skip


# --- pictures ---------------------------------------------------------------------------------


def drawings(found: Measured) -> Iterator[Drawing]:
    """Yield mean JCT against the bill, and what errors of beliefs cost."""
    for study, sweeps in ((STUDIES[0], SWEEPS), (STUDIES[1], LARGE_SWEEPS)):
        draws = found.of(study.name)
        lines = {
            NAMES.get(name, name): [
                (bill.value, estimate(level(cell, JCT), draws))
                for cell in cells
                if (bill := estimate(level(cell, BILL), draws)) is not None
            ]
            for name, cells in sweeps.items()
        }
        yield from curves(
            {name: sorted(told, key=lambda point: point[0]) for name, told in lines.items()},
            ("GPUs billed on average, first to last submission", "mean JCT, s"),
            f"Mean JCT against the bill: {study.world}", is_log=True,
        )  # fmt: skip
    draws = found.of("boa")
    yield from curves(
        {
            name: [(sigma, estimate(loss(believing(kind, sigma)), draws)) for sigma in SIGMAS]
            for kind, name in ERRORS.items()
        },
        ("sigma of the error", "mean JCT above BOA's curve at the same bill, %"),
        "What wrong beliefs cost BOA",
    )
