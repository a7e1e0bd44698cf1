"""Files of comparisons: what `compare --output` writes, and `report` reads."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import Field, ValidationError

from optsched.documents.base import Items
from optsched.documents.faults import InstanceError, lines, shown, validation_faults
from optsched.documents.files import read_text
from optsched.documents.json_files import load
from optsched.documents.schemas import require
from optsched.instance import Document
from optsched.results.result import versions
from optsched.rollout.results.bounds.rows import BoundRow

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

    from optsched.rollout.results.policy_comparison import Comparison

SCHEMA_ID: Final = "optsched/comparison/1"
Number = float | None
Figures = dict[str, float | str | None]


class DifferenceRow(Document):
    """What a policy has more of than the first one, on the same jobs."""

    policy: str
    metric: str
    value: float = Field(description="Of this policy: the mean over what `over` says.")
    base: float = Field(description="Of the first policy.")
    difference: float = Field(description="The mean of the paired differences.")
    low: Number = Field(default=None, description="95 % interval, from; none if there is none.")
    high: Number = None
    over: str = Field(default="", description='What the interval is over, such as "5 seeds".')


class ComparisonDocument(Document):
    """Policies that ran the same jobs, as `compare --output` writes them."""

    schema_id: Literal["optsched/comparison/1"] = Field(default=SCHEMA_ID, alias="schema")
    scenario: dict[str, Any] = Field(default={}, description="See the schema of scenarios.")
    first: str = Field(description="The policy that ratios are to.")
    seeds: Items[int]
    resample: int | None = Field(
        default=None, description="Jobs in a block, if traces were drawn from one in blocks."
    )
    basis: str = Field(default="", description="What means and intervals are over, in words.")
    unfinished: str = Field(default="", description="Which jobs are in no mean, in words.")
    warnings: Items[str] = ()
    versions: dict[str, str] = Field(default={})
    policies: Items[Figures] = Field(
        description="A row for each: metrics (means over the seeds), ratios to the first one and "
        "95 % intervals."
    )
    differences: Items[DifferenceRow] = ()
    runs: Items[Figures] = Field(
        default=(), description="A row for each policy and seed: what was measured."
    )
    bounds: Items[BoundRow] = Field(
        default=(), description="Where bounds were asked for, a row for each policy and seed."
    )


def comparison_document(compared: Comparison) -> ComparisonDocument:
    """Return all that a comparison tells, ready to be written."""
    first = next(iter(compared.rollouts.values()))[0].record
    scenario = first.scenario.model_dump(mode="json", by_alias=True, exclude_none=True)
    frame = compared.frame().reset_index()
    return ComparisonDocument(
        scenario=scenario,
        first=next(iter(compared.rollouts)),
        seeds=compared.seeds,
        resample=compared.block,
        basis=compared.basis,
        unfinished=compared.left_out,
        warnings=compared.warnings,
        versions=versions(),
        policies=[{**row, **_became(compared, row)} for row in _rows(frame)],
        differences=[DifferenceRow(**vars(each)) for each in compared.paired],
        runs=_rows(compared.runs()),
        bounds=compared.bounds,
    )


def _became(compared: Comparison, row: Figures) -> dict[str, str]:
    """Return what a policy has become, if the scenario lacks what it is about."""
    became = compared.became.get(str(row["policy"]))
    return {"became": became} if became else {}


def _rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table, without what they have no value of."""
    rows = frame.astype(object).to_dict("records")
    return [{str(k): v for k, v in row.items() if v is not None and v == v} for row in rows]


def read_comparison(path: Path) -> ComparisonDocument:
    """Read what `compare --output` wrote: all of it as .json, of a .csv its table.

    Raises
    ------
    InstanceError
        If it is no such file, with every fault.
    """
    if path.suffix == ".csv":
        return _of_table(path)
    document = load(path)
    if not isinstance(document, dict):
        raise InstanceError(str(path), [f"document: expected an object, found {shown(document)}"])
    require(document, SCHEMA_ID, path)
    return _validated(document, path)


def _of_table(path: Path) -> ComparisonDocument:
    """Read a table of policies, or one of policies and seeds."""
    import pandas as pd

    try:
        cells = io.StringIO(read_text(path, "a table of a comparison"))
        table = pd.read_csv(cells, dtype={"policy": str}, keep_default_na=False, na_values=[""])
    except ValueError as error:
        if isinstance(error, InstanceError):
            raise
        reason = str(error).strip().splitlines()[0]
        raise InstanceError(str(path), [f"no table of a comparison: {reason}"]) from None
    if "policy" not in table or not {"seed", "seeds"} & set(table) or table["policy"].isna().any():
        text = "expected the table of `compare --output`, with columns policy and seed or seeds"
        raise InstanceError(str(path), [text])
    if not len(table):
        raise InstanceError(str(path), ["the table has no rows"])
    is_by_seed = "seed" in table
    means = table.drop(columns="seed").groupby("policy", sort=False) if is_by_seed else None
    try:
        shown_rows = table if means is None else means.mean().reset_index()
        seeds = table["seed" if is_by_seed else "seeds"].astype(int).unique().tolist()
    except (TypeError, ValueError):
        raise InstanceError(str(path), ["expected numbers in all columns but policy"]) from None
    count = len(seeds) if is_by_seed else max(seeds)
    document = {
        "schema": SCHEMA_ID,
        "first": str(table["policy"].iloc[0]),
        "seeds": seeds if is_by_seed else list(range(count)),
        "basis": f"Means over {count} seeds." if count > 1 else "",
        "policies": _rows(shown_rows),
        "runs": _rows(table) if is_by_seed else [],
    }
    return _validated(document, path)


def _validated(document: dict[str, Any], path: Path) -> ComparisonDocument:
    try:
        made = ComparisonDocument.model_validate(document)
    except ValidationError as error:
        faults = dict(validation_faults(error, ComparisonDocument)).items()
        raise InstanceError(str(path), lines(faults)) from None
    if not made.policies or not all(isinstance(row.get("policy"), str) for row in made.policies):
        raise InstanceError(str(path), ["policies: expected rows, each with its policy"])
    return made
