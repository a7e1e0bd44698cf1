"""The kinds of files that optsched reads: how a good one is made, and how it is read."""

from __future__ import annotations

import hashlib
import json
import tempfile
import warnings
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer.testing

import optsched
from benchmarks.mutations.samples import PROFILE, THROUGHPUTS, TOPOLOGIES, TRACES
from optsched.cluster import read_profile_csv
from optsched.eaco.gavel_throughputs import read_gavel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from optsched.rollout import Scenario

# Each call would build all commands anew, most of its time.
typer.testing._get_command = cache(typer.testing._get_command)  # type: ignore[attr-defined]

SOLVED = ("boa/hand", "pal/tiny", "eaco/paper-four", "sia/hand")
HERE, OUT = "{}", "{}.out"  # the mutated file, and what may be written


class Unfit(Exception):
    """A reading that ended as none may: a traceback, or control characters on the terminal."""


@dataclass(frozen=True)
class Kind:
    """A kind of file.

    Attributes
    ----------
    name
        Of the file, its ending included.
    content
        A good file.
    read
        Reads the file at a path; may raise what the command line turns into a line.
    part
        In JSON, the key of what is mutated; all of it if empty.
    beside
        Other files in its folder, by name.
    signed
        Gives a mutated file the checksum that it needs to be looked at.
    """

    name: str
    content: bytes
    read: Callable[[Path], object]
    part: str = ""
    beside: dict[str, bytes] = field(default_factory=dict)
    signed: Callable[[bytes], bytes] = bytes


def command(*words: str) -> Callable[[Path], object]:
    """Return what runs a command of `optsched` on a path."""

    def run(path: Path) -> object:
        from optsched.cli.main import app

        told = typer.testing.CliRunner().invoke(app, [word.format(path) for word in words])
        if told.exception is not None and not isinstance(told.exception, SystemExit):
            raise told.exception
        raw = [sign for sign in told.output if is_control(sign)]
        if raw:
            raise Unfit(f"control characters {raw[:5]!r} on the terminal")
        return told.exit_code

    return run


def is_control(sign: str) -> bool:
    """Tell whether a character may move the cursor, or turn the direction of text."""
    code = ord(sign)
    is_c0_or_c1 = code < 32 or 127 <= code < 160
    return (is_c0_or_c1 and sign != "\n") or 0x202A <= code <= 0x202E or 0x2066 <= code <= 0x2069


