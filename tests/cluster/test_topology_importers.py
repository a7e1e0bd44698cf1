"""Topologies from files of other programs, written here as their manuals show them."""

import json
import warnings
from itertools import combinations
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from optsched.cli.main import app
from optsched.cluster import FORMATS, Topology, import_topology, read_topology
from optsched.cluster.importers import ImportNote
from optsched.cluster.importers.hostlist import HostlistError, expand
from optsched.instance import InstanceError
from optsched.registry import UnknownNameError

TREE = """\
##### tree
SwitchName=s0 Nodes=dev[0-1,05]   LinkSpeed=900
switchname = s1 NODES="dev[6-7]"  # second
SwitchName=s2 \\
    Nodes=r[0-1]n[08-10]

SwitchName=s3 Switches=s[0-2]
"""


@pytest.fixture
def load(tmp_path):
    """Return a function that writes a file and imports it."""

    def write_and_import(text, file_format, gpus_per_node=None, name="file", **options):
        path = tmp_path / name
        path.write_text(text)
        return import_topology(path, file_format, gpus_per_node, **options)

    return write_and_import


@pytest.fixture
def faults(load):
    def refused(*arguments, **options):
        with pytest.raises(InstanceError) as error:
            load(*arguments, **options)
        return error.value.faults

    return refused


def children(topology, parent=None):
    return [domain.id for domain in topology.domains if domain.parent == parent]


def common(topology, one, other):
    return topology.levels[topology.lowest_common_level([one, other])]


# --- hostlists ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hostlist", "names"),
    [
        ("tux[0-3,12,18-20]", "tux0 tux1 tux2 tux3 tux12 tux18 tux19 tux20"),
        ("n[08-10],m[1]", "n08 n09 n10 m1"),
        ("n[8-10]", "n8 n9 n10"),
        ("r[1-2]n[01-02]-ib", "r1n01-ib r1n02-ib r2n01-ib r2n02-ib"),
        ("login", "login"),
        ("[1-2]", "1 2"),
    ],
)
def test_hostlist(hostlist, names):
    assert expand(hostlist) == names.split()


@pytest.mark.parametrize(
    ("hostlist", "position", "text"),
    [
        ("a,tux[0-3", 5, "'[' is never closed"),
        ("tux0-3]", 6, "']' without '['"),
        ("tux[0-[1-2]]", 6, "'[' inside"),
        ("tux[0-3,x]", 8, "found 'x'"),
        ("tux[0-3,]", 8, "found ''"),
        ("tux[]", 4, "found ''"),
        ("tux[5-3]", 4, "backwards"),
        ("tux[-3]", 4, "found '-3'"),
        ("a,,b", 2, "a name is missing"),
        ("a,", 2, "a name is missing"),
        ("", 0, "a name is missing"),
        ("tux[0-99999999]", 4, "more than 65,536"),
        ("n,a[0-999]b[0-999]", 2, "more than 65,536"),
        ("a b", 1, "a blank"),
    ],
)
def test_hostlist_that_does_not_parse(hostlist, position, text):
    with pytest.raises(HostlistError, match=text.replace("[", r"\[")) as error:
        expand(hostlist)
    assert error.value.position == position


@given(st.text(alphabet="ab01[]-, ", max_size=12))
def test_hostlists_of_any_text_expand_or_are_refused(text):
    try:
        names, position = expand(text), 0
    except HostlistError as error:
        names, position = ["none"], error.position
    assert 0 <= position <= len(text)
    assert names
    assert all(names)


# --- Slurm --------------------------------------------------------------------------------------


def test_slurm_tree(load):
    topology = load(TREE, "slurm", 2)
    assert topology.levels == ("node", "switch-1", "switch-2")
    assert children(topology) == ["s3"]
    assert children(topology, "s3") == ["s0", "s1", "s2"]
    assert children(topology, "s0") == ["dev0", "dev1", "dev05"]
    assert children(topology, "s2") == ["r0n08", "r0n09", "r0n10", "r1n08", "r1n09", "r1n10"]
    assert topology.gpus[:3] == ("dev0/0", "dev0/1", "dev1/0")
    assert len(topology.gpus) == 22


