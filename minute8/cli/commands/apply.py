"""`minute8 apply`: jobs as code. A plan like a diff, with its consequences; then what the plan says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final, Literal, NoReturn

import typer
from msgspec import NODEFAULT, Struct, structs, to_builtins
from rich.console import Console

from common.errors import InvalidInput
from common.jobs.spec import Retry
from common.planning.execution import job_key
from common.preview.words import describe
from common.registration.schedule_definition import anchored_as
from common.registration.schedule_text import parse_schedule
from common.registration.target_definitions import MODELS
from common.timing.fires import limited, next_fires
from common.timing.schedule import Schedule
from minute8.cli.fire_changes import (
    Consequences,
    DatesOf,
    consequences,
    dates_by_name,
    resolved_schedule,
    show_fires,
)
from minute8.cli.job_files import BadFile, WrittenJob, read_files
from minute8.cli.options import ExitCode, with_options
from minute8.cli.output import confirm, console, field_text, print_json, problem_lines, say, schedule_words
from minute8.cli.session import session
from minute8.client import BulkLine, Client, LinesBusy, Minute8Problem
from minute8.client.shapes import EndedFire

Action = Literal["create", "change", "pause", "resume", "delete", "refused"]
SIGNS: Final[Mapping[Action, str]] = {
    "create": "+",
    "change": "~",
    "pause": "~",
    "resume": "~",
    "delete": "-",
    "refused": "!",
}


@dataclass(frozen=True, slots=True)
class Step:
    """What happens to one job. `fields` are the changed fields with their old and new values, `words` a new schedule.

    `ends` is what waits and does not run by the new times. An entry of a file that is no job has no id.
    """

    action: Action
    job_id: str
    where: str = ""
    why: str = ""
    fields: tuple[tuple[str, Any, Any], ...] = ()
    changes: Consequences = field(default_factory=Consequences)
    words: str = ""
    ends: Sequence[EndedFire] = ()
    warnings: Sequence[str] = ()


def with_defaults(name: str, value: Any) -> Any:
    """A field as the API stores it: what is left out of `retry` and `target` has its default."""
    if name == "retry":
        return to_builtins(Retry()) | (value or {})
    if name == "target" and isinstance(value, Mapping) and (model := MODELS.get(str(value.get("kind")))):
        return _defaults(model) | dict(value)
    return value


def _defaults(model: type[Struct]) -> dict[str, Any]:
    """The fields that a stored target has though they are left out."""
    fields = {field.name: field for field in structs.fields(model) if not field.required}
    defaults = {
        name: field.default if field.default_factory is NODEFAULT else field.default_factory()
        for name, field in fields.items()
    }
    return {name: value for name, value in defaults.items() if value is not None and name != "envelope"}


def differing(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[tuple[str, Any, Any], ...]:
    """The fields that differ. Fields of an object are listed one by one: `schedule.cron`."""
    fields: list[tuple[str, Any, Any]] = []
    for name in dict.fromkeys((*before, *after)):
        old, new = before.get(name), after.get(name)
        if isinstance(old, Mapping) and isinstance(new, Mapping) and name != "payload":
            fields += [(f"{name}.{inner}", *values) for inner, *values in differing(old, new)]
        elif old != new or type(old) is not type(new):
            fields.append((name, old, new))
    return tuple(fields)


def schedule_of(
    definition: Mapping[str, Any], job_key: str, now: int, stored: Mapping[str, Any] | None = None
) -> Schedule | None:
    """The schedule of a definition; an interval that is in the `stored` job keeps its anchor. None if unreadable.

    The fire times of an active stored job that have come count for its `max_runs`.
    """
    written = definition.get("schedule", {})
    try:
        schedule, counted = parse_schedule(written, job_key=job_key, now=now), 0
        if stored is not None:
            before = resolved_schedule(stored["schedule_resolved"])
            schedule = anchored_as(before, stored["schedule"], schedule, written)
            if (most := stored["schedule"].get("max_runs")) and stored["state"] == "active":
                counted = most - len(next_fires(before, now, most))
        return limited(schedule, written, counted, now)
    except InvalidInput:
        return None


# The exit code of a dry run that found changes.
CHANGES: Final = 2


@dataclass(frozen=True, slots=True)
class ApplyOptions:
    """What may be changed, and whether to ask."""

    prune: Annotated[bool, typer.Option("--prune", help="Delete the jobs that are in no file.")] = False
    prefix: Annotated[
        str | None, typer.Option("--prune-prefix", help="Prune only jobs whose id begins with this.")
    ] = None
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show the plan; exit code 0: no changes, 2: changes.")
    ] = False
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before pruning.")] = False
    past: Annotated[bool, typer.Option("--past", help="Accept an `at` that is past, which never fires.")] = (
        False
    )

    def prunes(self, job_id: str) -> bool:
        """Whether a job that is in no file is deleted."""
        return (self.prune or self.prefix is not None) and job_id.startswith(self.prefix or "")


@with_options
def apply(
    ctx: typer.Context,
    paths: Annotated[list[str], typer.Argument(help="Files or folders of jobs, YAML or JSON; - is stdin.")],
    options: ApplyOptions,
    as_json: Annotated[bool, typer.Option("--json", help="Print the plan as JSON; does not ask.")] = False,
) -> None:
    """Make the jobs what the files say: create, change, pause, resume, and with --prune delete them."""
    try:
        written, malformed = read_files(paths)
    except BadFile as error:
        fail(str(error))
    now = int(session(ctx).clock.now())
    try:
        with session(ctx).client() as client:
            stored = {job["job_id"]: job for job in client.export_jobs()}
            steps = [Step("refused", "", entry.where, entry.why) for entry in malformed]
            steps += planned(client, written, stored, now, options)
            _show(steps, as_json)
            if any(step.action == "refused" for step in steps):
                fail("nothing was applied: some jobs are refused")
            if options.dry_run:
                raise typer.Exit(CHANGES if steps else 0)
            deleted = sum(step.action == "delete" for step in steps)
            if deleted and not options.yes and not as_json:
                confirm(f"Delete {deleted} jobs?", abort=True)
            apply_steps(client, steps, written, options.past)
    except Minute8Problem as error:
        if error.status in (400, 413, 422):  # 2 would say that there are changes
            fail("; ".join(problem_lines(error)))
        raise


def planned(
    client: Client,
    written: Sequence[WrittenJob],
    stored: Mapping[str, Mapping[str, Any]],
    now: int,
    options: ApplyOptions,
) -> list[Step]:
    """The steps that make the stored jobs, as exported, what is written."""
    plan = _Plan(client, client.get_own_tenant()["tenant_id"], now, dates_by_name(client), options.past)
    results = client.put_jobs((job.line for job in written), dry_run=True, past=options.past)
    steps: list[Step] = []
    for job, result in zip(written, results, strict=True):
        if result["result"] == "refused":
            problem = result["problem"]
            why = "; ".join(problem_lines(Minute8Problem(problem["status"], dict(problem))))
            steps.append(Step("refused", job.job_id, job.where, why))
        elif result["result"] != "unchanged" or _other_state(job, stored[job.job_id]):
            step = plan.step(job, stored.get(job.job_id), result.get("changed", []))
            steps.append(replace(step, warnings=result.get("warnings", ())))
    named = {job.job_id for job in written}
    pruned = [job_id for job_id in stored if job_id not in named and options.prunes(job_id)]
    return steps + list(map(plan.deletion, pruned))


def _other_state(job: WrittenJob, stored: Mapping[str, Any]) -> bool:
    return job.state is not None and job.state != stored.get("state", "active")


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is compared as of `now`."""

    client: Client
    tenant: str
    now: int
    dates_of: DatesOf
    past: bool

    def step(self, job: WrittenJob, stored: Mapping[str, Any] | None, changed: Sequence[str]) -> Step:
        """What happens to a written job, whose fields in `changed` are not those of the stored one."""
        key = job_key(self.tenant, job.job_id)
        if stored is None:
            after = schedule_of(job.definition, key, self.now)
            changes = consequences(None, _fires(after, job.state), self.now, self.dates_of)
            why = "paused" if job.state == "paused" else ""
            return Step("create", job.job_id, job.where, why, changes=changes, words=_words(job, after))
        stored_job = self.client.get_job(job.job_id)
        before = resolved_schedule(stored_job["schedule_resolved"])
        after = schedule_of(job.definition, key, self.now, stored_job) if "schedule" in changed else before
        was = stored.get("state", "active")
        becomes = job.state or was
        changes = consequences(_fires(before, was), _fires(after, becomes), self.now, self.dates_of)
        fields = differing(
            {name: stored.get(name) for name in changed},
            {name: with_defaults(name, job.definition.get(name)) for name in changed},
        )
        if becomes != was:
            fields = (*fields, ("state", was, becomes))
        action: Any = "change" if changed else "pause" if becomes == "paused" else "resume"
        if "schedule" not in changed:
            return Step(action, job.job_id, job.where, "", fields, changes)
        would_be = self.client.put_job(job.job_id, job.definition, past=self.past, dry_run=True)
        ends = would_be.get("ends", ())
        return Step(action, job.job_id, job.where, "", fields, changes, _words(job, after), ends)

    def deletion(self, job_id: str) -> Step:
        """What the deletion of a job means."""
        job = self.client.get_job(job_id)
        before = _fires(resolved_schedule(job["schedule_resolved"]), job["state"])
        changes = consequences(before, None, self.now, self.dates_of)
        return Step("delete", job_id, why=schedule_words(job["schedule"]), changes=changes)


