"""`minute8 import`: many jobs at once."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import typer
from rich.progress import Progress

from common.errors import Minute8Error
from minute8.cli import output
from minute8.cli.options import AsJson, ExitCode, with_options
from minute8.cli.output import console, print_exact, problem_lines, say, schedule_words
from minute8.cli.session import session
from minute8.cli.sources import cronjob_yaml, crontab, foreign, github_workflow, serverless_yaml
from minute8.cli.sources.source_job import Defaults, SourceJob, read_ndjson
from minute8.client import BulkLine, Client, LinesBusy, Minute8Problem
from minute8.client.jobs import MAX_BULK, MAX_LINES
from minute8.eventbridge.moving import importing
from minute8.eventbridge.moving.account import PREFIX, account
from minute8.eventbridge.moving.group_requests import lacks_tags, set_group, tags_of_group

_JOBS_IN_REQUEST = MAX_LINES
# Formats of which jobs are read again rather than kept.
_READ_BY_LINE = ("ndjson", "crontab")
# Without a terminal, progress is told after so many jobs.
_JOBS_TOLD = 10_000
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
    is_imported: bool = False


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
    read = _source_jobs(file, options)
    contents = Contents.of(read())
    summary = _Summary(as_json, options.skip_invalid)
    with session(ctx).client() as client:
        jobs = _watched(read(), contents, is_drawn=not as_json)
        try:
            for step in imported(client, jobs, contents, options):
                summary.add(step)
        except LinesBusy:
            summary.end()
            raise
        for step in left_over(client, contents):
            summary.add(step)
    summary.end()
    if summary.counts["refused"] and not options.skip_invalid:
        raise typer.Exit(ExitCode.INVALID)


def _source_jobs(file: str, options: ImportOptions) -> Callable[[], Iterator[SourceJob]]:
    """What reads the source's jobs from the beginning. Raises Minute8Error if it has none."""
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
    if options.source is None and (strangers := foreign.described(text)):
        raise Minute8Error(f"{file} is {strangers}")
    read = partial(READERS[source], text, options.defaults())
    if source not in _READ_BY_LINE:
        read = partial(iter, list(read()))
    if text.strip() and next(read(), None) is None:
        raise Minute8Error(foreign.without_jobs(file, source, text))
    return lambda: (replace(job, suspended=True) if options.paused else job for job in read())


@dataclass(slots=True)
class Contents:
    """What is known of a source before a request is made: of each job its id alone."""

    count: int = 0
    ids: Counter[str] = field(default_factory=Counter)
    families: set[str] = field(default_factory=set)
    is_refused: bool = False

    @classmethod
    def of(cls, jobs: Iterable[SourceJob]) -> Contents:
        contents = cls()
        for job in jobs:
            contents.count += 1
            if not job.refusal and not job.group:
                contents.ids[job.job_id] += 1
            if job.family:
                contents.families.add(job.family)
            contents.is_refused |= bool(job.refusal) or contents.ids[job.job_id] > 1
        return contents

    def refusal(self, job: SourceJob) -> str:
        """Why the job cannot be sent; empty if it can."""
        times = 0 if job.group else self.ids[job.job_id]
        return job.refusal or (f"{job.job_id} is there {times} times" if times > 1 else "")


def imported(
    client: Client, jobs: Iterable[SourceJob], contents: Contents, options: ImportOptions
) -> Iterator[Step]:
    """Each job's step, as it is made: a request stores all of its jobs or none, unless invalid ones are skipped.

    From the first request on in which a job is refused, the rest is only checked. Raises LinesBusy after the steps of
    the request whose lines stayed busy.
    """
    is_check = options.dry_run or (contents.is_refused and not options.skip_invalid)
    for batch in _batches(jobs):
        groups = {job.where: _group_plan(client, *job.group) for job in batch if job.group}
        lines = [_line(job) for job in batch if not job.group and not contents.refusal(job)]
        results, is_check, busy = _put(client, lines, options, is_check)
        of_jobs = iter(results)
        for job in batch:
            if job.group:
                step = _group_step(client, job, groups[job.where], is_check)
            elif refusal := contents.refusal(job):
                step = Step(job, "refused", refusal)
            else:
                step = _step(job, next(of_jobs))
            yield replace(step, is_imported=not is_check and step.action != "refused")
        if busy:
            raise busy


def _put(
    client: Client, lines: list[dict[str, Any]], options: ImportOptions, is_check: bool
) -> tuple[list[BulkLine], bool, LinesBusy | None]:
    """The results of the lines of one request, whether they were only checked, and whether some stayed busy."""
    if not is_check:
        try:
            return client.put_jobs(lines, atomic=not options.skip_invalid, past=options.past), False, None
        except LinesBusy as busy:
            return busy.results, False, busy
        except Minute8Problem as problem:
            if problem.name != "bulk-refused":
                raise
    return client.put_jobs(lines, dry_run=True, past=options.past), True, None


