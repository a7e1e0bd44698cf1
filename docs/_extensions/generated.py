"""Directives whose text is made at build from the code itself, so that it stays true.

`public` lists all public names of a package, `generated` shows one of the texts of `texts.py`.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from typing import TYPE_CHECKING, Any

import texts
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.docutils import SphinxDirective

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.application import Sphinx

ROOT = "optsched"
KINDS = ("Functions", "Classes", "Exceptions", "Constants")


def kind_of(value: Any) -> str:
    """Return under which heading a name stands; of modules nothing."""
    if inspect.ismodule(value):
        return ""
    if inspect.isclass(value):
        return "Exceptions" if issubclass(value, Exception) else "Classes"
    return "Functions" if inspect.isroutine(value) else "Constants"


def public(package: str) -> dict[str, list[str]]:
    """Return the public names of a package by kind; those that the root has too are left to it."""
    module, root = importlib.import_module(package), importlib.import_module(ROOT)
    names: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for name in sorted(module.__all__, key=str.lower):
        value = getattr(module, name)
        is_roots = package != ROOT and name in root.__all__ and getattr(root, name) is value
        if kind_of(value) and not is_roots:
            names[kind_of(value)].append(name)
    return names


def entry(package: str, name: str, kind: str) -> str:
    """Return the directive that documents a name."""
    full = f"{package}.{name}"
    if kind == "Functions":
        return f".. autofunction:: {full}\n"
    if kind == "Constants":
        text = constant_text(package, name).replace("\n", "\n   ")
        return f".. py:data:: {full}\n\n   {text}\n"
    return f".. autoclass:: {full}\n   :members:\n   :exclude-members: model_config\n"


def constant_text(package: str, name: str) -> str:
    """Return the comment (`#:`) above a constant, wherever in the package it is defined."""
    value = getattr(importlib.import_module(package), name)
    for module in [name for name in sys.modules if f"{name}.".startswith(f"{ROOT}.")]:
        if getattr(sys.modules[module], name, None) is value:
            comments = ModuleAnalyzer.for_module(module).find_attr_docs()
            if ("", name) in comments:
                return "\n".join(comments["", name]).strip()
    raise ValueError(f"{package}.{name} needs a comment that begins with '#:'")


class Public(SphinxDirective):
    """All public names of a package: a table, then each with its docstring."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return a section for each kind of names."""
        package = self.arguments[0]
        parts = []
        for kind, names in public(package).items():
            if names:
                table = "".join(f"   {package}.{name}\n" for name in names)
                rst = f".. autosummary::\n   :nosignatures:\n\n{table}\n"
                rst = "" if kind == "Constants" else rst  # it would tell of their type
                rst += "\n".join(entry(package, name, kind) for name in names)
                parts.append(f"## {kind}\n\n````{{eval-rst}}\n{rst}\n````\n")
        return self.parse_text_to_nodes("\n".join(parts), allow_section_headings=True)


class Generated(SphinxDirective):
    """One of the functions of `texts`, which return Markdown, and its argument if it takes one."""

    required_arguments = 1
    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return what the text says."""
        self.env.note_reread()  # what it is made of may have changed, though the page has not
        name, *rest = self.arguments
        text = getattr(texts, name)(*rest)
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx of the directives."""
    app.add_directive("public", Public)
    app.add_directive("generated", Generated)
    return {"parallel_read_safe": True}