def test_several_spines_become_one(load):
    text = """
        SwitchName=l0 Nodes=a[0-1]
        SwitchName=l1 Nodes=a[2-3]
        SwitchName=l2 Nodes=a[4-5]
        SwitchName=spine0 Switches=l[0-1]
        SwitchName=spine1 Switches=l[1-2]
        SwitchName=core Switches=spine[0-1],l0
    """
    topology = load(text, "slurm", 1)
    assert children(topology, "core") == ["spine0+spine1"]
    assert children(topology, "spine0+spine1") == ["l0", "l1", "l2"]
    assert common(topology, "a0/0", "a5/0") == "switch-2"


def test_uneven_depths(load):
    text = "SwitchName=a Nodes=n0\nSwitchName=b Nodes=n1\nSwitchName=c Switches=b\n"
    topology = load(text + "SwitchName=top Switches=a,c", "slurm", 1)
    assert topology.levels == ("node", "switch-1", "switch-2", "switch-3")
    assert common(topology, "n0/0", "n1/0") == "switch-3"


def test_slurm_blocks(load):
    text = "BlockSizes=2,4\n" + "".join(f"BlockName=b{n} Nodes=n[{n}0-{n}1]\n" for n in range(1, 6))
    topology = load(text, "slurm", 4)
    assert topology.levels == ("node", "block", "2-blocks", "cluster")
    assert children(topology, "cluster") == ["b1..b2", "b3..b4", "b5..b5"]
    assert children(topology, "b1..b2") == ["b1", "b2"]
    pairs = ["n11/0", "n21/0", "n31/0"]
    assert [common(topology, "n10/0", gpu) for gpu in pairs] == ["block", "2-blocks", "cluster"]


@pytest.mark.parametrize(
    ("blocks", "sizes", "levels"),
    [
        (2, "4,8,16", ("node", "block", "2-blocks")),
        (8, "4,8,16,32,64", ("node", "block", "2-blocks", "4-blocks", "8-blocks")),
        (5, "4,8,16", ("node", "block", "2-blocks", "4-blocks", "cluster")),
    ],
)
def test_aggregated_blocks_that_are_cut_short_do_not_collide(load, blocks, sizes, levels):
    """Of Slurm's own test suite: the largest sizes exceed what there is."""
    lines = [f"BlockName=b{n} Nodes=n{n}[0-3]" for n in range(1, blocks + 1)]
    topology = load("\n".join([*lines, f"BlockSizes={sizes}"]), "slurm", 8)
    assert topology.levels == levels
    assert len(topology.gpus) == blocks * 32
    assert common(topology, "n10/0", "n20/0") == "2-blocks"


def test_empty_blocks_shift_the_aggregated_ones_behind(load):
    """Topograph pads with them, so that blocks b2 and b3 stand apart."""
    text = "BlockName=b1 Nodes=a\nBlockName=pad\nBlockName=b2 Nodes=b\nBlockName=b3 Nodes=c\n"
    topology = load(text + "BlockSizes=1,2", "slurm", 1)
    assert [common(topology, "b/0", other) for other in ("a/0", "c/0")] == ["cluster", "2-blocks"]
    assert children(topology, "cluster") == ["b1..pad", "b2..b3"]
    yaml = "- topology: t\n  block:\n    block_sizes: [1, 2]\n    blocks:\n"
    yaml += "".join(f"      - block: {n}\n        nodes: {m}\n" for n, m in (("b1", "a"),))
    yaml += "      - block: pad\n" + "".join(
        f"      - block: {n}\n        nodes: {m}\n" for n, m in (("b2", "b"), ("b3", "c"))
    )
    assert load(yaml, "slurm", 1, name="t.yaml") == topology


def test_switches_without_nodes_are_left_out_with_a_note(load):
    text = "SwitchName=s1 Nodes=a\nSwitchName=s2\nSwitchName=s3 Switches=s2\n"
    with pytest.warns(ImportNote, match="without nodes are left out: 's2', 's3'"):
        topology = load(text + "SwitchName=top Switches=s[1-3]", "slurm", 1)
    assert [d.id for d in topology.domains] == ["top", "s1", "a"]
    yaml = "- topology: t\n  tree:\n    switches:\n      - switch: s1\n        nodes: a\n"
    with pytest.warns(ImportNote, match="'s2'"):
        load(yaml + "      - switch: s2\n", "slurm", 1, name="t.yaml")