def _batches(jobs: Iterable[SourceJob]) -> Iterator[list[SourceJob]]:
    """As many jobs at a time as fit into a request."""
    batch: list[SourceJob] = []
    size = 0
    for job in jobs:
        job_size = len(json.dumps(_line(job), ensure_ascii=False).encode(errors="backslashreplace")) + 1
        if batch and (len(batch) == _JOBS_IN_REQUEST or size + job_size > MAX_BULK):
            yield batch
            batch, size = [], 0
        batch.append(job)
        size += job_size
    if batch:
        yield batch


def left_over(client: Client, contents: Contents) -> list[Step]:
    """Jobs of earlier states of the same entries that this source no longer has: they still fire."""
    families = contents.families
    if len(families) > _FAMILIES_ASKED:
        existing = (job["job_id"] for job in client.list_jobs())
    else:
        existing = (job["job_id"] for family in families for job in client.list_jobs(name_prefix=family))
    removed_ids = {
        job_id
        for job_id in existing
        if job_id not in contents.ids and {job_id, _VARIANT.sub("", job_id)} & families
    }
    remedy = "it still fires, and its line is gone: minute8 jobs delete"
    return [Step(SourceJob("", job_id), "left over", f"{remedy} {job_id}") for job_id in sorted(removed_ids)]


def _group_step(client: Client, job: SourceJob, plan: tuple[Action, str], is_check: bool) -> Step:
    """The step of a group, which is made unless it is only checked."""
    if job.group and not is_check and plan[0] != "same":
        set_group(client, *job.group)
    return Step(job, *plan)


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


def _watched(jobs: Iterable[SourceJob], contents: Contents, *, is_drawn: bool) -> Iterator[SourceJob]:
    """The jobs, and on stderr how far they are: a bar on a terminal, else a line for each many of them."""
    if is_drawn and sys.stderr.isatty():
        with Progress(console=console(on_stderr=True), transient=True) as progress:
            yield from progress.track(jobs, contents.count, description="importing")
        return
    for number, job in enumerate(jobs, 1):
        yield job
        if number % _JOBS_TOLD == 0 and number < contents.count:
            say(f"{number:,} of {contents.count:,} jobs")


def _text(file: str) -> str:
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{file} cannot be read: {output.unreadable(error)}") from None
    return text.removeprefix("\ufeff")  # Windows' editors write it


@dataclass(slots=True)
class _Summary:
    """What is printed of an import: as JSON each step when it is made, else the first rows and how many there are."""

    as_json: bool
    skips_invalid: bool
    counts: Counter[Action] = field(default_factory=Counter)
    # The place of each step in the order of the source.
    acted_on: list[tuple[int, Step]] = field(default_factory=list)
    changes: list[tuple[int, Step]] = field(default_factory=list)
    # Where the last imported job stands, and whether valid ones, or one that stops the import, are left.
    imported_to: str = ""
    is_cut: bool = False

    def add(self, step: Step) -> None:
        number = self.counts.total()
        self.counts[step.action] += 1
        if step.is_imported:
            self.imported_to = step.source.where
        elif step.action in _ACTIONS.values() or (step.action == "refused" and not self.skips_invalid):
            self.is_cut = True
        if self.as_json:
            print_exact(",\n" if number else "[\n")
            print_exact(json.dumps(_view(step), indent=2, ensure_ascii=False))
        elif step.action != "same":
            steps = self.changes if step.action in ("new", "changed") else self.acted_on
            if len(steps) < _ROWS_SHOWN:
                steps.append((number, step))

    def end(self) -> None:
        if self.as_json:
            print_exact("\n]\n" if self.counts else "[]\n")
            return
        # If not all are shown, what somebody has to act on comes first.
        rest = self.counts.total() - self.counts["same"] - _ROWS_SHOWN
        shown = (self.acted_on + self.changes)[:_ROWS_SHOWN]
        rows = [_row(step) for _, step in (sorted(shown, key=itemgetter(0)) if rest <= 0 else shown)]
        if rows:
            console().print(output.table(("FROM", "", "JOB", "SCHEDULE", ""), rows))
        if rest > 0:
            console().print(f"and {rest} more, which --json shows")
        counts = ", ".join(
            f"{self.counts[action]} {action}" for action in _ACTION_ORDER if self.counts[action]
        )
        console().print(f"{counts or 'no jobs found'}{self._extent()}")

    def _extent(self) -> str:
        if self.imported_to:
            return f" - imported up to {self.imported_to}, the rest was checked" if self.is_cut else ""
        return " - nothing was imported" if self.counts else ""


_ACTION_ORDER: tuple[Action, ...] = ("new", "changed", "same", "refused", "left over")


# A name or an expression of a stranger's file may have a million.
_CELL_CHARS: Final = 500


def _row(step: Step) -> tuple[str, ...]:
    job = step.source
    why = "; ".join(filter(None, (step.why, *job.notes)))
    cells = map(str, (job.where, step.action, job.job_id, _schedule_in(job), why))
    return tuple(cell if len(cell) <= _CELL_CHARS else f"{cell[:_CELL_CHARS]}…" for cell in cells)


def _schedule_in(job: SourceJob) -> str:
    schedule = job.definition.get("schedule")
    return schedule_words(schedule) if isinstance(schedule, dict) else ""


def _view(step: Step) -> dict[str, Any]:
    job = step.source
    return {
        "from": job.where,
        "action": step.action,
        "imported": step.is_imported,
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
