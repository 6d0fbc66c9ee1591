"""`minute8 jobs create` and `edit`: their options are the fields of a job, which take a while to load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from common.timing.instants import relative
from minute8.cli.commands.jobs import Revision, local_time, print_done
from minute8.cli.job_options import as_patch, edited_in_editor, merged, read_job_file, with_job_options
from minute8.cli.options import AsJson, JobId
from minute8.cli.output import console
from minute8.cli.session import session
from minute8.client import Client, definition_in
from minute8.client.shapes import Fire, Job

Past = Annotated[bool, typer.Option("--past", help="Accept an --at that is past, which never fires.")]
_PRINTED_FIRES = 3


@dataclass(frozen=True, slots=True)
class NewJob:
    """How a job is created, apart from its definition's fields."""

    file: Annotated[str | None, typer.Option("--file", "-f", help="The job as JSON; - is stdin.")] = None
    paused: Annotated[bool, typer.Option("--paused", help="Create it paused.")] = False
    note: Annotated[str | None, typer.Option(help="The reason for the pause.")] = None
    past: Past = False

    def definition(self, changes: dict[str, Any]) -> dict[str, Any]:
        """The definition of the file with the changes. Raises typer.BadParameter."""
        definition = merged(read_job_file(self.file) if self.file else {}, changes)
        state = {"state": "paused"} if self.paused else {}
        if self.note is not None and (definition | state).get("state") != "paused":
            raise typer.BadParameter(
                "--note is the reason for a pause: give --paused too", param_hint="--note"
            )
        return definition | state | ({"note": self.note} if self.note is not None else {})


@with_job_options
def create(
    ctx: typer.Context,
    job_id: Annotated[str | None, typer.Argument(help="The job's id; generated if left out.")] = None,
    *,
    new: NewJob,
    as_json: AsJson = False,
    changes: dict[str, Any],
) -> None:
    """Create a job, from options, from a file, or from a file with some of it changed."""
    definition = new.definition(changes)
    with session(ctx).client() as client:
        job = client.create_job(definition, job_id, past=new.past)
        coming = [] if as_json else client.next_fires(job["job_id"], _PRINTED_FIRES)["fires"]
    print_done(ctx, job, "created", as_json)
    if not as_json:
        _print_schedule(job, coming, session(ctx).clock.now())


@dataclass(frozen=True, slots=True)
class WriteConditions:
    """When a change is accepted."""

    revision: Revision = None
    past: Past = False


@with_job_options
def edit(
    ctx: typer.Context,
    job_id: JobId,
    file: Annotated[
        str | None, typer.Option("--file", "-f", help="The whole job as JSON; - is stdin.")
    ] = None,
    *,
    conditions: WriteConditions,
    as_json: AsJson = False,
    changes: dict[str, Any],
) -> None:
    """Change a job by options, from a file (which creates a missing job), or, without either, in your editor."""
    with session(ctx).client() as client:
        if file:
            definition = merged(read_job_file(file), changes)
            job = client.put_job(job_id, definition, conditions.revision, past=conditions.past)
        else:
            job = _edited(client, job_id, changes, conditions)
    print_done(ctx, job, "changed", as_json)


def _edited(client: Client, job_id: str, changes: dict[str, Any], conditions: WriteConditions) -> Job:
    """Read, change, and write only if the job did not change in between."""
    job = client.get_job(job_id)
    revision, past = conditions.revision or job["revision"], conditions.past
    if "payload" in changes:  # a patch would merge it with the stored one
        from common.jobs.placeholders import merge_patch

        rest = {name: value for name, value in changes.items() if name != "payload"}
        definition = merge_patch(definition_in(job), as_patch(rest, job["target"]["kind"]))
        return client.put_job(job_id, definition | {"payload": changes["payload"]}, revision, past=past)
    if changes:
        return client.patch_job(job_id, as_patch(changes, job["target"]["kind"]), revision, past=past)
    definition = definition_in(job)
    edited = edited_in_editor(definition)
    if edited == definition:
        raise typer.Exit(0)
    return client.put_job(job_id, edited, revision, past=past)


def _print_schedule(job: Job, coming: Sequence[Fire], now: float) -> None:
    """The schedule in words, its next times as the API plans them, and what may surprise about it."""
    # Only here: slow to load.
    from common.preview.preview import preview, resolved_as_given, written_warnings

    named = ("calendars", "include_calendars")  # the API has taken their dates out
    of_all = job["schedule_resolved"]
    resolved = {name: value for name, value in of_all.items() if name not in named}
    if schedules := of_all.get("schedules"):
        resolved["schedules"] = [
            {name: value for name, value in part.items() if name not in named} for part in schedules
        ]
    ahead = preview(resolved_as_given(resolved), now=int(now) + 1, count=1)
    out = console()
    out.print(job["schedule_words"], soft_wrap=True)
    for fire in coming:
        local = f"  {local_time(fire, ahead.timezone)}" if ahead.timezone != "UTC" else ""
        text = f"  {fire['due_at']}{local}  {relative(fire['due_at'], now)}"
        out.print(text, soft_wrap=True)
    for warning in (*written_warnings(job["schedule"]), *ahead.warnings):
        out.print(f"! {warning}", soft_wrap=True)