def test_one_of_several_topologies_is_chosen_by_name(load, faults):
    chosen = load(YAML, "slurm", 2, name="t.yaml", topology="topo1")
    assert chosen.levels == ("node", "block", "2-blocks")
    told = faults(YAML, "slurm", 2, name="t.yaml", topology="topo4")
    assert told[0].startswith("there is no topology 'topo4'; ")
    assert faults(TREE, "slurm", 2, topology="x") == [
        "only topology.yaml has topologies with names"
    ]
    with pytest.raises(ValueError, match="is an option of the format 'slurm', not 'topograph'"):
        import_topology("x", "topograph", topology="topo1")


def test_one_line_is_a_cluster(load):
    topology = load("SwitchName=s Nodes=n1", "slurm", 1)
    assert (topology.levels, topology.gpus) == (("node", "switch-1"), ("n1/0",))
    assert load("BlockName=s Nodes=n1", "slurm", 1).levels == ("node", "block")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SwitchName=s Nodes=n[0-", ["line 1, column 21: '[' is never closed, in the hostlist 'n"]),
        (
            "# x\n  SwitchName=a Nodes=n[2-1]\nSwitchName=b Nodes=m[x]",
            ["line 2, column 24: the range 2-1 runs backwards", "line 3, column 22: expected a nu"],
        ),
        ('SwitchName=s \\\n  Nodes="n[1,,2]"', ["line 2, column 14: expected a number or a range"]),
        ("SwitchName=s Node=n1", ["line 1, column 14: the key 'Node' is unknown; did you mean 'N"]),
        ("SwitchName=s n1", ["line 1, column 14: expected KEY=VALUE, found 'n1'"]),
        ("SwitchName=s Nodes=", ["line 1, column 14: expected KEY=VALUE, found 'Nodes='"]),
        ("SwitchName=s Nodes=a nodes=b", ["line 1, column 22: Nodes stands twice"]),
        ("\n SwitchName=s", ["no switch or block has nodes"]),
        ("SwitchName=s Nodes=a Switches=t", ["line 1, column 1: switch 's' needs either"]),
        ("Nodes=a", ["line 1, column 1: expected one of SwitchName, BlockName and BlockSizes, fo"]),
        ("BlockName=b Switches=c", ["line 1, column 1: block 'b' needs Nodes"]),
        ("SwitchName=s Switches=t[0-1]", ["line 1, column 23: there is no switch 't0'", "line 1"]),
        ("SwitchName=s Nodes=a\nSwitchName=s Nodes=b", ["line 2, column 12: 's' is already def"]),
        ("SwitchName=a Nodes=a", ["'a' names both a node and a switch or block"]),
        (
            "SwitchName=s Nodes=a\nBlockName=b Nodes=c",
            ["expected either switches or blocks, found"],
        ),
        ("BlockSizes=4", ["expected either switches or blocks, found neither"]),
        ("BlockSizes=4,12\nBlockName=b Nodes=c", ["line 1, column 12: the size 12 is not a power"]),
        ("BlockSizes=x\nBlockName=b Nodes=c", ["line 1, column 12: expected sizes of blocks"]),
        ("BlockName=a Nodes=c\nBlockName=b Nodes=c", ["node 'c' is in block 'a' and in block 'b'"]),
        (
            "SwitchName=s Nodes=a\nSwitchName=t Nodes=b",
            ["no switch stands above the separate part"],
        ),
        (
            "SwitchName=s Switches=t\nSwitchName=t Switches=s,u\nSwitchName=u Nodes=a",
            ["the switches form a cycle: 's' above 't' above 's'"],
        ),
        ("  \n", ["the file is empty"]),
        ("# only\n", ["expected either switches or blocks, found neither"]),
    ],
)
def test_slurm_faults_have_line_and_column(faults, text, expected):
    told = faults(text, "slurm", 8)
    assert len(told) == len(expected), told
    for fault, start in zip(told, expected, strict=True):
        assert fault.startswith(start)


def test_gpus_per_node_must_be_said(faults, load):
    assert "--gpus-per-node" in faults(TREE, "slurm")[0]
    with pytest.raises(ValueError, match="from 1 to 1024, found 0"):
        load(TREE, "slurm", 0)


YAML = """\
---
- topology: topo1
  cluster_default: false
  block:
    block_sizes: [2, 4]
    blocks:
      - block: b1
        nodes: node[01-02]
      - block: b2
        nodes: "node[03-04]"
- topology: topo2
  cluster_default: true
  tree:
    switches:
      - switch: root
        children: s[1-2]
      - switch: s1
        nodes: node[01-02]   # two
      - switch: s2
        nodes: node[03-04]
- topology: topo3
  flat: true
"""


