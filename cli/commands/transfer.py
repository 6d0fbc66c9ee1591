"""`minute8 import` and `minute8 export`: many jobs at once."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.progress import Progress

from cli import output
from cli.job_files import yaml_text
from cli.options import AsJson, ExitCode
from cli.output import console, print_json, problem_lines, schedule_words
from cli.session import session
from cli.sources.readers import READERS, format_of
from cli.sources.source_job import Defaults, SourceJob
from eventbridge import account
from eventbridge.account import PREFIX, fetch
from minute8_client import BulkLine, Client, Minute8Problem

# Small enough for a progress bar to move; the API accepts more.
_A_REQUEST = 200
_PUT = ("new", "changed")

Action = Literal["new", "changed", "same", "refused"]
_SAID: dict[str, Action] = {"created": "new", "replaced": "changed", "unchanged": "same"}


@dataclass(frozen=True, slots=True)
class Step:
    """What the import does with one job of the source."""

    found: SourceJob
    action: Action
    why: str = ""


def import_jobs(
    ctx: typer.Context,
    file: Annotated[
        str,
        typer.Argument(
            help="The file to import; - is stdin, eventbridge: (or eventbridge:GROUP) is an AWS account."
        ),
    ],
    source: Annotated[
        str | None,
        typer.Option("--format", help="ndjson, crontab, cronjob or eventbridge; guessed if left out."),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(help="The Lambda to call in place of commands and containers; it replaces all targets."),
    ] = None,
    timezone: Annotated[
        str | None, typer.Option("--timezone", "--tz", help="The zone of a source that names none.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")
    ] = False,
    skip_invalid: Annotated[
        bool,
        typer.Option(
            "--skip-invalid",
            help="Import the valid jobs even if some are refused; otherwise none is imported.",
        ),
    ] = False,
    past: Annotated[
        bool, typer.Option("--past", help="Accept an `at` that is past, which never fires.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Create and change jobs from a file. Importing it again changes nothing."""
    if file.startswith(PREFIX) and source in (None, "eventbridge"):
        text, source = fetch(account.client(), file.removeprefix(PREFIX)), "eventbridge"
    else:
        text = _text(file)
        source = source or format_of(file, text)
    if source not in READERS:
        raise typer.BadParameter(f"no format {source!r}; there are: {', '.join(READERS)}")
    lambda_target = {"kind": "lambda", "arn": target} if target else None
    found = list(READERS[source](text, Defaults(lambda_target, timezone)))
    with session(ctx).client() as client:
        steps = planned(client, found, past)
        refused = any(step.action == "refused" for step in steps)
        if not dry_run and (skip_invalid or not refused):
            steps = _applied(client, steps, past)
    _print_done(steps, as_json, done=not dry_run and (skip_invalid or not refused))
    if any(step.action == "refused" for step in steps):
        raise typer.Exit(ExitCode.INVALID)


def export_jobs(
    ctx: typer.Context,
    written: Annotated[
        str, typer.Option("--format", help="ndjson, for `minute8 import`, or yaml, for `minute8 apply`.")
    ] = "ndjson",
) -> None:
    """Print all jobs, each a definition with its id: a line of NDJSON, or an entry of a YAML list."""
    if written not in ("ndjson", "yaml"):
        raise typer.BadParameter(f"no format {written!r}; there are: ndjson, yaml")
    with session(ctx).client() as client:
        for job in client.export_jobs():
            if written == "yaml":
                sys.stdout.write(yaml_text(job))
            else:
                sys.stdout.write(json.dumps(job, ensure_ascii=False, separators=(",", ":")) + "\n")


def planned(client: Client, found: Sequence[SourceJob], past: bool) -> list[Step]:
    """What importing would do, according to the API. Checks across several requests are made here."""
    times = Counter(one.job_id for one in found if not one.refusal)
    steps: dict[int, Step] = {}
    for n, one in enumerate(found):
        if one.refusal:
            steps[n] = Step(one, "refused", one.refusal)
        elif times[one.job_id] > 1:
            steps[n] = Step(one, "refused", f"{one.job_id} is there {times[one.job_id]} times")
    asked = [n for n in range(len(found)) if n not in steps]
    results = client.bulk_put((_line(found[n]) for n in asked), dry_run=True, past=past)
    steps |= {n: _step(found[n], result) for n, result in zip(asked, results, strict=True)}
    return [steps[n] for n in range(len(found))]


def _line(one: SourceJob) -> dict[str, Any]:
    state = {"state": "paused"} if one.suspended else {}
    schedule = {"eventbridge": one.schedule} if one.schedule else {}
    return {"job_id": one.job_id, **one.definition, **state, **schedule}


def _step(one: SourceJob, result: BulkLine) -> Step:
    """The step for the API's result."""
    if result["result"] == "refused":
        problem = result["problem"]
        return Step(
            one, "refused", "; ".join(problem_lines(Minute8Problem(problem["status"], dict(problem))))
        )
    why = (
        "paused" if one.suspended and result["result"] == "created" else ", ".join(result.get("changed", ()))
    )
    return Step(one, _SAID[result["result"]], why)


def _applied(client: Client, steps: Sequence[Step], past: bool) -> list[Step]:
    """Put what is new or changed, with a progress bar on a terminal."""
    wanted = [(n, step.found) for n, step in enumerate(steps) if step.action in _PUT]
    done: dict[int, Step] = {}
    with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("importing", total=len(wanted))
        for first in range(0, len(wanted), _A_REQUEST):
            some = wanted[first : first + _A_REQUEST]
            results = client.bulk_put((_line(found) for _, found in some), past=past)
            done |= {n: _step(found, result) for (n, found), result in zip(some, results, strict=True)}
            progress.advance(task, len(some))
    # Show the planned steps. If a request was repeated after a lost answer, its jobs are reported as unchanged.
    return [done[n] if n in done and done[n].action == "refused" else step for n, step in enumerate(steps)]


def _text(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{file} cannot be read: {output.unreadable(error)}") from None


def _print_done(steps: Sequence[Step], as_json: bool, done: bool) -> None:
    if as_json:
        print_json([_view(step) for step in steps])
        return
    rows = [
        (
            step.found.where,
            step.action,
            step.found.job_id,
            _schedule_in(step.found),
            "; ".join(filter(None, (step.why, *step.found.notes))),
        )
        for step in steps
        if step.action != "same"
    ]
    if rows:
        console().print(output.table(("FROM", "", "JOB", "SCHEDULE", ""), rows))
    actions = [step.action for step in steps]
    counts = ", ".join(f"{actions.count(action)} {action}" for action in _ACTIONS if action in actions)
    console().print(f"{counts or 'no jobs found'}{'' if done else ' - nothing was imported'}")


_ACTIONS: tuple[Action, ...] = ("new", "changed", "same", "refused")


def _schedule_in(found: SourceJob) -> str:
    schedule = found.definition.get("schedule")
    return schedule_words(schedule) if isinstance(schedule, dict) else ""


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
