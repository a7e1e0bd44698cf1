"""Hostile files: small ones that would cost much, and what must not be opened at all.

The files are made here, with a share of their counts; `ci` has them whole. They are read in a
child, with 2 GiB of address space and limits of CPU time ten times what the slowest one takes.
"""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings
from typer.testing import CliRunner

import optsched
from optsched.certificates.bound_tree import tree_faults
from optsched.cli.main import app
from optsched.cluster import import_topology
from optsched.documents.faults import InstanceError, near_name
from optsched.documents.files import decompressed, read_bytes
from optsched.documents.limits import LIMITS
from optsched.sia.verify.certificate import ChoiceCertificate
from optsched.traces import import_trace
from tests.support.hostile_files import HOSTILE
from tests.support.limited_reading import SECONDS

ROOT = Path(__file__).parent.parent
DEEP = settings().max_examples > 100
FITTING = {
    "lines.conf", "empty-chain.conf", "spines.conf", "blocks.conf", "lines.yaml", "matrix-256.txt",
    "rows.csv", "topograph.json", *(["matrix.txt"] if not DEEP else []),
}  # fmt: skip


def test_a_small_file_takes_little_time_and_memory_whatever_it_holds(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.limited_reading", tmp_path, "1" if DEEP else "0.01"],
        cwd=ROOT, capture_output=True, text=True, check=False, env=os.environ | {"PYTHONPATH": "."},
    )  # fmt: skip
    told = {name: rest for name, *rest in map(json.loads, done.stdout.splitlines())}
    assert set(told) == {each.name for each in HOSTILE}, done.stderr
    assert not {name: rest for name, rest in told.items() if rest[1] == "traceback"}
    assert {name for name, rest in told.items() if rest[1] == "read"} <= FITTING
    assert not {name: rest for name, rest in told.items() if rest[3] > SECONDS}


@pytest.mark.parametrize(
    "read",
    [
        optsched.read,
        lambda path: import_topology(path, "slurm", 8),
        lambda path: import_topology(path, "node-link", 8),
        lambda path: import_trace(path, "slurm"),
    ],
)
def test_a_pipe_or_a_device_is_refused_and_never_waited_for(tmp_path, read):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(InstanceError, match="is a pipe, expected "):
        read(pipe)
    with pytest.raises(InstanceError, match="is a device, expected "):
        read(Path("/dev/zero"))


def test_a_file_larger_than_the_limit_is_refused(tmp_path):
    path = tmp_path / "sparse.json"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(InstanceError, match="is larger than 3 MiB, the limit"):
        read_bytes(path, most=3 << 20)


def test_what_grows_a_thousandfold_is_refused_unless_it_stays_small():
    small = gzip.compress(b"\0" * LIMITS.expansion_bytes)
    assert len(decompressed(small, "a")) == LIMITS.expansion_bytes
    assert decompressed(small[:20] + small[20:], "a") == b"\0" * LIMITS.expansion_bytes
    with pytest.raises(InstanceError, match="holds more than 16 MiB when it is decompressed"):
        decompressed(small + gzip.compress(b"\0"), "a")
    assert decompressed(gzip.compress(b"a") + gzip.compress(b"b") + b"\0" * 9, "a") == b"ab"
    with pytest.raises(InstanceError, match="other data follow its end"):
        decompressed(gzip.compress(b"a") + b"b", "a")


def test_hostlists_that_stand_for_two_thousand_names_are_no_longer_refused(tmp_path):
    path = tmp_path / "topology.conf"
    path.write_text("SwitchName=s Nodes=a[1-1000],b[1-1000]\n")
    assert len(import_topology(path, "slurm", 1).gpus) == 2000


def test_near_names_are_not_looked_for_beyond_what_a_person_types():
    assert near_name("budget", ["budged"]) == "budged"
    assert near_name("b" * 1000, ["b" * 1000]) is None
    assert near_name("budget", (f"x{n}" for n in range(10**6))) is None


def test_a_chain_of_30_000_splits_is_refused_before_it_is_followed():
    nodes = []
    for n in range(30_000):
        nodes += [{"rule": 0, "at_most": 0, "cases": [2 * n + 1, 2 * n + 2]}, {"prices": [1.0]}]
    nodes.append({"prices": [1.0]})
    certificate = ChoiceCertificate.model_validate({"bound": 1.0, "nodes": nodes})
    (fault,) = tree_faults(certificate.nodes, 1)
    assert "splits in all, 10,000,000 are followed at most" in fault.message


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("solve", "philly-small"), "philly-small is a scenario, no instance: use `optsched rol"),
        (("rollout", "boa/hand"), "boa/hand is an instance, no scenario: use `optsched solve`"),
        (
            ("trace", "show", "sacct"),
            "expected JSON; files of other programs need --input-format, or",
        ),
        (
            ("rollout", "philly-small", "--trace", "sacct"),
            "files of other programs need --input-format",
        ),
        (("topology", "show", "sacct"), "`optsched topology import` reads files of other"),
        (("topology", "show", "boa"), "it is an instance: `optsched solve` takes it"),
        (("trace", "show", "boa"), "it is an instance: `optsched solve` takes it"),
        (("solve", "trace"), "is unknown; it is a trace: `optsched trace show` takes it"),
        (("solve", "newer"), "is unknown; it was written by a newer optsched than this one"),
        (("solve", "misspelt"), "is unknown; did you mean 'optsched/boa/1'?"),
        (("rollout", "newer-scenario"), "it was written by a newer optsched than this one"),
    ],
)
def test_a_file_of_another_kind_is_told_what_takes_it(tmp_path, monkeypatch, arguments, text):
    monkeypatch.chdir(tmp_path)
    Path("sacct").write_text("JobID|State\n1|COMPLETED\n")
    Path("boa").write_text(optsched.read("boa/hand").to_json())
    for name, schema in (
        ("trace", "trace/1"), ("newer", "boa/2"), ("misspelt", "bao/1"),
        ("newer-scenario", "scenario/9"),
    ):  # fmt: skip
        Path(name).write_text(json.dumps({"schema": f"optsched/{schema}"}))
    done = CliRunner().invoke(app, arguments)
    assert (done.exit_code, text in done.stderr) == (2, True), done.stderr