def test_what_scontrol_shows_is_read_as_the_file_that_it_is_of(load):
    """Each switch with its level and all nodes below; blocks with sizes, aggregated ones too."""
    tree = "SwitchName=s1 Nodes=a[1-2]\nSwitchName=s2 Nodes=a3\nSwitchName=top Switches=s[1-2]\n"
    shown = (
        "SwitchName=top Level=1 LinkSpeed=1 Nodes=a[1-3] Switches=s[1-2]\n"
        "SwitchName=s1 Level=0 LinkSpeed=1 Nodes=a[1-2]\n"
        "SwitchName=s2 Level=0 LinkSpeed=1 Nodes=a3\n"
    )
    assert set(load(shown, "slurm", 2).domains) == set(load(tree, "slurm", 2).domains)
    blocks = "BlockName=b1 Nodes=a[1-2]\nBlockName=b2 Nodes=a[3-4]\nBlockSizes=2,4\n"
    shown = (
        "BlockName=b1 BlockIndex=0 Nodes=a[1-2] BlockSize=2\n"
        "BlockName=b2 BlockIndex=1 Nodes=a[3-4] BlockSize=2\n"
        "AggregatedBlock=b[1-2] BlockIndex=2 Nodes=a[1-4] BlockSize=4\n"
    )
    assert load(shown, "slurm", 2) == load(blocks, "slurm", 2)


def test_slurm_yaml(load):
    with pytest.warns(ImportNote, match="'?topo2'? is read|default of 3 topologies"):
        topology = load(YAML, "slurm", 2, name="topology.yaml")
    assert topology.levels == ("node", "switch-1", "switch-2")
    assert children(topology, "s2") == ["node03", "node04"]
    with pytest.warns(ImportNote, match="the first of 3 topologies; .*topo3"):
        first = load(YAML.replace("true\n  tree", "false\n  tree"), "slurm", 2, name="t.yml")
    assert first.levels == ("node", "block", "2-blocks")
    assert children(first, "b2") == ["node03", "node04"]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("node[01-02]   #", "node[01-x] #", "line 18, column 21: expected a number or a range"),
        ("s[1-2]", "s[1-3]", "line 16, column 19: there is no switch 's3'; known: root, s1"),
        ("s[1-2]\n", "s[1-2]\n        nodes: x\n", "[1].tree.switches[0]: expected either child"),
        ("switch: s1", "switch: 7", "[1].tree.switches[1].switch: expected text, found 7"),
        ("    switches:", "    switch:", "[1].tree.switches: expected a list of objects, found n"),
        ("  tree:\n", "  tree: [\n", "line 15, column 7: "),
        ("---\n", "--- 7\n", "line 2"),
    ],
)
def test_slurm_yaml_faults(faults, before, after, expected):
    assert before in YAML
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ImportNote)
        told = faults(YAML.replace(before, after), "slurm", 2, name="topology.yaml")
    assert told[0].startswith(expected), told


def test_flat_topology_names_no_nodes(faults):
    assert "flat" in faults("- topology: t\n  flat: true\n", "slurm", 1, name="t.yaml")[0]


# --- Topograph ----------------------------------------------------------------------------------


def instance(name, *layers, nvlink=None):
    attributes = {"attributes": {"nvlink": nvlink}} if nvlink else {}
    return {"id": name, "type": "H100", "network_layers": list(layers), **attributes}


def test_topograph(load):
    instances = [
        instance("i1", "leaf-a", "spine-a", nvlink="nvl-1"),
        instance("i2", "leaf-a", "spine-a", nvlink="nvl-1"),
        instance("i3", "leaf-a", "spine-a"),
        instance("i4", "leaf-b", "spine-a", nvlink="nvl-2"),
        instance("i5", "leaf-c", "spine-b"),
    ]
    topology = load(json.dumps({"instances": instances}), "topograph", 4)
    assert topology.levels == ("node", "nvlink", "switch-1", "switch-2", "switch-3")
    others = [common(topology, "i1/0", f"i{n}/3") for n in range(1, 6)]
    assert others == ["node", "nvlink", "switch-1", "switch-2", "switch-3"]


