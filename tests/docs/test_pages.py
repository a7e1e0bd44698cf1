"""Code and commands that the pages of docs/ show work; most are run when the pages are built."""

import doctest
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from optsched.cli.main import app

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md") if "_build" not in path.parts)
BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"(?<!`)`(optsched [^`]+)`(?!`)")
# What is shown but not run at build: the rest is in blocks `run`, `code-cell` or `plot`.
SHELL, DOCTEST = {"sh"}, {"pycon"}


def blocks(page, languages):
    """The texts of the fenced blocks in one of these languages."""
    return [text for head, text in BLOCK.findall(page.read_text("utf-8")) if head in languages]


def commands():
    """Every command of optsched in a block that is not run, or in a sentence, with its page."""
    for page in PAGES:
        prose = BLOCK.sub("", page.read_text("utf-8"))
        for text in INLINE.findall(prose):
            words = shlex.split(text.replace("\n", " "))
            yield pytest.param(words[1:], id=f"{page.stem}: {' '.join(words[1:])}")
        for text in blocks(page, SHELL):
            for line in text.replace("\\\n", " ").splitlines():
                if line.startswith("optsched "):
                    words = shlex.split(line, comments=True)
                    yield pytest.param(words[1:], id=f"{page.stem}: {' '.join(words[1:])}")


@pytest.mark.parametrize("words", list(commands()))
def test_a_command_that_is_shown_exists_with_its_options(words):
    outcome = CliRunner().invoke(app, [*words, "--help"])
    assert outcome.exit_code == 0, outcome.output


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, DOCTEST)], ids=lambda p: p.stem)
def test_python_that_is_shown_prints_what_it_says(page):
    found = doctest.testfile(
        str(page), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE
    )
    assert found.attempted > 0
    assert found.failed == 0


def test_all_python_is_run():
    """By the build or by doctest: none stands there only to be read."""
    assert len(PAGES) > 10
    assert [page.stem for page in PAGES if blocks(page, {"python", "py"})] == []
