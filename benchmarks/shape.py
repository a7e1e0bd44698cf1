"""Measure the shape of the code: what a reader has to hold in mind to find the way.

    python -m benchmarks.shape                # the table
    python -m benchmarks.shape --check        # and fail where the code breaks a rule of shape
    python -m benchmarks.shape --root FOLDER  # of another checkout

A room of the table is a module or package directly in optsched/, the linked models and instances
included; an arrow goes from one to another that it imports from, anywhere in its files, types
included. Below, both are called packages.

Files to read, to follow one solve from JSON to verified bound: those of the problem and the
packages that all problems share (not models, clusters, traces, rollouts) that are imported when
`exact` and the verifier of certificates are.

Constants are numbers that stand alone in a name of a module, in a tuple of numbers, or in a
`Fraction`; fields of classes are none. A class is twice where two files define its name. Lines are
those of optsched/ and models/. Circles are of modules that import each other, inside functions too,
but not for types alone.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

MOST_FILES, MOST_LINES, MOST_STATEMENT_LINES = 20, 300, 50
FOLDERS = ("optsched", "models", "instances", "tests", "benchmarks")  # none crowded
LENGTHS = ("optsched", "models")  # of these, lines of files and functions
PROBLEMS = ("boa", "pal", "eaco", "sia")
BEGINNINGS = ("exact.solver", "exact", "solver", "verify.certificate", "proof")
NOT_SHARED = frozenset({"models", "instances", "cluster", "traces", "rollout", *PROBLEMS})


@dataclass
class Module:
    """A file, by its name as it is imported, with its source."""

    name: str
    path: Path
    text: str = field(repr=False)

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @property
    def lines(self) -> int:
        return self.text.count("\n")

    @property
    def package(self) -> str:
        """What it belongs to: a module or package directly in optsched/, or optsched itself."""
        return self.name.split(".")[1] if "." in self.name else self.name

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders within its package, from the outermost on."""
        parts = self.name.split(".")[2:]
        return tuple(parts if self.path.name == "__init__.py" else parts[:-1])

    def __str__(self) -> str:
        return self.name

    def imports(self, *, inside: bool, types: bool) -> set[tuple[str, str]]:
        """Return what it imports, as (module, name): also inside functions, also for types."""
        names: set[tuple[str, str]] = set()
        waiting: list[ast.AST] = [*self.tree.body]
        while waiting:
            node = waiting.pop()
            if isinstance(node, ast.Import):
                names |= {(alias.name, "") for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names |= {(node.module, alias.name) for alias in node.names}
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test) and not types:
                waiting += node.orelse
            elif inside or isinstance(node, (ast.If, ast.Try)):
                waiting += ast.iter_child_nodes(node)
        return names

    def functions_without_docstring(self) -> dict[str, int]:
        """Return the lines of each function, from `def` to its end, its docstring aside."""
        lengths = {}
        for node in ast.walk(self.tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                text = node.body[0] if ast.get_docstring(node, clean=False) is not None else None
                length = node.end_lineno - node.lineno + 1  # type: ignore[operator]
                length -= text.end_lineno - text.lineno + 1 if text else 0  # type: ignore[operator]
                lengths[f"{node.name}, line {node.lineno}"] = length
        return lengths

    def constants(self) -> int:
        """Count the numbers that names of the module stand for."""
        count = 0
        for node in self.tree.body:
            if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
                continue
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    count += sum(_is_number(value) for value in node.value.elts)
                elif isinstance(target, ast.Name):
                    count += _is_number(node.value) or _is_numbers(node.value)
        return count


def _is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp):
        return _is_number(node.operand)
    if isinstance(node, ast.BinOp):
        return _is_number(node.left) and _is_number(node.right)
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def _is_numbers(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "Fraction"
    return isinstance(node, ast.Tuple) and bool(node.elts) and all(map(_is_number, node.elts))


@dataclass
class Shape:
    """The code of a checkout."""

    root: Path

    @cached_property
    def modules(self) -> dict[str, Module]:
        """Every module of optsched, models and instances included, by its name."""
        modules = {}
        linked = {"models": "optsched.", "instances": "optsched."}
        for folder in ("optsched", *linked):
            for path in sorted((self.root / folder).rglob("*.py")):
                if any(part.is_symlink() for part in path.parents):
                    continue
                parts = path.relative_to(self.root).with_suffix("").parts
                name = (linked.get(folder, "") + ".".join(parts)).removesuffix(".__init__")
                modules[name] = Module(name, path, path.read_text())
        return modules

    @cached_property
    def code(self) -> list[Module]:
        """Modules of optsched/ and models/."""
        return [module for module in self.modules.values() if module.package != "instances"]

    def imported(self, module: Module, *, inside: bool, types: bool) -> set[str]:
        """Return the modules of optsched that a module imports, by name."""
        names = set()
        for base, name in module.imports(inside=inside, types=types):
            names |= {n for n in (f"{base}.{name}", base) if n in self.modules and n != module.name}
            if f"{base}.{name}" in self.modules:
                names -= {base}
        return names

    @cached_property
    def arrows(self) -> set[tuple[str, str]]:
        """Pairs of packages, the second imported by the first."""
        return {
            (module.package, self.modules[name].package)
            for module in self.code
            for name in self.imported(module, inside=True, types=True)
            if module.package != self.modules[name].package
        }

    def reached(self, starts: set[str], out_of: frozenset[str] = frozenset()) -> set[str]:
        """Return modules and all that is imported when they are, of packages not `out_of`."""
        waiting, names = [*starts], set()
        while waiting:
            module = self.modules[name := waiting.pop()]
            if name not in names and module.package not in out_of:
                names.add(name)
                waiting += self.imported(module, inside=False, types=False)
        return names

    def to_read(self, problem: str) -> set[str]:
        """Return the modules that one reads to follow a solve."""
        starts = {f"optsched.{problem}.{name}" for name in BEGINNINGS} & {*self.modules}
        names = self.reached(starts, NOT_SHARED - {problem})
        return {name for name in names if self.modules[name].path.name != "__init__.py"}

    @cached_property
    def homes(self) -> dict[str, list[Module]]:
        """Where each name of a class is defined."""
        homes: dict[str, list[Module]] = defaultdict(list)
        for module in self.code:
            for name in {n.name for n in ast.walk(module.tree) if isinstance(n, ast.ClassDef)}:
                homes[name].append(module)
        return homes

    @cached_property
    def folders(self) -> dict[str, int]:
        """Count the Python files of each folder."""
        count: Counter[str] = Counter()
        for folder in FOLDERS:
            for path in (self.root / folder).rglob("*.py"):
                if not any(part.is_symlink() for part in path.parents):
                    count[str(path.parent.relative_to(self.root))] += 1
        return count

    @cached_property
    def circles(self) -> list[list[str]]:
        """Modules that import each other, in whatever many steps."""
        return circles({m.name: self.imported(m, inside=True, types=False) for m in self.code})

    def broken(self) -> list[str]:
        """Return every rule of shape that is broken, in words."""
        texts = [f"{f}/: {n} files" for f, n in sorted(self.folders.items()) if n > MOST_FILES]
        for name, homes in sorted(self.homes.items()):
            for package, count in Counter(module.package for module in homes).items():
                if count > 1:
                    paths = ", ".join(self._path(m) for m in homes if m.package == package)
                    texts.append(f"class {name} twice in {package}: {paths}")
        for module in self.code:
            if module.lines > MOST_LINES:
                texts.append(f"{self._path(module)}: {module.lines} lines")
            for name, length in module.functions_without_docstring().items():
                if length > MOST_STATEMENT_LINES:
                    texts.append(f"{self._path(module)}: {length} lines of code in {name}")
        return texts + ["circle of imports: " + " <-> ".join(circle) for circle in self.circles]

    def _path(self, module: Module) -> str:
        return str(module.path.relative_to(self.root))

    def table(self) -> list[tuple[str, str]]:
        """Return what is measured, and how much of it there is."""
        packages = {module.package for module in self.modules.values()}
        folder, files = max(self.folders.items(), key=lambda entry: entry[1])
        problems = [p for p in PROBLEMS if (self.root / "optsched" / p / "problem.py").exists()]
        to_read = " / ".join(str(len(self.to_read(problem))) for problem in problems)
        twice = sum(len(homes) > 1 for homes in self.homes.values())
        inside = sum(len({m.package for m in homes}) < len(homes) for homes in self.homes.values())
        return [
            ("rooms / arrows at the top level", f"{len(packages)} / {len(self.arrows)}"),
            ("largest folder, Python files", f"{files} ({folder}/)"),
            ("class names in more than one file", f"{twice}, {inside} within a package"),
            ("numeric constants of modules", str(sum(module.constants() for module in self.code))),
            (f"files to read for one solve ({' / '.join(map(str.upper, problems))})", to_read),
            ("lines of optsched + models", f"{sum(module.lines for module in self.code):,}"),
            ("longest file, lines", str(max(module.lines for module in self.code))),
            ("circles of imports", str(len(self.circles))),
            ("README, lines", str((self.root / "README.md").read_text().count("\n"))),
        ]


def circles(leads: dict[str, set[str]]) -> list[list[str]]:
    """Return the sets of names that lead to each other; `leads` says where each leads."""
    onwards = {name: _onwards(leads, name) for name in leads}
    groups = {frozenset(b for b in onwards[a] if a in onwards.get(b, ())) for a in leads}
    return sorted(sorted(group) for group in groups if group)


def _onwards(leads: dict[str, set[str]], start: str) -> set[str]:
    waiting, reached = [*leads[start]], set()
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += leads.get(name, ())
    return reached


def main(arguments: list[str] | None = None) -> int:
    """Print the table; with --check, return 1 if a rule is broken."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.shape", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[1])
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args(arguments)
    shape = Shape(options.root)
    for name, value in shape.table():
        print(f"{name:54} {value}")
    broken = shape.broken() if options.check else []
    print(*broken, sep="\n", end="\n" if broken else "")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