@pytest.mark.parametrize(
    ("instances", "expected"),
    [
        ([instance("a", "s"), instance("a", "t")], "instances[1].id: 'a' is already the id of"),
        ([instance("a", "s"), instance("s")], "'s' is both an instance and what it is in"),
        ([instance("a", "s", "t"), instance("b", "t", "s")], "the switches form a cycle: "),
        ([{"network_layers": "x"}], "instances[0].id: missing"),
        ([], "instances: must not be empty"),
        (
            [instance("a", "s", "r", nvlink="n"), instance("b", "t", "r", nvlink="n")],
            "NVLink domain 'n' lies below several switches, s, t",
        ),
    ],
)
def test_topograph_faults(faults, instances, expected):
    told = faults(json.dumps({"instances": instances}), "topograph", 1)
    assert told[0].startswith(expected)


DOMAIN, PART = "accelerator.topograph.run/domain", "accelerator.topograph.run/sub-domain"


def labelled(name, *layers, **labels):
    keys = {
        "domain": DOMAIN,
        "part": PART,
        "own": "acme.com/nvl",
        "tier": "fabric.topograph.run/tier-0",
    }
    return instance(name, *layers) | {"labels": {keys[k]: v for k, v in labels.items()}}


def test_labels_of_topograph_are_nvlink_domains(load):
    instances = [
        labelled("i1", "leaf-a", "spine", domain="nvl-1"),
        labelled("i2", "leaf-a", "spine", domain="nvl-1", tier="leaf-a"),
        labelled("i3", "leaf-a", "spine", domain="nvl-2"),
        labelled("i4", "leaf-b", "spine"),
    ]
    topology = load(json.dumps({"instances": instances}), "topograph", 4)
    assert topology.levels == ("node", "nvlink", "switch-1", "switch-2")
    others = [common(topology, "i1/0", f"i{n}/3") for n in range(1, 5)]
    assert others == ["node", "nvlink", "switch-1", "switch-2"]


def test_sub_domains_stand_within_their_domain(load):
    instances = [
        labelled("i1", "leaf", domain="d1", part="0"),
        labelled("i2", "leaf", domain="d1", part="0"),
        labelled("i3", "leaf", domain="d1", part="1"),
        labelled("i4", "leaf", domain="d1"),
        labelled("i5", "leaf", domain="d2", part="0"),
    ]
    topology = load(json.dumps({"instances": instances}), "topograph", 1)
    assert topology.levels == ("node", "nvlink-part", "nvlink", "switch-1")
    others = [common(topology, "i1/0", f"i{n}/0") for n in range(2, 6)]
    assert others == ["nvlink-part", "nvlink", "nvlink", "switch-1"]


def test_labels_that_are_not_understood_are_noted(load):
    instances = [labelled(f"i{n}", "leaf", own="x") for n in range(2)]
    text = json.dumps({"instances": instances})
    with pytest.warns(ImportNote, match="other labels: 'acme.com/nvl' .choose one by --domain-la"):
        assert load(text, "topograph", 1).levels == ("node", "switch-1")
    known = load(text, "topograph", 1, domain_label="acme.com/nvl")
    assert known.levels == ("node", "nvlink", "switch-1")
    with pytest.warns(ImportNote, match="no instance has the label 'acme.com/nlv'"):
        load(text, "topograph", 1, domain_label="acme.com/nlv")


# --- graphs -------------------------------------------------------------------------------------

SMALL = Topology.from_document(
    {
        "levels": ["node", "rack", "cluster"],
        "domains": [
            {"id": "all", "level": "cluster"},
            {"id": "r0", "level": "rack", "parent": "all"},
            {"id": "n0", "level": "node", "parent": "r0", "gpus": ["g0", "g1"]},
            {"id": "n1", "level": "node", "parent": "all", "gpus": ["g2"], "drained": True},
        ],
    }
)


def as_text(graph, file_format):
    if file_format == "node-link":
        return json.dumps(nx.node_link_data(graph, edges="links"))
    return "\n".join(nx.generate_graphml(graph))


@pytest.mark.parametrize("file_format", ["node-link", "graphml"])
def test_graph_of_a_topology_is_read_again(load, file_format):
    assert load(as_text(SMALL.graph(), file_format), file_format) == SMALL


def test_attributes_of_a_graph_that_are_no_object_ended_in_a_traceback(load):
    document = nx.node_link_data(SMALL.graph(), edges="links") | {"graph": ["x"]}
    assert load(json.dumps(document), "node-link") == SMALL


