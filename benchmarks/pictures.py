"""The pictures of the README: one of each problem, and one of a rollout.

    python benchmarks/pictures.py             # writes pictures/*.png
    python benchmarks/pictures.py --to DIR

The same code and versions give the same pictures. About a minute.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt

import optsched
from optsched.eaco.view.plot import plot as plot_eaco
from optsched.pal.view.plot import plot as plot_pal
from optsched.rollout.results.plot import jct_distribution, utilization_over_time

FOLDER = Path(__file__).parents[1] / "pictures"
DPI = 110
MOST_BYTES = 150_000
BUDGETS = [20.5, 21, 21.5, 22, 22.5, 23, 24, 25, 26, 27, 28, 30, 32, 34, 36, 39, 42, 46, 50, 55, 60]
SLOWDOWNS = [1, 1.02, 1.03, 1.035, 1.04, 1.05, 1.06, 1.08, 1.085, 1.1, 1.15, 1.2, 1.25, 1.3]


def boa_frontier():
    """Return the trade-off between budget and JCT, with three rules beside it."""
    methods = ["exact", "same-k", "pollux-like", "boa-published"]
    frontier = optsched.frontier("boa/cbd-85", budgets=BUDGETS, methods=methods, executor=1)
    figure, ax = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
    frontier.plot(ax)
    ax.set_title("boa/cbd-85: what a budget buys")
    return figure


def pal_placement():
    """Return the same jobs packed, and placed so that their slowdowns are least."""
    instance = optsched.read("pal/sia-64")
    figure, axes = plt.subplots(2, 1, figsize=(9.5, 6.4), layout="constrained")
    for ax, method in zip(axes, ("packed-sticky", "exact"), strict=True):
        result = optsched.solve(instance, method)
        plot_pal(instance, result.plan, ax)
        ax.set_title(f"{instance.name}, {method}: sum of slowdowns {result.objective:.2f}")
    axes[0].get_legend().remove()
    return figure


def eaco_energy():
    """Return which jobs share GPUs, and what patience saves."""
    instance = optsched.read("eaco/paper-mixed")
    figure, (left, right) = plt.subplots(1, 2, figsize=(11.5, 4.2), layout="constrained")
    plot_eaco(instance, optsched.solve(instance).plan, left)
    handles = left.get_legend().legend_handles
    left.get_legend().remove()
    left.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=4,
                fontsize=8, frameon=False)  # fmt: skip
    methods = ["exact", "eaco-greedy"]
    frontier = optsched.frontier(
        instance, "jobs.*.max_slowdown", SLOWDOWNS, methods=methods, executor=1
    )
    frontier.plot(right)
    right.set_title("what patience saves", fontsize=10)
    right.set_xlabel("slowdown that every job bears")
    return figure


def rollout_comparison():
    """Return JCTs and utilisation of four policies over the same jobs."""
    comparison = optsched.compare("philly-small", ["fifo", "philly", "las", "srtf"])
    records = {name: runs[0].record for name, runs in comparison.rollouts.items()}
    figure, (left, right) = plt.subplots(1, 2, figsize=(11.5, 4), layout="constrained")
    jct_distribution(records, left)
    utilization_over_time(records, right).get_legend().remove()
    figure.suptitle("philly-small: 400 jobs on 64 GPUs, four policies", fontsize=11)
    return figure


PICTURES = (boa_frontier, pal_placement, eaco_energy, rollout_comparison)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--to", type=Path, default=FOLDER, metavar="DIR")
    folder = parser.parse_args().to
    folder.mkdir(parents=True, exist_ok=True)
    mpl.use("Agg")
    for draw in PICTURES:
        path = folder / f"{draw.__name__}.png"
        draw().savefig(path, dpi=DPI, metadata={"Software": None}, pil_kwargs={"optimize": True})
        plt.close("all")
        size = path.stat().st_size
        print(f"{path.name:24} {size:8,} bytes")
        if size > MOST_BYTES:
            raise SystemExit(f"{path.name}: more than {MOST_BYTES:,} bytes")


if __name__ == "__main__":
    main()
