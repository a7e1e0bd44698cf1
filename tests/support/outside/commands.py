"""Commands that read results, and what they may print: no word of proof for what is refused."""

from __future__ import annotations

import re
from fractions import Fraction
from html import unescape

from typer.testing import CliRunner

from optsched.cli.main import app

COMMANDS = {
    "verify": lambda source, result, page: ["verify", source, result],
    "check": lambda source, result, page: ["check", source, result],
    "explain": lambda source, result, page: [
        "explain", result, "--instance", source, "--time-limit", "5"
    ],
    "report": lambda source, result, page: [
        "report", result, "--instance", source, "--output", page
    ],
}  # fmt: skip
EXITS = {0, 1, 2}

# What stands in quotes is what the file states; after "not", "nothing", "never" it is denied.
CLAIM = re.compile(r"\b(proven|proved|optimal)\b", re.IGNORECASE)
QUOTED = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"")
DENIED = re.compile(
    r"\b(not|never|nothing|none|neither|no plan and no proof)\b[^.;:\n]{0,40}?\b(proven|optimal)\b",
    re.IGNORECASE,
)
FIGURE = r"(-?[\d,.]+(?:e[+-]?\d+)?|-?inf|nan)"
BOUND = re.compile(rf"no plan has an? [^\n]*? below {FIGURE}(?: ([^\n]*))?", re.IGNORECASE)
OBJECTIVE = re.compile(rf"objective\s+{FIGURE}(?: ([^\n,]*))?")


def printed(command, source, result, page):
    """Exit code and all that a command prints or writes, scripts and styles of a page left out."""
    page.unlink(missing_ok=True)
    arguments = COMMANDS[command](str(source), str(result), str(page))
    outcome = CliRunner().invoke(app, arguments, env={"COLUMNS": "200", "NO_COLOR": "1"})
    if outcome.exception is not None and not isinstance(outcome.exception, SystemExit):
        raise outcome.exception
    text = outcome.output
    if page.exists():
        html = page.read_text(encoding="utf-8")
        html = re.sub(r"<(script|style)\b.*?</\1>", " ", html, flags=re.DOTALL)
        html = re.sub(r"href=\"data:[^\"]*\"|src=\"data:[^\"]*\"", " ", html)
        text += unescape(re.sub(r"<[^>]+>", " ", html))
    return outcome.exit_code, text


def claims(text):
    """Words of proof in a text, with what stands around them."""
    text = DENIED.sub(" ", QUOTED.sub(" ", text))
    return [text[max(0, m.start() - 60) : m.end() + 40] for m in CLAIM.finditer(text)]


def false_in_print(truth, text):
    """Yield what `verify` prints of an accepted result and is not so."""
    for figure, unit in BOUND.findall(text):
        bound = Fraction(figure.replace(",", ""))
        if truth.high is not None and bound > truth.high:
            yield f"no plan is below {figure}, it prints; there is one of {float(truth.high)!r}"
        if unit.strip() != truth.unit:
            yield f"the unit {unit!r} is printed, it is {truth.unit!r}"
    if "no plan keeps" in text and truth.has_plan:
        yield "it prints that there is no plan"