def _words(job: WrittenJob, schedule: Schedule | None) -> str:
    return describe(schedule, job.definition["schedule"].get("max_runs")) if schedule else ""


def _fires(schedule: Any, state: str | None) -> Any:
    return None if state == "paused" else schedule


def apply_steps(client: Client, steps: Sequence[Step], jobs: Sequence[WrittenJob], past: bool) -> None:
    """Jobs first, then their states, then deletions: if it stops, applying again completes it.

    Raises typer.Exit if a job is refused after all.
    """
    written = {job.job_id: job for job in jobs}
    refused = []
    for action in (
        "create",
        "change",
    ):  # what somebody else created meanwhile was never shown, so it is not replaced
        lines = [written[step.job_id].line for step in steps if step.action == action]
        results = _put(client, lines, past, only_new=action == "create")
        refused += [line for line in results if line["result"] == "refused"]
    for line in refused:
        refusal = Minute8Problem(line["problem"]["status"], dict(line["problem"]))
        say(f"minute8: {line['job_id']}: {'; '.join(problem_lines(refusal))}")
    if refused:
        raise typer.Exit(ExitCode.FAILED)
    for step in steps:
        state = next((new for name, _, new in step.fields if name == "state"), None)
        if state == "paused":
            client.pause_job(step.job_id, written[step.job_id].note)
        elif state == "active":
            client.resume_job(step.job_id)
        elif step.action == "delete":
            client.delete_job(step.job_id)


