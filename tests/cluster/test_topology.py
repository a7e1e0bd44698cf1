"""The tree of a cluster: its faults, its arrays, and trees of networks by bandwidth."""

import contextlib
import io
import itertools
import json
import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

import optsched.cluster
from optsched.cluster import Topology, bottleneck_bandwidths, bottleneck_topology, read_topology
from optsched.documents.faults import validation_faults
from optsched.instance import Document, InstanceError, write
from optsched.registry import UnknownNameError

LEVELS = ["node", "rack", "cluster"]


def domain(name, level, parent=None, gpus=(), drained=False):
    return {"id": name, "level": level, "parent": parent, "gpus": list(gpus), "drained": drained}


def uneven():
    """Two racks, and a node that hangs directly below the cluster."""
    return {
        "levels": LEVELS,
        "domains": [
            domain("n3", "node", "all", ["g5"]),
            domain("all", "cluster"),
            domain("n0", "node", "r0", ["g0", "g1"]),
            domain("r1", "rack", "all"),
            domain("r0", "rack", "all"),
            domain("n1", "node", "r0", ["g2"]),
            domain("n2", "node", "r1", ["g4", "g3"]),
            domain("empty", "node", "r1"),
        ],
    }


def faults(document):
    with pytest.raises(InstanceError) as error:
        Topology.from_document(document)
    return error.value.faults


@st.composite
def documents(draw):
    """Trees of up to four levels, with skipped levels, empty and drained domains, in any order."""
    levels = [f"level{n}" for n in range(draw(st.integers(1, 4)))]
    domains = [domain("d0", levels[draw(st.integers(0, len(levels) - 1))])]
    for n in range(1, draw(st.integers(1, 12))):
        above = [d for d in domains if d["level"] != levels[0]]
        if not above:
            break
        parent = draw(st.sampled_from(above))
        level = draw(st.integers(0, levels.index(parent["level"]) - 1))
        domains.append(domain(f"d{n}", levels[level], parent["id"], drained=draw(st.booleans())))
    if not any(d["level"] == levels[0] for d in domains):
        domains.append(domain("leaf", levels[0], "d0"))
    count = itertools.count()
    for entry in domains:
        if entry["level"] == levels[0]:
            entry["gpus"] = [f"g{next(count)}" for _ in range(draw(st.integers(1, 3)))]
    return {"levels": levels, "domains": draw(st.permutations(domains))}


# --- faults -------------------------------------------------------------------------------------


def with_domains(*changes):
    document = uneven()
    for number, change in changes:
        document["domains"][number] |= change
    return document


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([(0, {"gpus": ["g4"]})], ['domains[6].gpus[0]: GPU "g4" is also in domains[0], "n3"']),
        ([(0, {"gpus": ["g5", "g5"]})], ['domains[0].gpus[1]: GPU "g5" is twice in "n3"']),
        ([(0, {"gpus": ["r1"]})], ['domains[0].gpus[0]: "r1" is already the id of domains[3]']),
        ([(5, {"id": "n0"})], ['domains[5].id: "n0" is already the id of domains[2]']),
        (
            [(5, {"parent": "r9"})],
            ['domains[5].parent: there is no domain "r9"; known: n3, all, n0, r1'],
        ),
        ([(3, {"parent": None})], ["domains[3].parent: missing: domains[1] is already the root"]),
        ([(5, {"parent": "n0"})], ['domains[5].parent: "n0" has the level "node", which is not']),
        ([(5, {"level": "nod"})], ['domains[5].level: "nod" is not one of the levels; did you me']),
        (
            [(3, {"gpus": ["g9"]})],
            ['domains[3].gpus: only domains of the lowest level, "node", ho'],
        ),
        (
            [(1, {"parent": "r1"})],
            ["domains: no root: one dom", 'domains[1].parent: a cycle: "all" in "r1" in "all"'],
        ),
        (
            [(4, {"parent": "r0"}), (0, {"level": 7}), (2, {"gpus": "g0"})],
            [
                "domains[0].level: expected a string, found 7",
                "domains[2].gpus: expected a list, found",
                'domains[4].parent: a cycle: "r0" in "r0"',
            ],
        ),
        ([(n, {"gpus": []}) for n in range(8)], ["domains: no GPUs in the cluster"]),
    ],
)
def test_each_fault_with_its_path(changes, expected):
    told = faults(with_domains(*changes))
    assert len(told) == len(expected), told
    for text, start in zip(told, expected, strict=True):
        assert text.startswith(start)


def test_levels_of_one_name():
    assert faults(uneven() | {"levels": ["node", "rack", "node", "cluster"]}) == [
        'levels[2]: "node" is already the name of levels[0]'
    ]


def test_all_faults_of_a_built_topology_at_once():
    with pytest.raises(InstanceError, match=r"domains\[5\].parent: .*r9.*\n  domains\[6\].gpus"):
        Topology(**with_domains((5, {"parent": "r9"}), (6, {"gpus": ["g0"]})))


class Holder(Document):
    """As an instance holds a topology: it asks `document_faults` itself."""

    topology: Topology


