"""Philly (Jeon et al., 2019): what jobs did and met on a production cluster, and guidelines."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from optsched.reproduction.claim import Claim
from optsched.reproduction.estimates import Estimate, Reading, change, estimate, level
from optsched.reproduction.philly.guidelines import BASE, GUIDELINES, jobs_at, rolled
from optsched.reproduction.philly.rollouts import Setting, figures_of, usual_policy
from optsched.reproduction.philly.rollouts import rolled as rolled_out
from optsched.reproduction.philly.side_by_side import of_pairs
from optsched.reproduction.philly.targets import targets
from optsched.reproduction.pictures import bars
from optsched.reproduction.studies import Level, Study, Task
from optsched.reproduction.verdicts import Basis, Published, printed
from optsched.traces.generators.philly_statistics import PHILLY, REASONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.reproduction.estimates import Draw, Figures
    from optsched.reproduction.philly.targets import Target
    from optsched.reproduction.pictures import Drawing
    from optsched.reproduction.studies import Measured

TITLE = "Philly: a production cluster, and its guidelines"
PAPER = "Jeon et al., USENIX ATC 2019"
CELL = "cluster"
LOADS = (0.5, 0.7, 0.9)
ABOVE_TUNING = 5
"""Added to seeds: options of the guidelines were chosen on seeds 0 to 2."""
JOBS = {Level.QUICK: 12_000, Level.DEFAULT: PHILLY.jobs, Level.FULL: PHILLY.jobs}
ADVICE = ("wait for locality, a day", "dedicated", "defragment", "pre-run", "stop retrying", "all")
"""The guidelines as the paper gives them; the others are variants."""
LATE = ("Model ckpt error", "MPI error", "MPI runtime failure")
"""Reasons of the infrastructure alone, of those that 100 jobs have met."""
EARLY_MINUTES = 20.0
ASSUMED = (
    "jobs are drawn from the paper's own figures; quotas, the number of GPUs and the options of "
    "the scheduler are fitted to table 2 on seed 0, so that agreement is no test of the model"
)


# --- rollouts ---------------------------------------------------------------------------------


def on_the_cluster(task: Task) -> Figures:
    """Measure all tables and figures on Philly's virtual clusters."""
    jobs = JOBS[task.level]
    setting = Setting(usual_policy(), jobs, PHILLY.window_days * jobs / PHILLY.jobs)
    return figures_of(rolled_out(setting, task.seed)) | of_pairs()


def with_guidelines(task: Task) -> Figures:
    """Measure a guideline at a load, both named by the cell."""
    name, _, load = task.cell.rpartition(" at ")
    jobs = 1000 if task.level is Level.QUICK else 3000
    seed = task.seed + ABOVE_TUNING
    return rolled(({BASE: BASE} | GUIDELINES)[name], jobs_at(float(load), jobs, seed), seed)


def _at_loads(level: Level) -> list[str]:
    loads = LOADS[-1:] if level is Level.QUICK else LOADS
    return [f"{name} at {load:g}" for load in loads for name in (BASE, *GUIDELINES)]


STUDIES = (
    Study(
        "philly",
        Basis.FITTED,
        "philly-atc19: 96,260 jobs in 75 days on 1,386 GPUs (--quick: the first 12,000)",
        lambda level: [CELL],
        on_the_cluster,
        {Level.QUICK: 2, Level.DEFAULT: 3, Level.FULL: 20},
    ),
    Study(
        "philly-guidelines",
        Basis.GENERATED,
        "3,000 jobs as in Philly (--quick: 1,000) on 40 servers of 8 GPUs in two RDMA domains, "
        "loads 0.5, 0.7 and 0.9; differences on the same jobs",
        _at_loads,
        with_guidelines,
        {Level.QUICK: 2, Level.DEFAULT: 3, Level.FULL: 20},
    ),
)


# --- claims -----------------------------------------------------------------------------------


@cache
def claims() -> tuple[Claim, ...]:
    """Return the claims of the study of Philly."""
    return (*_headlines(), *_spread(), *_unknown(), *_guidelines(), *_cells())