@pytest.mark.parametrize("file_format", ["node-link", "graphml"])
def test_tree_with_capacities_and_without_heights(load, file_format):
    tree = nx.DiGraph([("all", "r0"), ("r0", "n0"), ("all", "n1")])
    levels = {"all": "cluster", "r0": "rack", "n0": "node", "n1": "node"}
    nx.set_node_attributes(tree, levels, "level")
    tree.nodes["n0"]["capacity"] = 3
    topology = load(as_text(tree, file_format), file_format, 1)
    assert topology.levels == ("node", "rack", "cluster")
    assert topology.gpus == ("n0/0", "n0/1", "n0/2", "n1/0")


@pytest.mark.parametrize("file_format", ["node-link", "graphml"])
def test_network_becomes_its_bottleneck_tree(load, file_format):
    graph = nx.Graph()
    graph.add_nodes_from(["a", "b", "c"], kind="node", capacity=2)
    graph.add_edge("a", "sw0", bandwidth=400)
    graph.add_edge("b", "sw0", bandwidth=400)
    graph.add_edge("sw0", "sw1", bandwidth=100)
    graph.add_edge("c", "sw1", bandwidth=400)
    topology = load(as_text(graph, file_format), file_format)
    assert topology.levels == ("node", "bandwidth-400", "bandwidth-100")
    others = [common(topology, "a/0", gpu) for gpu in ("a/1", "b/0", "c/0")]
    assert others == ["node", "bandwidth-400", "bandwidth-100"]


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ("[]", "expected an object with nodes and edges"),
        ('{"nodes": [7], "edges": []}', "expected node-link data"),
        ('{"nodes": 7}', "expected node-link data"),
        ('{"directed": true, "nodes": [{"id": "a"}], "edges": []}', "domain 'a' has no level"),
        ('{"nodes": [{"id": "a"}, {"id": "b"}], "edges": []}', "the graph is in 2 parts"),
        (
            '{"nodes": [{"id": 1}, {"id": 2}], "edges": [{"source": 1, "target": 2}]}',
            "the link between '1' and '2' needs a positive bandwidth, found None",
        ),
        ('{"nodes": [{"id": "a", "kind": "node"}], "edges": []}', "the file does not say how"),
        ('{"nodes": [{"id": "a", "capacity": "x"}], "edges": []}', "'a' needs a whole capacity"),
        ('{"nodes": [], "edges": []}', "the graph is in 0 parts"),
        ("{", "line 1, column 2: "),
    ],
)
def test_node_link_faults(faults, document, expected):
    assert faults(document, "node-link")[0].startswith(expected)


def test_graphml_faults(faults):
    assert faults("<graphml>\n <graph", "graphml")[0].startswith("line 2, column ")
    assert faults("<html></html>", "graphml")[0].startswith("expected GraphML")


def test_domain_in_two_parents(faults):
    graph = SMALL.graph()
    graph.add_edge("all", "n0")
    told = faults(as_text(graph, "node-link"), "node-link")
    assert told == ["'n0' is inside of several, all, r0: not a tree"]


# --- labels -------------------------------------------------------------------------------------

LABELS = """\
node,gpus,rack,block
n0,2,r1,b1
n1,1,r1,b1
n2,2,r1,b2

n3,0,,b2
"""


def test_label_values_are_unique_only_within_their_parent(load):
    topology = load(LABELS, "labels")
    assert topology.levels == ("node", "rack", "block", "cluster")
    assert children(topology, "b1/r1") == ["n0", "n1"]
    assert children(topology, "b2/r1") == ["n2"]
    assert children(topology, "b2") == ["b2/r1", "n3"]
    assert topology.gpus == ("n0/0", "n0/1", "n1/0", "n2/0", "n2/1")
    assert load("node\na\nb\n", "labels", 2).levels == ("node", "cluster")
    one = load("node,cluster\na,x\nb,x", "labels", 1)
    assert children(one) == ["x"]
    assert load("node,cluster\na,x\nb,y", "labels", 1).levels[2] == "all clusters"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name,gpus\na,1", ["line 1, column 1: expected the heading 'node', found 'name'"]),
        ("\nnode,gpus\na,1", ["line 1, column 1: expected the heading 'node', found ''"]),
        ("node,rack,rack\na,1,2", ["line 1: headings must differ"]),
        ("node,gpus\na,x\nb,-1", ["line 2, column 2: expected how many GPUs 'a' ", "line 3, col"]),
        ("node,gpus\na", ["line 2, column 1: 1 cells under 2 headings"]),
        ("node,gpus\n,2", ["line 2, column 1: the node has no name"]),
        ('node,gpus\n"a,2', ["line 2: unexpected end of data"]),
        ("node,rack\na,r", ["the file does not say how many GPUs"]),
        ("node,gpus\na,1\na,1", ["line 3, column 1: 'a' is in line 2 too"]),
        ("node,gpus\na,0\nb,0", ["domains: no GPUs in the cluster"]),
    ],
)
def test_label_faults(faults, text, expected):
    told = faults(text, "labels")
    assert len(told) == len(expected), told
    for fault, start in zip(told, expected, strict=True):
        assert fault.startswith(start)


