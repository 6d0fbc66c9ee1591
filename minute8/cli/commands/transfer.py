"""`minute8 import`: many jobs at once."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.progress import Progress

from common.errors import Minute8Error
from minute8.cli import output
from minute8.cli.options import AsJson, ExitCode, with_options
from minute8.cli.output import console, print_json, problem_lines, schedule_words
from minute8.cli.session import session
from minute8.cli.sources import cronjob_yaml, crontab, foreign, github_workflow, serverless_yaml
from minute8.cli.sources.source_job import Defaults, SourceJob, read_ndjson
from minute8.client import BulkLine, Client, Minute8Problem
from minute8.eventbridge.moving import importing
from minute8.eventbridge.moving.account import PREFIX, account
from minute8.eventbridge.moving.group_requests import lacks_tags, set_group, tags_of_group

# Small enough for a progress bar to move; the API accepts more.
_JOBS_IN_REQUEST = 200
# Laying out a row takes 0.7 ms, and nobody reads 200,000 of them.
_ROWS_SHOWN = 1_000
# With more entries than this, all jobs are listed instead of those of each entry.
_FAMILIES_ASKED = 50
# What the id of one of several entries has after the common beginning.
_VARIANT = re.compile(r"(?:-[0-9a-f]{4}(?:-\d+)?|-\d+)$")
READERS: Mapping[str, Callable[[str, Defaults], Iterator[SourceJob]]] = {
    "ndjson": read_ndjson,
    "crontab": crontab.read,
    "cronjob": cronjob_yaml.read,
    "eventbridge": importing.read,
    "serverless": serverless_yaml.read,
    "github": github_workflow.read,
}

Action = Literal["new", "changed", "same", "refused", "left over"]
_ACTIONS: dict[str, Action] = {"created": "new", "replaced": "changed", "unchanged": "same"}


@dataclass(frozen=True, slots=True)
class Step:
    """What the import does with one job of the source."""

    source: SourceJob
    action: Action
    why: str = ""


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """How the source is read, and what is imported of it."""

    source: Annotated[
        str | None,
        typer.Option("--format", help=f"{', '.join(READERS)}; guessed if left out."),
    ] = None
    target: Annotated[
        str | None,
        typer.Option(help="The Lambda to call in place of commands and containers; it replaces all targets."),
    ] = None
    timezone: Annotated[
        str | None, typer.Option("--timezone", "--tz", help="The zone of a source that names none.")
    ] = None
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")
    ] = False
    skip_invalid: Annotated[
        bool,
        typer.Option(
            "--skip-invalid",
            help="Import the valid jobs even if some are refused; otherwise none is imported.",
        ),
    ] = False
    paused: Annotated[
        bool,
        typer.Option("--paused", help="Create all jobs paused: the source goes on until you resume them."),
    ] = False
    past: Annotated[bool, typer.Option("--past", help="Accept an `at` that is past, which never fires.")] = (
        False
    )

    copy: Annotated[
        Path | None,
        typer.Option(
            help="Keep what was read of an AWS account in this file; what did not change is not read again."
        ),
    ] = None

    def defaults(self) -> Defaults:
        return Defaults({"kind": "lambda", "arn": self.target} if self.target else None, self.timezone)


@with_options
def import_jobs(
    ctx: typer.Context,
    file: Annotated[
        str,
        typer.Argument(
            help="The file to import; - is stdin, eventbridge: (or eventbridge:GROUP) is an AWS account: groups, "
            "schedules and scheduled rules."
        ),
    ],
    options: ImportOptions,
    as_json: AsJson = False,
) -> None:
    """Create and change jobs from a file. Importing it again changes nothing."""
    jobs = _source_jobs(file, options)
    if options.paused:
        jobs = [replace(job, suspended=True) for job in jobs]
    with session(ctx).client() as client:
        steps = [*planned(client, jobs, options.past), *left_over(client, jobs)]
        is_applied = not options.dry_run and (options.skip_invalid or not _refuses(steps))
        if is_applied:
            steps = _applied(client, steps, options.past)
    _print_steps(steps, as_json, is_applied)
    if _refuses(steps) and not options.skip_invalid:
        raise typer.Exit(ExitCode.INVALID)


def _source_jobs(file: str, options: ImportOptions) -> list[SourceJob]:
    source = options.source
    if (file.startswith(PREFIX) or f"{file}:" == PREFIX) and source in (None, "eventbridge"):
        group = file.removeprefix(PREFIX.rstrip(":")).removeprefix(":")
        text, source = account().read(group, options.copy), "eventbridge"
    elif options.copy:
        raise typer.BadParameter("--copy is for eventbridge: alone")
    else:
        text = _text(file)
        source = source or format_of(file, text)
    if source not in READERS:
        raise typer.BadParameter(f"no format {source!r}; there are: {', '.join(READERS)}")
    strangers = foreign.described(text) if options.source is None else ""
    jobs = [] if strangers else list(READERS[source](text, options.defaults()))
    if text.strip() and not jobs:
        raise Minute8Error(
            (strangers and f"{file} is {strangers}") or foreign.without_jobs(file, source, text)
        )
    return jobs


def _refuses(steps: Sequence[Step]) -> bool:
    return any(step.action == "refused" for step in steps)


def planned(client: Client, jobs: Sequence[SourceJob], past: bool) -> list[Step]:
    """What importing would do, according to the API. Checks across several requests are made here."""
    times = Counter(job.job_id for job in jobs if not job.refusal and not job.group)
    steps: dict[int, Step] = {}
    for n, job in enumerate(jobs):
        if job.refusal:
            steps[n] = Step(job, "refused", job.refusal)
        elif job.group:
            steps[n] = Step(job, *_group_plan(client, *job.group))
        elif times[job.job_id] > 1:
            steps[n] = Step(job, "refused", f"{job.job_id} is there {times[job.job_id]} times")
    checked = [n for n in range(len(jobs)) if n not in steps]
    with _progress() as progress:
        lines = (_line(jobs[n]) for n in progress.track(checked, description="checking"))
        results = client.bulk_put(lines, dry_run=True, past=past)
    steps |= {n: _step(jobs[n], result) for n, result in zip(checked, results, strict=True)}
    return [steps[n] for n in range(len(jobs))]


def left_over(client: Client, jobs: Sequence[SourceJob]) -> list[Step]:
    """Jobs of earlier states of the same entries that this source no longer has: they still fire."""
    families = {job.family for job in jobs if job.family}
    ids = {job.job_id for job in jobs}
    if len(families) > _FAMILIES_ASKED:
        existing = (job["job_id"] for job in client.jobs())
    else:
        existing = (job["job_id"] for family in families for job in client.jobs(name_prefix=family))
    removed_ids = (job_id for job_id in set(existing) - ids if {job_id, _VARIANT.sub("", job_id)} & families)
    remedy = "it still fires, and its line is gone: minute8 jobs delete"
    return [Step(SourceJob("", job_id), "left over", f"{remedy} {job_id}") for job_id in sorted(removed_ids)]


def _group_plan(client: Client, name: str, tags: Mapping[str, str]) -> tuple[Action, str]:
    before = tags_of_group(client, name)
    if before is None:
        return "new", "group"
    return ("changed", "tags") if lacks_tags(before, tags) else ("same", "")


def _line(job: SourceJob) -> dict[str, Any]:
    state = {"state": "paused"} if job.suspended else {}
    schedule = {"eventbridge": job.schedule} if job.schedule else {}
    return {"job_id": job.job_id, **job.definition, **state, **schedule}


def _step(job: SourceJob, result: BulkLine) -> Step:
    """The step for the API's result."""
    if result["result"] == "refused":
        problem = Minute8Problem(result["problem"]["status"], dict(result["problem"]))
        return Step(job, "refused", "; ".join(problem_lines(problem)))
    is_paused = job.suspended and result["result"] == "created"
    return Step(
        job, _ACTIONS[result["result"]], "paused" if is_paused else ", ".join(result.get("changed", ()))
    )


