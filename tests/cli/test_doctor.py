"""doctor(): what it finds, what it calls bad, and that nothing of it is private."""

import getpass
import os
import re
import socket
import tempfile
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

import optsched
from optsched.cli import doctor as examination
from optsched.cli.doctor import Finding, disk, doctor, package, packages, threads
from optsched.cli.main import app

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def findings():
    return doctor(Path(tempfile.gettempdir()))


def by_name(findings):
    return {finding.name: finding for finding in findings}


def test_all_is_well_here(findings):
    assert [finding for finding in findings if not finding.is_fine] == []


def test_what_is_looked_at(findings):
    topics = dict.fromkeys(finding.topic for finding in findings)
    assert list(topics) == [
        *("versions", "optional", "platform", "threads", "memory", "disk", "self-test")
    ]
    named = by_name(findings)
    assert named["optsched"].text == optsched.results.result.versions()["optsched"]
    assert {"highspy", "numpy", "pyomo", "scipy", "processors", "cache"} <= set(named)
    assert re.fullmatch(r"[0-9,]+ MB free", named["cache"].text)
    assert re.fullmatch(r"[0-9,]+ MB", named["free"].text)


def test_what_is_not_installed_is_told_with_what_it_is_for_and_is_no_fault(monkeypatch):
    monkeypatch.setattr(examination, "_version", lambda name: None)
    missing = [finding for finding in packages() if finding.topic == "optional"]
    assert all(finding.is_fine for finding in missing)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    for finding in missing:
        extra = re.search("the extra '(.+)' brings it, for .", finding.text)[1]
        assert any(re.match(finding.name + r"\b", line) for line in extras[extra])


def test_known_optima_are_found_by_both_methods_and_proven(findings):
    named = by_name(findings)
    assert named["HiGHS, linear program"].text == "-36"
    assert named["HiGHS, integer program"].text == "-21"
    for name in ("boa/hand", "pal/tiny", "eaco/paper-four", "sia/hand"):
        for method in ("exact", "milp"):
            text = named[f"{name}, {method}"].text
            assert text.endswith("proven")
            expected = optsched.known_values()[name]["optimal"]
            assert float(text.split()[0]) == pytest.approx(expected)


def test_nothing_private(findings):
    text = "\n".join(f"{f.name}: {f.text}" for f in findings)
    for private in (getpass.getuser(), socket.gethostname(), str(Path.home()), os.getcwd()):
        if len(private) > 3:
            assert private not in text
    assert "/" not in text.replace("boa/", "").replace("pal/", "").replace("eaco/", "").replace(
        "sia/", ""
    )


@pytest.mark.parametrize(
    ("version", "least", "text"),
    [
        ("1.14.0", "1.15.1", "1.14.0 returns wrong optima; 1.15.1 or later"),
        ("1.12.0", "1.15.1", "1.12.0 is too old; 1.15.1 or later"),
        ("1.15.1", "1.15.1", None),
        ("1.15.9", "1.15.1", None),
        ("1.16", "1.15.1", "1.16 is newer than what is tested: below 1.16"),
        ("2.0.0rc1", "1.15.1", "2.0.0rc1 is newer than what is tested: below 1.16"),
        (None, "1.15.1", "is not installed"),
    ],
)
def test_versions_that_are_known_to_be_bad(monkeypatch, version, least, text):
    monkeypatch.setattr(examination, "_version", lambda name: version)
    finding = package("highspy", least, "1.16")
    assert finding.is_fine == (text is None)
    assert finding.text == (text or version)


def test_the_tested_range_is_that_of_the_package(monkeypatch):
    stated = ["highspy<1.16,>=1.15.1", "numpy<3,>=2.0", "rich", 'pytest>=9; extra == "test"']
    monkeypatch.setattr(examination, "requires", lambda name: stated)
    found = [("highspy", "1.15.1", "1.16"), ("numpy", "2.0", "3"), ("rich", "", "")]
    assert list(examination._needed()) == found


def test_a_solver_that_is_wrong_is_found_out(monkeypatch):
    from optsched.mip import highs

    right = highs.solve

    def wrong(program, **options):
        outcome = right(program, **options)
        return outcome._replace(objective=outcome.objective + 1)

    monkeypatch.setattr(highs, "solve", wrong)
    named = by_name(doctor())
    assert not named["HiGHS, linear program"].is_fine
    text = "WrongValue: -35.0 was found, it is known to be -36.0"
    assert named["HiGHS, linear program"].text == text
    assert not named["HiGHS, integer program"].is_fine


def test_a_certificate_that_proves_nothing_is_found_out(monkeypatch):
    from optsched.boa.verify import certificate as proof
    from optsched.verification import BrokenRule

    entry = optsched.registry.problem("boa")
    broken = [BrokenRule("bound", "no")]
    changed = type(entry)(**{**entry.__dict__, "prove": lambda *_: broken})
    monkeypatch.setattr("optsched.boa.problem.PROBLEM", changed)
    assert changed.prove is not proof.prove
    finding = by_name(doctor())["boa/hand, exact"]
    assert finding == Finding(
        "self-test", "boa/hand, exact", "Violation: parts of the proof: 1 broken", is_fine=False
    )


def test_errors_do_not_tell_folders():
    def fail():
        raise OSError("cannot open /home/someone/secret/lib.so\nmore")

    finding = examination._tested("x", fail)
    assert finding.text == "OSError: cannot open lib.so"


def test_threads(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "many")
    monkeypatch.setenv("MKL_NUM_THREADS", "1")
    named = by_name(threads())
    assert not named["OMP_NUM_THREADS"].is_fine
    assert named["MKL_NUM_THREADS"].is_fine
    assert str(os.cpu_count()) in named["processors"].text


def test_disks_that_are_full_or_missing(monkeypatch, tmp_path):
    assert disk(tmp_path).is_fine
    assert not disk(tmp_path / "none").is_fine
    full = type("Usage", (), {"free": 5 * 10**6})
    monkeypatch.setattr(examination.shutil, "disk_usage", lambda place: full)
    assert disk(tmp_path) == Finding("disk", "cache", "5 MB free", is_fine=False)
    monkeypatch.setattr(examination.os, "access", lambda place, mode: False)
    assert disk(tmp_path).text == "cannot be written to"
    assert disk().is_fine


def run(*arguments):
    return CliRunner(env={"COLUMNS": "80"}).invoke(app, list(arguments))


def test_command(monkeypatch):
    good = Finding("versions", "highspy", "1.15.1")
    monkeypatch.setattr(examination, "doctor", lambda cache=None: [good])
    done = run("doctor")
    assert done.exit_code == 0
    assert done.stdout == "versions:\nhighspy  1.15.1\n\nall is well\n"


def test_command_ends_with_1_if_something_is_bad(monkeypatch):
    bad = Finding("versions", "highspy", "1.14.0 returns wrong optima", is_fine=False)
    monkeypatch.setattr(examination, "doctor", lambda cache=None: [bad])
    done = run("doctor")
    assert done.exit_code == 1
    assert "BAD: 1.14.0 returns wrong optima" in done.stdout
    assert done.stderr == "1 of 1 findings are bad\n"