def test_faults_inside_of_another_document_are_not_told_twice():
    text = json.dumps({"topology": with_domains((3, {"parent": None}))})
    with pytest.raises(ValidationError) as error:
        Holder.model_validate_json(text)
    assert list(validation_faults(error.value, Holder)) == []
    text = json.dumps({"topology": with_domains((3, {"parent": 7}))})
    with pytest.raises(ValidationError) as error:
        Holder.model_validate_json(text)
    path = ("topology", "domains", 3, "parent")
    assert dict(validation_faults(error.value, Holder)) == {path: "expected a string, found 7"}


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["n0", "r0", "all", "node"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["id", "level", "parent", "gpus"]), inner, max_size=4)
    ),
)


@given(st.sampled_from(["levels", "domains", *range(8)]), JUNK, st.data())
def test_junk_is_refused_or_valid(place, junk, data):
    document = uneven()
    if isinstance(place, str):
        document[place] = junk
    else:
        key = data.draw(st.sampled_from(["id", "level", "parent", "gpus", "drained"]))
        document["domains"][place][key] = junk
    with contextlib.suppress(InstanceError):
        topology = Topology.from_document(document)
        assert topology.ancestors.shape == (len(topology.gpus), len(topology.levels))


# --- arrays -------------------------------------------------------------------------------------


def test_gpus_of_a_domain_stand_together_and_skipped_levels_repeat_the_one_below():
    topology = Topology.from_document(uneven())
    assert topology.gpus == ("g5", "g4", "g3", "g0", "g1", "g2")
    names = [d.id for d in topology.domains]
    assert [[names[d] for d in row] for row in topology.ancestors] == [
        ["n3", "n3", "all"],
        *[["n2", "r1", "all"]] * 2,
        *[["n0", "r0", "all"]] * 2,
        ["n1", "r0", "all"],
    ]
    assert topology.gpus_in("r0").tolist() == [3, 4, 5]
    assert topology.gpus_in("empty").tolist() == []
    assert [names[d] for d in topology.domains_at("rack")] == ["r1", "r0"]
    assert topology.domains_at(2).tolist() == [1]


@pytest.mark.parametrize(
    ("gpus", "level"),
    [(["g0"], 0), (["g0", "g1"], 0), (["g0", "g2"], 1), (["g2", "g3"], 2), (["g5", "g0"], 2)],
)
def test_lowest_common_level(gpus, level):
    assert Topology.from_document(uneven()).lowest_common_level(gpus) == level


def test_what_is_drained_is_left_out_with_all_inside():
    topology = Topology.from_document(with_domains((4, {"drained": True}), (0, {"drained": True})))
    assert topology.gpus == ("g4", "g3")
    assert topology.gpus_in("r0").tolist() == []
    assert topology.gpus_in("all").tolist() == [0, 1]
    assert topology.lowest_common_level(["g0", "g2"]) == 1
    everything = Topology.from_document(with_domains((1, {"drained": True})))
    assert everything.ancestors.shape == (0, 3)


@given(documents())
def test_arrays_agree_with_the_tree(document):
    topology = Topology.from_document(document)
    tree = topology.graph()
    leaves = {gpu: next(iter(tree.pred[gpu])) for gpu in tree if tree.nodes[gpu]["kind"] == "gpu"}
    drained = {d.id for d in topology.domains if d.drained}
    free = {gpu for gpu in leaves if not drained & (nx.ancestors(tree, gpu))}
    assert set(topology.gpus) == free
    for d in topology.domains:
        inside = {topology.gpus[g] for g in topology.gpus_in(d.id)}
        assert inside == nx.descendants(tree, d.id) & free
    for one, other in itertools.combinations_with_replacement(leaves, 2):
        common = nx.lowest_common_ancestor(tree, leaves[one], leaves[other])
        level = topology.levels.index(tree.nodes[common]["level"])
        assert topology.lowest_common_level([one, other]) == level
        if {one, other} <= free:
            rows = topology.ancestors[[topology.gpus.index(one), topology.gpus.index(other)]]
            agree = rows[0] == rows[1]
            assert agree.tolist() == [n >= level for n in range(len(topology.levels))]


@given(documents())
def test_files_and_graphs_keep_everything(document):
    topology = Topology.from_document(document)
    assert Topology.from_document(json.loads(topology.to_json())) == topology
    buffer = io.BytesIO()
    nx.write_graphml(topology.graph(), buffer)
    assert set(nx.parse_graphml(buffer.getvalue().decode())) == set(topology.graph())


def test_file_of_its_own(tmp_path):
    topology = Topology.from_document(uneven())
    write(topology, tmp_path / "c.json")
    assert (tmp_path / "c.json").read_text().startswith('{\n  "schema": "optsched/topology/1",')
    assert read_topology(tmp_path / "c.json") == topology
    (tmp_path / "c.json").write_text(json.dumps(uneven() | {"schema": "optsched/boa/1"}))
    with pytest.raises(InstanceError, match="schema: expected 'optsched/topology/1'"):
        read_topology(tmp_path / "c.json")
    (tmp_path / "c.json").write_text(json.dumps(uneven()))
    with pytest.raises(InstanceError, match="schema: missing"):
        read_topology(tmp_path / "c.json")


