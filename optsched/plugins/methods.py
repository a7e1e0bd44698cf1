"""Methods of others: what one hands over is looked at before anything is believed of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from optsched.plugins.errors import PluginError, failure
from optsched.plugins.plugin import loaded_function

if TYPE_CHECKING:
    from collections.abc import Callable

    from optsched.instance import Document
    from optsched.plugins.plugin import Plugin
    from optsched.registry import Problem
    from optsched.search import Search

KINDS = ("exact", "greedy")


def loaded_method(plugin: Plugin) -> tuple[Callable[..., Any], str, str]:
    """Return the function of a method, its kind, and the first line of its docstring.

    A function may have the attribute `kind`: ``"exact"``, if greedy plans are to be tried where it
    leaves a gap, and it takes what the last epoch left; by default it is ``"greedy"``.

    Raises
    ------
    PluginError
        If it cannot be loaded, or is no function.
    """
    found = loaded_function(plugin, "method", "(instance, search)")
    kind = getattr(found, "kind", "greedy")
    if kind not in KINDS:
        raise PluginError(f"method {plugin.told}: kind: expected exact or greedy, found {kind!r}")
    lines = (found.__doc__ or "").strip().splitlines()
    return found, kind, lines[0] if lines else ""


def run_method(plugin: Plugin, entry: Problem, instance: Any, search: Search) -> Document | None:
    """Run a method of others; its plan is checked, and its objective recomputed, once more.

    What its certificate proves is for the verifier to say, as it is of our methods.

    Raises
    ------
    PluginError
        If it fails, or hands over what is no plan, no certificate, or breaks a rule.
    """
    function, told = loaded_method(plugin)[0], f"method {plugin.told}"
    try:
        certificate = function(instance, search)
    except KeyboardInterrupt:
        _take_again(told, entry, instance, search)
        raise
    except Exception as error:
        stated = getattr(error, "certificate", None)  # it proves that there is no plan
        if stated is not None:
            _check_certificate(told, entry, stated)
        if stated is not None or isinstance(error, ValueError):
            raise
        raise failure(told, "failed", error) from error
    _take_again(told, entry, instance, search)
    _check_certificate(told, entry, certificate)
    checked: Document | None = certificate
    return checked


def _take_again(told: str, entry: Problem, instance: Any, search: Search) -> None:
    plan, search.instance = search.plan, instance
    search.plan = search.objective = None
    if not isinstance(search.certificate, entry.certificate):
        search.certificate = None
    if plan is None:
        return
    if not isinstance(plan, entry.plan):
        expected = f"{entry.plan.__name__}, found {type(plan).__name__}"
        raise PluginError(f"{told}: its plan: expected {expected}")
    if not search.offer(plan):
        raise PluginError(f"{told}: its plan breaks a rule: {entry.violations(instance, plan)[0]}")


def _check_certificate(told: str, entry: Problem, certificate: Any) -> None:
    if certificate is not None and not isinstance(certificate, entry.certificate):
        expected = f"{entry.certificate.__name__} or None, found {type(certificate).__name__}"
        raise PluginError(f"{told}: its certificate: expected {expected}")
