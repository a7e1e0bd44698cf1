"""Policies of others: a class, a function or an object becomes a `Maker`, as ours have one.

Options are the parameters of the class or function: their names, types and defaults are what
`optsched policies NAME` shows, and what texts are checked against.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from pydantic import PydanticUserError, create_model
from pydantic.errors import PydanticSchemaGenerationError

from optsched.plugins.errors import PluginError, failure
from optsched.rollout.policy_options import Maker, Options

if TYPE_CHECKING:
    from collections.abc import Callable

    from optsched.rollout.engine.decision import Policy
    from optsched.rollout.scenario import Scenario

GIVEN = ("scenario", "seed")
"""Parameters that are no options: whoever names them gets them."""
EXPECTED = "expected a class with decide(view), an object of one, or a function that makes one"


def maker_of(found: object, told: str) -> Maker[Any, Policy]:
    """Return what makes policies of something that others wrote.

    Parameters
    ----------
    found
        A `Maker`; a class with `decide(view)`, or a function that returns an object of one: its
        parameters `scenario` and `seed` are given, the others are options; or an object with
        `decide(view)`, which is copied for each rollout.
    told
        Which it is, for messages.

    Raises
    ------
    PluginError
        If it is nothing of the kind.
    """
    if isinstance(found, Maker):
        return found
    if isinstance(found, type) and not callable(getattr(found, "decide", None)):
        raise PluginError(f"{told}: class {found.__name__} has no method decide(view)")
    if isinstance(found, type) or inspect.isroutine(found):
        return _of_callable(found, told)
    if callable(getattr(found, "decide", None)):
        return Maker(lambda *_: _checked(deepcopy(found), told), Options, draws=False)
    raise PluginError(f"{told}: {EXPECTED}; found an object of type {type(found).__name__}")


def _of_callable(make: Callable[..., Any], told: str) -> Maker[Any, Policy]:
    try:
        parameters = inspect.signature(make).parameters
    except (ValueError, TypeError) as error:
        raise PluginError(f"{told}: {EXPECTED}; {error}") from None
    given = [name for name in GIVEN if name in parameters]
    options = _options_of(make, parameters, told)

    def build(scenario: Scenario, seed: int, chosen: Options) -> Policy:
        values = {"scenario": scenario, "seed": seed}
        named: dict[str, Any] = {name: values[name] for name in given}
        named |= {name: getattr(chosen, name) for name in options.model_fields}
        try:
            policy = make(**named)
        except ValueError:
            raise
        except Exception as error:
            raise failure(told, "cannot be made", error) from error
        return _checked(policy, told)

    maker: Maker[Any, Policy] = Maker(build, options, getattr(make, "draws", "seed" in given))
    maker.__doc__ = inspect.getdoc(make)
    return maker


def _options_of(make: Any, parameters: Any, told: str) -> type[Options]:
    """Return the class of options that the parameters of a class or function stand for."""
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    fields: dict[str, Any] = {}
    for name, parameter in parameters.items():
        if name in GIVEN or parameter.kind in variable:
            continue
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY or name.startswith("_"):
            raise PluginError(f"{told}: parameter '{name}' cannot be given by its name")
        default = ... if parameter.default is inspect.Parameter.empty else parameter.default
        fields[name] = (_type_of(parameter, make, told), default)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # names that models of pydantic have, too
            model: type[Options] = create_model("OwnOptions", __base__=Options, **fields)
            model.model_json_schema()
    except (PydanticUserError, PydanticSchemaGenerationError) as error:
        first = str(error).splitlines()[0]
        raise PluginError(f"{told}: its parameters are no options: {first}") from None
    return model


def _type_of(parameter: inspect.Parameter, make: Any, told: str) -> Any:
    """Return the type of a parameter: as it is annotated, else that of its default."""
    annotation, default = parameter.annotation, parameter.default
    if annotation is inspect.Parameter.empty:
        if isinstance(default, bool | str):
            return type(default)
        return float | int if isinstance(default, int | float) else bool | int | float | str | None
    if not isinstance(annotation, str):
        return annotation
    names = vars(sys.modules.get(make.__module__) or inspect)
    try:
        return eval(annotation, dict(names))  # as typing.get_type_hints does, for one at a time
    except Exception as error:
        raise failure(told, f"annotates '{parameter.name}' with what is no type", error) from None


def _checked(policy: Any, told: str) -> Policy:
    """Return a policy that a rollout can call; one without a name gets that of its class."""
    if not callable(getattr(policy, "decide", None)):
        found = f"found an object of type {type(policy).__name__}"
        raise PluginError(f"{told}: expected a policy with decide(view); {found}")
    if not isinstance(getattr(policy, "name", None), str):
        try:
            policy.name = type(policy).__name__
        except AttributeError:
            raise PluginError(f"{told}: the policy has no name: set `name`, a text") from None
    checked: Policy = policy
    return checked
