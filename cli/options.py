"""The options that several commands have, what the shell completes for them, and the exit codes."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Annotated, Any

import typer

from cli.session import Session


class ExitCode(IntEnum):
    """As in docs/cli.md. typer and click also use 2 for a wrong command line."""

    FAILED = 1
    INVALID = 2
    NOT_FOUND = 3
    CONFLICT = 4
    NOT_ALLOWED = 5
    UNREACHABLE = 6


# One page: a shell waits for the answer.
_PAGE = 200
STATUSES = ("queued", "running", "dispatched", "succeeded", "failed", "retrying", "skipped")


def complete_job_ids(ctx: typer.Context, incomplete: str) -> list[str]:
    """The ids that begin with the word."""
    found = (job["job_id"] for job in _jobs(ctx, incomplete or None))
    return [job_id for job_id in found if job_id.startswith(incomplete)]


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
    """What can start a run."""
    return _beginning(incomplete, ("schedule", "manual", "backfill", "retry"))


def _beginning(incomplete: str, words: Iterable[str]) -> list[str]:
    return sorted(word for word in words if word.startswith(incomplete))


def _jobs(ctx: typer.Context, prefix: str | None) -> list[Any]:
    """Never raises: a shell has no place for an error."""
    options = ctx.find_root().params  # while completing, no command has run yet
    try:
        given = Session(options.get("url"), options.get("key"), options.get("profile"))
        with given.client() as client:
            return list(client.jobs_page(limit=_PAGE, name_prefix=prefix)["jobs"])
    except Exception:  # noqa: BLE001
        return []


JobId = Annotated[str, typer.Argument(help="The job's id.", autocompletion=complete_job_ids)]
Since = Annotated[str | None, typer.Option(help="Only from the last 2h, 7d…, or since a time.")]
Until = Annotated[str | None, typer.Option(help="Only before this time.")]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, help="List at most this many.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