# --- nvidia-smi ---------------------------------------------------------------------------------

MATRIX = """\
\t\x1b[4mGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tCPU Affinity\tNUMA Affinity\x1b[0m
GPU0\t X \tNV2\tPHB\tSYS\tPIX\t0-23,48-71\t0
GPU1\tNV2\t X \tPHB\tSYS\tNODE\t0-23,48-71\t0
GPU2\tPHB\tPHB\t X \tSYS\tSYS\t24-47\t1
GPU3\tSYS\tSYS\tSYS\t X \tSYS\t24-47\t1
NIC0\tPIX\tNODE\tSYS\tSYS\t X

Legend:

  X    = Self
"""


def test_nvidia_smi(load):
    topology = load(MATRIX, "nvidia-smi")
    assert topology.levels == ("NV2", "PHB", "SYS")
    assert topology.gpus == ("node/0", "node/1", "node/2", "node/3")
    others = [common(topology, "node/0", f"node/{n}") for n in (1, 2, 3)]
    assert others == ["NV2", "PHB", "SYS"]


def matrix(rows):
    header = " ".join(f"GPU{n}" for n in range(len(rows)))
    return header + "\n" + "\n".join(f"GPU{n} {row}" for n, row in enumerate(rows))


def test_nvlinks_through_another_gpu_are_no_way(load):
    """A gang of GPUs 0 and 3 has neither 1 nor 2 to send through."""
    text = matrix(["X NV2 SYS SYS", "NV2 X NV1 SOC", "SYS NV1 X NV2", "SYS SYS NV2 X"])
    topology = load(text, "nvidia-smi", 4)
    assert topology.levels == ("NV2", "SYS")
    assert common(topology, "node/0", "node/3") == "SYS"
    assert load("GPU0 CPU Affinity\nGPU0 X 0-3", "nvidia-smi").gpus == ("node/0",)


CUBE = ["01 02 03 12 13 23 45 46 47 56 57 67", "04 15 26 37"]
"""A hybrid cube mesh: two quads, all of whose GPUs are linked, and a link from each to its twin."""


def test_gpus_of_a_cube_mesh_without_a_link_are_far(load):
    links = {frozenset(map(int, pair)) for part in CUBE for pair in part.split()}

    def kind(i, j):
        return "X" if i == j else "NV1" if frozenset((i, j)) in links else "SYS"

    rows = [" ".join(kind(i, j) for j in range(8)) for i in range(8)]
    topology = load(matrix(rows), "nvidia-smi")
    assert topology.levels == ("NV1", "SYS")
    for i, j in combinations(range(8), 2):
        near = common(topology, f"node/{i}", f"node/{j}")
        assert near == ("NV1" if (i < 4) == (j < 4) else "SYS")
        assert near == "SYS" or kind(i, j) == "NV1"


@given(st.integers(2, 7), st.data())
def test_no_pair_is_said_to_be_nearer_than_it_is(tmp_path_factory, count, data):
    order = ["NV4", "NV2", "NV1", "PIX", "PHB", "SYS"]
    kinds = {
        frozenset(pair): data.draw(st.sampled_from(order)) for pair in combinations(range(count), 2)
    }
    rows = [
        " ".join("X" if i == j else kinds[frozenset((i, j))] for j in range(count))
        for i in range(count)
    ]
    path = tmp_path_factory.getbasetemp() / "drawn-matrix"
    path.write_text(matrix(rows))
    topology = import_topology(path, "nvidia-smi")
    for i, j in combinations(range(count), 2):
        level = common(topology, f"node/{i}", f"node/{j}")
        assert order.index(level) >= order.index(kinds[frozenset((i, j))])


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("PHB\t X", "NVX\t X", "line 4, column 10: 'NVX' cannot connect GPU2 with GPU1"),
        ("PHB\t X", "PIX\t X", "line 4, column 10: PIX, but PHB from GPU1 to GPU2"),
        ("GPU3\tSYS", "GPU9\tSYS", "line 5, column 1: GPU9 has no cell for each of 4 GPUs"),
        ("GPU3\tSYS", "NIC3\tSYS", "line 1, column 1: there is no line for GPU3"),
        ("GPU0\tGPU1", "a\tb", "line 1, column 1: expected a line that begins with GPU0"),
    ],
)
def test_nvidia_faults(faults, before, after, expected):
    assert before in MATRIX
    assert faults(MATRIX.replace(before, after), "nvidia-smi")[0].startswith(expected)


