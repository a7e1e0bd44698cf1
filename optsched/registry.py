"""The registry: one line per problem, and the interface that every problem has.

Nothing heavy is imported here; a problem is imported when it is first asked for.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, cast

from optsched.documents.faults import nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pandas as pd
    from matplotlib.axes import Axes

    from optsched.instance import Document, Instance
    from optsched.plugins.plugin import Plugin
    from optsched.results.result import Result
    from optsched.search import Search
    from optsched.verification import BrokenRule

PROBLEMS = {
    "boa": "optsched.boa.problem",
    "pal": "optsched.pal.problem",
    "eaco": "optsched.eaco.problem",
    "sia": "optsched.sia.problem",
}


EXPLAIN = "optsched.explanation.explain:explain"
"""(instance, result, seconds) -> why; it solves again, so that results do not import it."""

RENAMED = {
    "pal method": {"pods": "decomposition", "kinds": "node-classes"},
    "eaco method": {
        "fifo": "fifo-exclusive",
        "gandiva-gavel": "random-pairs",
        "gandiva": "least-utilised",
        "best-fit": "best-fit-memory",
        "lucid-like": "sharing-scores",
    },
    "policy": {
        "gandiva": "random-pairs",
        "gandiva-paper": "least-utilised",
        "lucid": "sharing-scores",
    },
    "policy option": {"work": "programs"},
}
"""Names that were given up, by what they were names of, and those that came for them."""


def renamed(kind: str, name: str) -> str:
    """Return what to say of a name that was given up, after a semicolon; else nothing."""
    new = RENAMED.get(kind, {}).get(name)
    return f"; it is now called '{new}'" if new else ""


class UnknownNameError(LookupError):
    """A problem, method, policy or instance of that name does not exist.

    Examples
    --------
    >>> import optsched
    >>> try:
    ...     optsched.solve("boa/hand", "sme-k")
    ... except optsched.UnknownNameError as error:
    ...     print(error)
    there is no boa method 'sme-k'; did you mean 'same-k'?
    """

    def __init__(self, kind: str, name: str, known: list[str]) -> None:
        hint = f"; {nearest(name, known)}" if known else "; known: "
        super().__init__(f"there is no {kind} '{name}'{renamed(kind, name) or hint}")


def loaded(entry: str) -> Any:
    """Return the function of an entry "module:function"."""
    module, function = entry.split(":")
    return getattr(importlib.import_module(module), function)


Kind = Literal["exact", "greedy"]


@dataclass(frozen=True)
class Method:
    """A named way to get a plan.

    `entry` is "module:function"; the function takes the instance and a `Search`, offers plans to
    the search as it finds them, and may return a certificate of the bound that it reached.
    `effort` is the relative cost among the greedy methods, by CPU time: cheap ones come first.
    `counts_programs` says that it heeds `Search.program_limit`. One of others has a `plugin`.
    """

    name: str
    kind: Kind
    summary: str
    source: str
    entry: str
    effort: int = 1
    counts_programs: bool = False
    plugin: Plugin | None = field(default=None, kw_only=True)

    def __call__(self, instance: Any, search: Search) -> Document | None:
        """Run the method on an instance; its plans go to `search`."""
        if self.plugin is not None:
            from optsched.plugins.methods import run_method

            return run_method(self.plugin, problem(instance.problem), instance, search)
        run: Callable[[Any, Search], Document | None] = loaded(self.entry)
        return run(instance, search)

    def origin(self) -> str:
        """Return whose it is, and the hash of its source; nothing of one of ours."""
        return "" if self.plugin is None else self.plugin.origin()


def _no_scale(instance: Any) -> float:
    return 0.0


def _few(instance: Any, certificate: Any) -> int:
    return 0


def _unknown(instance: Any, method: str) -> int | None:
    return None


def _value_by_value(instance: Any, path: str, values: Sequence[float]) -> None:
    return None


@dataclass(frozen=True)
class Problem:
    """The interface of one problem: its data, its methods and its verifier.

    Attributes
    ----------
    instance, plan, certificate
        The classes of the problem's data, decision and proof.
    methods
        Every method; the first is the default.
    specification, reasons
        Modules: the formulation in Pyomo; and what explains results, `rules`, `without`, `binding`,
        `prices` and `levers` (see `optsched.explanation.explain`).
    violations
        (instance, plan) -> every broken rule.
    objective
        (instance, plan) -> the objective, recomputed exactly and then rounded to the nearest float.
    certify
        (instance, search) -> a certificate for any plan, or of infeasibility.
    prove
        (instance, certificate) -> every reason why the certificate does not prove its bound.
    proof_terms
        (instance, certificate) -> about how many terms `prove` enumerates, counted beforehand.
    frame
        (instance, plan) -> one row per decision.
    summary, headline, decisions
        Texts for tables: the figures of a result, what an instance asks for, a plan in short.
    gap_scale
        Size of terms that may cancel in the objective, by instance: the least denominator of gaps.
    greedy_s
        (instance) -> about how many CPU seconds a greedy method of effort 1 takes, by sizes.
    plot
        (instance, plan, axes or None) -> the axes with a picture of the plan; None if the problem
        has no picture.
    memory
        (instance, name of a method) -> the bytes that a solve takes at its peak, from sizes alone;
        None if that is not known.
    at_once
        (instance, path of a field, values) -> an optimal plan and its certificate at every value,
        both to be verified as those of `solve`, or None for values that are left to `solve`; None
        if all are.
    """

    name: str
    title: str
    instance: type[Instance]
    plan: type[Document]
    certificate: type[Document]
    methods: tuple[Method, ...]
    specification: str
    reasons: str
    objective_unit: Callable[[Any], str]
    objective_name: Callable[[Any], str]
    violations: Callable[[Any, Any], list[BrokenRule]]
    objective: Callable[[Any, Any], float]
    certify: Callable[[Any, Search], Any]
    prove: Callable[[Any, Any], list[BrokenRule]]
    frame: Callable[[Any, Any], pd.DataFrame]
    summary: Callable[[Any, Result], dict[str, str]]
    headline: Callable[[Any], dict[str, str]]
    decisions: Callable[[Any, Any], list[dict[str, str]]]
    gap_scale: Callable[[Any], float] = _no_scale
    proof_terms: Callable[[Any, Any], int] = _few
    greedy_s: Callable[[Any], float] = _no_scale
    plot: Callable[[Any, Any, Axes | None], Axes] | None = None
    memory: Callable[[Any, str], int | None] = _unknown
    at_once: Callable[
        [Any, str, Sequence[float]], Sequence[tuple[Document, Document] | None] | None
    ] = _value_by_value

    def method(self, name: str) -> Method:
        """Look a method up by its name, or that of code of others: ``module:Name``."""
        for method in self.methods:
            if method.name == name:
                return method
        from optsched.plugins.plugin import METHODS, by_name, installed

        ours = [method.name for method in self.methods]
        plugin = by_name(name, METHODS + self.name, ours)
        if plugin is not None:
            return _method_of(plugin)
        others = [known.name for known in installed(METHODS + self.name)]
        raise UnknownNameError(f"{self.name} method", name, [*ours, *others])

    def installed_methods(self) -> list[Method]:
        """Return the methods of installed plug-ins; of those that cannot be used, why."""
        from optsched.plugins.plugin import METHODS, installed

        ours = [method.name for method in self.methods]
        return [_listed(plugin) for plugin in installed(METHODS + self.name, ours)]


def _method_of(plugin: Plugin) -> Method:
    from optsched.plugins.methods import loaded_method

    _, kind, summary = loaded_method(plugin)
    name = f"{plugin.source}:{plugin.attribute}"  # tells files apart from those of our methods
    return Method(name, cast("Kind", kind), summary, plugin.owner, "", plugin=plugin)


def _listed(plugin: Plugin) -> Method:
    from optsched.plugins.errors import PluginError

    try:
        return replace(_method_of(plugin), name=plugin.name)
    except PluginError as error:
        return Method(plugin.name, "greedy", str(error), plugin.owner, "", plugin=plugin)


def problem(name: str) -> Problem:
    """Import a problem and return its interface."""
    if name not in PROBLEMS:
        raise UnknownNameError("problem", name, list(PROBLEMS))
    entry: Problem = importlib.import_module(PROBLEMS[name]).PROBLEM
    return entry


def schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema of a problem's instances.

    Examples
    --------
    >>> import optsched
    >>> sorted(optsched.schema("sia")["properties"])
    ['description', 'gpus', 'jobs', 'name', 'power', 'schema', 'source', 'waiting_cost']
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"optsched/{name}/1",
        **problem(name).instance.model_json_schema(by_alias=True),
    }