def _applied(client: Client, steps: Sequence[Step], past: bool) -> list[Step]:
    """Put what is new or changed, with a progress bar on a terminal."""
    changing = [(n, step.source) for n, step in enumerate(steps) if step.action in ("new", "changed")]
    for _, source in changing:
        if source.group:
            set_group(client, *source.group)
    jobs = [(n, source) for n, source in changing if not source.group]
    done: dict[int, Step] = {}
    with _progress() as progress:
        task = progress.add_task("importing", total=len(jobs))
        for start in range(0, len(jobs), _JOBS_IN_REQUEST):
            batch = jobs[start : start + _JOBS_IN_REQUEST]
            results = client.bulk_put((_line(job) for _, job in batch), past=past)
            done |= {n: _step(job, result) for (n, job), result in zip(batch, results, strict=True)}
            progress.advance(task, len(batch))
    # Show the planned steps. If a request was repeated after a lost answer, its jobs are reported as unchanged.
    return [done[n] if n in done and done[n].action == "refused" else step for n, step in enumerate(steps)]


def _progress() -> Progress:
    """A progress bar, on a terminal."""
    return Progress(console=console(on_stderr=True), transient=True, disable=not sys.stderr.isatty())


def _text(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{file} cannot be read: {output.unreadable(error)}") from None


def _print_steps(steps: Sequence[Step], as_json: bool, is_applied: bool) -> None:
    if as_json:
        print_json([_view(step) for step in steps])
        return
    changed_steps = [step for step in steps if step.action != "same"]
    if (rest := len(changed_steps) - _ROWS_SHOWN) > 0:
        changed_steps.sort(
            key=lambda step: step.action in ("new", "changed")
        )  # what somebody has to act on comes first
    rows = [
        (
            step.source.where,
            step.action,
            step.source.job_id,
            _schedule_in(step.source),
            "; ".join(filter(None, (step.why, *step.source.notes))),
        )
        for step in changed_steps[:_ROWS_SHOWN]
    ]
    if rows:
        console().print(output.table(("FROM", "", "JOB", "SCHEDULE", ""), rows))
    if rest > 0:
        console().print(f"and {rest} more, which --json shows")
    actions = [step.action for step in steps]
    counts = ", ".join(f"{actions.count(action)} {action}" for action in _ACTION_ORDER if action in actions)
    console().print(f"{counts or 'no jobs found'}{'' if is_applied else ' - nothing was imported'}")


_ACTION_ORDER: tuple[Action, ...] = ("new", "changed", "same", "refused", "left over")


def _schedule_in(job: SourceJob) -> str:
    schedule = job.definition.get("schedule")
    return schedule_words(schedule) if isinstance(schedule, dict) else ""


def _view(step: Step) -> dict[str, Any]:
    job = step.source
    return {
        "from": job.where,
        "action": step.action,
        "job_id": job.job_id or None,
        "why": step.why or None,
        "notes": list(job.notes),
        "definition": job.definition or None,
    }


def format_of(name: str, text: str) -> str:
    """The format that a file probably has."""
    if name.endswith((".yaml", ".yml")) or _YAML.search(text):
        if re.search(r"^(?:on|true|\"on\"):", text, re.MULTILINE) and "cron" in text:
            return "github"
        return "serverless" if re.search(r"^functions:", text, re.MULTILINE) else "cronjob"
    start = text.lstrip()[:1]
    if start not in ("{", "["):
        return "crontab"
    return "eventbridge" if '"ScheduleExpression"' in text else "ndjson"


# A key of a YAML document at the beginning of a line, as no crontab has it.
_YAML = re.compile(r"^(?:apiVersion|kind|functions|service|on|jobs):(?:\s|$)", re.MULTILINE)
