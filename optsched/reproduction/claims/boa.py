"""BOA (Li et al., 2026): mean JCT against what rented nodes are billed, beside other policies."""

from __future__ import annotations

import math
from functools import cache
from itertools import chain
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
    LARGE_SWEEPS,
    SHARES,
    SIGMAS,
    SWEEPS,
    USD,
    believing,
)
from optsched.reproduction.claims.boa_rollouts import STUDIES as STUDIES
from optsched.reproduction.envelopes import at_cost, common_costs
from optsched.reproduction.estimates import Reading, estimate, in_common, in_per_cent, level
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


def points(draw: Draw, cells: Sequence[str], bill: str = BILL) -> list[Point]:
    """Return bill and mean JCT of the cells in which all jobs ended."""
    told = [draw[cell] for cell in cells if cell in draw]
    return [
        (float(cost), float(jct))
        for figures in told
        if not figures["unfinished"]
        for cost, jct in [(figures[bill], figures[JCT])]
        if cost is not None and jct is not None
    ]


def ratio(sweeps: dict[str, list[str]], other: str, costs: Sequence[float]) -> Reading:
    """Return how many times BOA's mean JCT another policy has, at equal bills.

    Each curve is the lower hull of a policy's sweep; over costs and seeds: the geometric mean. A
    seed whose curves do not reach all costs has none.
    """

    def of_draw(draw: Draw) -> float | None:
        return _mean_log(points(draw, sweeps[other]), points(draw, sweeps[BOA]), costs)

    return Reading(of_draw, (*sweeps[other], *sweeps[BOA]), math.exp)


def ratio_within(sweeps: dict[str, list[str]], other: str, shares: Sequence[float]) -> Reading:
    """Return the same where seeds have unlike bills: at shares of the range of USD that both reach.

    A seed in which no bill is one of both has none.
    """

    def of_draw(draw: Draw) -> float | None:
        curves = points(draw, sweeps[other], USD), points(draw, sweeps[BOA], USD)
        reached = common_costs(curves)
        if reached is None:
            return None
        least, most = reached
        return _mean_log(*curves, [least + share * (most - least) for share in shares])

    return Reading(of_draw, (*sweeps[other], *sweeps[BOA]), math.exp)


def _mean_log(other: list[Point], boa: list[Point], costs: Sequence[float]) -> float | None:
    """Return the mean logarithm of the ratio of two curves; None if one does not reach a cost."""
    told = [[at_cost(curve, cost) for cost in costs] for curve in (other, boa)]
    logs = [math.log(a / b) for a, b in zip(*told, strict=True) if a and b]
    return sum(logs) / len(logs) if len(logs) == len(costs) else None


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
    told = ", ".join(map(str, COSTS))
    yield _claim(
        "testbed", f"mean JCT, {NAMES[AUTOSCALING]} to BOA, on a testbed; ours: at {told} GPUs "
        "billed", STUDIES[0], ratio(SWEEPS, AUTOSCALING, COSTS), printed(1.6),
        is_setting_published=False, note=UNKNOWN,
    )  # fmt: skip
    yield _claim(
        "simulated", f"mean JCT, {NAMES[AUTOSCALING]} to BOA, in large-scale simulation; ours: at "
        "equal bills in USD", STUDIES[1], ratio_within(LARGE_SWEEPS, AUTOSCALING, SHARES),
        printed(2.0), is_setting_published=False, note=UNTRACED,
    )  # fmt: skip


def _along_the_curve() -> Iterator[Claim]:
    what = f"mean JCT, {NAMES[AUTOSCALING]} to BOA"
    for cost in COSTS:
        yield _claim(
            f"cloud-at-{cost}", f"{what}, at {cost} GPUs billed", STUDIES[0],
            ratio(SWEEPS, AUTOSCALING, [cost]), note="a point of the curve", is_detail=True,
        )  # fmt: skip
    for share in SHARES:
        yield _claim(
            f"large-at-{share:g}", f"{what}, at {share:.0%} of the range of bills of both",
            STUDIES[1], ratio_within(LARGE_SWEEPS, AUTOSCALING, [share]),
            note="a point of the curve", is_detail=True,
        )  # fmt: skip


def _others() -> Iterator[Claim]:
    for other, name in NAMES.items():
        if other in SWEEPS and other != AUTOSCALING:
            yield _claim(f"to-{other}", f"mean JCT, {name} to BOA, at equal bills", STUDIES[0],
                         ratio(SWEEPS, other, COSTS), note=UNREAD)  # fmt: skip
        if other != AUTOSCALING:
            what = f"mean JCT, {name} to BOA, at equal bills, large workload"
            yield _claim(f"to-{other}-large", what, STUDIES[1],
                         ratio_within(LARGE_SWEEPS, other, SHARES), note=UNREAD)  # fmt: skip


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
    for study, sweeps, bill, axis in (
        (STUDIES[0], SWEEPS, BILL, "GPUs billed on average, first to last submission"),
        (STUDIES[1], LARGE_SWEEPS, USD, "bill, USD"),
    ):
        draws = in_common(found.of(study.name), chain.from_iterable(sweeps.values()))
        lines = {
            NAMES.get(name, name): [
                (cost.value, estimate(level(cell, JCT), draws))
                for cell in cells
                if (cost := estimate(level(cell, bill), draws)) is not None
            ]
            for name, cells in sweeps.items()
        }
        yield from curves(
            {name: sorted(told, key=lambda point: point[0]) for name, told in lines.items()},
            (axis, "mean JCT, s"),
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
