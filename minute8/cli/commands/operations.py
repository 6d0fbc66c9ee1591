"""Commands of the platform's operator: `planning`, `blocks`, `unrecorded` and `dead-letters`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

import typer

from common.timing.instants import relative, rfc3339, when
from minute8.cli import output
from minute8.cli.options import AsJson, with_options
from minute8.cli.output import confirm, console, plural, print_json, say, seconds
from minute8.cli.platform import Platform, Stage, operator_api, platform
from minute8.cli.session import session
from minute8.cli.time_range import since_at
from minute8.client.shapes import Block, DeadLetter, DeadLettersDone, PlatformPlanning, RanUnrecorded


def planning(
    ctx: typer.Context,
    windows: Annotated[
        int, typer.Option(min=1, max=144, help="The number of windows to show, the newest ones.")
    ] = 12,
    as_json: AsJson = False,
) -> None:
    """Show up to when all is planned, how the last windows went, and what is set aside. Needs an operator key."""
    with operator_api(ctx) as api:
        planned = api.planning_of_platform(windows=windows)
    if as_json:
        print_json(planned)
        return
    _print_planning(planned, session(ctx).clock.now())


def _print_planning(planned: PlatformPlanning, now: float) -> None:
    out = console()
    rows = [
        (
            window["start_at"],
            seconds(window["took_s"]),
            _ready(window["ahead_s"]),
            window["executions"],
            window["missed"],
            window["planners"] or "-",
        )
        for window in planned["windows"]
    ]
    for finding in planned["findings"]:
        since = f", since {when(finding['since_at'], now)}" if finding.get("since_at") else ""
        out.print(f"{finding['level']}: {finding['found']}{since}", soft_wrap=True)
        if finding["remedy"]:
            out.print(f"→ {finding['remedy']}", soft_wrap=True)
    if rows:
        out.print(output.table(("WINDOW", "TOOK", "READY", "EXECUTIONS", "MISSED", "PLANNERS"), rows))
    for aside in planned["set_aside"]:
        line = f"{aside['kind']} {aside['name']}, {when(aside['seen_at'], now)}: {aside['reason']}"
        out.print(line, soft_wrap=True)


def _ready(ahead_s: float) -> str:
    return f"{seconds(ahead_s)} before" if ahead_s >= 0 else f"{seconds(-ahead_s)} late"


blocks_app = typer.Typer(
    no_args_is_help=True, help="Targets that no tenant's run calls; needs an operator key."
)

Pattern = Annotated[str, typer.Argument(help="A pattern of ARNs or hosts, in quotes; '*' is everything.")]


@blocks_app.command("list")
def list_blocks(ctx: typer.Context, stage: Stage = None, as_json: AsJson = False) -> None:
    """List what is blocked."""
    with platform(ctx, stage) as api:
        _print_blocks(ctx, api.list_blocks(), as_json)


@blocks_app.command()
def add(
    ctx: typer.Context,
    pattern: Pattern,
    note: Annotated[str, typer.Option(help="Why; the skipped runs show it.")] = "",
    stage: Stage = None,
    as_json: AsJson = False,
) -> None:
    """Skip the runs of all tenants that would call a target, everywhere within seconds."""
    with platform(ctx, stage) as api:
        _print_blocks(ctx, api.block_target(pattern, note), as_json)


@blocks_app.command()
def release(ctx: typer.Context, pattern: Pattern, stage: Stage = None, as_json: AsJson = False) -> None:
    """Let a blocked target be called again."""
    with platform(ctx, stage) as api:
        _print_blocks(ctx, api.release_target(pattern), as_json)


def _print_blocks(ctx: typer.Context, blocks: list[Block], as_json: bool) -> None:
    now = session(ctx).clock.now()
    output.show_list(
        blocks,
        as_json,
        ("BLOCKED", "SINCE", "BY", "NOTE"),
        lambda block: (block["pattern"], relative(block["blocked_at"], now), block["by"], block["note"]),
        "nothing is blocked",
    )


unrecorded_app = typer.Typer(
    no_args_is_help=True,
    help="Executions that were enqueued and have no record; needs an operator key or AWS credentials.",
)
DueSince = Annotated[str | None, typer.Option(help="Only those due in the last 2h, 7d…, or since a time.")]
# A request runs at most this many: common/platform/run_again.py.
_MAX_IN_REQUEST = 100


@unrecorded_app.command("list")
def list_unrecorded(
    ctx: typer.Context, since: DueSince = None, stage: Stage = None, as_json: AsJson = False
) -> None:
    """List what ticks have found without a record, and what has none now."""
    now = session(ctx).clock.now()
    with platform(ctx, stage) as api:
        executions = list(api.list_unrecorded(from_at=_from(since, now)))
    if as_json:
        print_json(executions)
        return
    rows = [
        (
            execution["due_at"],
            relative(execution["due_at"], now),
            relative(execution["sent_at"], now),
            execution["execution_id"],
        )
        for execution in executions
    ]
    console().print(
        output.table(("DUE", "", "SENT AGAIN", "EXECUTION"), rows)
        if rows
        else "every planned execution has a record"
    )


@dataclass(frozen=True, slots=True)
class UnrecordedFilters:
    """Which executions: the named ones, or all since a time."""

    execution_ids: Annotated[list[str] | None, typer.Argument(help="Ids of the list.")] = None
    everything: Annotated[bool, typer.Option("--all", help="Run all that are listed.")] = False
    since: DueSince = None


@unrecorded_app.command()
@with_options
def run(
    ctx: typer.Context,
    filters: UnrecordedFilters,
    stage: Stage = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Send them; else only the plan is shown.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show by job which executions have no record; with --yes send them again. What is known to have had a record is
    only recorded anew.
    """
    now = session(ctx).clock.now()
    if bool(filters.execution_ids) == filters.everything:
        raise typer.BadParameter("give the ids of executions, or --all")
    with platform(ctx, stage) as api:
        ids = list(filters.execution_ids or ())
        if filters.everything:
            listed = api.list_unrecorded(from_at=_from(filters.since, now))
            ids = [execution["execution_id"] for execution in listed]
        done = run_unrecorded(api, ids, send=yes)
    if as_json:
        print_json(done)
        return
    for execution_id in done["recorded"]:
        console().print(f"has a record meanwhile: {execution_id}", soft_wrap=True)
    print_by_job(done["jobs"])
    executions, known = plural(len(done["sent"]), "execution"), len(done["known"])
    if yes or not (done["sent"] or known):
        console().print(f"{executions} sent again" + (f", {known} recorded anew" if known else ""))
        return
    anew = f", and {known} recorded anew" if known else ""
    console().print(f"{executions} would be sent again{anew}: nothing is sent without --yes")
    if done["sent"]:
        words = "what was called before its record was lost is called again: ask its target first"
        console().print(words, soft_wrap=True)


