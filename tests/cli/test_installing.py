"""The command as it is installed: what it needs is declared, and the shell completes it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import grimp
import pytest

from tests.docs.test_architecture import ROOT

# Of modules in common/ that only functions import.
_FUNCTIONS_ONLY = {"aws-lambda-powertools"}
# Comes with, and as it is wanted by, another one.
_COMES_WITH = {"pydantic-core": "pydantic"}


def test_what_the_command_and_the_client_import_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {re.split(r"[<>=\[]", one)[0].lower() for one in project["dependencies"]}
    distributions = packages_distributions()
    own = ("cli", "common", "minute8_client")
    graph = grimp.build_graph(*own, include_external_packages=True, exclude_type_checking_imports=True)
    foreign = {module for module in graph.modules if module.split(".")[0] not in own}
    imported = {
        name.lower().replace("_", "-") for module in foreign for name in distributions.get(module, [])
    }
    wanted = {_COMES_WITH.get(name, name) for name in imported} - _FUNCTIONS_ONLY - {project["name"]}
    assert wanted == declared


# As if the shell had been found out: in a person's terminal it is, and tests may have no shell above them at all.
NAMED = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}


@pytest.fixture
def shell(tmp_path: Path) -> dict[str, str]:
    """A home without settings, and a `minute8` to be found."""
    command = tmp_path / "bin" / "minute8"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m cli "$@"\n')
    command.chmod(0o755)
    path = f"{command.parent}:/usr/bin:/bin"
    return {"HOME": str(tmp_path), "PATH": path, "PYTHONPATH": str(ROOT), "LANG": "C.UTF-8"}


def bash(script: str, shell: dict[str, str]) -> str:
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-c", script],
        env=shell,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done
    return done.stdout


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("minute8 ru", ["runs"]),
        ("minute8 runs re", ["retry"]),
        ("minute8 keys ", ["create", "list", "revoke"]),
        ("minute8 doctor --str", ["--strict"]),
    ],
)
def test_bash_completes_what_is_typed(shell: dict[str, str], typed: str, completed: list[str]) -> None:
    bash("minute8 --install-completion bash", shell | NAMED)
    words = typed.split(" ")
    script = f"""
        . "$HOME/.bash_completions/minute8.sh"
        COMP_WORDS=({typed.rstrip()} {'""' if not words[-1] else ""}) COMP_CWORD={len(words) - 1}
        _minute8_completion minute8
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    assert bash(script, shell).split() == completed


@pytest.mark.parametrize("name", ["zsh", "fish"])
def test_other_shells_get_their_completion_too(shell: dict[str, str], name: str) -> None:
    script = bash(f"minute8 --show-completion {name}", shell | NAMED)
    assert "_MINUTE8_COMPLETE=complete_" + name in script


def test_nothing_is_imported_for_help_that_takes_long() -> None:
    code = (
        "import sys; from typer.testing import CliRunner; from cli.main import app;"
        "assert CliRunner().invoke(app, ['--help']).exit_code == 0;"
        "print(*sorted({'botocore.session', 'icalendar', 'holidays', 'boto3'} & set(sys.modules)))"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == ""
