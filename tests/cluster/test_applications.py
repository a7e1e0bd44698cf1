"""Classes of applications from their utilisation."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.cluster.applications import classify_applications
from tests.support.strategies.common import law

# (DRAM, FMA) in percent: made up, in three groups like those of PAL.
MEASURED = {
    "resnet50": (30, 70),
    "dcgan": (34, 66),
    "vgg19": (28, 72),
    "bert": (50, 45),
    "gpt2": (53, 42),
    "pagerank": (92, 3),
    "bfs": (88, 1),
    "sssp": (90, 2),
}


def test_three_groups_from_compute_to_memory():
    classes = classify_applications(MEASURED)
    assert classes.members == {
        "A": ("dcgan", "resnet50", "vgg19"),
        "B": ("bert", "gpt2"),
        "C": ("bfs", "pagerank", "sssp"),
    }
    assert classes.centres["B"] == pytest.approx((51.5, 43.5))
    assert 0.8 < classes.silhouette < 1
    assert classes.class_of["gpt2"] == "B"
    assert classes.class_of.keys() == MEASURED.keys()


def test_dram_parts_applications_of_equal_fma():
    classes = classify_applications({"a": (90, 40), "b": (10, 40), "c": (11, 40), "d": (91, 40)})
    assert classes.members == {"A": ("b", "c"), "B": ("a", "d")}


@pytest.mark.parametrize(
    ("utilisation", "members"),
    [
        ({"one": (10, 20)}, {"A": ("one",)}),
        ({"y": (10, 20), "x": (10, 20)}, {"A": ("x", "y")}),
        ({"memory": (80, 20), "compute": (10, 20)}, {"A": ("compute",), "B": ("memory",)}),
        ({"a": (80, 20), "b": (10, 20), "c": (80, 20)}, {"A": ("b",), "B": ("a", "c")}),
    ],
)
def test_too_few_to_compare(utilisation, members):
    classes = classify_applications(utilisation)
    assert classes.members == members
    assert classes.silhouette is None


def test_equal_but_for_rounding_is_one_class_whatever_the_count():
    apps = {f"app{n:02}": (50 + n * 1e-14, 50.0) for n in range(30)}
    classes = classify_applications(apps)
    assert sorted(app for group in classes.members.values() for app in group) == sorted(apps)


UTILISATIONS = st.dictionaries(
    st.text("abcdefgh", min_size=1, max_size=3),
    st.tuples(st.floats(0, 100), st.one_of(st.floats(0, 100), st.just(50.0))),
    min_size=1,
    max_size=12,
)


@law(200, is_costly=True)
@given(UTILISATIONS, st.integers(0, 5), st.randoms(use_true_random=False))
def test_classes_are_a_deterministic_partition_in_order(utilisation, seed, shuffler):
    classes = classify_applications(utilisation, seed)
    apps = [app for group in classes.members.values() for app in group]
    assert sorted(apps) == sorted(utilisation)
    assert "".join(classes.members) == "ABCDEFGHIJ"[: len(classes.members)]
    assert classes.centres.keys() == classes.members.keys()
    intensity = [fma - dram for dram, fma in classes.centres.values()]
    assert all(a >= b for a, b in pairwise(intensity))
    for name, group in classes.members.items():
        for feature, value in enumerate(classes.centres[name]):
            mean = math.fsum(utilisation[app][feature] for app in group) / len(group)
            assert value == pytest.approx(mean, abs=1e-9)
    shuffled = list(utilisation.items())
    shuffler.shuffle(shuffled)
    assert classify_applications(dict(shuffled), seed) == classes


@pytest.mark.parametrize(
    ("utilisation", "text"),
    [
        ({}, "there is no application"),
        ({"a": (-1, 5)}, "application 'a': DRAM utilisation must be between 0 and 100"),
        ({"a": (1, 100.5)}, "application 'a': FMA utilisation must be .* found 100.5"),
        ({"a": (math.nan, 5)}, "found nan"),
        ({"a": (1, 2, 3)}, "expected two utilisations"),
    ],
)
def test_bad_utilisations_are_refused(utilisation, text):
    with pytest.raises(ValueError, match=text):
        classify_applications(utilisation)
