"""Every command that the documents show exists, with its options; every command that exists is shown."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from minute8.cli.commands import table
from minute8.cli.main import app

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
COMMAND = typer.main.get_command(app)


def shown(document: Path) -> list[list[str]]:
    """The words of each `minute8 …` in the code of a document, also inside $( ) and after a pipe."""
    text = document.read_text()
    lines = [
        line.removeprefix("$ ")
        for block in re.findall(r"```(?:console|sh)\n(.*?)```", text, re.DOTALL)
        for line in block.splitlines()
        if line.startswith("$ ")
    ] + re.findall(r"`(minute8 [^`]+)`", text)
    parts = [part for line in lines for part in re.split(r"\$\(|\)$| \| ", line)]
    return [shlex.split(part)[1:] for part in parts if part.startswith("minute8 ")]


def commands(command: Any = COMMAND, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """All commands with their paths, groups left out."""
    if not (inner := below(command)):
        yield path, command
        return
    for name, subcommand in inner.items():
        yield from commands(subcommand, (*path, name))


def below(command: Any) -> dict[str, Any]:
    """The commands of a group by name; empty if the command is not a group."""
    names = command.list_commands(None) if hasattr(command, "list_commands") else ()
    return {name: command.get_command(None, name) for name in names}


COMMANDS = {" ".join(path): command for path, command in commands()}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_documented_commands_exist(document: Path) -> None:
    for words in shown(document):
        command, rest, options = COMMAND, list(words), {"--install-completion", "--show-completion", "--help"}
        while True:
            if rest and rest[0] in ("--url", "--key", "--profile"):
                del rest[:2]
            options |= {name for param in command.params for name in (*param.opts, *param.secondary_opts)}
            names = below(command)
            if " ".join(rest[:2]) in names:  # `minute8 audit verify` beside `minute8 audit TENANT`
                rest[:2] = [" ".join(rest[:2])]
            if not rest or rest[0] not in names:
                break
            command = names[rest.pop(0)]
        shown_as = f"{document.name} shows: minute8 {' '.join(words)}"
        assert not below(command) or not [word for word in rest if not word.startswith("-")], shown_as
        for word in rest:
            if re.match(r"--?[a-zA-Z]", word):
                assert word.partition("=")[0] in options, shown_as


@pytest.mark.parametrize("path", COMMANDS)
def test_existing_commands_are_documented(path: str) -> None:
    group, _, name = path.rpartition(" ")
    text = (ROOT / "docs" / "cli.md").read_text()
    # `minute8 keys create`, `list`, `revoke`
    listed = rf"`minute8 {group} \w+`(, `\w+`)*, `{name}`" if group else "$^"
    assert re.search(rf"\bminute8 {path}\b|{listed}", text), f"docs/cli.md does not tell of minute8 {path}"


@pytest.mark.parametrize("name", table.COMMANDS)
def test_help_shows_what_the_command_says_of_itself(name: str) -> None:
    first_paragraph = below(COMMAND)[name].help.split("\n\n")[0]
    assert table.summary(table.COMMANDS[name]) == " ".join(first_paragraph.split())


@pytest.mark.parametrize("path", COMMANDS)
def test_each_command_explains_itself(path: str) -> None:
    assert COMMANDS[path].help
    for param in COMMANDS[path].params:
        assert getattr(param, "help", None), f"minute8 {path}: {param.name} has no help"
