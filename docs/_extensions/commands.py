"""The directive `run`: commands of optsched, run at build, with what they print below them.

    ```{run}
    optsched solve boa/hand --no-compare -o result.json
    optsched verify boa/hand result.json
    ```

Each page has a working folder of its own, so that later commands read what earlier ones wrote. A
command that ends in another code than that of the option `exit` fails the build; `head` cuts long
output to so many lines.
"""

from __future__ import annotations

import contextlib
import shlex
import tempfile
from typing import TYPE_CHECKING, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective
from typer.testing import CliRunner

from optsched.cli.main import app as optsched

if TYPE_CHECKING:
    from sphinx.application import Sphinx

FOLDERS: dict[str, tempfile.TemporaryDirectory[str]] = {}


class Run(SphinxDirective):
    """Commands, one a line, and their output."""

    has_content = True
    option_spec: ClassVar = {
        "exit": directives.nonnegative_int,
        "head": directives.positive_int,
    }

    def run(self) -> list[nodes.Node]:
        """Run the commands of this block."""
        folder = FOLDERS.setdefault(self.env.docname, tempfile.TemporaryDirectory())
        text = "\n".join(self._ran(line, folder.name) for line in self.content if line.strip())
        block = nodes.literal_block(text, text, language="console")
        self.set_source_info(block)
        return [block]

    def _ran(self, line: str, folder: str) -> str:
        name, *arguments = shlex.split(line)
        if name != "optsched":
            raise self.error(f"'{line}': only commands of optsched are run")
        with contextlib.chdir(folder):
            outcome = CliRunner().invoke(optsched, arguments, prog_name="optsched")
        if outcome.exit_code != self.options.get("exit", 0):
            raise self.error(f"'{line}' ended with {outcome.exit_code}: {outcome.output}")
        lines = [row.rstrip() for row in outcome.output.rstrip().splitlines()]
        if len(lines) > self.options.get("head", len(lines)):
            lines[self.options["head"] :] = ["..."]
        return "\n".join([f"$ {line}", *lines])


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx of the directive."""
    app.add_directive("run", Run)
    return {"parallel_read_safe": True}
