"""What was published of Philly, and how near a rollout is asked to come.

Source: Jeon et al., USENIX ATC 2019, tables 2 to 7; the generator's own figures are in
`optsched.traces.generators.philly_statistics`. Figures 2 and 3 are digitised from the notebook in
msr-fiddle/philly-traces (+-10 %), figure 4 is read off.
"""

from __future__ import annotations

from dataclasses import dataclass

from optsched.traces import STATUSES
from optsched.traces.generators.philly_statistics import PHILLY, REASONS, SIZE_CLASSES, Reason

POINTS, SHARE = 3.0, 0.1
"""Shares are held within so many points or so much of them, whichever is more; others within the
latter."""
MANY = 100
"""Jobs that a row of table 7 has at least; below, chance alone is 10 %."""
WITH_ALL = (*STATUSES, "all")
ALL_SIZES = (52.43, 42.98, 60.43, 52.32)
"""Table 3's last row: passed, killed, failed and all, over all sizes."""
TABLE_2 = {"2 to 4 GPUs": 59.4, "5 to 8 GPUs": 74.2, "more than 8 GPUs": 97.9}
TABLE_4 = {"SameServer": 57.7, "DiffServer": 49.6, "IntraServer": 37.5, "InterServer": 36.5}
TABLE_5 = {
    2: {"mean": 43.66, "p50": 43.69, "p90": 91.77, "p95": 97.06},
    4: {"mean": 40.94, "p50": 39.85, "p90": 83.28, "p95": 91.97},
    8: {"mean": 28.56, "p50": 25.71, "p90": 65.68, "p95": 78.85},
}
FIGURE_3: dict[str, dict[str, tuple[float, float]]] = {
    "1 GPU": {"p50": (0.35, 35), "p90": (5.6, 156)},
    "2 to 4 GPUs": {"p50": (0.36, 2.6), "p90": (7.1, 30)},
    "5 to 8 GPUs": {"p50": (3.0, 3.2), "p90": (27, 111)},
}
"""Minutes, least and greatest of seven virtual clusters; above 8 GPUs curves cannot be told."""


@dataclass(frozen=True)
class Target:
    """A published figure, and what it is held to.

    Attributes
    ----------
    low, high
        The figure; unlike where the least and the greatest of virtual clusters are known.
    least, most
        What is near enough; None where nothing is asked.
    note
        How it is known, if it is not printed in a table.
    """

    low: float
    high: float
    least: float | None = None
    most: float | None = None
    note: str = ""

    def is_met(self, value: float) -> bool | None:
        """Return whether a value is near enough; None if nothing is asked."""
        if self.least is None or self.most is None:
            return None
        return self.least <= value <= self.most


def within(figure: float, off: float, note: str = "") -> Target:
    """Return a target that may be missed by so much."""
    return Target(figure, figure, figure - off, figure + off, note)


def percent(figure: float) -> Target:
    """Return a target in %: within 3 points or a tenth, the larger of the two."""
    return within(figure, max(POINTS, SHARE * figure))


def count(figure: float) -> Target:
    """Return a target within a tenth."""
    return within(figure, SHARE * figure)


def shown(figure: float, note: str = "") -> Target:
    """Return a figure to which nothing is held."""
    return Target(figure, figure, note=note)


def targets() -> dict[str, Target]:
    """Return every published figure by its name."""
    return {
        **{f"table 2, {size}": within(share, 8) for size, share in TABLE_2.items()},
        **_table_3(),
        **{f"table 4, {name}": within(share, POINTS) for name, share in TABLE_4.items()},
        **_table_5(),
        **_table_6(),
        **{k: v for row in REASONS if row.jobs >= MANY for k, v in _table_7(row).items()},
        **_figure_2(),
        **_figure_3(),
        "GPU-hours per job, generated": within(
            PHILLY.gpu_hours, 0.2 * PHILLY.gpu_hours, "public trace"
        ),
        "GPU-hours per job, held": shown(PHILLY.gpu_hours, "public trace"),
        "median run time, s": shown(PHILLY.median_run_s, "public trace"),
    }


def _table_3() -> dict[str, Target]:
    found = {}
    for n, size in enumerate(PHILLY.utilization_sizes):
        row = [*(of_status[n] for of_status in PHILLY.utilization), PHILLY.utilization_all[n]]
        for status, figure in zip(WITH_ALL, row, strict=True):
            found[f"table 3, {size} GPUs, {status}"] = percent(figure)
    for status, figure in zip(WITH_ALL, ALL_SIZES, strict=True):
        found[f"table 3, all sizes, {status}"] = percent(figure)
    return found


def _table_5() -> dict[str, Target]:
    return {
        f"table 5, {servers} servers, {name}": percent(figure) if name == "mean" else shown(figure)
        for servers, row in TABLE_5.items()
        for name, figure in row.items()
    }


def _table_6() -> dict[str, Target]:
    jobs = {
        f"table 6, % of jobs, {status}": percent(100 * number / PHILLY.jobs)
        for status, number in zip(STATUSES, PHILLY.status_jobs, strict=True)
    }
    times = zip(STATUSES, PHILLY.status_gpu_time, strict=True)
    return jobs | {f"table 6, % of GPU time, {status}": percent(share) for status, share in times}


def _table_7(row: Reason) -> dict[str, Target]:
    cells = {"trials": count(row.trials), "jobs": count(row.jobs)}
    for name, minutes in zip(("p50", "p90", "p95"), (row.p50, row.p90, row.p95), strict=True):
        cells[f"{name}, minutes"] = count(minutes)
    cells["time, %"] = percent(row.time_share)
    for name, trials in zip(("1 GPU", "2 to 4 GPUs", "more than 4"), row.demand, strict=True):
        cells[f"trials, {name}"] = count(trials)
    cells["time x GPUs, %"] = percent(row.gpu_time_share)
    return {f"table 7, {row.name}, {name}": cell for name, cell in cells.items()}


def _figure_2() -> dict[str, Target]:
    found = {}
    for name, minutes in zip(SIZE_CLASSES, PHILLY.run_minutes, strict=True):
        figures = dict(zip(PHILLY.levels, minutes, strict=False))
        for level in (0.5, 0.9):
            figure = figures[level]
            key = f"figure 2, {name} GPUs, p{100 * level:.0f}, minutes"
            found[key] = within(figure, 0.15 * figure, "digitised")
    return found


def _figure_3() -> dict[str, Target]:
    return {
        f"figure 3, {size}, {name}, minutes": Target(low, high, low / 2, 2 * high, "digitised")
        for size, row in FIGURE_3.items()
        for name, (low, high) in row.items()
    }
