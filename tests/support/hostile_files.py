"""Files that are small, or claim to be, and would cost far more to read than they hold.

Each is made from a count, so that the suite can have them small and CI large; none is stored.
"""

import gzip
import io
import json
import tarfile
from collections.abc import Callable
from typing import NamedTuple


class Hostile(NamedTuple):
    """A file: its name, who reads it, with what, and what is in it."""

    name: str
    reader: str
    arguments: tuple
    content: Callable[[int], bytes]
    count: int


HOSTILE: list[Hostile] = []
SCHEMAS = ("boa/1", "pal/1", "eaco/1", "sia/1")


def hostile(name, reader, *arguments, count=100_000):
    def register(content):
        HOSTILE.append(Hostile(name, reader, arguments, content, count))
        return content

    return register


def as_json(document):
    return json.dumps(document).encode()


def instance(schema, **fields):
    return as_json({"schema": f"optsched/{schema}", **fields})


# --- JSON of any kind ---------------------------------------------------------------------------

for number, schema in enumerate(SCHEMAS):

    @hostile(f"keys-{number}.json", "read", count=1_000_000)
    def _keys(n, schema=schema):
        return instance(schema, **{f"budget{k}": k for k in range(n)})

    @hostile(f"name-{number}.json", "read", count=5_000_000)
    def _name(n, schema=schema):
        return instance(schema, name="n" * n, **{"k" * n: 1})

    @hostile(f"jobs-{number}.json", "read", count=300_000)
    def _jobs(n, schema=schema):
        return instance(schema, jobs=[{}] * n, classes=[{}] * n)

    @hostile(f"unknown-{number}.json", "read", count=20_000)
    def _unknown(n, schema=schema):
        jobs = [
            {"id": f"j{k}", "type": f"u{k}", "model": f"u{k}", "current": [f"g{k}"], "gpus": 1}
            for k in range(n)
        ]
        types = [{"id": f"t{k}", "gpu": f"h{k}"} for k in range(n)]
        known = {f"a{k}": [1.0] for k in range(n)}
        node = {"id": "a", "level": "node", "gpus": [f"c{k}" for k in range(n)]}
        topology = {"levels": ["node"], "domains": [node]}
        return instance(
            schema, jobs=jobs, types=types, nodes=types, gpus=known, locality=known,
            topology=topology, unavailable=[f"x{k}" for k in range(n)],
        )  # fmt: skip


@hostile("deep.json", "read")
def _deep(n):
    return b"[" * n + b"]" * n


@hostile("deep-keys.json", "read", count=50_000)
def _deep_keys(n):
    return b'{"a":' * n + b"1" + b"}" * n


@hostile("digits.json", "read", count=5_000_000)
def _digits(n):
    return b'{"schema": ' + b"9" * n + b"}"


@hostile("twice.json", "read", count=300_000)
def _twice(n):
    return b"{" + b",".join(b'"k%d":1,"k%d":2' % (k, k) for k in range(n)) + b"}"


