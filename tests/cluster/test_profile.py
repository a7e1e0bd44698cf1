"""Slowdown profiles: validation, construction from runs, the released draw, CSV files."""

import csv
import random
import statistics
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from optsched.cluster.profile import Profile
from optsched.cluster.profile_csv import read_profile_csv
from optsched.documents.faults import InstanceError
from optsched.registry import UnknownNameError

DATA = Path(__file__).parents[3] / "shared" / "data" / "pal"
needs_data = pytest.mark.skipif(
    not DATA.is_dir(), reason="the measured files are not part of the project: ../shared/data/pal"
)
SMALL = Profile(
    gpus=("a", "b", "c", "d"),
    slowdown={"A": (1.0, 0.9, 2.0, 1.5), "B": (1.0, 1.0, 1.01, 0.99)},
    kind="single-run",
    source="made up",
)


def document(**changes):
    return {"gpus": ["a", "b"], "slowdown": {"A": [1.0, 1.1]}, "kind": "persistent"} | changes


def test_a_valid_document_has_no_faults():
    assert list(Profile.document_faults(document())) == []
    assert Profile.model_validate(document()).classes == ("A",)


@pytest.mark.parametrize(
    ("changes", "path", "text"),
    [
        ({"gpus": ["a", "a"]}, ("gpus", 1), '"a" is already gpus[0]'),
        ({"gpus": ["a", ""]}, ("gpus", 1), "must not be empty"),
        ({"slowdown": {}}, ("slowdown",), "holds no application class"),
        ({"slowdown": {"": [1.0, 1.0]}}, ("slowdown", ""), "must not be empty"),
        ({"slowdown": {"A": [1.0]}}, ("slowdown", "A"), "has 1 values for 2 GPUs"),
        ({"slowdown": {"A": [1, 1, 0]}}, ("slowdown", "A"), "has 3 values for 2 GPUs"),
        ({"slowdown": {"A": [1.0, 0]}}, ("slowdown", "A", 1), 'GPU "b" must be positive, found 0'),
        ({"slowdown": {"A": [-0.5, 1]}}, ("slowdown", "A", 0), 'GPU "a" must be positive, found -'),
    ],
)
def test_faults_of_a_document(changes, path, text):
    faults = dict(Profile.document_faults(document(**changes)))
    assert text in faults[path]
    with pytest.raises(ValidationError):
        Profile.model_validate(document(**changes))


def test_all_faults_at_once_as_one_error_of_its_own_type():
    wrong = document(gpus=["a", "a"], slowdown={"A": [1.0], "B": [1.0, 1.0, 1.0]})
    with pytest.raises(ValidationError) as caught:
        Profile.model_validate(wrong)
    (detail,) = caught.value.errors()
    assert detail["type"] == "document_faults"
    for text in ("gpus[1]", "slowdown.A", "slowdown.B"):
        assert text in detail["msg"]


JUNK = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-2, 2), st.floats(), st.text(max_size=2)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=2), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.fixed_dictionaries({}, optional={"gpus": JUNK, "slowdown": JUNK, "kind": JUNK}))
def test_faults_bear_fields_of_wrong_types(junk):
    for path, text in Profile.document_faults(junk):
        assert path[0] in ("gpus", "slowdown")
        assert text


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "sometimes"},
        {"slowdown": {"A": [1.0, float("nan")]}},
        {"slowdown": {"A": [1.0, float("inf")]}},
        {"slowdown": {"A": ["x", 1.0]}},
        {"gpus": []},
        {"node": "n"},
    ],
)
def test_pydantic_refuses(changes):
    with pytest.raises(ValidationError):
        Profile.model_validate(document(**changes))


def test_profiles_are_frozen_and_survive_json():
    with pytest.raises(ValidationError):
        SMALL.kind = "persistent"
    assert Profile.model_validate_json(SMALL.to_json()) == SMALL
    assert '"A": [1.0, 0.9, 2.0, 1.5]' in SMALL.to_json()


