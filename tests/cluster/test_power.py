"""Power of GPUs and nodes: published forms and figures, exact numbers, faults with their paths."""

import csv
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.cluster.power import (
    GPU_POWER,
    NODE_POWER,
    Affine,
    Fan,
    GpuPower,
    Measured,
    NodePower,
    PowerLaw,
    gpu_power,
    node_power,
)
from optsched.eaco.gpu_power_levels import MEASURED, power_levels
from optsched.instance import InstanceError
from optsched.registry import UnknownNameError

DATA = Path(__file__).parents[3] / "shared/data/eaco"
needs_data = pytest.mark.skipif(
    not DATA.is_dir(), reason="the measured files are not part of the project: ../shared/data/eaco"
)
# Node watts over mean GPU utilisation in %: EaCO, arXiv 2412.08294, tables 1 to 4.
EACO_ROWS = [
    (4.72, 712),
    (11.17, 959),
    (36.61, 1330),
    (48.01, 1533),
    (40.25, 1390),
    (55.16, 1506),
    (61.06, 1644),
    (52.24, 1541),
    (66.99, 1713),
    (96.64, 1944),
]
TABLE = Measured(utilisation=(0.25, 0.5, 1.0), power_w=(100, 180, 200))
CURVES = [Affine(), PowerLaw(), PowerLaw(exponent=2.5), Fan(), Fan(exponent=2), TABLE]


def rows(name):
    return list(csv.DictReader((DATA / name).read_text().splitlines()))


def gpu(curve):
    return GpuPower(bare_w=40, context_w=80, peak_w=400, curve=curve)


@pytest.mark.parametrize(
    ("curve", "utilisation", "watts"),
    [
        (Affine(), 0, 80),
        (Affine(), 0.25, 160),
        (Affine(), 1, 400),
        (Affine(), 1.75, 400),
        (PowerLaw(exponent=0.5), 0.25, 240),
        (PowerLaw(exponent=2), 0.5, 160),
        (Fan(exponent=2), 0.5, 320),
        (Fan(exponent=1), 0.5, 240),
        (TABLE, 0, 100),
        (TABLE, 0.25, 100),
        (TABLE, 0.375, 140),
        (TABLE, 0.75, 190),
        (TABLE, 3, 200),
    ],
)
def test_watts_by_hand(curve, utilisation, watts):
    assert gpu(curve).watts(utilisation) == watts


@given(st.floats(0, 1), st.floats(0.05, 4))
def test_power_law_is_the_power_to_15_decimals(utilisation, exponent):
    share = PowerLaw(exponent=exponent).share(Fraction(utilisation))
    assert float(share) == pytest.approx(utilisation**exponent, rel=1e-12, abs=2e-15)
    assert utilisation in (0, 1) or exponent == 1 or (share * 10**15).denominator == 1


@given(st.sampled_from(CURVES), st.fractions(0, 1), st.fractions(0, 1))
def test_watts_rise_from_context_to_peak(curve, one, other):
    power = gpu(curve)
    low, high = sorted([one, other])
    rounding = Fraction(1, 10**12)  # of a difference of rounded powers
    assert power.context_w <= power.watts(low) <= power.watts(high) + rounding
    assert power.watts(high) <= power.peak_w


@pytest.mark.parametrize(
    ("context", "peak", "curve", "rmse"),
    [
        (804, 2121, Affine(), 78),
        (360, 1970, PowerLaw(exponent=0.48), 30),
        (650, 1961, Fan(exponent=1.55), 40),
    ],
)
def test_forms_fit_the_measured_rows_as_published(context, peak, curve, rmse):
    node = GpuPower(bare_w=0, context_w=context, peak_w=peak, curve=curve)
    squares = [(float(node.watts(u / 100)) - watts) ** 2 for u, watts in EACO_ROWS]
    assert (sum(squares) / len(squares)) ** 0.5 <= rmse + 1


def test_concave_forms_favour_sharing():
    for curve in (PowerLaw(), Fan()):
        power = gpu(curve)
        assert power.watts(0.6) < power.watts(0.3) * 2 - 80


