"""Ctrl-C and SIGTERM, wherever they come: one line, or what the command has by then."""

import os
import signal
import subprocess
import sys

import pytest

import optsched

pytestmark = pytest.mark.skipif(os.name == "nt", reason="sends signals")

# As started by a shell in the foreground, whoever runs the tests.
BEGIN = """
import os, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
def press(name="SIGINT"):
    os.kill(os.getpid(), signal.Signals[name])
"""
IN_AN_IMPORT = """
class Finder:
    def find_spec(self, name, path, target=None):
        if name == {module!r}:
            press({name!r})
sys.meta_path.insert(0, Finder())
"""
IN_SOLVE = """
from optsched.boa.exact import solver
def slow(instance, search, run=solver.exact):
    run(instance, search)
    {after}
    time.sleep(3600)
solver.exact = slow
"""


def ended(prelude, *arguments):
    """Return the exit code of a command, and what it wrote."""
    code = f"{BEGIN}{prelude}\nfrom optsched.__main__ import main\nmain()"
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("module", ["typer", "optsched.cli.main", "numpy", "optsched.solving"])
def test_in_an_import_it_is_one_line(module):
    prelude = IN_AN_IMPORT.format(module=module, name="SIGINT")
    assert ended(prelude, "solve", "boa/hand") == (130, "", "interrupted\n")


def test_termination_is_one_line_too():
    prelude = IN_AN_IMPORT.format(module="numpy", name="SIGTERM")
    assert ended(prelude, "solve", "boa/hand") == (143, "", "terminated\n")


def test_before_there_is_a_plan_it_is_one_line():
    prelude = """
from optsched.pal import milp
from optsched.pal.exact import solver
def stop(*_):
    raise KeyboardInterrupt
milp.milp = lambda instance, search: press()
solver.certify = stop
"""
    arguments = ("solve", "pal/tiny", "--method", "milp")
    assert ended(prelude, *arguments) == (130, "", "interrupted\n")


def test_termination_gives_the_best_plan_so_far(tmp_path):
    prelude = IN_SOLVE.format(after="press('SIGTERM')")
    code, stdout, stderr = ended(prelude, "solve", "boa/hand", "--output", tmp_path / "r.json")
    assert (code, stderr) == (0, "")
    assert "message         stopped early: interrupted" in stdout
    result = optsched.read_result(tmp_path / "r.json")
    optsched.verify(optsched.read("boa/hand"), result)


LOST = """
class Late:
    def __del__(self):
        press()
        time.sleep(3600)  # what is raised here Python ignores
"""


def test_in_a_destructor_it_is_not_lost():
    prelude = LOST + IN_SOLVE.format(after="Late()")
    code, stdout, stderr = ended(prelude, "solve", "boa/hand")
    assert (code, stderr) == (0, "")
    assert "message         stopped early: interrupted" in stdout


def test_the_second_one_ends_what_does_not_listen():
    deaf = """
def deaf():
    try:
        press()
    except KeyboardInterrupt:
        press()
        time.sleep(3600)
"""
    prelude = deaf + IN_SOLVE.format(after="deaf()")
    assert ended(prelude, "solve", "boa/hand") == (130, "", "interrupted\n")


def test_what_hangs_afterwards_is_ended():
    hangs = """
from optsched.cli import interrupts
interrupts.LONGEST_S = 0.1
def hang():
    try:
        press()
    except KeyboardInterrupt:
        time.sleep(3600)
"""
    prelude = hangs + IN_SOLVE.format(after="hang()")
    assert ended(prelude, "solve", "boa/hand") == (130, "", "interrupted\n")


def test_a_thread_that_does_not_end_does_not_keep_the_process():
    """HiGHS in presolve, say; threads of pools are waited for when Python ends."""
    left = """
from concurrent.futures import ThreadPoolExecutor
def leave():
    ThreadPoolExecutor(1).submit(time.sleep, 3600)
    press()
"""
    prelude = left + IN_SOLVE.format(after="leave()")
    code, stdout, stderr = ended(prelude, "solve", "boa/hand")
    assert (code, stderr) == (0, "")
    assert "message         stopped early: interrupted" in stdout


def test_who_ignores_it_is_not_interrupted():
    """As a shell lets a command in the background."""
    prelude = "signal.signal(signal.SIGINT, signal.SIG_IGN)" + IN_AN_IMPORT.format(
        module="numpy", name="SIGINT"
    )
    code, stdout, _ = ended(prelude, "solve", "boa/hand", "--no-compare")
    assert (code, "interrupted" in stdout) == (0, False)


# --- bounds: written whole or not at all --------------------------------------------------------

IN_PRICES = """
from optsched.bounds.relaxation import prices
def stop(*_):
    press()
    time.sleep(3600)
prices.fluid_prices = stop
"""
IN_WRITING = """
from pathlib import Path
def half(self, text, **options):
    with open(self, "w") as file:
        file.write(text[: len(text) // 2])
    press("SIGKILL")
Path.write_text = half
"""
IN_RENAMING = """
os.replace = lambda *_: press("SIGKILL")
"""


def bounded(prelude, folder):
    """Bound a few jobs into a file that held something; return the exit code and the file."""
    file = folder / "bound.json"
    file.write_text("as it was")
    few = ("philly-small", "--set", "trace.jobs=9")
    code, _, stderr = ended(prelude, "bound", *few, "--output", file)
    return code, stderr, file


def test_ctrl_c_leaves_a_file_of_bounds_as_it_was(tmp_path):
    code, stderr, file = bounded(IN_PRICES, tmp_path)
    assert (code, stderr, file.read_text()) == (130, "interrupted\n", "as it was")
    assert os.listdir(tmp_path) == ["bound.json"]


@pytest.mark.parametrize("prelude", [IN_WRITING, IN_RENAMING])
def test_a_kill_leaves_a_file_of_bounds_as_it_was(tmp_path, prelude):
    code, _, file = bounded(prelude, tmp_path)
    assert (code, file.read_text()) == (-signal.SIGKILL, "as it was")


def test_bounds_that_nobody_stops_are_written(tmp_path):
    code, stderr, file = bounded("", tmp_path)
    assert (code, stderr) == (0, "")
    assert optsched.read_bounds(file).jobs == 9
