"""The installed command: its requirements are declared, and the shell completes it."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import grimp
import pytest

from common.version import VERSION
from tests.docs.test_architecture import ROOT

# Requirements of modules in common/ that only functions import.
_FUNCTIONS_ONLY = {"aws-lambda-powertools"}
# Only functions send spans, so the wheel leaves this folder out (setup.py).
_NOT_INSTALLED = "common.tracing."
_OWN = ("minute8", "common", "executor")
# A deployment with an issuer of tokens has it beside the API.
_TOKENS_ONLY = {"pyjwt", "cryptography"}


def test_imports_of_the_client_and_the_command_are_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    client = _names(project["dependencies"])
    assert _imported_by("minute8.client") == client
    command = _imported_by("minute8.client", "minute8.cli", "common", "minute8.eventbridge")
    extras = {extra: client | _names(names) for extra, names in project["optional-dependencies"].items()}
    assert command - _FUNCTIONS_ONLY == extras["cli"]
    without_http = _imported_by(
        "minute8.client", "minute8.direct", "minute8.api", "common", "minute8.eventbridge"
    )
    # boto3 is the caller's own, with botocore in it. The importer, which shows its progress, is the command's.
    unneeded = {*_TOKENS_ONLY, "botocore", "rich"}
    assert without_http - unneeded == extras["direct"] - {"boto3"}


def _names(requirements: list[str]) -> set[str]:
    return {re.split(r"[<>=\[]", requirement)[0].lower() for requirement in requirements}


def _imported_by(*packages: str) -> set[str]:
    """The distributions of the foreign modules that these packages import."""
    graph = grimp.build_graph(*_OWN, include_external_packages=True, exclude_type_checking_imports=True)
    foreign = {
        module
        for module in graph.modules
        if module.split(".")[0] not in _OWN
        and any(_is_in(importing, packages) for importing in graph.find_modules_that_directly_import(module))
    }
    distributions = packages_distributions()
    return {name.lower().replace("_", "-") for module in foreign for name in distributions.get(module, [])}


def _is_in(module: str, packages: tuple[str, ...]) -> bool:
    return f"{module}.".startswith(tuple(f"{package}." for package in packages)) and not module.startswith(
        _NOT_INSTALLED
    )


# As if the shell were detected: tests may have no parent shell.
NAMED = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}


@pytest.fixture
def shell(tmp_path: Path) -> dict[str, str]:
    """A home without settings, and a `minute8` on the PATH."""
    command = tmp_path / "bin" / "minute8"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m minute8 "$@"\n')
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
        ("minute8 runs re", ["retry", "retry-all"]),
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


def test_the_installed_command_runs_this_checkout(tmp_path: Path) -> None:
    """`make install` links .venv/bin/minute8 to this script. Foreign folders of the same names are not imported."""
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "minute8"
    command.symlink_to(ROOT / "scripts" / "minute8")
    (tmp_path / "minute8").mkdir()
    (tmp_path / "minute8" / "__init__.py").write_text("raise RuntimeError('foreign')")
    done = subprocess.run([command, "--version"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == f"minute8 {VERSION}\n", done.stderr
