"""The package is layered: folders import only from folders further left, and no modules import each other.

Imports inside functions count like those at the top of a file; imports for type checkers alone do not.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import retrodict

ROOT = Path(retrodict.__file__).parent
# Files directly in the package that any folder may import; they import nothing of a folder.
COMMON = {"errors", "random", "_limits", "_near", "_options", "_sparing", "_version"}
FOLDERS = [
    "events", "report", "missingness", "models", "decode", "proposals", "smc", "jobs", "train", "evaluate", "datasets",
    "serve", "cli",
]  # fmt: skip


def is_for_type_checkers(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def nodes_that_run(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes below ``node``, functions and classes included."""
    yield node
    if is_for_type_checkers(node):
        return
    for child in ast.iter_child_nodes(node):
        yield from nodes_that_run(child)


def imports_of(file: Path, modules: set[str]) -> set[str]:
    """The package's own modules that a file imports anywhere in it."""
    found = set()
    for node in nodes_that_run(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: imports are absolute"
            for name in node.names:
                inner = f"{node.module}.{name.name}"
                found.add(inner if inner in modules else str(node.module))
    return found & modules


def import_graph() -> dict[str, set[str]]:
    """Each module of the package with those that it imports."""
    files = {}
    for file in ROOT.rglob("*.py"):
        parts = file.relative_to(ROOT.parent).with_suffix("").parts
        files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    modules = set(files)
    return {name: imports_of(file, modules) - {name} for name, file in files.items()}


def place(module: str) -> str:
    """The folder, or the file of the package itself, that a module is in."""
    return module.split(".")[1] if "." in module else module


def test_every_folder_has_a_place_in_the_order() -> None:
    assert {file.parent.name for file in ROOT.glob("*/__init__.py")} == set(FOLDERS)


def test_folders_import_only_leftwards() -> None:
    wrong = []
    for module, imported in import_graph().items():
        own = place(module)
        if own in ("retrodict", "__main__"):
            continue
        allowed = COMMON | set(FOLDERS[: FOLDERS.index(own) + 1] if own in FOLDERS else [])
        wrong += [f"{module} imports {other}" for other in sorted(imported) if place(other) not in allowed]
    assert not wrong, "\n".join(wrong)


def test_no_modules_import_each_other() -> None:
    graph = import_graph()
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError("import cycle: " + " -> ".join(error.args[1])) from None


def test_the_graph_sees_lazy_imports_and_not_those_for_type_checkers(tmp_path: Path) -> None:
    file = tmp_path / "example.py"
    file.write_text(
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from retrodict.events.stream import EventStream\n"
        "def f():\n    from retrodict.events import batch\n    import retrodict.random\n"
    )
    modules = {"retrodict.events.stream", "retrodict.events", "retrodict.events.batch", "retrodict.random"}
    assert imports_of(file, modules) == {"retrodict.events.batch", "retrodict.random"}
