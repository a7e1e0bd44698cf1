"""Pictures of rollouts: what is drawn where; how they look was checked by eye."""

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")
import matplotlib.pyplot as plt

from optsched.rollout.results import plot
from optsched.rollout.results.record import JobsRecord
from tests.support.builders import records

PANELS = (
    plot.jct_distribution,
    plot.utilization_over_time,
    plot.cost_over_time,
    plot.power_over_time,
)
POWER = {"gpu": {"bare_w": 50, "context_w": 60, "peak_w": 250}, "node": {"base_w": 400}}


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def record(**changes):
    return records.record(scenario=records.scenario(power=POWER, **changes))


@pytest.mark.parametrize("panel", PANELS)
def test_panels_draw_on_the_axes_given_and_label_them(panel):
    ax = plt.subplots()[1]
    assert panel({"fifo": record()}, ax) is ax
    assert "(" in ax.get_xlabel()
    assert ax.get_ylabel()
    assert ax.get_legend() is None
    two = panel({"fifo": record(), "las": record()})
    assert two is not ax
    assert [text.get_text() for text in two.get_legend().get_texts()] == ["fifo", "las"]


def test_jct_curve_ends_at_the_share_that_ended():
    line = plot.jct_distribution({"fifo": record()}).get_lines()[0]
    assert np.allclose(line.get_xdata(), [30, 30, 110, 150])
    assert np.allclose(line.get_ydata(), [0, 0.25, 0.5, 0.75])


def test_utilization_is_the_average_of_each_window():
    patch = plot.utilization_over_time({"fifo": record()}).patches[0]
    values, edges, _ = patch.get_data()
    assert np.average(values, weights=np.diff(edges)) == pytest.approx(100 * 450 / 640)
    assert values[0] == pytest.approx(50)  # a alone holds 2 of 4
    assert values[-1] == pytest.approx(100)


def test_cost_ends_at_the_metric_and_is_gpu_hours_without_a_price():
    priced = plot.cost_over_time({"fifo": record()})
    assert priced.get_lines()[0].get_ydata()[-1] == pytest.approx(0.64)
    assert "USD" in priced.get_ylabel()
    free = plot.cost_over_time({"fifo": record(price_usd_per_gpu_h=0)})
    assert free.get_lines()[0].get_ydata()[-1] == pytest.approx(640 / 3600)
    assert "GPU-hours" in free.get_ylabel()


def test_power_adds_up_to_the_energy_or_says_that_there_is_none():
    made = record()
    values, edges, _ = plot.power_over_time({"fifo": made}).patches[0].get_data()
    assert (values * 1000 * np.diff(edges) * 60).sum() == pytest.approx(made.energy_j)
    ax = plot.power_over_time({"fifo": records.record()})
    assert "no power model" in ax.texts[0].get_text()


def test_timeline_has_a_bar_for_each_gpu_of_each_stay():
    ax = plot.timeline(records.record())
    assert len(ax.patches) == 2 + 1 + 4
    assert sorted(text.get_text() for text in ax.texts) == ["a", "b", "c"]
    assert [text.get_text() for text in ax.get_yticklabels()] == ["node-0", "node-1"]
    with pytest.raises(ValueError, match="keep_intervals=True"):
        plot.timeline(records.record(intervals=()))


def test_timeline_shows_jobs_side_by_side():
    shared = records.scenario(sharing={"max_jobs_per_gpu": 2})
    held = ((0, 0, 100, (0,)), (1, 50, 150, (0,)), (2, 100, 150, (0,)))
    ax = plot.timeline(records.record(scenario=shared, intervals=held, end_us=150))
    rows = [(bar.get_y(), bar.get_x(), bar.get_x() + bar.get_width()) for bar in ax.patches]
    assert rows[0][0] == rows[2][0] != rows[1][0]
    assert ax.patches[0].get_height() == pytest.approx(0.46)


def test_overview_has_the_four_panels():
    figure = plot.overview({"fifo": record(), "las": record()})
    assert [ax.get_ylabel()[:4] for ax in figure.axes] == ["shar", "GPUs", "cost", "powe"]


def test_long_rollouts_are_in_days_and_empty_ones_are_drawn():
    long = records.record(end_us=100 * 3600 * records.US)
    assert "days" in plot.utilization_over_time({"fifo": long}).get_xlabel()
    none = {key: np.full(4, -1) for key in vars(long.jobs)}
    none |= {"allocated_gpu_us": np.zeros(4, int)}
    empty = records.record(jobs=JobsRecord(**none), epochs=(), end_us=0, intervals=(),
                           busy_gpu_us=0, available_gpu_us=0, spent_gpu_us=0)  # fmt: skip
    for panel in PANELS:
        panel({"fifo": empty})
    plot.timeline(empty)