def test_unknown_names_have_a_hint():
    topology = Topology.from_document(uneven())
    for ask in (
        lambda: topology.gpus_in("rr0"),
        lambda: topology.domains_at("racks"),
        lambda: topology.lowest_common_level(["g55"]),
    ):
        with pytest.raises(UnknownNameError, match="did you mean"):
            ask()
    with pytest.raises(ValueError, match="no GPU"):
        topology.lowest_common_level([])


def test_arrays_cannot_be_written():
    with pytest.raises(ValueError, match="read-only"):
        Topology.from_document(uneven()).ancestors[0, 0] = 7


# --- networks -----------------------------------------------------------------------------------


@st.composite
def networks(draw):
    """Connected graphs with repeated bandwidths; some vertices are switches without GPUs."""
    size = draw(st.integers(1, 8))
    graph = nx.Graph()
    widths = st.sampled_from([1.0, 2.5, 10.0, 40.0])
    for vertex in range(size):
        held = [f"g{vertex}.{n}" for n in range(draw(st.integers(vertex == 0, 2)))]
        graph.add_node(vertex, gpus=held)
        if vertex:
            graph.add_edge(vertex, draw(st.integers(0, vertex - 1)), bandwidth=draw(widths))
    for one, other in draw(st.lists(st.tuples(*[st.integers(0, size - 1)] * 2), max_size=8)):
        if one != other:
            graph.add_edge(one, other, bandwidth=draw(widths))
    return graph


def widest(graph, one, other):
    """Brute force: the widest of all simple paths."""
    if one == other:
        return math.inf
    paths = nx.all_simple_edge_paths(graph, one, other)
    return max(min(graph.edges[edge]["bandwidth"] for edge in path) for path in paths)


THRESHOLDS = st.sets(st.sampled_from([math.inf, 40.0, 20.0, 10.0, 2.5, 2.0, 0.5]), max_size=4)


@given(networks(), THRESHOLDS.map(lambda told: sorted(told, reverse=True)))
def test_lowest_common_level_is_the_class_of_the_widest_path(graph, thresholds):
    levels = [f"class{n}" for n in range(len(thresholds) + 1)]
    topology = bottleneck_topology(graph, levels, thresholds)
    held = [(gpu, vertex) for vertex, gpus in graph.nodes(data="gpus") for gpu in gpus]
    assert sorted(topology.gpus) == sorted(gpu for gpu, _ in held)
    for (one, at), (other, to) in itertools.combinations_with_replacement(held, 2):
        width = widest(graph, at, to)
        expected = next((n for n, t in enumerate(thresholds) if width >= t), len(thresholds))
        assert topology.lowest_common_level([one, other]) == expected


@given(networks())
def test_bandwidths_are_those_of_widest_paths(graph):
    held = [vertex for vertex, gpus in graph.nodes(data="gpus") if gpus]
    pairs = itertools.combinations(held, 2)
    expected = {widest(graph, one, other) for one, other in pairs}
    assert bottleneck_bandwidths(graph) == sorted(expected, reverse=True)


@pytest.mark.parametrize(
    ("edges", "levels", "thresholds", "text"),
    [
        ([(0, 1, 3.0)], ["a", "b"], [], "2 levels and 0 thresholds"),
        ([(0, 1, 3.0)], ["a", "b", "c"], [1.0, 2.0], "thresholds must descend"),
        ([(0, 1, 0.0)], ["a"], [], "the link between 0 and 1 needs a positive bandwidth, found 0"),
        ([(0, 1, None)], ["a"], [], "found None"),
        ([(0, 1, math.nan)], ["a"], [], "found nan"),
        ([(0, 1, 1.0), (2, 3, 1.0)], ["a"], [], "in 2 parts"),
    ],
)
def test_networks_that_are_none(edges, levels, thresholds, text):
    graph = nx.Graph()
    graph.add_weighted_edges_from(edges, weight="bandwidth")
    graph.nodes[0]["gpus"] = ["g"]
    with pytest.raises(ValueError, match=text):
        bottleneck_topology(graph, levels, thresholds)
    with pytest.raises(ValueError, match="directed"):
        bottleneck_topology(graph.to_directed(), ["a"], [])


# --- drawing and import -------------------------------------------------------------------------


def test_drawing_returns_its_axes():
    import matplotlib.pyplot as plt

    topology = Topology.from_document(uneven())
    _, ax = plt.subplots()
    assert optsched.cluster.plot_topology(topology, ax, {"g0": "red"}) is ax
    assert {text.get_text() for text in ax.texts} == {"n3", "all", "n0", "r1", "r0", "n1", "n2"}
    assert len(ax.patches) == 6
    plt.close("all")


def test_public_names_are_importable():
    for name in optsched.cluster.__all__:
        assert getattr(optsched.cluster, name) is not None


def test_numbers_may_be_of_numpy():
    topology = Topology.from_document(uneven())
    assert topology.gpus_in(np.intp(4)).tolist() == [3, 4, 5]
