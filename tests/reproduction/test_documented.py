"""`python -m benchmarks.reproduction`: docs have what a run found; pictures that can be read."""

import itertools

import pytest

import optsched
from benchmarks import reproduction as documented
from optsched.reproduction.estimates import Estimate
from optsched.reproduction.philly.guidelines import GUIDELINES
from optsched.reproduction.pictures import bars
from optsched.reproduction.registry import SYSTEMS, claims_of
from optsched.reproduction.texts import interval_text, number, published_text


@pytest.fixture(scope="module")
def found():
    return optsched.reproduce("eaco", level="quick", only=["eaco-set-*", "eaco-28-run-time"])


def test_the_page_of_docs_has_every_headline_with_a_published_figure():
    """What it says of each was written by the command that stands there."""
    _, begin, rest = documented.PAGE.read_text().partition(documented.MARK)
    assert begin
    lines = [line for line in rest.splitlines() if line.startswith("| ")]
    told = [claim for claim in claims_of(SYSTEMS) if claim.published and not claim.is_detail]
    for claim in told:
        if claim.ours is not None:
            name = f"{claim.what}, {claim.unit} ({claim.where})"
            start = f"| {name} | {published_text(claim.published)} | "
            assert any(line.startswith(start) for line in lines), start


def test_tables_of_docs_are_the_rows_of_a_run(found, tmp_path, capsys):
    (tmp_path / "reproduction.json").write_text(found.to_json())
    assert documented.main([str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    counts = ", ".join(f"{count} {name}" for name, count in found.verdicts.items())
    assert f"Level quick, seed 0. {len(found.rows)} rows: {counts}." in printed
    row = next(row for row in found.rows if row.claim.key == "eaco-28-run-time")
    cells = next(line for line in printed.splitlines() if row.claim.what in line).split(" | ")
    assert cells[2:5] == [number(row.ours.value), interval_text(row.ours), "2"]
    assert cells[-1] == f"{row.verdict} |"


def test_groups_of_bars_have_names_beside_each_other():
    values = {"one": {name: Estimate(1.0, 0.5, 1.5, 2) for name in GUIDELINES}}
    ((figure, *_),) = bars(values, "%", "guidelines")
    figure.draw_without_rendering()
    boxes = [each.get_window_extent() for each in figure.axes[0].get_xticklabels()]
    assert all(a.x1 <= b.x0 for a, b in itertools.pairwise(boxes))
