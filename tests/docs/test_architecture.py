"""Rules of the folders, besides the import contracts in pyproject.toml (`make lint`)."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HANDLERS = (
    "scheduler.handler",
    "executor.handler",
    "executor.completion",
    "minute8.api.handler",
)
# Imported with the first event, or not at all. The contracts cannot see when something is imported.
LATER = ("boto3", "botocore.session", "aws_lambda_powertools", "difflib")
# The most modules of ours, and what none of their most frequent events needs.
OF_OURS = (
    ("scheduler.handler", 71, {"common.jobs.job", "common.jobs.store", "common.platform.tenants"}),
    (
        "executor.handler",
        74,
        {"croniter", "common.jobs.store", "common.timing.zones", "common.tenants.web_address"},
    ),
    ("executor.completion", 54, {"croniter", "common.jobs.store", "common.planning.due_index"}),
)
_FOLDERS = (
    "common",
    "scheduler",
    "executor",
    "minute8",
    "scripts",
)
_BRANCHES = (ast.If, ast.IfExp, ast.For, ast.While, ast.ExceptHandler, ast.Assert, ast.match_case, ast.Lambda)


@cache
def imported_by(handler: str) -> set[str]:
    """The modules that are loaded after it was imported into a fresh interpreter."""
    code = f"import sys; import {handler}; print(*sys.modules)"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    loaded = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return set(loaded.stdout.split())


def files(folder: str) -> list[Path]:
    """The Python files below a folder of the project."""
    return sorted((ROOT / folder).rglob("*.py"))


@pytest.mark.parametrize("handler", HANDLERS)
def test_importing_a_handler_loads_nothing_that_can_wait(handler: str) -> None:
    assert imported_by(handler).isdisjoint(LATER)


@pytest.mark.parametrize(("handler", "most", "not_loaded"), OF_OURS)
def test_importing_a_handler_loads_few_modules_of_ours(handler: str, most: int, not_loaded: set[str]) -> None:
    """What most invocations do not need is imported by the first that does (`common.storage.aws.on_first_use`)."""
    loaded = {name for name in imported_by(handler) if name.partition(".")[0] in _FOLDERS}
    assert len(loaded) <= most
    assert not_loaded.isdisjoint(imported_by(handler))


def test_pure_files_do_not_ask_for_the_time() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    [pure] = [contract["source_modules"] for contract in contracts if contract["id"] == "pure"]
    assert len(pure) > 10
    for module in pure:
        path = ROOT / (module.replace(".", "/") + ".py")
        assert "datetime.now(" not in path.read_text(), f"{path.relative_to(ROOT)} reads the clock"


def test_package_files_of_rooms_stay_empty() -> None:
    """A package that imports its modules would load all of them at each cold start."""
    for folder in (
        "common",
        "scheduler",
        "executor",
        "minute8/notifier",
        "minute8/api",
        "minute8/eventbridge",
    ):
        for path in (ROOT / folder).rglob("__init__.py"):
            if path.parent.name not in ("targets", "shapes"):
                assert path.read_text() == "", path.relative_to(ROOT)


def test_files_stay_readable() -> None:
    """A file holds one concept, in up to 500 lines; generated files aside."""
    long = {
        str(path.relative_to(ROOT)): count
        for folder in _FOLDERS
        for path in files(folder)
        if (count := len((text := path.read_text()).splitlines())) > 500 and "\nGenerated from " not in text
    }
    assert long == {}


def branches(function: ast.AST) -> int:
    """The paths of a function: one, and one for each condition. A function inside it counts for itself."""
    count = 0
    for node in ast.iter_child_nodes(function):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if isinstance(node, ast.BoolOp):
            count += len(node.values) - 1
        elif isinstance(node, ast.comprehension):
            count += 1 + len(node.ifs)
        else:
            count += isinstance(node, _BRANCHES)
        count += branches(node)
    return count + isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)


def test_functions_stay_simple() -> None:
    """At most 15 paths. Ruff's C901 does not count the conditions inside an expression."""
    complex_functions = {
        f"{path.relative_to(ROOT)}:{node.name}": count
        for folder in _FOLDERS
        for path in files(folder)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (count := branches(node)) > 15
    }
    assert complex_functions == {}


def rooms_imported_by(room: str) -> set[str]:
    """The rooms of `common/` that a room or stage imports, by their names."""
    modules = {
        node.module
        for path in files(room)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module
    }
    imported = {module.split(".")[1] for module in modules if module.startswith("common.")}
    return {name for name in imported if (ROOT / "common" / name).is_dir()} - {Path(room).name}


def test_the_page_of_architecture_names_each_room_that_a_room_imports() -> None:
    page = (ROOT / "docs/architecture.md").read_text()
    rows = re.findall(r"^\| `([a-z0-9/]+)/` \| .* \| (.*) \|$", page, re.MULTILINE)
    stage_rooms = re.search(r"The \*stage rooms\* are (.*?)\.", page, re.DOTALL)
    assert len(rows) > 20 and stage_rooms
    missing = {
        room: unnamed
        for room, may_import in rows
        if not re.search(r"the rooms above|all of `common/`|everything", may_import)
        and (
            unnamed := rooms_imported_by(room)
            - set(re.findall(r"\w+", may_import.replace("stage rooms", stage_rooms[1])))
        )
    }
    assert missing == {}
