"""The import rules that keep the folders what they are."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STAGES = ("scheduler", "executor", "api")
# Pure files: decisions without I/O. No AWS client, no environment, no clock.
PURE = (
    "common/timing/cron.py",
    "common/registration/cron_text.py",
    "common/timing/durations.py",
    "common/timing/fires.py",
    "common/timing/groups.py",
    "common/timing/instants.py",
    "common/planning/plan.py",
    "common/runs/states.py",
    "common/history/summary.py",
    "common/history/walk.py",
    "common/timing/schedule.py",
    "common/jobs/placeholders.py",
    "common/timing/windows.py",
    "common/timing/zones.py",
    "executor/admission.py",
    "executor/retry.py",
)
IMPURE = {
    "boto3",
    "botocore",
    "os",
    "time",
    "random",
    "urllib3",
    "socket",
    "common.storage.aws",
    "common.config",
}
# What costs a cold start and is of use to the API alone.
HEAVY = {"pydantic", "boto3.session", "httpx", "typer", "rich", "icalendar", "holidays"}


def imports(path: Path, when_imported: bool = False) -> set[str]:
    """The modules that a file imports, not counting those for type checking only.

    `when_imported`: those at its top alone, which are paid for when the file itself is imported.
    """
    found: set[str] = set()
    tree = ast.parse(path.read_text())
    typing_only = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    inside = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if node in typing_only or (when_imported and node in inside):
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def files(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


@pytest.mark.parametrize("stage", STAGES)
def test_stages_import_common_and_never_each_other(stage: str) -> None:
    others = (*(set(STAGES) - {stage}), "cli", "scripts", "tests", "benchmarks")
    for path in files(stage):
        for module in imports(path):
            assert module.split(".")[0] not in others, f"{path.relative_to(ROOT)} imports {module}"


def test_common_imports_no_stage() -> None:
    for path in files("common"):
        for module in imports(path):
            assert module.split(".")[0] not in (*STAGES, "cli", "scripts", "tests"), path


@pytest.mark.parametrize("name", PURE)
def test_pure_files_know_no_client_environment_or_clock(name: str) -> None:
    path = ROOT / name
    if not path.exists():
        pytest.fail(f"{name} is listed as pure and is not there")
    assert not imports(path) & IMPURE
    assert "datetime.now(" not in path.read_text()


@pytest.mark.parametrize("stage", ["scheduler", "executor"])
def test_the_stages_import_nothing_heavy(stage: str) -> None:
    """Followed through `common`: what a stage's handler pulls in is what its cold start pays for."""
    seen: set[Path] = set()
    todo = files(stage)
    while todo:
        path = todo.pop()
        if path in seen:
            continue
        seen.add(path)
        for module in imports(path, when_imported=True):
            assert module.split(".")[0] not in HEAVY, f"{path.relative_to(ROOT)} imports {module}"
            own = ROOT / (module.replace(".", "/") + ".py")
            if own.exists():
                todo.append(own)


def test_files_stay_readable() -> None:
    """About 300 lines at most; generated ones and tables of facts aside."""
    long = {
        str(path.relative_to(ROOT)): count
        for folder in ("common", "scheduler", "executor", "api", "cli", "minute8_client", "scripts")
        for path in files(folder)
        if (count := len(path.read_text().splitlines())) > 320
    }
    assert long == {}
