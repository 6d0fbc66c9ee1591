"""`minute8 import` and `minute8 export`: many jobs at once."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.progress import Progress

from cli import output
from cli.output import console, print_json, schedule_words
from cli.session import session
from cli.sources import READERS, format_of
from cli.sources.found import Defaults, Found
from common.definition import JOB_ID_CHARS, Limits, check_id, parse_definition, schedule_given
from common.errors import InvalidInput
from common.job import job_key
from common.schedule import parse_schedule
from minute8_client import Client, Job, Minute8Problem, definition_in

_WRITERS = 8
_PUT = ("new", "changed")

Action = Literal["new", "changed", "same", "left out", "refused"]


@dataclass(frozen=True, slots=True)
class Step:
    """What is to happen with one job that was found."""

    found: Found
    action: Action
    why: str = ""


def import_jobs(
    ctx: typer.Context,
    file: Annotated[str, typer.Argument(help="What to import; - is stdin.")],
    source: Annotated[
        str | None,
        typer.Option("--format", help="ndjson, crontab, cronjob or eventbridge; guessed if left out."),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(help="The Lambda that runs what was a command or container; takes all targets' place."),
    ] = None,
    timezone: Annotated[
        str | None, typer.Option("--timezone", "--tz", help="The zone of a source that names none.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")
    ] = False,
    skip_invalid: Annotated[
        bool, typer.Option("--skip-invalid", help="Import the others, when some cannot be; else none is.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Create and change jobs from a file. Importing it again changes nothing."""
    text = _text(file)
    source = source or format_of(file, text)
    if source not in READERS:
        raise typer.BadParameter(f"no format {source!r}; there are: {', '.join(READERS)}")
    lambda_target = {"kind": "lambda", "arn": target} if target else None
    found = list(READERS[source](text, Defaults(lambda_target, timezone)))
    with session(ctx).client() as client:
        existing = {job["job_id"]: job for job in client.jobs()}
        steps = planned(found, existing, session(ctx).clock.now())
        refused = any(step.action == "refused" for step in steps)
        if not dry_run and (skip_invalid or not refused):
            steps = _applied(client, steps)
    _tell(steps, as_json, done=not dry_run and (skip_invalid or not refused))
    if any(step.action == "refused" for step in steps):
        raise typer.Exit(2)


def export_jobs(ctx: typer.Context) -> None:
    """Print all jobs as NDJSON, a definition with its id on each line, for `minute8 import`."""
    with session(ctx).client() as client:
        for job in client.jobs():
            line = {"job_id": job["job_id"], **definition_in(job), "state": job["state"]}
            sys.stdout.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")


def planned(found: Sequence[Found], existing: dict[str, Job], now: float) -> list[Step]:
    """What importing would do; pure."""
    steps: list[Step] = []
    seen: set[str] = set()
    for one in found:
        step = _step(one, existing.get(one.job_id), now)
        if step.action != "refused" and one.job_id in seen:
            step = Step(one, "refused", f"{one.job_id} is there twice")
        seen.add(one.job_id)
        steps.append(step)
    return steps


def _step(one: Found, job: Job | None, now: float) -> Step:
    if one.refusal:
        return Step(one, "refused", one.refusal)
    try:
        definition = _normal(one, now)
    except InvalidInput as error:
        return Step(one, "refused", str(error))
    if job is None:
        if one.suspended:
            return Step(one, "left out", "it is suspended there, and would run here")
        return Step(one, "new")
    current = definition_in(job)
    differing = [name for name, value in definition.items() if current.get(name) != value]
    return Step(one, "changed", ", ".join(differing)) if differing else Step(one, "same")


def _normal(one: Found, now: float) -> dict[str, Any]:
    """The whole definition as the API would show it. Raises InvalidInput."""
    check_id("job_id", one.job_id, JOB_ID_CHARS)
    definition = parse_definition(one.definition, Limits())
    given = schedule_given(definition)
    parse_schedule(given, job_key=job_key("tenant", one.job_id), now=int(now))
    target = definition.target.model_dump(exclude_none=True)
    return definition.model_dump() | {"schedule": given, "target": target}


def _applied(client: Client, steps: Sequence[Step]) -> list[Step]:
    """Put what is new or changed, several at a time, with a progress bar on a terminal."""
    wanted = [step for step in steps if step.action in _PUT]

    def put(step: Step) -> Step:
        try:
            client.put_job(step.found.job_id, step.found.definition)
        except Minute8Problem as problem:
            return replace(step, action="refused", why=str(problem))
        return step

    with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("importing", total=len(wanted))
        with ThreadPoolExecutor(_WRITERS) as pool:
            done: dict[str, Step] = {}
            for step in pool.map(put, wanted):
                done[step.found.job_id] = step
                progress.advance(task)
    return [done.get(step.found.job_id, step) if step.action in _PUT else step for step in steps]


def _text(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{file} cannot be read: {error}") from None


def _tell(steps: Sequence[Step], as_json: bool, done: bool) -> None:
    if as_json:
        print_json([_view(step) for step in steps])
        return
    rows = [
        (
            step.found.where,
            step.action,
            step.found.job_id,
            schedule_words(step.found.definition["schedule"]) if "schedule" in step.found.definition else "",
            "; ".join(filter(None, (step.why, *step.found.notes))),
        )
        for step in steps
        if step.action != "same" or step.found.notes
    ]
    if rows:
        console().print(output.table(("FROM", "", "JOB", "SCHEDULE", ""), rows))
    actions = [step.action for step in steps]
    counts = ", ".join(f"{actions.count(action)} {action}" for action in _ACTIONS if action in actions)
    console().print(f"{counts or 'no jobs found'}{'' if done else ' - nothing was imported'}")


_ACTIONS: tuple[Action, ...] = ("new", "changed", "same", "left out", "refused")


def _view(step: Step) -> dict[str, Any]:
    found = step.found
    return {
        "from": found.where,
        "action": step.action,
        "job_id": found.job_id or None,
        "why": step.why or None,
        "notes": list(found.notes),
        "definition": found.definition or None,
    }