def test_another_count_of_gpus_is_refused(faults):
    assert faults(MATRIX, "nvidia-smi", 8) == ["has 4 GPUs, not 8 per node"]


# --- files and commands -------------------------------------------------------------------------


@pytest.mark.parametrize("file_format", FORMATS)
@given(junk=st.binary(max_size=40))
def test_junk_is_refused(tmp_path_factory, file_format, junk):
    path = tmp_path_factory.getbasetemp() / f"junk-{file_format}"
    path.write_bytes(junk)
    with pytest.raises(InstanceError):
        import_topology(path, file_format, 1)


def test_formats_of_the_command_are_those_of_the_library():
    told = "".join(run("import", "--help").output.replace("│", "").split())
    assert all(name in told for name in FORMATS)
    with pytest.raises(UnknownNameError, match="did you mean 'slurm'"):
        import_topology("x", "slum")


def run(*arguments):
    return CliRunner(env={"COLUMNS": "80"}).invoke(app, ["topology", *map(str, arguments)])


def test_import_and_show(tmp_path):
    source, target = tmp_path / "topology.conf", tmp_path / "cluster.json"
    source.write_text(TREE)
    done = run("import", source, "--input-format", "slurm", "--gpus-per-node", 2, "-o", target)
    assert done.exit_code == 0
    assert read_topology(target) == import_topology(source, "slurm", 2)
    shown = run("show", target)
    assert shown.exit_code == 0
    assert shown.stdout == done.stdout
    rows = [line.split() for line in shown.stdout.splitlines()]
    assert rows[2:] == [
        ["switch-2", "1", "22", "22"],
        ["switch-1", "3", "22", "4", "to", "12"],
        ["node", "11", "22", "2"],
    ]
    printed = run("import", source, "--input-format", "slurm", "--gpus-per-node", 2).stdout
    assert printed == target.read_text()


def test_notes_are_shown_by_the_command(tmp_path):
    source, target = tmp_path / "t.yaml", tmp_path / "cluster.json"
    source.write_text(YAML)
    arguments = ["import", source, "--input-format", "slurm", "--gpus-per-node", 2, "-o", target]
    done = run(*arguments)
    assert done.exit_code == 0
    assert "note: " in done.stderr
    assert "default of 3 topologies" in done.stderr.replace("\n", " ")
    chosen = run(*arguments, "--topology", "topo1")
    assert (chosen.exit_code, chosen.stderr) == (0, "")
    assert read_topology(target).levels == ("node", "block", "2-blocks")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("import", "nowhere.conf", "--input-format", "slurm"), "nowhere.conf: No such file"),
        (("import", ".", "--input-format", "slurm"), "is a folder"),
        (
            ("import", "bad.conf", "--input-format", "slurm"),
            "bad.conf: 1 fault\n  line 1, column 21: ",
        ),
        (
            ("import", "bad.conf", "--input-format", "slum"),
            "no format 'slum'; did you mean 'slurm'",
        ),
        (("show", "bad.conf"), "bad.conf: 1 fault\n  line 1, column 1: "),
        (("show", "nowhere.json"), "nowhere.json: No such file"),
    ],
)
def test_bad_input_is_one_message(tmp_path, monkeypatch, arguments, text):
    monkeypatch.chdir(tmp_path)
    Path("bad.conf").write_text("SwitchName=s Nodes=n[0-\n")
    done = run(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert text in done.stderr
    assert "Traceback" not in done.output


@pytest.mark.parametrize("name", ["import", "show"])
def test_help_has_an_example(name):
    shown = run(name, "--help").stdout
    assert f"Example: optsched topology {name}" in shown
    assert max(map(len, shown.splitlines())) <= 80
