"""What reports in tests are made of, and a reader of their pages."""

import json
import re
from html.parser import HTMLParser

import optsched
from optsched.results.result import versions
from optsched.sweeps.points import Frontier, Point

ALL = ["boa.json", "pal.json", "eaco.json", "none.json", "frontier.json", "fifo", "las"]
VOID = {"meta", "link", "img", "input", "br"}


class Page(HTMLParser):
    """Checks that tags are balanced; keeps what is of interest."""

    def __init__(self, text):
        super().__init__()
        self.open, self.addresses, self.titles = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)
        self.addresses += [value for key, value in attrs if key in ("src", "href")]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "h2":
            self.titles.append(data)


def data_of(page):
    match = re.search(r"<script type='application/json' id='data'>(.*?)</script>", page, re.DOTALL)
    return json.loads(match[1])


def write_outcomes(place):
    """Write results, a frontier and two rollouts into a folder; return their paths."""
    for name in ("boa/hand", "pal/tiny", "eaco/paper-four"):
        result = optsched.solve(optsched.read(name))
        optsched.write(result, place / f"{name.split('/')[0]}.json")
    changed = optsched.read("boa/cbd-85").changed({"budget_gpus": 5})
    optsched.write(optsched.solve(changed), place / "none.json")
    curve = optsched.frontier("boa/hand", budgets=range(1, 6), methods=["exact", "same-k"], seed=0)
    optsched.write(curve, place / "frontier.json")
    scenario = optsched.read_scenario("philly-small").changed({"trace.jobs": 40})
    for policy, kept in (("fifo", True), ("las", False)):
        optsched.simulate(scenario, policy, output=place / policy, keep_intervals=kept)
    return [place / name for name in ALL]


def frontier(**changes):
    """Return a frontier that nothing proves."""
    points = []
    for n, value in enumerate((1.0, 2.0, 3.0, 4.0, 5.0)):
        none = {"status": "infeasible", "reason": "the budget is <below> the least cost"}
        some = {"status": "optimal", "objective": 10.0 / value, "bound": 9.5 / value, "gap": 0.05}
        points.append(Point(value=value, method="exact", **(some if n else none)))
        points.append(Point(value=value, method="same-k", status="feasible", objective=12 / value))
    fields = {
        "problem": "boa", "instance": "boa/hand", "parameter": "budget_gpus",
        "objective_name": "mean JCT", "objective_unit": "s", "methods": ("exact", "same-k"),
        "versions": versions(), "points": tuple(points), "options": {"seed": 0},
    }  # fmt: skip
    return Frontier(**(fields | changes))