@hostile("syntax.json", "read", count=5_000_000)
def _syntax(n):
    return b'{"a":\n' * (n // 6)


@hostile("schema.json", "read", count=5_000_000)
def _schema(n):
    keys = {f"schem{k}": 1 for k in range(n // 50)}
    return as_json({"schema": "optsched/" + "a" * 90_000} | keys)


# --- topologies ---------------------------------------------------------------------------------


@hostile("chain.json", "read_topology", count=50_000)
def _chain(n):
    domains = [
        {"id": f"d{k}", "level": "node", **({"parent": f"d{k - 1}"} if k else {})} for k in range(n)
    ]
    return as_json({"schema": "optsched/topology/1", "levels": ["node"], "domains": domains})


@hostile("ring.json", "read_topology", count=50_000)
def _ring(n):
    domains = [{"id": f"d{k}", "level": "node", "parent": f"d{(k + 1) % n}"} for k in range(n)]
    return as_json({"schema": "optsched/topology/1", "levels": ["node"], "domains": domains})


@hostile("strangers.json", "read_topology", count=50_000)
def _strangers(n):
    domains = [{"id": f"d{k}", "level": "nod", "parent": f"e{k}"} for k in range(n)]
    return as_json({"schema": "optsched/topology/1", "levels": ["node"], "domains": domains})


@hostile("ranges.conf", "import_topology", "slurm", 1024)
def _ranges(n):
    return b"SwitchName=s Nodes=n[1-9999999]\n"


@hostile("many-gpus.conf", "import_topology", "slurm", 1024)
def _many_gpus(n):
    return b"SwitchName=s Nodes=n[1-65536]\n"


@hostile("many-ranges.conf", "import_topology", "slurm", 1, count=50_000)
def _many_ranges(n):
    rows = (b"SwitchName=s%d Nodes=n%d[1-65536]\n" % (k, k) for k in range(n))
    return b"".join(rows)


@hostile("long-range.conf", "import_topology", "slurm", 1, count=1_000_000)
def _long_range(n):
    return b"SwitchName=s Nodes=" + b"n" * n + b"[1-65536]\n"


@hostile("brackets.conf", "import_topology", "slurm", 1, count=200_000)
def _brackets(n):
    return b"SwitchName=s Nodes=n" + b"[1]" * n + b"\n"


@hostile("lines.conf", "import_topology", "slurm", 2, count=50_000)
def _lines(n):
    leaves = b"".join(b"SwitchName=l%d Nodes=n%d\n" % (k, k) for k in range(n))
    return leaves + b"SwitchName=top Switches=l[0-%d]\n" % min(n - 1, 65_000)


@hostile("faulty-lines.conf", "import_topology", "slurm", 2, count=50_000)
def _faulty_lines(n):
    return b"".join(b"SwitchNam=l%d Nodez=n%d\n" % (k, k) for k in range(n))


@hostile("unknown-switches.conf", "import_topology", "slurm", 2, count=50_000)
def _unknown_switches(n):
    rows = (b"SwitchName=l%d Switches=m%d\n" % (k, k) for k in range(n))
    return b"".join(rows) + b"SwitchName=x Nodes=a\n"


@hostile("switch-chain.conf", "import_topology", "slurm", 2, count=50_000)
def _switch_chain(n):
    rows = (b"SwitchName=l%d Switches=l%d\n" % (k + 1, k) for k in range(n))
    return b"SwitchName=l0 Nodes=a\n" + b"".join(rows)


@hostile("empty-chain.conf", "import_topology", "slurm", 2, count=50_000)
def _empty_chain(n):
    rows = (b"SwitchName=l%d Switches=l%d\n" % (k + 1, k) for k in range(n))
    return b"SwitchName=x Nodes=a\nSwitchName=l0\n" + b"".join(rows)


@hostile("switch-ring.conf", "import_topology", "slurm", 2, count=50_000)
def _switch_ring(n):
    rows = (b"SwitchName=l%d Switches=l%d\n" % ((k + 1) % n, k) for k in range(n))
    return b"SwitchName=x Nodes=a\nSwitchName=y Switches=x,l0\n" + b"".join(rows)


@hostile("spines.conf", "import_topology", "slurm", 2, count=300)
def _spines(n):
    leaves = b"".join(b"SwitchName=l%d Nodes=n%d\n" % (k, k) for k in range(n))
    spines = b"".join(b"SwitchName=s%d Switches=l[0-%d]\n" % (k, n - 1) for k in range(n))
    return leaves + spines


@hostile("blocks.conf", "import_topology", "slurm", 1, count=50_000)
def _blocks(n):
    rows = b"".join(b"BlockName=b%d Nodes=n%d\n" % (k, k) for k in range(n))
    sizes = b",".join(b"%d" % (1 << k) for k in range(29))
    return rows + b"BlockSizes=" + sizes + b"\n"


@hostile("key.conf", "import_topology", "slurm", 1, count=5_000_000)
def _key(n):
    return b"S" * n + b"=1\n" + b"SwitchName=" + b"s" * n + b" Nodes=" + b"," * n + b"\n"


@hostile("laughs.yaml", "import_topology", "slurm", 1, count=20)
def _laughs(n):
    rows = ["- &a0 {topology: t, tree: {switches: [{switch: s, nodes: a}]}}"]
    rows += [f"- &a{k + 1} [{', '.join([f'*a{k}'] * 9)}]" for k in range(n)]
    return "\n".join(rows).encode()


@hostile("merges.yaml", "import_topology", "slurm", 1, count=20)
def _merges(n):
    rows = ["- &a0 {topology: t}"]
    rows += [f"- &a{k + 1} {{'<<': [{', '.join([f'*a{k}'] * 9)}]}}" for k in range(n)]
    return "\n".join(rows).replace("'", "").encode()


@hostile("deep.yaml", "import_topology", "slurm", 1)
def _deep_yaml(n):
    return b"[" * n


@hostile("dashes.yaml", "import_topology", "slurm", 1)
def _dashes(n):
    return b"- " * n


@hostile("lines.yaml", "import_topology", "slurm", 1, count=50_000)
def _lines_yaml(n):
    rows = (f"     - switch: s{k}\n       nodes: n{k}\n" for k in range(n))
    top = f"     - switch: top\n       children: s[0-{n - 1}]\n"
    return ("- topology: t\n  tree:\n    switches:\n" + "".join(rows) + top).encode()


@hostile("matrix.txt", "import_topology", "nvidia-smi", None, count=4_000)
def _matrix(n):
    names = [f"GPU{k}" for k in range(n)]
    rows = ("\t".join([names[k], *("X" if k == j else "SYS" for j in range(n))]) for k in range(n))
    return "\n".join(["\t" + "\t".join(names), *rows]).encode()


@hostile("matrix-256.txt", "import_topology", "nvidia-smi", None, count=256)
def _matrix_256(n):
    return _matrix(n)


@hostile("wide-matrix.txt", "import_topology", "nvidia-smi", None, count=200_000)
def _wide_matrix(n):
    return b"\tGPU0\tGPU1\n" + b"GPU0\tX\tSYS\t" + b"PHB\t" * n + b"\n" * n


@hostile("rows.csv", "import_topology", "labels", None, count=200_000)
def _rows(n):
    rows = (f"n{k},1,r{k % 100},{k % 5}\n" for k in range(n))
    return ("node,gpus,rack,row\n" + "".join(rows)).encode()


@hostile("gpus.csv", "import_topology", "labels", None, count=50_000)
def _gpus(n):
    return ("node,gpus\n" + "".join(f"n{k},99999\n" for k in range(n))).encode()


@hostile("columns.csv", "import_topology", "labels", 8, count=200_000)
def _columns(n):
    names = ",".join(f"l{k}" for k in range(n))
    return (f"node,{names}\n" + "a" + ",x" * n + "\n").encode()


@hostile("bad-rows.csv", "import_topology", "labels", None, count=200_000)
def _bad_rows(n):
    return ("node,gpus,rack\n" + "n,x,r\n" * n).encode()


@hostile("nodes.json", "import_topology", "node-link", None, count=50_000)
def _nodes(n):
    nodes = [{"id": k, "level": f"l{k}", "capacity": 100_000} for k in range(n)]
    edges = [{"source": k, "target": k + 1} for k in range(n - 1)]
    return as_json({"directed": True, "multigraph": False, "nodes": nodes, "edges": edges})


@hostile("network.json", "import_topology", "node-link", None, count=20_000)
def _network(n):
    nodes = [{"id": k, "capacity": 1} for k in range(n)]
    edges = [{"source": k, "target": k + 1, "bandwidth": k + 1} for k in range(n - 1)]
    return as_json({"directed": False, "multigraph": False, "nodes": nodes, "edges": edges})


@hostile("laughs.graphml", "import_topology", "graphml", None, count=12)
def _laughs_xml(n):
    rows = ['<!ENTITY a0 "ha">']
    rows += [f'<!ENTITY a{k + 1} "{f"&a{k};" * 10}">' for k in range(n)]
    return f"<!DOCTYPE graphml [{''.join(rows)}]><graphml>&a{n};</graphml>".encode()


@hostile("topograph.json", "import_topology", "topograph", 8, count=50_000)
def _topograph(n):
    instances = [{"id": f"i{k}", "network_layers": [f"l{k}", f"m{k}"]} for k in range(n)]
    return as_json({"instances": instances})


@hostile("layers.json", "import_topology", "topograph", 8, count=50_000)
def _layers(n):
    return as_json({"instances": [{"id": "a", "network_layers": [f"l{k}" for k in range(n)]}]})


@hostile("profile.csv", "read_profile_csv", "persistent", count=100_000)
def _profile(n):
    return ("gpu," + ",".join(f"V_{k}" for k in range(n)) + "\n" + "a" + ",1" * n + "\n").encode()


@hostile("profile-rows.csv", "read_profile_csv", "persistent", count=200_000)
def _profile_rows(n):
    return ("gpu,V_A\n" + "a,x\n" * n).encode()


# --- traces -------------------------------------------------------------------------------------


@hostile("bomb.csv.gz", "import_trace", "philly-csv", count=1 << 30)
def _bomb(n):
    head = b"timestamp,duration,num_gpus\n"
    return gzip.compress(head) + gzip.compress(b"\0" * (n // 16), 9) * 16


@hostile("rows.csv.gz", "import_trace", "philly-csv", count=2_700_000)
def _bomb_of_rows(n):
    return gzip.compress(b"timestamp,duration,num_gpus\n" + b"1,1,1\n" * n, 9)


@hostile("members.gz", "import_trace", "slurm", count=50_000)
def _members(n):
    return gzip.compress(b"", mtime=0) * n


@hostile("many.tar", "import_trace", "slurm", count=20_000)
def _many_tar(n):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for k in range(n):
            archive.addfile(tarfile.TarInfo(f"m{k}"))
    return gzip.compress(out.getvalue())


@hostile("sparse.tar", "import_trace", "slurm")
def _sparse_tar(n):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        entry = tarfile.TarInfo("huge")
        entry.type, entry.pax_headers = tarfile.REGTYPE, {
            "GNU.sparse.major": "0", "GNU.sparse.minor": "1", "GNU.sparse.size": str(1 << 40),
            "GNU.sparse.map": "0,0", "GNU.sparse.numblocks": "1",
        }  # fmt: skip
        archive.addfile(entry)
    return out.getvalue()


@hostile("columns-trace.csv", "import_trace", "helios", count=1_000_000)
def _columns_trace(n):
    return ",".join(f"c{k}" for k in range(n)).encode()


@hostile("faults.csv", "import_trace", "philly-csv", count=300_000)
def _faulty_trace(n):
    return b"timestamp,duration,num_gpus\n" + b"x,y,z\n" * n


@hostile("deep.log", "import_trace", "philly")
def _deep_log(n):
    return b"[" * n


@hostile("entries.log", "import_trace", "philly", count=200_000)
def _entries(n):
    return b"[" + b",".join([b"{}"] * n) + b"]"


@hostile("trace.json", "read_trace", count=1_000_000)
def _trace(n):
    return as_json({"schema": "optsched/trace/1", "jobs": {f"c{k}": [] for k in range(n)}})


# --- scenarios ----------------------------------------------------------------------------------


@hostile("scenario.json", "read_scenario", count=1_000_000)
def _scenario(n):
    models = {f"m{k}": {"application_class": f"c{k}"} for k in range(n // 20)}
    trace = {"file": "/dev/zero"}
    return instance("scenario/1", nodes=n, gpus_per_node=n, trace=trace, models=models)
