"""The commands by name. Each is loaded when it is called; the help uses the summaries in this file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup


@dataclass(frozen=True, slots=True)
class Entry:
    """A command: the first paragraph of its help, and `module:name` of its function, or of a group's Typer.

    `more` are the group's commands that other modules hold.
    """

    summary: str
    location: str
    more: Mapping[str, str] = field(default_factory=dict)


ENTRIES: Mapping[str, Entry] = {
    "jobs": Entry(
        "A tenant's jobs.",
        ".jobs:app",
        {
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
    ),
    "runs": Entry(
        "Runs: the results of executions.",
        ".runs:app",
        {
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
    ),
    "calendars": Entry("Dates on which the jobs that name them do not fire.", ".calendars:app"),
    "backfill": Entry(
        "Run the fire times of a past range. They are counted first; Ctrl-C ends the watching, not the backfill.",
        ".manual:backfill",
    ),
    "expected": Entry(
        "Show when jobs were due and what became of each due instant: on time, late, skipped, missed, no record.",
        ".expected:expected",
    ),
    "upcoming": Entry("List the next executions of all jobs, the earliest first.", ".upcoming:upcoming"),
    "density": Entry(
        "Show how many executions are due by hour, which minutes are crowded, and what would spread them.",
        ".upcoming:density",
    ),
    "clock-changes": Entry(
        "List the jobs that the next clock change of their time zones moves, doubles or drops.",
        ".upcoming:clock_changes",
    ),
    "overview": Entry(
        "Show a first look: the jobs, the last and the next 24 hours, what fails.", ".stats:overview"
    ),
    "stats": Entry(
        "Show what became of all runs: a picture by hour (of a week or more by day), and a table by day.",
        ".stats:stats",
    ),
    "failures": Entry("List the failed runs of all jobs, latest failure first.", ".failures:app"),
    "preview": Entry(
        "Show when a schedule fires next, in words, and what may surprise you about it.", ".preview:preview"
    ),
    "import": Entry(
        "Create and change jobs from a file. Importing it again changes nothing.", ".transfer:import_jobs"
    ),
    "apply": Entry(
        "Make the jobs what the files say: create, change, pause, resume, and with --prune delete them.",
        ".apply:apply",
    ),
    "export": Entry(
        "Print all jobs, each a definition with its id: a line of NDJSON, or an entry of a YAML list.",
        ".export:export_jobs",
    ),
    "audit": Entry(
        "List who changed what, newest first: of your own tenant, with an admin key; for the platform of any.",
        ".audit:audit",
    ),
    # Two words: `audit` itself takes a tenant, and so has no commands below it.
    "audit verify": Entry(
        "Compare the audit with its seals: what was altered, deleted, inserted or reordered. Needs AWS credentials.",
        ".audit_verify:verify",
    ),
    "keys": Entry(
        "API keys: your own tenant's, with an admin key; any tenant's, with an operator key or AWS credentials.",
        ".keys:app",
    ),
    "quotas": Entry("Quotas, and how much of them is used.", ".tenants:quotas_app"),
    "secrets": Entry("Values that jobs name as secret://name, and that nothing shows.", ".secrets:app"),
    "webhook-secret": Entry(
        "Show the secret that signs calls of HTTP targets (Standard Webhooks); needs an admin key.",
        ".keys:webhook_secret",
    ),
    "subscriptions": Entry(
        "Addresses that get messages about failures, recoveries and overdue jobs.", ".subscriptions:app"
    ),
    "tenants": Entry(
        "Tenants; needs an operator key or AWS credentials.",
        ".tenants:app",
        {
            "export": ".tenant_move:export_tenant",
            "import": ".tenant_move:import_tenant",
            "delete": ".deletion:delete",
            "deletion": ".deletion:deletion",
            "rebuild-runs": ".deletion:rebuild_runs",
        },
    ),
    "holds": Entry("Targets that no tenant's run calls; needs an operator key.", ".operations:holds_app"),
    "unrecorded": Entry(
        "Executions that were enqueued and have no record; needs an operator key or AWS credentials.",
        ".operations:unrecorded_app",
    ),
    "operator-keys": Entry(
        "Keys of operators; needs an operator key or AWS credentials.", ".keys:operator_app"
    ),
    "dead-letters": Entry(
        "Messages that were given up; needs an operator key.", ".operations:dead_letters_app"
    ),
    "planning": Entry(
        "Show up to when all is planned, how the last windows went, and what is set aside. Needs an operator key.",
        ".operations:planning",
    ),
    "doctor": Entry(
        "Check a deployment, and say what to do about what is wrong; --fix does some of it. Needs AWS credentials.",
        "..doctor.command:doctor",
    ),
    "check": Entry(
        "Compare jobs, due entries, groups, tenants, audit and runs with each other. Needs AWS credentials.",
        ".check:check",
    ),
    "report": Entry(
        "Show what ran, failed, was late or skipped in 24 hours, and what is wrong now. Needs AWS credentials.",
        ".report:report",
    ),
    "redrive": Entry(
        "Send the executions of the dead-letter queue again; other messages stay there. Needs AWS credentials.",
        ".redrive:redrive",
    ),
}


class Commands(TyperGroup):
    """The `minute8` group, whose commands are loaded on demand."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {name: TyperCommand(name, help=entry.summary) for name, entry in ENTRIES.items()}
        self._prints_help = False

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if self._prints_help or cmd_name not in ENTRIES:
            return super().get_command(ctx, cmd_name)
        return load(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        words = " ".join(args[:2])
        return (words, load(words), args[2:]) if words in ENTRIES else super().resolve_command(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self._prints_help = True
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


@cache
def load(name: str) -> Any:
    """The command, or the group of commands, of that name."""
    entry = ENTRIES[name]
    command = _object(entry.location)
    if not isinstance(command, typer.Typer):
        return _command(name, command)
    parent = typer.Typer(add_completion=False)
    parent.add_typer(command, name=name, cls=type("Group", (_Group,), {"more": entry.more}))
    return typer.main.get_group(parent).commands[name]


def _command(name: str, function: Any) -> Any:
    parent = typer.Typer(add_completion=False)
    parent.command(name)(function)
    return typer.main.get_command(parent)


def _object(location: str) -> Any:
    module, _, name = location.partition(":")
    # Relative: in the wheel this package has another name.
    return getattr(import_module(module, __package__), name)
