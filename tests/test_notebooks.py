"""The notebooks as files; `pytest --nbmake notebooks` runs them."""

import json
import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
MOST_BYTES = 200_000
MOST_LINES = 40


def cells(path, kind):
    chosen = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == kind]
    return [(cell, "".join(cell["source"])) for cell in chosen]


def outputs(path):
    return [output for cell, _ in cells(path, "code") for output in cell["outputs"]]


def test_they_are_numbered_from_one():
    assert [path.name[:3] for path in NOTEBOOKS] == [f"{n:02}_" for n in range(1, 7)]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_each_begins_with_its_question_and_ends_with_what_was_learnt(path):
    texts = [source for _, source in cells(path, "markdown")]
    title, question, *_ = (line for line in texts[0].splitlines() if line)
    assert title.startswith(f"# {int(path.name[:2])}. ")
    assert re.fullmatch(r"\*\*.*\?\*\*", question)
    assert "## What was learnt" in texts[-1]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_cells_are_short_and_ran_in_order(path):
    chosen = cells(path, "code")
    assert [cell["execution_count"] for cell, _ in chosen] == list(range(1, len(chosen) + 1))
    assert max(source.count("\n") for _, source in chosen) < MOST_LINES


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_nothing_of_the_machine_is_kept(path):
    text = path.read_text()
    assert len(text) < MOST_BYTES
    assert not re.search(r"/(tmp|home|root|work|usr|Users)/", text)
    metadata = json.loads(text)["metadata"]
    assert metadata["language_info"] == {"name": "python"}
    assert metadata["kernelspec"]["name"] == "python3"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_kept_and_none_is_an_error(path):
    kinds = {output["output_type"] for output in outputs(path)}
    assert kinds <= {"stream", "execute_result", "display_data"}
    assert all(output["name"] == "stdout" for output in outputs(path) if "name" in output)
    assert any("image/png" in output.get("data", {}) for output in outputs(path))


def test_links_lead_somewhere():
    texts = [source for path in NOTEBOOKS for _, source in cells(path, "markdown")]
    links = {link for text in texts for link in re.findall(r"\]\(([^)#:]+)\)", text)}
    assert links
    assert all((FOLDER / link).is_file() for link in links)