def test_subset_keeps_values_in_the_order_asked_for():
    part = SMALL.subset(["c", "a"])
    assert part.gpus == ("c", "a")
    assert part.slowdown == {"A": (2.0, 1.0), "B": (1.01, 1.0)}
    assert (part.kind, part.source) == (SMALL.kind, SMALL.source)
    with pytest.raises(UnknownNameError, match="GPU 'x'"):
        SMALL.subset(["a", "x"])
    with pytest.raises(InstanceError, match='"a" is already'):
        SMALL.subset(["a", "a"])


def test_array_is_one_value_per_gpu():
    values = SMALL.array("B")
    assert values.dtype == np.float64
    assert values.tolist() == [1.0, 1.0, 1.01, 0.99]
    with pytest.raises(UnknownNameError, match="application class 'C'"):
        SMALL.array("C")


def test_outliers_lie_strictly_above_the_threshold():
    assert SMALL.outliers("A") == ("c",)
    assert SMALL.outliers("A", above=1.2) == ("c", "d")
    assert SMALL.outlier_share("A") == 0.25
    assert SMALL.outlier_share("B") == 0
    with pytest.raises(UnknownNameError):
        SMALL.outlier_share("Z")


def test_persistent_profile_takes_medians_of_gpus_not_of_runs():
    """GPU c was measured five times as often; the median over rows would be 30, not 20."""
    runs = [("a", "A", 10.0), ("b", "A", 20.0), *(("c", "A", t) for t in (30, 30, 30, 29, 400))]
    profile = Profile.from_runs(runs, "persistent", source="bench")
    assert profile.gpus == ("a", "b", "c")
    assert profile.slowdown["A"] == (0.5, 1.0, 1.5)
    assert (profile.kind, profile.source) == ("persistent", "bench")


def test_runs_may_come_as_arrays():
    gpus, names = np.array([3, 1, 3, 1]), np.array(["A", "A", "B", "B"])
    runs = zip(gpus, names, np.array([2.0, 4.0, 5.0, 5.0]), strict=True)
    profile = Profile.from_runs(runs, "persistent")
    assert profile.gpus == ("3", "1")
    assert profile.slowdown["A"] == pytest.approx((2 / 3, 4 / 3))
    assert profile.slowdown["B"] == (1.0, 1.0)


TIMES = st.floats(0.1, 100)


@st.composite
def all_runs(draw):
    gpus = [f"g{n}" for n in range(draw(st.integers(1, 5)))]
    cells = [(gpu, name) for gpu in gpus for name in ("A", "B")]
    return [(*cell, t) for cell in cells for t in draw(st.lists(TIMES, min_size=1, max_size=4))]


@given(all_runs(), st.sampled_from(["persistent", "single-run"]))
def test_profiles_from_runs(runs, kind):
    profile = Profile.from_runs(runs, kind, seed=3)
    assert profile == Profile.from_runs(iter(runs), kind, seed=3)
    for name in ("A", "B"):
        values = profile.slowdown[name]
        assert statistics.median(values) == pytest.approx(1)
        own = {gpu: [t for g, c, t in runs if (g, c) == (gpu, name)] for gpu in profile.gpus}
        unit = None
        for gpu, value in zip(profile.gpus, values, strict=True):
            if len(own[gpu]) == 1:  # such GPUs tell what the others are relative to
                unit = own[gpu][0] / value
        if unit is None:
            continue
        for gpu, value in zip(profile.gpus, values, strict=True):
            if kind == "persistent":
                assert value * unit == pytest.approx(statistics.median(own[gpu]))
            else:
                assert any(value * unit == pytest.approx(time) for time in own[gpu])


def test_single_runs_depend_on_the_seed_only():
    runs = [(gpu, "A", float(time)) for gpu in range(20) for time in (9, 10, 11, 30)]
    drawn = {Profile.from_runs(runs, "single-run", seed=n).slowdown["A"] for n in range(5)}
    assert len(drawn) == 5
    persistent = {Profile.from_runs(runs, "persistent", seed=n).slowdown["A"] for n in range(5)}
    assert persistent == {(1.0,) * 20}


