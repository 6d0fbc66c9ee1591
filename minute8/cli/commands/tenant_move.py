"""`minute8 tenants export` and `import`: all that a tenant wrote, from one stage to another.

A line of the file is a job, as `minute8 export` writes it, or the settings, a calendar, a secret's name, a group, or a
subscription.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AnySet
from dataclasses import dataclass, field, replace
from shlex import quote
from typing import Annotated, Any, Final

import typer

from common.preview.preview import resolved_as_given
from minute8.cli.commands.apply import (
    CHANGES,
    SIGNS,
    ApplyOptions,
    Step,
    apply_steps,
    fail,
    planned,
    show_steps,
    step_view,
)
from minute8.cli.job_files import BadFile, WrittenJob, jobs_of, read_entries
from minute8.cli.options import ExitCode, with_options
from minute8.cli.output import confirm, console, field_text, print_exact, print_json, problem_lines, say
from minute8.cli.session import session
from minute8.client import Client, Minute8Problem
from minute8.eventbridge.moving.group_requests import lacks_tags, set_group, stored_groups

# What begins a line that is no job, and the fields that this command itself reads.
_KINDS: Final[Mapping[str, Mapping[str, type]]] = {
    "tenant": {"quotas": dict, "allowed_targets": list},
    "calendar": {},
    "secret": {},
    "group": {"tags": dict},
    "subscription": {},
}
_SETTINGS: Final = ("quotas", "allowed_targets", "retention_days", "spread_s")
_NOT_WRITTEN: Final = ("name", "created_at", "updated_at", "delivery")
_SIGNS: Final[Mapping[str, str]] = dict(SIGNS) | {"differs": "?", "left over": "?"}
_CHANGING: Final = ("create", "change", "pause", "resume")


@dataclass(frozen=True, slots=True)
class Part:
    """What happens to a part of the tenant that is no job; `fields` are what its line says."""

    action: str
    kind: str
    name: str
    where: str = ""
    why: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)


def export_tenant(ctx: typer.Context) -> None:
    """Print all that your tenant wrote, for `tenants import` on another stage; needs the tenant's own key.

    Secrets are there by name only. Keys, the webhook secret, runs, mutes and the audit are not.
    """
    with session(ctx).client() as client:
        for line in _lines(client):
            print_exact(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")


def _lines(client: Client) -> Iterator[Mapping[str, Any]]:
    tenant: Mapping[str, Any] = client.get_own_tenant()
    yield {"tenant": tenant["tenant_id"], **{name: tenant[name] for name in _SETTINGS}}
    for kind, name, fields in _stored_parts(client):
        yield {kind: name, **fields}
    resolved = {job["job_id"]: job["schedule_resolved"] for job in client.list_jobs()}
    for job in client.export_jobs(eventbridge=True):
        is_paused = job.get("state") == "paused"
        if job["job_id"] in resolved:
            as_resolved = resolved_as_given(resolved[job["job_id"]])
            job["schedule"] = _as_resolved(job["schedule"], as_resolved, is_paused=is_paused)
        if is_paused and "max_runs" in job["schedule"]:
            say(f"{job['job_id']}: its max_runs counts anew where it is imported")
        yield {"state": "active", **job}  # said, so that a later import resumes what was imported paused


def _stored_parts(client: Client) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Calendars, secrets, groups and subscriptions: kind, name, and what another stage takes of it."""
    for calendar in client.list_calendars():
        yield "calendar", calendar["name"], {"dates": calendar["dates"], "source": calendar["source"]}
    for secret in client.list_secrets():
        yield "secret", secret["name"], {}
    for name, tags in stored_groups(client):
        yield "group", name, {"tags": tags}
    for subscription in client.list_subscriptions():
        fields = {name: value for name, value in subscription.items() if name not in _NOT_WRITTEN}
        yield "subscription", subscription["name"], fields


def _as_resolved(
    schedule: Mapping[str, Any], as_resolved: Mapping[str, Any], *, is_paused: bool
) -> dict[str, Any]:
    """The schedule with the anchor and the end that the stage gave it: the same fire times on another stage."""
    written = dict(schedule)
    if "schedules" in written:
        pairs = zip(written["schedules"], as_resolved["schedules"], strict=True)
        written["schedules"] = [
            _as_resolved(part, resolved_part, is_paused=is_paused) for part, resolved_part in pairs
        ]
    elif "every" in written:
        written.setdefault("anchor", as_resolved["anchor"])
    if "max_runs" in written and "end_at" in as_resolved and not is_paused:
        del written["max_runs"]
        written["end_at"] = as_resolved["end_at"]
    return written


