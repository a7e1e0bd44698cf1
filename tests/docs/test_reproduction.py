"""The measured figures that docs and README show: of today's claims, with today's verdicts."""

import json
import re
from pathlib import Path

import pytest

from optsched.reproduction.estimates import Estimate
from optsched.reproduction.registry import SYSTEMS, claims_of
from optsched.reproduction.verdicts import Basis, Published, verdict

ROOT = Path(__file__).parents[2]
ROWS = {
    row["key"]: row
    for row in json.loads((ROOT / "docs/figures/reproduction.json").read_text("utf-8"))["rows"]
}
CLAIMS = {claim.key: claim for claim in claims_of(SYSTEMS)}


def test_rows_are_those_of_the_claims():
    assert list(ROWS) == list(CLAIMS)
    for key, claim in CLAIMS.items():
        row, published = ROWS[key], claim.published
        ends = (None, None) if published is None else (published.low, published.high)
        assert (row["published_low"], row["published_high"]) == ends
        assert (row["what"], row["unit"], row["where"]) == (claim.what, claim.unit, claim.where)
        assert (row["setting"], row["assumed"]) == (claim.setting, claim.assumed)
        assert row["why"].endswith(claim.note)


@pytest.mark.parametrize("key", CLAIMS)
def test_verdicts_follow_from_the_figures(key):
    row, claim = ROWS[key], CLAIMS[key]
    figures = (row["ours"], row["low"], row["high"], row["seeds"])
    ours = None if row["ours"] is None else Estimate(*figures)
    basis = Basis.GENERATED if ours is None else Basis(row["data"])
    low, high = row["published_low"], row["published_high"]
    published = None if low is None else Published(low, high)
    assert row["verdict"] == verdict(published, ours, basis, claim.is_setting_published)


def test_readme_tells_what_was_measured():
    """Each row of the README's table, to the digits that it has."""
    text = (ROOT / "README.md").read_text("utf-8")
    lines = re.findall(r"^\| .*<!-- (\S+) -->.*\|$", text, re.M)
    assert len(lines) >= 4
    for key in lines:
        line = next(line for line in text.splitlines() if f"<!-- {key} -->" in line)
        published, ours, said = (cell.strip() for cell in line.strip("|").split("|")[-3:])
        row = ROWS[key]
        assert float(published.replace("\N{MINUS SIGN}", "-").split()[0]) == row["published_low"]
        found = float(ours.replace("\N{MINUS SIGN}", "-").split()[0])
        digits = len(ours.split()[0].partition(".")[2])
        assert found == round(row["ours"], digits)
        assert said == row["verdict"]