def print_by_job(jobs: Iterable[Mapping[str, Any]]) -> None:
    """Executions without a record, and of how many something knows that they were called."""
    rows = [
        (
            f"{of_job['tenant_id']}/{of_job['job_id']}",
            of_job["executions"],
            ", ".join(f"{source}: {count}" for source, count in sorted(of_job["known_by"].items())) or "-",
            of_job["sent_before"],
            of_job["first_due_at"],
            of_job["last_due_at"],
        )
        for of_job in jobs
    ]
    if rows:
        columns = "JOB", "EXECUTIONS", "CALLED ACCORDING TO", "SENT BEFORE", "FIRST DUE", "LAST DUE"
        console().print(output.table(columns, rows))


def run_unrecorded(api: Platform, execution_ids: Sequence[str], *, send: bool) -> RanUnrecorded:
    """The plan for them, or what was sent, in as many requests as needed. A job is counted once."""
    total: RanUnrecorded = {"dry_run": not send, "sent": [], "jobs": [], "known": [], "recorded": []}
    for start in range(0, len(execution_ids), _MAX_IN_REQUEST):
        done = api.run_unrecorded(execution_ids[start : start + _MAX_IN_REQUEST], send=send)
        total["sent"] += done["sent"]
        total["known"] += done["known"]
        total["recorded"] += done["recorded"]
        for of_job in done["jobs"]:
            last = total["jobs"][-1] if total["jobs"] else None
            # The list is in the order of the ids, so a job's are together.
            if last and (last["tenant_id"], last["job_id"]) == (of_job["tenant_id"], of_job["job_id"]):
                last["executions"] += of_job["executions"]
                last["sent_before"] += of_job["sent_before"]
                last["known_by"] = dict(Counter(last["known_by"]) + Counter(of_job["known_by"]))
                last["first_due_at"] = min(last["first_due_at"], of_job["first_due_at"])
                last["last_due_at"] = max(last["last_due_at"], of_job["last_due_at"])
            else:
                total["jobs"].append(of_job)
    return total