HEADLINES = {
    "table 3, all sizes, all": "utilisation of GPUs that jobs hold, over GPU time",
    "table 2, 2 to 4 GPUs": "share of delays by fragmentation, gangs of 2 to 4",
    "table 2, 5 to 8 GPUs": "share of delays by fragmentation, gangs of 5 to 8",
    "table 2, more than 8 GPUs": "share of delays by fragmentation, gangs of more than 8",
    "table 4, DiffServer": "utilisation of ResNet-50 on two servers (57.7 on one)",
    "table 4, IntraServer": "the same beside jobs within the servers",
    "table 4, InterServer": "the same beside a job across the servers",
    "table 5, 2 servers, mean": "utilisation of gangs of 16 on 2 servers",
    "table 5, 4 servers, mean": "utilisation of gangs of 16 on 4 servers",
    "table 5, 8 servers, mean": "utilisation of gangs of 16 on 8 servers",
    "figure 2, 1 GPUs, p50, minutes": "median run time, 1 GPU",
    "figure 2, > 8 GPUs, p50, minutes": "median run time, more than 8 GPUs",
    "figure 3, 1 GPU, p50, minutes": "median first wait, 1 GPU",
    "figure 3, 5 to 8 GPUs, p50, minutes": "median first wait, 5 to 8 GPUs",
}
"""Cells that stand in the first table, and in which words."""
SPREAD = Published(0.1, 30, "read off as a range, of one virtual cluster")


def _headlines() -> Iterator[Claim]:
    jobs = 100 * (1 - PHILLY.status_jobs[0] / PHILLY.jobs)
    ours = _rest("table 6, % of jobs, passed")
    yield _share("not-passed", "table 6", "jobs that are killed or fail", jobs, ours)
    time, ours = 100 - PHILLY.status_gpu_time[0], _rest("table 6, % of GPU time, passed")
    yield _share("not-passed-time", "table 6", "GPU time of these", time, ours)
    whole = sum(row.trials for row in REASONS)
    early = {row.name: row.trials for row in REASONS if row.p50 <= EARLY_MINUTES}
    what = "failed trials, reasons with a median of at most 20 minutes"
    share = 100 * sum(early.values()) / whole
    yield _share("early", "table 7", what, share, _share_of_trials(*early))
    late, told = [row for row in REASONS if row.name in LATE], ", ".join(LATE)
    share = 100 * sum(row.trials for row in late) / whole
    yield _share("late-trials", "table 7", f"failed trials, {told}", share, _share_of_trials(*LATE))
    share = sum(row.gpu_time_share for row in late)
    yield _share("late-time", "table 7", f"time to failure x GPUs, {told}", share, _sum(*LATE))
    known = targets()
    for name, what in HEADLINES.items():
        if name in known:
            yield _of_cell(name, known[name], what, is_detail=False)


def _share(key: str, where: str, what: str, share: float, ours: Reading) -> Claim:
    """Return a claim on a share in %, which the table has or follows from it."""
    return _claim(key, where, what, "%", printed(round(share, 1), "derived"), ours)


def _rest(key: str) -> Reading:
    def of_draw(draw: Draw) -> float | None:
        value = draw.get(CELL, {}).get(key)
        return None if value is None else 100 - value

    return Reading(of_draw, (CELL,))


def _share_of_trials(*reasons: str) -> Reading:
    """Return the share of some reasons in all failed trials of the reasons in the tables, in %."""

    def of_draw(draw: Draw) -> float | None:
        figures = draw.get(CELL, {})
        trials = {row.name: figures.get(f"table 7, {row.name}, trials") or 0.0 for row in REASONS}
        whole = sum(trials.values())
        return 100 * sum(trials[name] for name in reasons) / whole if whole else None

    return Reading(of_draw, (CELL,))