@dataclass(frozen=True, slots=True)
class MoveOptions:
    """How a tenant is imported."""

    paused: Annotated[
        bool, typer.Option("--paused", help="Create jobs paused; a later import without it resumes them.")
    ] = False
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show the plan; exit code 0: no changes, 2: changes.")
    ] = False
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False
    as_json: Annotated[bool, typer.Option("--json", help="Print the plan as JSON; does not ask.")] = False


@with_options
def import_tenant(
    ctx: typer.Context,
    file: Annotated[str, typer.Argument(help="What `tenants export` printed; - is stdin.")],
    options: MoveOptions,
) -> None:
    """Make your tenant what the file says; shows the plan first, and asks. Needs the tenant's own key.

    It deletes nothing: what the file does not have is named as left over. Importing again changes nothing.
    """
    try:
        entries = read_entries([file])
    except BadFile as error:
        fail(str(error))
    with session(ctx).client() as client:
        move = _Move.of(client, entries, int(session(ctx).clock.now()), paused=options.paused)
        steps = move.planned_jobs()
        _show(move.parts, steps, options.as_json)
        actions = {part.action for part in move.parts} | {step.action for step in steps}
        if "refused" in actions:
            fail("nothing was imported: some lines are refused")
        if options.dry_run or not actions.intersection(_CHANGING):
            raise typer.Exit(CHANGES if actions.intersection(_CHANGING) else 0)
        if not options.yes and not options.as_json:
            confirm("Import?", abort=True)
        move.put("calendar", "group")
        # What names a new calendar can be compared only now.
        steps = move.planned_jobs(has_calendars=True) if move.new_calendars else steps
        apply_steps(client, steps, move.jobs, past=True)
        move.put("subscription")


@dataclass(frozen=True, slots=True)
class _Move:
    """What a file makes of the tenant."""

    client: Client
    now: int
    parts: Sequence[Part]
    jobs: Sequence[WrittenJob]
    malformed: Sequence[Step]
    stored: Mapping[str, Mapping[str, Any]]

    @classmethod
    def of(cls, client: Client, entries: Sequence[tuple[str, Any]], now: int, *, paused: bool) -> _Move:
        of_jobs = [entry for entry in entries if _kind(entry[1]) == "job"]
        jobs, no_jobs = jobs_of(of_jobs)
        stored = {job["job_id"]: job for job in client.export_jobs(eventbridge=True)}
        if paused:
            jobs = [replace(job, state=None if job.job_id in stored else "paused") for job in jobs]
        parts = list(_planned_parts(client, [entry for entry in entries if _kind(entry[1]) != "job"]))
        left_over = sorted(stored.keys() - {job.job_id for job in jobs})
        parts += [Part("left over", "job", job_id) for job_id in left_over]
        malformed = [Step("refused", "", entry.where, entry.why) for entry in no_jobs]
        return cls(client, now, parts, jobs, malformed, stored)

    @property
    def new_calendars(self) -> AnySet[str]:
        """Calendars that are not there yet."""
        return {part.name for part in self.parts if part.kind == "calendar" and part.action == "create"}

    def planned_jobs(self, *, has_calendars: bool = False) -> list[Step]:
        """What happens to the jobs. Before the new calendars are there, jobs are checked without them."""
        names = set() if has_calendars else self.new_calendars
        jobs = [replace(job, definition=_without(job.definition, names)) for job in self.jobs]
        return [*self.malformed, *planned(self.client, jobs, self.stored, self.now, ApplyOptions(past=True))]

    def put(self, *kinds: str) -> None:
        """Store the new and changed parts of these kinds. Raises typer.Exit if the API refuses some."""
        is_refused = False
        for part in self.parts:
            if part.kind in kinds and part.action in _CHANGING:
                try:
                    _put(self.client, part)
                except Minute8Problem as problem:
                    is_refused = True
                    say(
                        f"minute8: {part.where}: {part.kind} {part.name}: {'; '.join(problem_lines(problem))}"
                    )
        if is_refused:
            raise typer.Exit(ExitCode.FAILED)


def _put(client: Client, part: Part) -> None:
    if part.kind == "calendar":
        client.put_calendar(part.name, part.fields)
    elif part.kind == "group":
        set_group(client, part.name, part.fields["tags"])
    else:
        client.put_subscription(part.name, part.fields)