def _from(since: str | None, now: float) -> str | None:
    return rfc3339(since_at(since, now)) if since else None


dead_letters_app = typer.Typer(
    no_args_is_help=True, help="Messages that were given up; needs an operator key."
)

Queue = Annotated[str, typer.Argument(help="executions, planning, outcomes or registrations.")]
Ids = Annotated[list[str] | None, typer.Argument(help="Ids of the list; without them all.")]
# Of those that stay, and of why they were refused.
_MAX_SHOWN: Final = 100
_MAX_REASONS: Final = 10


@dead_letters_app.command("list")
def list_dead_letters(
    ctx: typer.Context,
    queue: Annotated[
        str | None,
        typer.Argument(help="executions, planning, outcomes or registrations; else all are counted."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Count the given-up messages of each queue, or list those of one queue."""
    with operator_api(ctx) as api:
        if queue is None:
            counts = api.count_dead_letters()
            if as_json:
                print_json(counts)
                return
            console().print(
                output.table(
                    ("QUEUE", "DEAD LETTERS"), [(count["queue"], count["dead_letters"]) for count in counts]
                )
            )
            return
        page = api.list_dead_letters(queue)
    if as_json:
        print_json(page)
        return
    _print_dead_letters(ctx, page["dead_letters"])
    if page["more"]:
        say(
            f"minute8: there may be more, once these are sent again or deleted: minute8 dead-letters list {queue}"
        )


@dead_letters_app.command()
def redrive(ctx: typer.Context, queue: Queue, message_ids: Ids = None, as_json: AsJson = False) -> None:
    """Send given-up messages to their queue again, each once; unreadable messages stay."""
    with operator_api(ctx) as api:
        _print_result(ctx, _each_once(api.redrive_dead_letters, queue, message_ids), as_json)


@dead_letters_app.command()
def discard(
    ctx: typer.Context,
    queue: Queue,
    message_ids: Ids = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Delete given-up messages; asks first."""
    if not yes:
        confirm(f"Delete {len(message_ids) if message_ids else 'all'} of {queue}?", abort=True)
    with operator_api(ctx) as api:
        _print_result(ctx, _each_once(api.discard_dead_letters, queue, message_ids), as_json)


def _each_once(act: Callable[..., DeadLettersDone], queue: str, ids: list[str] | None) -> DeadLettersDone:
    """Repeat a request until it met each dead letter that was there at the first one, and add up the answers."""
    answer = act(queue, ids, all=not ids)
    done, stay = answer["done"], {dead_letter["message_id"]: dead_letter for dead_letter in answer["left"]}
    is_new = True
    while answer["more"] and is_new:
        answer = act(queue, ids, all=not ids, began_at=answer["began_at"])
        now_left = {dead_letter["message_id"]: dead_letter for dead_letter in answer["left"]}
        is_new = answer["done"] > 0 or not now_left.keys() <= stay.keys()
        done, stay = done + answer["done"], stay | now_left
    return {**answer, "done": done, "left": list(stay.values())}


def _print_result(ctx: typer.Context, answer: DeadLettersDone, as_json: bool) -> None:
    if as_json:
        print_json(answer)
        return
    from common.platform.dead_letters import REFUSED_AGAIN

    dead_letters, refused = answer["left"], f"{REFUSED_AGAIN}: "
    problems = [dead_letter["problem"] or "" for dead_letter in dead_letters]
    reasons = Counter(problem.removeprefix(refused) for problem in problems if problem.startswith(refused))
    count = len(dead_letters) - reasons.total()
    _print_dead_letters(ctx, dead_letters[:_MAX_SHOWN])
    more = "; there may be more" if answer["more"] else ""
    again = f", {reasons.total()} refused again" if reasons else ""
    console().print(f"{answer['done']} done{again}, {count} left{more}")
    for reason, number in reasons.most_common(_MAX_REASONS):
        console().print(f"{number} refused again: {reason}", soft_wrap=True)


def _print_dead_letters(ctx: typer.Context, dead_letters: list[DeadLetter]) -> None:
    now = session(ctx).clock.now()
    rows = [
        (
            dead_letter["message_id"],
            relative(dead_letter["sent_at"], now),
            dead_letter["problem"] or ", ".join(dead_letter["about"]),
        )
        for dead_letter in dead_letters
    ]
    if rows:
        console().print(output.table(("MESSAGE", "SENT", "ABOUT"), rows))