def _put(client: Client, lines: Sequence[dict[str, Any]], past: bool, *, only_new: bool) -> list[BulkLine]:
    """The results of all lines, also of those that stayed busy."""
    try:
        return client.put_jobs(lines, past=past, only_new=only_new)
    except LinesBusy as problem:
        return problem.results


def _show(steps: Sequence[Step], as_json: bool) -> None:
    if as_json:
        print_json([step_view(step) for step in steps])
        return
    out = console()
    show_steps(out, steps)
    actions = [step.action for step in steps]
    counts = ", ".join(f"{actions.count(action)} to {action}" for action in SIGNS if action in actions)
    out.print(counts.replace("to refused", "refused") or "no changes")


def show_steps(out: Console, steps: Sequence[Step]) -> None:
    """Print what happens to each job."""
    for step in steps:
        words = "; ".join(filter(None, (step.why, step.where if step.action == "refused" else "")))
        out.print(f"{SIGNS[step.action]} {step.job_id or 'no job'}  {words}".rstrip(), soft_wrap=True)
        for name, old, new in step.fields:
            out.print(f"    {name}: {_value(old)} → {_value(new)}", soft_wrap=True)
        if step.words:
            out.print(f"    {step.words}", soft_wrap=True)
        show_fires(out, step.changes)
        for line in (*(end["detail"] for end in step.ends), *step.warnings):
            out.print(f"    ! {line}", soft_wrap=True)


def _value(value: Any) -> str:
    return "-" if value is None else field_text(value)


def step_view(step: Step) -> dict[str, Any]:
    """What happens to a job, as JSON shows it."""
    return {
        "action": step.action,
        "job_id": step.job_id,
        "where": step.where,
        "why": step.why,
        "words": step.words,
        "fields": [{"field": name, "before": old, "after": new} for name, old, new in step.fields],
        **step.changes.view(),
        "ends": list(step.ends),
        "warnings": list(step.warnings),
    }


def fail(message: str) -> NoReturn:
    """End the command with the exit code 1 and a message."""
    say(f"minute8: {message}")
    raise typer.Exit(ExitCode.FAILED)