def _without(value: Any, calendars: AnySet[str]) -> Any:
    """A definition that does not name these calendars."""
    if isinstance(value, list):
        return [_without(inner, calendars) for inner in value]
    if not calendars or not isinstance(value, dict):
        return value
    return {
        name: [other for other in inner if not isinstance(other, str) or other not in calendars]
        if name in ("calendars", "include_calendars") and isinstance(inner, list)
        else _without(inner, calendars)
        for name, inner in value.items()
    }


def _kind(entry: Any) -> str:
    first = next(iter(entry), "") if isinstance(entry, dict) else ""
    return first if first in _KINDS else "job"


def _written_parts(entries: Sequence[tuple[str, Any]]) -> Iterator[Part]:
    """The lines that are no jobs; malformed ones are refused."""
    places: dict[tuple[str, str], str] = {}
    for where, entry in entries:
        kind = _kind(entry)
        shape = {kind: str, **_KINDS[kind]}
        part = Part("", kind, field_text(entry[kind]), where, fields={**entry})
        if wrong := [
            name for name, kind_of_value in shape.items() if not isinstance(entry.get(name), kind_of_value)
        ]:
            yield replace(
                part, action="refused", why=f"{', '.join(wrong)} is not as `tenants export` writes it"
            )
        elif other := places.get((kind, part.name)):
            yield replace(part, action="refused", why=f"is in {other} too; accepted: each {kind} once")
        else:
            places[kind, part.name] = where
            yield replace(part, fields={name: value for name, value in entry.items() if name != kind})


def _planned_parts(client: Client, entries: Sequence[tuple[str, Any]]) -> Iterator[Part]:
    """What happens to the parts of the file, and which parts of the tenant it does not have."""
    stored = {(kind, name): fields for kind, name, fields in _stored_parts(client)}
    for part in _written_parts(entries):
        before = stored.pop((part.kind, part.name), None)
        if part.action == "refused":
            yield part
        elif part.kind == "tenant":
            if differences := list(_differences(client.get_own_tenant(), part)):
                yield replace(part, action="differs", why="; ".join(differences))
        elif part.kind == "secret":
            if before is None:
                why = f"has no value here: minute8 secrets put {quote(part.name)}"
                yield replace(part, action="refused", why=why)
        elif before is None:
            yield replace(part, action="create")
        elif (
            lacks_tags(before["tags"], part.fields["tags"]) if part.kind == "group" else before != part.fields
        ):
            yield replace(part, action="change")
    yield from (Part("left over", kind, name) for kind, name in stored)


def _differences(own: Mapping[str, Any], part: Part) -> Iterator[str]:
    """What of the tenant's settings is not as in the file, and the operator's command that sets it."""
    tenant_id, written = own["tenant_id"], part.fields
    if part.name != tenant_id:
        yield f"the key is of tenant {tenant_id}: `H`, spread_s and jitter_s choose other times"
    quotas, targets = written["quotas"], written["allowed_targets"]
    options = [f"--quota {name}={most}" for name, most in quotas.items() if own["quotas"].get(name) != most]
    if set(map(str, targets)) != set(own["allowed_targets"]):
        options += [f"--allow-target {quote(str(pattern))}" for pattern in targets] or ["--allow-nothing"]
    for option, name in (("--retention-days", "retention_days"), ("--spread", "spread_s")):
        if (value := written.get(name)) not in (None, own[name]):
            options.append(f"{option} {value}")
    if options:
        yield f"for the operator: minute8 tenants edit {tenant_id} {' '.join(options)}"


def _show(parts: Sequence[Part], steps: Sequence[Step], as_json: bool) -> None:
    if as_json:
        shown = ("kind", "name", "action", "where", "why")
        views = [{name: getattr(part, name) for name in shown} for part in parts]
        print_json(views + [{"kind": "job", "name": step.job_id, **step_view(step)} for step in steps])
        return
    out = console()
    for part in parts:
        why = "is not in the file, and stays" if part.action == "left over" else part.why
        words = "; ".join(filter(None, (why, part.where if part.action == "refused" else "")))
        out.print(f"{_SIGNS[part.action]} {part.kind} {part.name}  {words}".rstrip(), soft_wrap=True)
    show_steps(out, steps)
    actions = Counter[str]([part.action for part in parts] + [step.action for step in steps])
    counts = [
        f"{count} {action if action in ('refused', 'left over', 'differs') else f'to {action}'}"
        for action in _SIGNS
        if (count := actions[action])
    ]
    out.print(", ".join(counts) or "no changes")
