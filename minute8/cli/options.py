"""The options that several commands have, what the shell completes for them, and the exit codes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import IntEnum
from functools import wraps
from typing import Annotated, Any, get_type_hints

import typer

from minute8.cli.session import Session


class ExitCode(IntEnum):
    """As in docs/cli.md. typer and click also use 2 for a wrong command line."""

    FAILED = 1
    INVALID = 2
    NOT_FOUND = 3
    CONFLICT = 4
    NOT_ALLOWED = 5
    UNREACHABLE = 6


# One page: a shell waits for the answer.
_COMPLETED_JOBS = 200
STATUSES = ("queued", "running", "dispatched", "succeeded", "failed", "retrying", "skipped")


def complete_job_ids(ctx: typer.Context, incomplete: str) -> list[str]:
    """The ids that begin with the word."""
    ids = (job["job_id"] for job in _jobs(ctx, incomplete or None))
    return [job_id for job_id in ids if job_id.startswith(incomplete)]


def complete_tags(ctx: typer.Context, incomplete: str) -> list[str]:
    """The tags of the first jobs."""
    return _beginning(incomplete, {tag for job in _jobs(ctx, None) for tag in job["tags"]})


def complete_states(incomplete: str) -> list[str]:
    """The states of jobs."""
    return _beginning(incomplete, ("active", "paused"))


def complete_statuses(incomplete: str) -> list[str]:
    """The statuses of runs."""
    return _beginning(incomplete, STATUSES)


def complete_triggers(incomplete: str) -> list[str]:
    """The triggers of runs."""
    return _beginning(incomplete, ("schedule", "manual", "backfill", "retry"))


def _beginning(incomplete: str, words: Iterable[str]) -> list[str]:
    return sorted(word for word in words if word.startswith(incomplete))


def _jobs(ctx: typer.Context, prefix: str | None) -> list[Any]:
    """Never raises: a shell has no place for an error."""
    from minute8.client import Minute8Problem, Unreachable  # `--help` does not need it

    options = ctx.find_root().params  # while completing, no command has run yet
    try:
        named = Session(options.get("url"), options.get("key"), options.get("profile"))
        with named.client() as client:
            return list(client.list_jobs_page(limit=_COMPLETED_JOBS, name_prefix=prefix)["jobs"])
    except (Minute8Problem, Unreachable, typer.BadParameter, OSError, ValueError):
        return []


JobId = Annotated[str, typer.Argument(help="The job's id.", autocompletion=complete_job_ids)]
JobIds = Annotated[
    list[str], typer.Argument(help="The ids of one or more jobs.", autocompletion=complete_job_ids)
]
Since = Annotated[str | None, typer.Option(help="Only from the last 2h, 7d…, or since a time.")]
Until = Annotated[str | None, typer.Option(help="Only before this time.")]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, help="List at most this many.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@dataclass(frozen=True, slots=True)
class OptionGroup:
    """Options that a command takes as one value: each option's type and default by name, and what makes the value."""

    options: Mapping[str, tuple[Any, Any]]
    build: Callable[..., Any]


def with_options(command: Callable[..., None], **groups: OptionGroup) -> Callable[..., None]:
    """The command with the options of each group in place of the parameter that takes the group's value.

    A parameter whose type is a dataclass is a group: each field is an option.
    """
    signature = inspect.signature(command, eval_str=True)
    groups |= {
        name: _fields_of(parameter.annotation)
        for name, parameter in signature.parameters.items()
        if isinstance(parameter.annotation, type) and is_dataclass(parameter.annotation)
    }
    flat: list[inspect.Parameter] = []
    for name, parameter in signature.parameters.items():
        options = (
            groups[name].options if name in groups else {name: (parameter.annotation, parameter.default)}
        )
        flat += (
            inspect.Parameter(option, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
            for option, (kind, default) in options.items()
        )

    @wraps(command)
    def run(**values: Any) -> None:
        built = {
            name: group.build(**{option: values.pop(option) for option in group.options})
            for name, group in groups.items()
        }
        command(**values, **built)

    run.__signature__ = signature.replace(parameters=flat)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in flat}
    del run.__wrapped__  # typer would read the command's own signature
    return run


def _fields_of(group: type[Any]) -> OptionGroup:
    kinds = get_type_hints(group, include_extras=True)
    options = {
        field.name: (
            kinds[field.name],
            inspect.Parameter.empty if field.default is MISSING else field.default,
        )
        for field in fields(group)
    }
    return OptionGroup(options, group)
