"""YAML files: plain data with comments, read as strictly as JSON."""

from __future__ import annotations

import re
from typing import Any

import yaml

from optsched.documents.faults import InstanceError
from optsched.documents.limits import LIMITS

_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times faster, where it is built


class PlainLoader(_Base):  # type: ignore[misc]
    """Builds nothing but plain data."""


class _JsonLikeLoader(PlainLoader):
    """Takes for numbers, truth values and null what JSON does; a date or ``yes`` stays a text."""


_JsonLikeLoader.yaml_implicit_resolvers = {}
for _kind, _form, _first in (
    ("bool", r"true|false", "tf"),
    ("null", r"null|", ["n", ""]),
    ("int", r"-?(?:0|[1-9][0-9]*)", "-0123456789"),
    ("float", r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?", "-0123456789"),
):
    _JsonLikeLoader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_kind}", re.compile(rf"(?:{_form})\Z"), list(_first)
    )


def _number(loader: Any, node: yaml.ScalarNode) -> float:
    return float(loader.construct_scalar(node))


def _object(loader: Any, node: yaml.MappingNode) -> dict[str, Any]:
    """Return an object; keys are texts, and stand once."""
    made: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key, mark = str(loader.construct_scalar(key_node)), key_node.start_mark
        if key in made:
            text = f"key '{key}' stands more than once in its object"
            raise yaml.MarkedYAMLError(problem=text, problem_mark=mark)
        made[key] = loader.construct_object(value_node, deep=True)
    return made


_JsonLikeLoader.add_constructor("tag:yaml.org,2002:float", _number)
_JsonLikeLoader.add_constructor("tag:yaml.org,2002:map", _object)


def parse(text: str, origin: str, loader: type = _JsonLikeLoader) -> Any:
    """Return the data of a YAML text.

    Raises
    ------
    InstanceError
        If it is no YAML, larger or deeper than the limits allow, or has aliases, which make a short
        text large.
    """
    if len(text) > LIMITS.yaml_bytes:
        size = LIMITS.yaml_bytes >> 20
        raise InstanceError(origin, [f"is larger than {size} MiB, the limit of YAML files"])
    if not any(line.split("#")[0].strip() for line in text.splitlines()):
        what = "has nothing but comments" if text.strip() else "is empty"
        raise InstanceError(origin, [f"the file {what}; expected YAML"])
    try:
        _refuse_growth(text, origin)
        return yaml.load(text, Loader=loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        lines = text.splitlines()
        line = lines[mark.line] if mark and mark.line < len(lines) else ""
        is_tab = "\t" in line[: len(line) - len(line.lstrip())]
        what = "a tab: YAML is indented by blanks" if is_tab else f"{error.problem}; expected YAML"
        raise InstanceError(origin, [f"{place}{what}"]) from None
    except InstanceError:
        raise
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise InstanceError(origin, [f"expected YAML: {str(error).splitlines()[0]}"]) from None


def _refuse_growth(text: str, origin: str) -> None:
    """Refuse what makes a short text large, or needs a deep stack; no file of use has either."""
    depth = 0
    event: Any
    for event in yaml.parse(text, Loader=_Base):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        what = "nested too deeply" if depth > LIMITS.depth else ""
        if isinstance(event, yaml.AliasEvent):
            what = "aliases are not taken"
        elif getattr(event, "tag", None) not in (None, "!"):  # quoted text has the latter
            what = f"tags such as {event.tag} are not taken"
        if what:
            mark = event.start_mark
            raise InstanceError(origin, [f"line {mark.line + 1}, column {mark.column + 1}: {what}"])