def _sum(*reasons: str) -> Reading:
    def of_draw(draw: Draw) -> float | None:
        figures = draw.get(CELL, {})
        told = [figures.get(f"table 7, {name}, time x GPUs, %") for name in reasons]
        found = [value for value in told if value is not None]
        return sum(found) if found else None

    return Reading(of_draw, (CELL,))


def _spread() -> Iterator[Claim]:
    """Yield figure 4, of which a range could be read off: where "most" jobs are, half are."""
    for servers in (2, 4, 8):
        name = f"figure 4, 5 to 8 GPUs on {servers}, p50, minutes"
        what = f"median first wait, 5 to 8 GPUs that start on {servers} servers"
        yield _claim(_slug(name), "figure 4", what, "min", SPREAD, level(CELL, name))


def _unknown() -> Iterator[Claim]:
    for key, where, what, note in (
        ("out-of-order", "section 3", "starts out of order",
         "the paper has a percentage, which no source at hand gives"),
        ("figure-8", "figure 8", "epochs to the lowest loss",
         "needs the losses of jobs, which no trace at hand has"),
    ):  # fmt: skip
        yield Claim(key=f"philly-{key}", system="philly", where=f"{PAPER}, {where}", what=what,
                    unit="", published=None, setting=STUDIES[0].world, note=note)  # fmt: skip


def _guidelines() -> Iterator[Claim]:
    for load in LOADS:
        for name in GUIDELINES:
            yield Claim(
                key=f"philly-guideline-{_slug(name)}-{load:g}", system="philly",
                where=f"{PAPER}, section 5", unit="%", published=None,
                what=f"mean JCT, guideline '{name}', load {load:g}",
                setting=STUDIES[1].world, study=STUDIES[1].name,
                ours=_effect(name, load),
                note="the paper gives advice, no figure",
                is_detail=load != LOADS[-1] or name not in ADVICE,
            )  # fmt: skip


def _effect(name: str, load: float) -> Reading:
    return change(f"{name} at {load:g}", f"{BASE} at {load:g}", "jct_mean_s")


def _cells() -> Iterator[Claim]:
    """Yield every other cell of the tables and figures."""
    for name, target in targets().items():
        if name not in HEADLINES:
            yield _of_cell(name, target, name, is_detail=True)


def _of_cell(name: str, target: Target, what: str, *, is_detail: bool) -> Claim:
    where = next(iter(re.findall(r"(?:table|figure) \d+", name)), "as the public trace has it")
    unit = "min" if name.endswith("minutes") else "s" if name.endswith(", s") else "%"
    if re.search("trials|jobs$|GPU-hours", name):
        unit = "GPU-h" if "GPU-hours" in name else "jobs or trials"
    published = Published(target.low, target.high, target.note)
    return _claim(_slug(name), where, what, unit, published, level(CELL, name), is_detail=is_detail)


def _claim(
    key: str,
    where: str,
    what: str,
    unit: str,
    published: Published,
    ours: Reading,
    *,
    is_detail: bool = False,
) -> Claim:
    return Claim(
        key=f"philly-{key}", system="philly", where=f"{PAPER}, {where}", what=what, unit=unit,
        published=published, setting=STUDIES[0].world, assumed=ASSUMED, study=STUDIES[0].name,
        ours=ours, is_detail=is_detail,
    )  # fmt: skip


def _slug(name: str) -> str:
    """Return a name as keys have it."""
    text = name.replace(">", "above").replace("%", "share")
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-")


# --- pictures ---------------------------------------------------------------------------------


def drawings(found: Measured) -> Iterator[Drawing]:
    """Yield what each guideline is worth by load."""
    draws = found.of(STUDIES[1].name)
    values: dict[str, dict[str, Estimate | None]] = {}
    for load in LOADS:
        told = {
            name: estimate(
                change(f"{name} at {load:g}", f"{BASE} at {load:g}", "jct_mean_s"), draws
            )
            for name in GUIDELINES
        }
        if any(told.values()):
            values[f"load {load:g}"] = told
    if values:
        text = "What each guideline is worth, relative to Philly's scheduler on the same jobs"
        yield from bars(values, "mean JCT, change, %", text)
