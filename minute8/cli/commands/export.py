"""`minute8 export`: all jobs, for Minute8 or for EventBridge Scheduler."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from minute8.cli.job_files import yaml_text
from minute8.cli.options import ExitCode
from minute8.cli.output import plural, print_exact, say
from minute8.cli.session import session
from minute8.client import Client
from minute8.eventbridge.moving import written
from minute8.eventbridge.moving.exporting import Exported, creatable, exported
from minute8.eventbridge.moving.group_requests import stored_groups
from minute8.eventbridge.names import DEFAULT_GROUP

EVENTBRIDGE: Final = "eventbridge"
_FORMATS: Final = {"jobs": ("ndjson", "yaml"), EVENTBRIDGE: ("lines", *written.FORMATS)}


def export_jobs(
    ctx: typer.Context,
    content: Annotated[
        str, typer.Argument(help="jobs, or eventbridge: schedules for an AWS account.", metavar="[WHAT]")
    ] = "jobs",
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="ndjson (for `minute8 import`) or yaml (for `minute8 apply`); of eventbridge: lines, cli, "
            "terraform or cloudformation.",
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="The folder for the files of cli, terraform and cloudformation.")
    ] = None,
    role_arn: Annotated[
        str | None,
        typer.Option("--role-arn", help="The role with which AWS calls the targets of jobs that name none."),
    ] = None,
) -> None:
    """Print all jobs, each a definition with its id: a line of NDJSON, or an entry of a YAML list.

    `minute8 export eventbridge` writes them as schedules: requests of the AWS CLI, Terraform or CloudFormation.
    """
    if content not in _FORMATS:
        raise typer.BadParameter(f"no export {content!r}; there are: {', '.join(_FORMATS)}")
    form = form or _FORMATS[content][0]
    if form not in _FORMATS[content]:
        raise typer.BadParameter(f"no format {form!r}; there are: {', '.join(_FORMATS[content])}")
    needs_folder = form in written.FORMATS
    if needs_folder != (output is not None):
        raise typer.BadParameter(f"--output is {'missing' if needs_folder else f'not for {form}'}")
    with session(ctx).client() as client:
        if content == EVENTBRIDGE:
            now = session(ctx).clock.now()
            _write_schedules(
                client, form, output, exported(client.export_jobs(eventbridge=True), role_arn), now
            )
            return
        for job in client.export_jobs():
            if form == "yaml":
                print_exact(yaml_text(job))
            else:
                print_exact(json.dumps(job, ensure_ascii=False, separators=(",", ":")) + "\n")


def _write_schedules(
    client: Client, form: str, output: Path | None, jobs: Iterable[Exported], now: float
) -> None:
    """Write what AWS can say, and name the rest on stderr."""
    schedules: list[dict[str, Any]] = []
    refused = 0
    for job in jobs:
        if job.refusal:
            refused += 1
            say(f"{job.job_id}: refused: {job.refusal}")
            continue
        # Minute8 imports lines as they are.
        schedule, left_out = creatable(job.schedule, now) if form in written.FORMATS else (job.schedule, "")
        schedules.append(schedule)
        for note in filter(None, (*job.notes, left_out, *written.left_out(form, schedule))):
            say(f"{job.job_id}: {note}")
    groups = _groups(client, schedules)
    if output is None:
        print_exact(written.lines(groups, schedules))
    else:
        for name, text in written.FORMATS[form](groups, schedules):
            path = output / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
    say(f"{plural(len(schedules), 'schedule')}, {plural(len(groups), 'group')}, {refused} refused")
    if refused:
        raise typer.Exit(ExitCode.INVALID)


def _groups(client: Client, schedules: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The groups as CreateScheduleGroup's requests: those of the API here, and those in the names of jobs."""
    tags: dict[str, dict[str, str]] = {
        schedule.get("GroupName", DEFAULT_GROUP): {} for schedule in schedules
    } | dict(stored_groups(client))
    if of_default := tags.pop(DEFAULT_GROUP, {}):
        say(
            f"group {DEFAULT_GROUP}: its tags are left out, because AWS makes the group itself: "
            f"{', '.join(of_default)}"
        )
    return [
        {"Name": name, "Tags": [{"Key": key, "Value": value} for key, value in own.items()]}
        for name, own in sorted(tags.items())
    ]