def test_node_idle_and_break_even():
    node = NodePower(base_w=1000, sleep_w=50, suspend_j=1000, wake_s=600, wake_w=1500)
    assert node.wake_energy_j == 900_000
    assert node.idle_w(8, 62.5) == 1500
    assert node.break_even_idle_s(8, 62.5) == Fraction(901_000, 1450)
    # docs/math/eaco.md, Sleeping nodes
    assert NodePower(base_w=1500, wake_s=600).break_even_idle_s(0, 0) == 600
    assert NodePower(base_w=50, sleep_w=50, wake_s=9).break_even_idle_s(8, 0) is None


def test_published_watts_have_sources_and_validate():
    for power in [*GPU_POWER.values(), *NODE_POWER.values()]:
        assert power.source
        assert type(power).from_document(power.model_dump(mode="json", exclude_none=True)) == power
    assert gpu_power("V100").peak_w == 300
    assert node_power("8xA100").base_w == 1512 - 8 * 62
    with pytest.raises(UnknownNameError, match="did you mean 'V100'"):
        gpu_power("V10")
    with pytest.raises(UnknownNameError, match="8xA100"):
        node_power("DGX")


@needs_data
@pytest.mark.parametrize(
    ("name", "device"),
    [("H100-80GB-HBM3", "H100 80GB HBM3 (SXM)"), ("A100-80GB", "A100 80GB PCIe")],
)
def test_published_watts_are_the_measured_ones(name, device):
    table = rows("idle_and_busy_watts.csv")
    watts = {(r["device"], r["quantity"]): float(r["watts"]) for r in table}
    power = gpu_power(name)
    assert power.bare_w == watts[device, "bare idle"]
    assert power.context_w == pytest.approx(watts[device, "idle with CUDA context"], abs=0.01)


@needs_data
@pytest.mark.parametrize("name", MEASURED)
def test_published_levels_are_the_measured_ones(name):
    states = [
        (r["power_limit_w"], r["rel_time_median"], r["rel_power_median"])
        for r in rows("zeus_power_limit_summary.csv")
        if r["gpu"] == name.lower()
    ]
    below = [[float(value) for value in row] for row in states[:-1]]
    levels = power_levels(name)
    assert [level.limit_w for level in levels] == [w for w, _, power in below if power <= 1]
    for level, (_, time, power) in zip(levels, below, strict=False):
        assert (level.rate, level.power) == (1 / time, power)


def test_levels_of_unknown_gpus():
    with pytest.raises(UnknownNameError, match="did you mean 'V100'"):
        power_levels("V10")


GOOD = {"bare_w": 40, "context_w": 80, "peak_w": 400}
POINTS = {"kind": "table", "utilisation": [0, 1], "power_w": [80, 400]}


@pytest.mark.parametrize(
    ("cls", "change", "fault"),
    [
        (GpuPower, {"bare_w": -1}, "bare_w: must be at least 0, found -1"),
        (GpuPower, {"peak_w": None}, "peak_w: expected a number, found null"),
        (GpuPower, {"bare_w": 90}, "context_w: 80 W is below bare_w, 90 W"),
        (GpuPower, {"peak_w": 70}, "peak_w: 70 W is below context_w, 80 W"),
        (GpuPower, {"curve": {"kind": "afine"}}, "curve.kind: expected one of 'affine', 'fan'"),
        (GpuPower, {"curve": {"kind": "fan", "exponent": 3}}, "curve.exponent: must be at most 2"),
        (GpuPower, {"curve": POINTS | {"power_w": [80]}}, "curve.power_w: has 1 values for 2 in"),
        (GpuPower, {"curve": POINTS | {"utilisation": [1, 0]}}, "utilisation[1]: 0 after 1: must"),
        (GpuPower, {"curve": POINTS | {"power_w": [9, 400]}}, "power_w[0]: 9 W is below context_w"),
        (GpuPower, {"curve": POINTS | {"power_w": [80, 401]}}, "power_w[1]: 401 W is above peak_w"),
        (NodePower, {}, "bare_w: unknown key"),
        (NodePower, {"base_w": 9, "sleep_w": 10}, "base_w: 9 W is below sleep_w, 10 W"),
        (NodePower, {"base_w": 90, "sleep_w": 10, "wake_w": 5}, "wake_w: 5 W is below sleep_w"),
        (NodePower, {"sleep_w": 10}, "base_w: missing"),
    ],
)
def test_faults_of_powers(cls, change, fault):
    with pytest.raises(InstanceError) as error:
        cls.from_document(GOOD | change)
    assert any(fault in line for line in error.value.faults), error.value.faults