def kinds(folder: Path) -> list[Kind]:
    """Return all kinds; good files are made in a folder, results by solving small instances."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [*_instances(), *_results(), *_frontiers(), *_foreign(), *_rollouts(folder)]


def _instances() -> Iterator[Kind]:
    rules = {"boa": "equal-width", "pal": "packed", "eaco": "fifo-exclusive", "sia": "greedy"}
    for name in (*SOLVED, "boa/six-models", "eaco/running", "eaco/gavel-v100", "pal/sticky"):
        problem = name.split("/")[0]
        methods = optsched.registry.problem(problem).methods
        cheap = rules[problem]
        if cheap not in {method.name for method in methods}:
            cheap = next(method.name for method in methods if method.kind == "greedy")
        solve = ("solve", HERE, "--method", cheap, "--no-compare", "--time-limit", "0.5")
        yield Kind(f"{name.replace('/', '-')}.json", _bundled(name), command(*solve))


def _bundled(name: str) -> bytes:
    return optsched.instance.find(name).read_bytes()


def _results() -> Iterator[Kind]:
    for name in SOLVED:
        text = optsched.solve(optsched.read(name), time_limit_s=20).to_json().encode()
        label = f"{name.replace('/', '-')}.result.json"
        yield Kind(label, text, command("verify", name, HERE))
        yield Kind(f"check-{label}", text, command("check", name, HERE))
        for part in ("certificate", "plan"):
            yield Kind(f"{part}-{label}", text, command("verify", name, HERE), part)


def _frontiers() -> Iterator[Kind]:
    from optsched import frontier

    swept = frontier(optsched.read("boa/hand"), "budget_gpus", [20.0, 24.0])
    text = swept.to_json().encode()
    yield Kind("frontier.json", text, command("verify", "boa/hand", HERE))
    yield Kind("points-frontier.json", text, command("verify", "boa/hand", HERE), "points")
    yield Kind("report-frontier.json", text, command("report", HERE, "-o", OUT))


def _foreign() -> Iterator[Kind]:
    for name, text in TRACES.items():
        words = ["trace", "import", HERE, "--input-format", name, "-o", OUT]
        beside = {}
        if name == "gavel":
            words += ["--option", "throughputs={}.speeds"]
            beside = {".speeds": THROUGHPUTS.encode()}
        yield Kind(f"{name}.txt", text.encode(), command(*words), beside=beside)
    for (name, ending), text in TOPOLOGIES.items():
        words = ["topology", "import", HERE, "--input-format", name]
        words += [] if name == "nvidia-smi" else ["--gpus-per-node", "2"]
        yield Kind(f"{name}{ending}", text.encode(), command(*words))
    yield Kind("profile.csv", PROFILE.encode(), lambda path: read_profile_csv(path, "persistent"))
    yield Kind("speeds.json", THROUGHPUTS.encode(), lambda path: read_gavel(path, "v100"))


def _rollouts(folder: Path) -> Iterator[Kind]:
    from optsched.cluster import import_topology
    from optsched.rollout.run import simulate
    from optsched.rollout.scenario_files import find_scenario, read_scenario
    from optsched.traces import generate, write_trace

    for name in ("philly-small", "eaco-28", "pal-64"):
        text = find_scenario(name).read_bytes()
        yield Kind(f"{name}.scenario.json", text, read_scenario)
    jobs = folder / "good.trace"
    write_trace(generate("philly-atc19", 12, 0), jobs)
    yield Kind("trace.json", jobs.read_bytes(), command("trace", "show", HERE))
    conf = folder / "good.conf"
    conf.write_text(TOPOLOGIES["slurm", ".conf"])
    topology = import_topology(conf, "slurm", 2).to_json().encode()
    yield Kind("topology.json", topology, command("topology", "show", HERE))
    scenario = read_scenario("philly-small").changed({"trace.jobs": 12})
    yield from _checkpoints(scenario, folder / "stopped")
    simulate(scenario, "fifo", output=folder / "out", keep_intervals=True)
    files = {path.name: path.read_bytes() for path in (folder / "out").iterdir()}
    for name in ("summary.json", "jobs.csv", "epochs.csv", "intervals.csv"):
        rest = {f"/{other}": text for other, text in files.items() if other != name}
        yield Kind(name, files[name], _report, beside=rest)


def _checkpoints(scenario: Scenario, folder: Path) -> Iterator[Kind]:
    """Yield the checkpoints of rollouts that were stopped half way, as they are and signed anew."""
    from optsched.rollout.checkpoints.checkpoint import NAME
    from optsched.rollout.run import simulate
    from optsched.rollout.settings import SETTINGS

    class Stopped(Exception):
        """The rollout was stopped."""

    def stop(share: float) -> None:
        if share > 0.4:
            raise Stopped

    before = dict(vars(SETTINGS))
    vars(SETTINGS).update(save_every_s=0.0, tell_every_s=0.0, save_share=1e9)
    try:
        for policy in ("fifo:backfill=true", "las"):
            with suppress(Stopped):
                simulate(scenario, policy, output=folder / policy[:3], progress=stop)
            content = (folder / policy[:3] / NAME).read_bytes()
            resume = partial(_resumed, scenario, policy)
            yield Kind(f"{policy[:3]}.checkpoint", content, resume)
            yield Kind(f"{policy[:3]}.signed", content, resume, "rollout", signed=_signed)
    finally:
        vars(SETTINGS).update(before)


def _resumed(scenario: Scenario, policy: str, path: Path) -> None:
    from optsched.rollout.checkpoints.checkpoint import NAME
    from optsched.rollout.run import simulate

    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        (Path(folder) / NAME).write_bytes(path.read_bytes())
        simulate(scenario, policy, output=folder, resume=True)


def _signed(content: bytes) -> bytes:
    """Return a checkpoint with the checksum of its body."""
    document = json.loads(content)
    body = b'"rollout": ' + json.dumps(document["rollout"]).encode() + b"}\n"
    head = {"schema": document["schema"], "sha256": hashlib.sha256(body).hexdigest()}
    return json.dumps(head)[:-1].encode() + b",\n" + body


def _report(path: Path) -> object:
    from optsched.reports.report import report
    from optsched.reports.sources import gather

    is_drawn = path.stat().st_size % 8 == 0  # a page takes a second
    return (report if is_drawn else gather)([path.parent])


def write(kind: Kind, content: bytes, folder: Path) -> Path:
    """Write a file, and those beside it; return its path."""
    path = folder / kind.name
    path.write_bytes(content)
    for name, text in kind.beside.items():
        (path.parent / name[1:] if name[0] == "/" else Path(f"{path}{name}")).write_bytes(text)
    return path


def refused(error: BaseException) -> bool:
    """Tell whether the command line turns an error into a line: one that optsched raised itself."""
    from pydantic import ValidationError

    from optsched.registry import UnknownNameError

    if isinstance(error, ValidationError | UnicodeError | json.JSONDecodeError):
        return False
    if type(error) is ValueError:
        where = error.__traceback__
        while where is not None and where.tb_next is not None:
            where = where.tb_next
        return where is not None and "/optsched/" in where.tb_frame.f_code.co_filename
    return isinstance(error, ValueError | UnknownNameError | OSError)


def forget(path: Path) -> None:
    """Remove what a reading wrote beside a file."""
    with suppress(OSError):
        Path(f"{path}.out").unlink()
