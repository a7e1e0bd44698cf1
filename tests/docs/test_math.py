"""What the code says of docs/ is there: pages, their headings, and the links between them."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("optsched", "models", "instances", "benchmarks", "tests")
SOURCES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
PAGES = sorted((ROOT / "docs" / "math").glob("*.md"))
PARTS = "|".join(path.name for path in (ROOT / "docs").iterdir() if path.is_dir())
# A page's path from docs/ on; after a comma a heading follows, or several, with or without quotes.
# Pages of other projects, which lie in folders that these docs do not have, are left alone.
CITED = re.compile(rf"\bdocs/((?:(?:{PARTS})/)?[\w-]+\.md)((?:,? (?:and )?'[^']+')*)")
BARE = re.compile(r", (?=[A-Z])")
LONG = 80
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
LONGEST = 150


def headings(page):
    return re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)


def missing(source):
    """What a Python source cites of docs/ that is not there; its lines are joined first."""
    text = re.sub(r"\s*\n\s*(?:# )?\s*", " ", source)
    faults = []
    for found in CITED.finditer(text):
        page = ROOT / "docs" / found[1]
        known = headings(page) if page.is_file() else []
        if not known:
            faults.append(f"docs/{found[1]}")
            continue
        named = re.findall(r"'([^']+)'", found[2])
        faults += [f"docs/{found[1]}, '{name}'" for name in named if name not in known]
        bare = None if named else BARE.match(text, found.end())
        follows = text[bare.end() : bare.end() + LONG] if bare else ""
        if bare and not any(re.match(rf"{re.escape(name)}\b", follows) for name in known):
            faults.append(f"docs/{found[1]}, {follows}")
    return faults


def anchor(heading):
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_cited_pages_and_headings_exist():
    texts = {path: path.read_text("utf-8") for path in SOURCES if path != Path(__file__)}
    assert any(CITED.search(text) for text in texts.values())
    faults = {path.relative_to(ROOT): missing(text) for path, text in texts.items()}
    assert not {path: found for path, found in faults.items() if found}


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("docs/math/eaco.md, 'Fluid bound'.", 0),
        ("docs/math/eaco.md, 'Fluid\n    bound' and 'Cuts'", 0),
        ("docs/math/eaco.md, Fluid bound: the least", 0),
        ("docs/obligations.md and docs/engines/graph.md", 0),
        ("docs/math/eaco.md, 'Fluid bounds'", 1),
        ("docs/math/eaco.md, 'Cuts' and 'Carts'", 1),
        ("docs/math/eaco.md, Bound of fluids", 1),
        ("docs/math/eaco.md, 'Cuts', EaCO", 0),
        ("docs/math/ocean.md", 1),
        ("docs/math/eaco.md, Cuts. See docs/math/eaco.md, Carts", 1),
    ],
)
def test_what_is_missing_is_found(text, faults):
    assert len(missing(text)) == faults


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_of_a_page_lead_somewhere(page):
    text = page.read_text("utf-8")
    for target, fragment in LINK.findall(text):
        if target.startswith("https:"):
            continue
        file = (page.parent / target).resolve() if target else page
        assert file.is_file(), target
        if fragment:
            assert fragment in map(anchor, headings(file)), f"{target}#{fragment}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_is_listed_and_has_short_lines_and_distinct_headings(page):
    lines = page.read_text("utf-8").splitlines()
    assert max(map(len, lines)) <= LONGEST
    assert len(set(headings(page))) == len(headings(page))
    index = (page.parent / "index.md").read_text("utf-8")
    assert page.name == "index.md" or f"]({page.name})" in index
