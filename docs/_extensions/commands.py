"""The directive `run`: commands, run at build, with what they print below them.

    ```{run}
    optsched solve boa/hand --no-compare -o result.json
    optsched verify boa/hand result.json
    ```

Each page has a working folder of its own, so that later commands read what earlier ones wrote. A
command that ends in another code than that of the option `exit` fails the build; `head` cuts long
output to so many lines. The directive `file`, with a name, shows a file and puts it there.
"""

from __future__ import annotations

import contextlib
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective
from typer.testing import CliRunner

from optsched.cli.main import app as optsched

if TYPE_CHECKING:
    from sphinx.application import Sphinx

FOLDERS: dict[str, tempfile.TemporaryDirectory[str]] = {}


def run_optsched(arguments: list[str], folder: str) -> tuple[int, str]:
    """Run a command of optsched in this process; return its exit code and what it printed."""
    with contextlib.chdir(folder):
        outcome = CliRunner().invoke(optsched, arguments, prog_name="optsched")
    return outcome.exit_code, outcome.output


def run_python(arguments: list[str], folder: str) -> tuple[int, str]:
    """Run a file in a Python of its own; return its exit code and what it printed."""
    ended = subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    return ended.returncode, ended.stdout + ended.stderr


PROGRAMS = {"optsched": run_optsched, "python": run_python}


def folder_of(page: str) -> str:
    """Return the working folder of a page; it is removed when the build ends."""
    return FOLDERS.setdefault(page, tempfile.TemporaryDirectory()).name


class Run(SphinxDirective):
    """Commands, one a line, and their output."""

    has_content = True
    option_spec: ClassVar = {
        "exit": directives.nonnegative_int,
        "head": directives.positive_int,
    }

    def run(self) -> list[nodes.Node]:
        """Run the commands of this block."""
        folder = folder_of(self.env.docname)
        text = "\n".join(self._ran(line, folder) for line in self.content if line.strip())
        block = nodes.literal_block(text, text, language="console")
        self.set_source_info(block)
        return [block]

    def _ran(self, line: str, folder: str) -> str:
        name, *arguments = shlex.split(line)
        code, output = PROGRAMS[name](arguments, folder)
        if code != self.options.get("exit", 0):
            raise self.error(f"'{line}' ended with {code}: {output}")
        lines = [row.rstrip() for row in output.rstrip().splitlines()]
        if len(lines) > self.options.get("head", len(lines)):
            lines[self.options["head"] :] = ["..."]
        return "\n".join([f"$ {line}", *lines])


class File(SphinxDirective):
    """A file that the page shows, and that its commands read."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Write the file."""
        name, text = self.arguments[0], "\n".join(self.content)
        (Path(folder_of(self.env.docname)) / name).write_text(text + "\n")
        languages = {".json": "json", ".csv": "text", ".py": "python", ".conf": "text"}
        block = nodes.literal_block(text, text, language=languages.get(Path(name).suffix, "text"))
        self.set_source_info(block)
        wrapper = nodes.container(literal_block=True, classes=["literal-block-wrapper"])
        wrapper += nodes.caption(name, "", nodes.literal(name, name))
        wrapper += block
        return [wrapper]


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx of the directives."""
    app.add_directive("file", File)
    app.add_directive("run", Run)
    return {"parallel_read_safe": True}
