"""The commands by name. Each is loaded when it is called; the help reads their summaries from their source."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

# In the order of the help. Two words: `audit` itself takes a tenant, and so has no commands below it.
COMMANDS: Mapping[str, str] = {
    "jobs": ".jobs:app",
    "runs": ".runs:app",
    "calendars": ".calendars:app",
    "backfill": ".manual:backfill",
    "expected": ".expected:expected",
    "upcoming": ".upcoming:upcoming",
    "density": ".upcoming:density",
    "clock-changes": ".upcoming:clock_changes",
    "overview": ".stats:overview",
    "stats": ".stats:stats",
    "failures": ".failures:app",
    "preview": ".preview:preview",
    "import": ".transfer:import_jobs",
    "apply": ".apply:apply",
    "export": ".export:export_jobs",
    "audit": ".audit:audit",
    "audit verify": ".audit_verify:verify",
    "keys": ".keys:app",
    "quotas": ".tenants:quotas_app",
    "secrets": ".secrets:app",
    "webhook-secret": ".keys:webhook_secret",
    "subscriptions": ".subscriptions:app",
    "tenants": ".tenants:app",
    "blocks": ".operations:blocks_app",
    "unrecorded": ".operations:unrecorded_app",
    "operator-keys": ".keys:operator_app",
    "dead-letters": ".operations:dead_letters_app",
    "planning": ".operations:planning",
    "doctor": "..doctor.command:doctor",
    "check": ".check:check",
    "restored": ".restored:restored",
    "report": ".report:report",
    "redrive": ".redrive:redrive",
}
# Commands of a group that other modules than its own hold.
MORE: Mapping[str, Mapping[str, str]] = {
    "jobs": {
        "create": ".define:create",
        "edit": ".define:edit",
        "run": ".manual:run_now",
        "skip": ".manual:skip",
        "unskip": ".manual:unskip",
        "backfills": ".manual:backfills",
        "cancel-backfill": ".manual:cancel_backfill",
        "explain": ".expected:explain",
        "pause-all": ".many:pause_all",
        "resume-all": ".many:resume_all",
        "delete-all": ".many:delete_all",
        "run-all": ".many:run_all",
    },
    "runs": {
        "summary": ".runs:summary",
        "permits": ".runs:permits",
        "retry": ".manual:retry",
        "cancel": ".manual:cancel",
        "end": ".manual:end",
        "erase": ".manual:erase",
        "call-back": ".manual:call_back",
        "retry-all": ".many:retry_all",
        "cancel-all": ".many:cancel_all",
    },
    "tenants": {
        "export": ".tenant_move:export_tenant",
        "import": ".tenant_move:import_tenant",
        "delete": ".deletion:delete",
        "deletion": ".deletion:deletion",
        "rebuild-runs": ".deletion:rebuild_runs",
    },
}


class Commands(TyperGroup):
    """The `minute8` group, whose commands are loaded on demand."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {name: TyperCommand(name) for name in COMMANDS}
        self._prints_help = False

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if self._prints_help or cmd_name not in COMMANDS:
            return super().get_command(ctx, cmd_name)
        return load(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        words = " ".join(args[:2])
        return (words, load(words), args[2:]) if words in COMMANDS else super().resolve_command(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self._prints_help = True
        for name, command in self.commands.items():
            command.help = summary(COMMANDS[name])
        try:
            super().format_help(ctx, formatter)
        finally:
            self._prints_help = False


class _Group(TyperGroup):
    """A group that loads the commands of other modules on demand."""

    more: Mapping[str, str] = {}

    def list_commands(self, ctx: Any) -> list[str]:
        return [*self.commands, *(name for name in self.more if name not in self.commands)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in self.commands:
            # If the name is mistyped, all are loaded: any of them may be suggested.
            for name in [cmd_name] if cmd_name in self.more else self.more:
                self.commands[name] = _command(name, _object(self.more[name]))
        return super().get_command(ctx, cmd_name)


def summary(location: str) -> str:
    """The first paragraph of a command's docstring, or a group's help; most modules take long to load."""
    module, _, name = location.partition(":")
    spec = find_spec(module, __package__)
    assert spec and spec.origin
    text = Path(spec.origin).read_text(encoding="utf-8")
    docstring = r'.*?"""(.*?)(?:\n\n|""")'
    # A group without a help of its own has a callback.
    for pattern in (
        rf"def {name}\({docstring}",
        rf'{name} = typer\.Typer\([^)]*help="(.*?)"',
        rf"@{name}\.callback\({docstring}",
    ):
        if match := re.search(f"^{pattern}", text, re.DOTALL | re.MULTILINE):
            return " ".join(match[1].split())
    raise LookupError(location)


@cache
def load(name: str) -> Any:
    """The command, or the group of commands, of that name."""
    command = _object(COMMANDS[name])
    if not isinstance(command, typer.Typer):
        return _command(name, command)
    parent = typer.Typer(add_completion=False)
    parent.add_typer(command, name=name, cls=type("Group", (_Group,), {"more": MORE.get(name, {})}))
    return typer.main.get_group(parent).commands[name]


def _command(name: str, function: Any) -> Any:
    parent = typer.Typer(add_completion=False)
    parent.command(name)(function)
    return typer.main.get_command(parent)


def _object(location: str) -> Any:
    module, _, name = location.partition(":")
    # Relative: in the wheel this package has another name.
    return getattr(import_module(module, __package__), name)