@pytest.mark.parametrize(
    ("runs", "text"),
    [
        ([], "there is no run"),
        ([("a", "A", 1.0), ("b", "B", 1.0)], "GPU 'b' has no run of class 'A'"),
        (
            [("a", "A", 0.0)],
            "GPU 'a', class 'A': a run time must be positive and finite, found 0.0",
        ),
        ([("a", "A", float("nan"))], "found NaN"),
        ([("a", "A", float("inf"))], "found Infinity"),
    ],
)
def test_faults_of_runs(runs, text):
    with pytest.raises(InstanceError) as caught:
        Profile.from_runs(runs, "persistent")
    assert text in str(caught.value)


def test_a_misspelt_kind_is_named():
    with pytest.raises(UnknownNameError, match="did you mean 'persistent'"):
        Profile.from_runs([("a", "A", 1.0)], "persistant")


def test_the_released_draw_goes_gpu_by_gpu_through_the_classes():
    rows = {"A": [10.0, 20.0, 30.0, 70.0], "B": [1.0, 2.0, 9.0]}
    profile = Profile.drawn(rows, range(50), seed=42)
    generator = random.Random(42)
    for n in range(50):
        assert profile.slowdown["A"][n] == generator.choice(rows["A"]) / 25
        assert profile.slowdown["B"][n] == generator.choice(rows["B"]) / 2
    assert profile.gpus[:2] == ("0", "1")
    assert profile.kind == "single-run"
    assert Profile.drawn(rows, range(50), seed=43) != profile


def test_a_longer_draw_begins_with_the_shorter_one():
    rows = {"A": [1.0, 2.0, 3.0], "B": [4.0, 5.0]}
    few, many = (Profile.drawn(rows, range(n)) for n in (4, 9))
    assert many.subset(few.gpus) == few


def test_the_released_draw_makes_outliers_of_gpus_that_are_none():
    runs = [(gpu, "A", 3.0 if run == gpu else 1.0) for gpu in range(10) for run in range(10)]
    assert not Profile.from_runs(runs, "persistent").outliers("A")
    drawn = Profile.drawn({"A": [time for _, _, time in runs]}, range(200))
    assert 0.02 < drawn.outlier_share("A") < 0.25


@pytest.mark.parametrize("rows", [{"A": []}, {"A": [1.0, 0.0]}, {"A": [1.0], "B": [float("nan")]}])
def test_faults_of_rows(rows):
    with pytest.raises(InstanceError, match=r"class \"[AB]\""):
        Profile.drawn(rows, range(3))


def written(tmp_path, text):
    path = tmp_path / "profile.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_csv_is_read(tmp_path):
    text = "gpu,node,V_A,V_big model,bin_A\n\n 0 ,n1, 1.0,0.98,7\n,,,,\n1,n1,1.5,1e0,7\n"
    for start in ("", "\ufeff"):
        profile = read_profile_csv(written(tmp_path, start + text), "single-run", "a source")
        assert profile == Profile(
            gpus=("0", "1"),
            slowdown={"A": (1.0, 1.5), "big model": (0.98, 1.0)},
            kind="single-run",
            source="a source",
        )


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "the file is empty; expected a header"),
        ("\n\n", "the file is empty"),
        ("gpu,V_A\n", "there is no GPU below the header"),
        ("node,V_A\n1,1\n", "line 1: column 'gpu' is missing"),
        ("gpu,node\n1,1\n", "line 1: there is no column of slowdowns"),
        ("gpu,V_\n1,1\n", 'line 1: column "V_" names no application class'),
        ("gpu,V_A,V_A\n1,1,1\n", 'line 1: column "V_A" stands more than once'),
        ("gpu,V_A,nod\n1,1,1\n", "line 1: column \"nod\" is unknown; did you mean 'node'?"),
        ("gpu;V_A\n1;1\n", 'line 1: column "gpu;V_A" is unknown'),
        ("gpu,V_A\na,1\n\nb,1,2\n", "line 4: has 3 fields, but the header has 2"),
        ("gpu,V_A\na\n", "line 2: has 1 fields, but the header has 2"),
        ("gpu,V_A\n,1\n", "line 2: gpu is empty"),
        ("gpu,V_A\na,1\nb,1\na,1\n", 'line 4: GPU "a" stands already in line 2'),
        ("gpu,V_A\na,fast\n", 'line 2: V_A of GPU "a" is "fast", expected a number'),
        ("gpu,V_A\na,\n", 'line 2: V_A of GPU "a" is "", expected a number'),
        ("gpu,V_A\na,0\n", 'line 2: V_A of GPU "a" must be positive and finite, found 0'),
        ("gpu,V_A\na,-1\n", "must be positive and finite, found -1"),
        ("gpu,V_A\na,nan\n", "must be positive and finite, found nan"),
        ("gpu,V_A\na,1e999\n", "must be positive and finite, found 1e999"),
        ("gpu,V_A\na,1e-12\n", "must be between 1e-9 and 1e12, found 1e-12"),
        ('gpu,V_A\na,"1\n', "line 2: unexpected end of data"),
        (b"gpu,V_A\n\xff,1\n", "byte 8 is not UTF-8 text; expected a CSV file"),
    ],
)
def test_faults_of_a_csv_file(tmp_path, text, fault):
    with pytest.raises(InstanceError) as caught:
        read_profile_csv(written(tmp_path, text), "persistent")
    assert fault in str(caught.value)
    assert "profile.csv" in str(caught.value)


