"""What the shell offers for a word: job ids, tags, states. It asks the API once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import typer

from cli.session import Session

# One page: a shell waits for the answer.
_PAGE = 200
STATUSES = ("queued", "running", "dispatched", "succeeded", "failed", "retrying", "skipped")


def job_ids(ctx: typer.Context, incomplete: str) -> list[str]:
    """The ids that begin with the word."""
    found = (job["job_id"] for job in _jobs(ctx, incomplete or None))
    return [job_id for job_id in found if job_id.startswith(incomplete)]


def tags(ctx: typer.Context, incomplete: str) -> list[str]:
    """The tags of the first jobs."""
    return _beginning(incomplete, {tag for job in _jobs(ctx, None) for tag in job["tags"]})


def states(incomplete: str) -> list[str]:
    """The states of jobs."""
    return _beginning(incomplete, ("active", "paused"))


def statuses(incomplete: str) -> list[str]:
    """The statuses of runs."""
    return _beginning(incomplete, STATUSES)


def triggers(incomplete: str) -> list[str]:
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
