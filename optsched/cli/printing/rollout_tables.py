"""Comparisons, policies and scenarios as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from optsched.cli.printing.sheets import Column, Sheet, facts, sheet
from optsched.cli.printing.tables import PROSE, listed
from optsched.plugins.plugin import short_names
from optsched.rollout import registry
from optsched.rollout.policy_options import described
from optsched.rollout.results.policy_comparison import RATIOS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pandas as pd

    from optsched.rollout.declarations.entry import Entry
    from optsched.rollout.results.paired_differences import Difference
    from optsched.rollout.results.policy_comparison import Comparison
    from optsched.rollout.scenario import Scenario
    from optsched.testing import Finding

SHOWN = {
    "jct_mean_s": "mean JCT s",
    "jct_p99_s": "p99 JCT s",
    "makespan_s": "makespan s",
    "utilization": "utilization",
    "cost_usd": "cost USD",
    "energy_kwh": "energy kWh",
    "unfinished": "unfinished",
}
"""Metrics that are shown side by side, and what they are called there."""
SUBTRACTED = {"jct_mean_s": "mean JCT s", "queueing_delay_mean_s": "mean wait s"}
"""Metrics of which differences are shown."""
FORESEES = {"all": "all jobs to come", "statistics": "statistics of the whole trace"}
"""What policies are told that no scheduler could know, by what they declare."""
DECIMALS = {"utilization": 3, "unfinished": 0}  # of those; others have one


def comparison(compared: Comparison) -> list[Sheet | str]:
    """Return a row for each policy: metrics, and below them their ratios to the first."""
    frame = compared.frame()
    keys = [key for key in SHOWN if frame[key].notna().any() and (frame[key] != 0).any()]
    values, ratios = [], []
    policies = list(map(str, frame.index))
    short = short_names(policies)
    names = [name + compared.label(p).removeprefix(p)
             for name, p in zip(short, policies, strict=True)]  # fmt: skip
    first = short[0]
    for name, (_, row) in zip(names, frame.iterrows(), strict=True):
        values.append((name, *(_value(row, key) for key in keys)))
        ratios.append((name, *(_ratio(row, key) for key in keys if key in RATIOS)))
    columns = {key: Column(SHOWN[key], right=True) for key in keys}
    compare = [columns[key] for key in keys if key in RATIOS]
    parts: list[Sheet | str] = [sheet([_name("policy", values), *columns.values()], values), ""]
    unit = "seeds" if compared.block is None else "traces"
    head = f"to {first}, {len(compared.seeds)} {unit}" if compared.varying else f"to {first}"
    parts.append(sheet([_name(head, ratios), *compare], ratios))
    parts += _differences(compared, dict(zip(policies, short, strict=True)))
    notes = [text for text in (compared.basis, compared.left_out, *compared.warnings) if text]
    return [*parts, "", *notes] if notes else parts


def _differences(compared: Comparison, short: Mapping[str, str]) -> list[Sheet | str]:
    """Return a row for each policy but the first: paired differences, and what they are over."""
    by = {(told.policy, told.metric): told for told in compared.paired}
    names = list(dict.fromkeys(told.policy for told in compared.paired))
    if not names:
        return []
    found = [[by.get((name, key)) for key in SUBTRACTED] for name in names]
    over = {told.over for row in found for told in row if told is not None and told.over}
    rows = [(short[name], *map(_difference, row)) for name, row in zip(names, found, strict=True)]
    shown = f" [{over.pop().partition(' of ')[0]}]" if len(over) == 1 else ""
    columns = [Column(f"{text}{shown}", right=True) for text in SUBTRACTED.values()]
    if over:  # several ways: told of each policy
        kept = ([told for told in row if told is not None] for row in found)
        rows = [(*row, next((told.over for told in held if told.over), ""))
                for row, held in zip(rows, kept, strict=True)]  # fmt: skip
        columns.append(Column("95 % over"))
    first = next(iter(short.values()))
    return ["", sheet([_name(f"minus {first}", rows), *columns], rows)]


def _difference(told: Difference | None) -> str:
    if told is None:
        return ""
    text = f"{told.difference:+,.{_decimals(told.difference)}f}"
    if told.low is None or told.high is None or told.low == told.high:
        return text
    low, high = (f"{end:+,.{_decimals(told.difference)}f}" for end in (told.low, told.high))
    return f"{text} [{low}, {high}]"


def _decimals(value: float) -> int:
    return 0 if abs(value) >= 1000 else 1


def comparison_records(compared: Comparison, per_seed: bool = False) -> list[dict[str, Any]]:
    """Return all metrics of each policy, their ratios to the first, and intervals, as data."""
    table = compared.runs() if per_seed else compared.frame().reset_index(names="policy")
    frame = table.astype(object)
    rows = frame.where(frame.notna(), None).to_dict("records")
    return [
        {"policy": row["policy"], **_became(compared, row["policy"])}
        | {str(key): value for key, value in row.items()}
        for row in rows
    ]


def _became(compared: Comparison, policy: str) -> dict[str, str]:
    """Return what a policy has become, if the scenario lacks what it is about."""
    return {"became": compared.became[policy]} if policy in compared.became else {}


def comparison_document(compared: Comparison) -> dict[str, Any]:
    """Return a comparison as one object, as its file has it."""
    return compared.document().model_dump(mode="json", by_alias=True, exclude_none=True)


def policies() -> Sheet:
    """Return a table of the policies: what each does and needs."""
    columns = ("policy", Column("what it does", fold=PROSE), "needs",
               Column("source", rank=1, fold=PROSE))  # fmt: skip
    rows = [(e.name, e.summary, _needs(e), e.source) for e in registry.ENTRIES]
    rows += [(e.name, _of_others(e), "", e.source) for e in registry.installed_entries()]
    return sheet(columns, rows)


def policy_records() -> list[dict[str, Any]]:
    """Return the policies as data, with their options."""
    return [
        {"name": e.name, "summary": e.summary, "needs": " and ".join(n.text for n in e.needs),
         "source": e.source, "options": option_records(e.name)}
        for e in registry.ENTRIES
    ] + [
        {"name": e.name, "summary": _of_others(e), "needs": "", "source": e.source, "options": []}
        for e in registry.installed_entries()
    ]  # fmt: skip


def _of_others(entry: Entry) -> str:
    """Return what a policy of others says of itself, or why it cannot be used."""
    try:
        return _first_line(entry.maker().__doc__)
    except ValueError as error:
        return str(error)


def _first_line(text: str | None) -> str:
    return (text or "").strip().partition("\n")[0]


def _needs(policy: Entry) -> str:
    return ", ".join(need.name for need in policy.needs)


def policy_page(name: str) -> list[Sheet | str]:
    """Return what a policy is, and a table of its options: types, defaults, what they mean.

    Raises
    ------
    UnknownNameError
        If there is no such policy.
    """
    entry = registry.entry(name)
    rows = [tuple(record.values()) for record in option_records(name)]
    said = entry.summary or _first_line(entry.maker().__doc__) or "it says nothing of itself"
    title = f"{entry.name}: {said}"
    title += f" ({entry.source})" if entry.plugin is not None else ""
    heads = ("option", "type", "default", "what it is")
    options = listed(heads, rows, title) if rows else facts({"policy": title, "options": "none"})
    return [options] if entry.plugin is not None else [options, "", facts_of_policy(entry)]


def facts_of_policy(entry: Entry) -> Sheet:
    """Return what a policy of ours declares of itself: a row for each fact."""
    rows = [("source", entry.source), ("faithful", entry.faithful)]
    rows += [("differs" if not n else "", text) for n, text in enumerate(entry.differs)]
    rows += [("needs", f"{need.text}; else it {entry.becomes}") for need in entry.needs]
    rows += [("refuses", ", ".join(entry.refused_with))] if entry.refused_with else []
    rows += [("is told", FORESEES[entry.clairvoyant])] if entry.clairvoyant else []
    rows.append(("example", entry.example))
    columns = (Column("fact"), Column("text", fold=PROSE))
    return Sheet(columns, tuple(rows), has_heading=False)


def policy_document(name: str) -> dict[str, Any]:
    """Return what a policy declares of itself, and its options, as one object."""
    entry = registry.entry(name)
    told = {"policy": name, "summary": entry.summary, "source": entry.source,
            "options": option_records(name),
            "faithful": entry.faithful, "differs": list(entry.differs),
            "needs": [need.text for need in entry.needs], "becomes": entry.becomes,
            "clairvoyant": entry.clairvoyant, "refuses": list(entry.refused_with),
            "example": entry.example}  # fmt: skip
    return {key: text for key, text in told.items() if text or key == "options"}


def option_records(name: str) -> list[dict[str, str]]:
    """Return the options of a policy as data."""
    keys = ("option", "type", "default", "meaning")
    rows = described(registry.entry(name).maker().options)
    return [dict(zip(keys, row, strict=True)) for row in rows]


def findings(found: Iterable[Finding]) -> Sheet:
    """Return a table of what the checks of a policy found."""
    columns = ("check", "world", "outcome", Column("what to do", fold=PROSE))
    return sheet(columns, ((f.check, f.world, f.outcome, f.message) for f in found))


def scenarios(named: Iterable[tuple[str, Scenario]]) -> Sheet:
    """Return a table of scenarios: their GPUs, trace and policies."""
    columns = ("scenario", Column("GPUs", right=True), Column("trace", rank=1),
               Column("jobs", right=True), Column("what it is", rank=2, fold=PROSE))  # fmt: skip
    rows = []
    for record in scenario_records(named):
        jobs = "" if record["jobs"] is None else f"{record['jobs']:,}"
        first = record["description"].partition(". ")[0]
        rows.append((record["name"], f"{record['gpus']:,}", record["trace"], jobs, first))
    return sheet(columns, rows)


def scenario_records(named: Iterable[tuple[str, Scenario]]) -> list[dict[str, Any]]:
    """Return the scenarios as data."""
    return [
        {"name": name, "gpus": scenario.gpus,
         "trace": scenario.trace.generator or scenario.trace.file or "",
         "jobs": scenario.trace.jobs, "policies": list(scenario.policies),
         "description": scenario.description}
        for name, scenario in named
    ]  # fmt: skip


def _name(heading: str, rows: list[tuple[str, ...]]) -> Column:
    """Return the column of policies: options fold after a comma, what one became at blanks."""
    names = [row[0] for row in rows]
    fold = " " if any("(" in name for name in names) else ","
    return Column(heading, fold=fold if any(fold in name for name in names) else "")


def _value(row: pd.Series, key: str) -> str:
    return "" if row.isna()[key] else f"{row[key]:,.{DECIMALS.get(key, 1)}f}"


def _ratio(row: pd.Series, key: str) -> str:
    name = f"{key}_ratio"
    if row.isna()[name]:
        return ""
    low, high = row.get(f"{name}_low"), row.get(f"{name}_high")
    interval = "" if low is None or low == high or low != low else f" [{low:.3f}, {high:.3f}]"
    return f"{row[name]:.3f}{interval}"