def test_all_faults_of_a_csv_file_at_once(tmp_path):
    path = written(tmp_path, "gpu,V_A,V_B\na,1,x\nb,0,1\nb,1\nb,1,1\n")
    with pytest.raises(InstanceError) as caught:
        read_profile_csv(path, "persistent")
    assert [fault.split(":")[0] for fault in caught.value.faults] == [
        "line 2",
        "line 3",
        "line 4",
        "line 5",
    ]


def test_no_file_and_a_folder(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_profile_csv(tmp_path / "none.csv", "persistent")
    with pytest.raises(InstanceError, match="is a folder"):
        read_profile_csv(tmp_path, "persistent")


@needs_data
def test_the_joint_profile_of_frontera():
    """Figures of docs/math/pal.md, Variability data."""
    profile = read_profile_csv(DATA / "frontera32_profile.csv", "persistent")
    assert len(profile.gpus) == 32
    assert profile.classes == ("A", "B", "C", "D")
    assert profile.slowdown["B"] == profile.slowdown["C"]
    a = profile.array("A")
    assert (a.min(), a.max()) == pytest.approx((0.989, 1.117), abs=5e-4)
    assert a.std(ddof=1) == pytest.approx(0.041, abs=1e-3)
    assert profile.outlier_share("A") == 0


@needs_data
@pytest.mark.parametrize(("gpus", "above"), [(64, 1), (256, 4)])
def test_outliers_of_the_released_draw(gpus, above):
    """Figures of docs/math/pal.md, Variability data."""
    profile = read_profile_csv(DATA / f"artifact_sim_profile_{gpus}gpu_seed42.csv", "single-run")
    assert len(profile.outliers("A")) == above
    assert profile.outlier_share("A") == above / gpus
    assert not profile.outliers("B")


@needs_data
def test_no_gpu_of_longhorn_is_an_outlier_for_good():
    """Single runs reach 3.6 times the median; the median of no GPU's own runs exceeds 1.13."""
    with (DATA / "longhorn_variability_per_gpu.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["app"] == "resnet50"]
    runs = [(row["gpu_index"], "A", float(row["norm_median"])) for row in rows]
    assert not Profile.from_runs(runs, "persistent").outliers("A", above=1.13)
    assert max(float(row["norm_max"]) for row in rows) > 3.5


def test_faults_below_a_free_key_have_their_whole_path():
    document = {"gpus": ["a", "b"], "slowdown": {"A": [1.0, "x"]}, "kind": "persistent"}
    with pytest.raises(InstanceError) as error:
        Profile.from_document(document, "profile")
    assert error.value.faults == ['slowdown.A[1]: expected a number, found "x"']
