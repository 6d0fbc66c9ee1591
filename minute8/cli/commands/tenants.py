"""`minute8 tenants` and `minute8 quotas`: the platform's tenants, what they may do, and what they use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, cast

import typer
from rich.table import Table

from common.errors import InvalidInput
from common.timing.instants import relative, when
from minute8.cli import output
from minute8.cli.commands.keys import key_table
from minute8.cli.options import AsJson, Since, Until, with_options
from minute8.cli.output import console, print_json, say, seconds, share, state
from minute8.cli.platform import Stage, operator_api, platform
from minute8.cli.rest_of_list import say_more
from minute8.cli.session import session
from minute8.cli.time_range import range_of
from minute8.client.shapes import RuleEffects, TenantLine, TenantView

app = typer.Typer(no_args_is_help=True, help="Tenants; needs an operator key or AWS credentials.")

# Tenants of one request.
_MAX_PAGE = 200

TenantId = Annotated[str, typer.Argument(help="The tenant's id.")]
Name = Annotated[str | None, typer.Option(help="A name for people.")]
Targets = Annotated[
    list[str] | None,
    typer.Option("--allow-target", help="An ARN pattern or a host that it may call; may be repeated."),
]
QuotaList = Annotated[
    list[str] | None,
    typer.Option("--quota", help="A quota, jobs=100; may be repeated.", metavar="NAME=NUMBER"),
]
Days = Annotated[int | None, typer.Option(help="The number of days for which its runs are kept.")]
Spread = Annotated[
    int | None, typer.Option("--spread", help="Spread jobs that name no second over this many seconds.")
]


@dataclass(frozen=True, slots=True)
class TenantSettings:
    """What a tenant may do."""

    name: Name = None
    allow_target: Targets = None
    quota: QuotaList = None
    retention_days: Days = None
    spread: Spread = None

    def fields(self) -> dict[str, Any]:
        return _set_fields(self, self.allow_target)


@dataclass(frozen=True, slots=True)
class TenantChanges:
    """What a tenant may do from now on."""

    name: Name = None
    allow_target: Targets = None
    allow_nothing: Annotated[bool, typer.Option(help="Remove all allowed targets.")] = False
    add_target: Annotated[
        list[str] | None, typer.Option(help="A pattern to add to the others; may be repeated.")
    ] = None
    remove_target: Annotated[
        list[str] | None, typer.Option(help="A pattern to remove from the others; may be repeated.")
    ] = None
    quota: QuotaList = None
    retention_days: Days = None
    spread: Spread = None

    def fields(self) -> dict[str, Any]:
        """The changed fields. Raises typer.BadParameter if there are none."""
        if self.allow_nothing and self.allow_target:
            raise typer.BadParameter("--allow-nothing and --allow-target exclude each other")
        changes = _set_fields(self, [] if self.allow_nothing else self.allow_target)
        single = {"add_targets": self.add_target, "remove_targets": self.remove_target}
        changes |= {field: patterns for field, patterns in single.items() if patterns}
        if not changes:
            raise typer.BadParameter("nothing to change; name at least one option")
        return changes


def _set_fields(options: TenantSettings | TenantChanges, allowed_targets: list[str] | None) -> dict[str, Any]:
    """The fields whose options are set."""
    fields = {
        "name": options.name,
        "allowed_targets": allowed_targets,
        "quotas": read_quotas(options.quota) if options.quota else None,
        "retention_days": options.retention_days,
        "spread_s": options.spread,
    }
    return {field: value for field, value in fields.items() if value is not None}


@app.command("create")
@with_options
def create(
    ctx: typer.Context,
    tenant_id: TenantId,
    settings: TenantSettings,
    stage: Stage = None,
    as_json: AsJson = False,
) -> None:
    """Create a tenant. It may call nothing but the targets that are allowed here or by `tenants edit`."""
    fields = settings.fields()
    with platform(ctx, stage) as api:
        tenant = api.create_tenant(tenant_id, fields)
    _print_done(tenant, f"created; its first key: minute8 keys create {tenant_id} --role admin", as_json)


@app.command("edit")
@with_options
def edit(
    ctx: typer.Context,
    tenant_id: TenantId,
    changes: TenantChanges,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Show what it would break, and change nothing; needs an operator key."
        ),
    ] = False,
    stage: Stage = None,
    as_json: AsJson = False,
) -> None:
    """Change what a tenant may do. Targets given as --allow-target replace the stored ones."""
    fields = changes.fields()
    if dry_run:
        with operator_api(ctx) as operator:
            _print_effects(operator.check_tenant(tenant_id, fields), as_json)
        return
    with platform(ctx, stage) as api:
        tenant = api.patch_tenant(tenant_id, fields)
    _print_done(tenant, "is changed; the executors know within 15 s", as_json)


@app.command("overview")
def overview(
    ctx: typer.Context,
    since: Since = None,
    until: Until = None,
    problems: Annotated[
        bool,
        typer.Option(
            "--problems", help="Only suspended tenants, and those with failed runs or jobs that do not run."
        ),
    ] = False,
    sort: Annotated[str, typer.Option(help="By id, failing, late, load or quota.")] = "id",
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="List at most this many.")] = 100,
    as_json: AsJson = False,
) -> None:
    """List tenants with their use of quotas and their runs of a day, and what is blocked; needs an operator key."""
    from_at, until_at = range_of(since, until, session(ctx).clock.now())
    with operator_api(ctx) as operator:
        query: dict[str, Any] = {"from_at": from_at, "until_at": until_at, "problems": problems, "sort": sort}
        shown = operator.overview_of_platform_page(**query, limit=min(limit, _MAX_PAGE))
        while (cursor := shown["next_cursor"]) and len(shown["tenants"]) < limit:
            page = operator.overview_of_platform_page(**query, limit=_MAX_PAGE, cursor=cursor)
            shown["tenants"] += page["tenants"]
            shown["next_cursor"] = page["next_cursor"]
    tenants = shown["tenants"][:limit]
    if len(tenants) < shown["matched"]:
        say_more(ctx, f"{len(tenants)} of {shown['matched']} tenants", "--limit", limit, short="-n")
    if as_json:
        print_json({**shown, "tenants": tenants})
        return
    totals = shown["totals"]
    console().print(
        f"{totals['tenants']}{'' if totals['complete'] else '+'} tenants, {totals['suspended']} suspended, "
        f"{totals['jobs']} jobs; runs counted up to {shown['fresh_at']}: "
        f"{totals['runs']}, {totals['failed']} failed, {totals['late']} late; "
        f"{totals['not_running']} with jobs that do not run",
        highlight=False,
    )
    for block in shown["blocks"]:
        console().print(f"blocked {block['pattern']} {block['note']}".rstrip(), highlight=False)
    rows = [_overview_row(tenant) for tenant in tenants]
    columns = (
        "TENANT",
        "STATE",
        "JOBS",
        "OF QUOTA",
        "RUNS",
        "FAILED",
        "LATE",
        "FAILING JOBS",
        "NOT RUNNING",
        "",
    )
    console().print(output.table(columns, rows) if rows else "no tenants")


def _overview_row(tenant: TenantLine) -> tuple[Any, ...]:
    past, failing = tenant["past"], tenant["failing"]
    named = ", ".join(job["job_id"] for job in failing["jobs"]) if failing else ""
    more = failing["count"] - len(failing["jobs"]) if failing else 0
    return (
        tenant["tenant_id"],
        state(tenant["state"]),
        tenant["usage"]["jobs"],
        output.used(round(tenant["quota_share"] * 100), 100),
        past["runs"],
        past["failed"],
        past["late"],
        f"{named}, {more} more" if more else named,
        _stopped_words(tenant),
        tenant["note"] or tenant["name"],
    )


def _reasons(reasons: Mapping[str, int]) -> str:
    return f" ({', '.join(f'{name} {count}' for name, count in reasons.items())})" if reasons else ""


def _stopped_words(tenant: TenantLine) -> str:
    """report: overlap, 3 more."""
    if not (stopped := tenant["not_running"]):
        return ""
    words = [f"{note['job_id'] or note['subscription']}: {note['reason']}" for note in stopped["first"]]
    more = stopped["count"] - len(words)
    return ", ".join([*words, *([f"{more}{'' if stopped['complete'] else '+'} more"] if more else [])])


@app.command("health")
def health(
    ctx: typer.Context,
    tenant_id: TenantId,
    since: Since = None,
    until: Until = None,
    as_json: AsJson = False,
) -> None:
    """Show how a tenant is: counts and lateness of its runs of a day, failing and overdue jobs."""
    from_at, until_at = range_of(since, until, session(ctx).clock.now())
    with operator_api(ctx) as operator:
        shown = operator.tenant_health(tenant_id, from_at=from_at, until_at=until_at)
    if as_json:
        print_json(shown)
        return
    runs, jobs, late = shown["run_totals"], shown["job_counts"], shown["run_totals"]["lateness_s"]
    statuses = ", ".join(f"{name} {count}" for name, count in runs["statuses"].items())
    overdue = (
        f", {jobs['overdue']} overdue by up to {seconds(jobs['most_late_s'])}" if jobs["overdue"] else ""
    )
    rows = [
        ("runs", f"{runs['runs']}: {statuses}" if runs["runs"] else "none"),
        ("succeeded", f"{share(runs['success_rate'])} of {runs['due']} due"),
        (
            "late",
            " · ".join(
                f"{name} {seconds(late[name])}" for name in ("p50", "p95", "p99", "max") if name in late
            ),
        ),
        (
            "jobs",
            f"{jobs['active']} active, {jobs['paused']} paused, {jobs['failing']} failing, "
            f"{jobs['not_running']} not running{_reasons(jobs['stopped_by'])}{overdue}",
        ),
    ]
    console().print(output.table(("", ""), [row for row in rows if row[1]]))
    if not (runs["complete"] and jobs["complete"]):
        say("minute8: not all of it: runs up to some minutes ago, and 500 jobs")


@app.command("suspend")
def suspend(
    ctx: typer.Context,
    tenant_id: TenantId,
    note: Annotated[str, typer.Option(help="The reason; the tenant can read it.")] = "",
    stage: Stage = None,
    as_json: AsJson = False,
) -> None:
    """Stop all jobs of a tenant; what becomes due meanwhile is skipped."""
    with platform(ctx, stage) as api:
        tenant = api.suspend_tenant(tenant_id, note)
    _print_done(tenant, "is suspended; the executors know within 15 s", as_json)


@app.command("resume")
def resume(ctx: typer.Context, tenant_id: TenantId, stage: Stage = None, as_json: AsJson = False) -> None:
    """Let a suspended tenant's jobs run again."""
    with platform(ctx, stage) as api:
        tenant = api.resume_tenant(tenant_id)
    _print_done(tenant, "is resumed; the executors know within 15 s", as_json)


@app.command("list")
def list_tenants(ctx: typer.Context, stage: Stage = None, as_json: AsJson = False) -> None:
    """List the tenants."""
    with platform(ctx, stage) as api:
        tenants = list(api.list_tenants())
    now = session(ctx).clock.now()
    output.show_list(
        tenants,
        as_json,
        ("TENANT", "STATE", "CREATED", "NAME", "NOTE"),
        lambda tenant: (
            tenant["tenant_id"],
            state(tenant["state"]),
            relative(tenant["created_at"], now),
            tenant["name"],
            tenant["note"],
        ),
        "no tenants",
    )


@app.command("show")
def show(ctx: typer.Context, tenant_id: TenantId, stage: Stage = None, as_json: AsJson = False) -> None:
    """Show a tenant, how much of its quotas is used, and its keys."""
    with platform(ctx, stage) as api:
        tenant, keys = api.get_tenant(tenant_id), list(api.list_keys_of_tenant(tenant_id))
    if as_json:
        print_json({**tenant, "keys": keys})
        return
    now, say = session(ctx).clock.now(), console()
    name = f" ({tenant['name']})" if tenant["name"] else ""
    note = f": {tenant['note']}" if tenant["note"] else ""
    created = when(tenant["created_at"], now)
    say.print(f"{tenant_id}{name}, {tenant['state']}{note}, created {created}", soft_wrap=True)
    targets = ", ".join(tenant["allowed_targets"]) or "nothing: minute8 tenants edit --allow-target"
    say.print(f"may call {targets}", soft_wrap=True)
    say.print(f"runs are kept for {tenant['retention_days']} days")
    if (spread_s := tenant["spread_s"]) is not None:
        say.print(f"jobs that name no second are due within {spread_s} s")
    say.print(quota_table(tenant))
    say.print(key_table(keys, now))


def _print_effects(effects: RuleEffects, as_json: bool) -> None:
    if as_json:
        print_json(effects)
        return
    lines = [f"{effects['jobs_read']} jobs read{'' if effects['complete'] else ', and there are more'}"]
    if effects["not_allowed"]:
        lines.append(f"{effects['not_allowed']} would stop: their targets are not allowed")
    lines += [f"  {target['jobs']} call {target['target']}" for target in effects["targets"]]
    for count, reason in (
        (effects["interval_too_short"], "an interval too short"),
        (effects["payload_too_large"], "a payload too large"),
    ):
        if count:
            lines.append(f"{count} would go on, with {reason} to be registered again")
    lines += [
        f"{quota['quota']}: {quota['used']} used of {quota['allowed']}; it keeps its jobs, and can add none"
        for quota in effects["overused"]
    ]
    if len(lines) == 1:
        lines.append("nothing would break")
    console().print(*lines, sep="\n", soft_wrap=True)


def _print_done(tenant: TenantView, done: str, as_json: bool) -> None:
    if as_json:
        print_json(tenant)
        return
    console().print(f"{tenant['tenant_id']} {done}", soft_wrap=True)


quotas_app = typer.Typer(no_args_is_help=False, help="Quotas, and how much of them is used.")


@quotas_app.callback(invoke_without_command=True)
def quotas(ctx: typer.Context, as_json: AsJson = False) -> None:
    """Show your own tenant's quotas, and how much of them is used; a tenant's key will do."""
    if ctx.invoked_subcommand is None:
        show_quotas(ctx, None, None, as_json)


@quotas_app.command("show")
def show_quotas(
    ctx: typer.Context,
    tenant_id: Annotated[
        str | None, typer.Argument(help="For operators: the tenant's id; your own tenant if left out.")
    ] = None,
    stage: Stage = None,
    as_json: AsJson = False,
) -> None:
    """Show quotas and how much of them is used: a tenant's, or your own."""
    if tenant_id is None:
        with session(ctx).client() as client:
            _print_quotas(client.get_own_tenant(), as_json)
    else:
        with platform(ctx, stage) as api:
            _print_quotas(api.get_tenant(tenant_id), as_json)


@quotas_app.command("set")
def set_quotas(
    ctx: typer.Context,
    tenant_id: Annotated[str, typer.Argument(help="The tenant's id.")],
    quota: Annotated[list[str], typer.Argument(help="jobs=500, or jobs=default.", metavar="NAME=NUMBER…")],
    stage: Stage = None,
    as_json: AsJson = False,
) -> None:
    """Change some of a tenant's quotas; the others stay. In force within 15 s."""
    with platform(ctx, stage) as api:
        _print_quotas(api.patch_tenant(tenant_id, {"quotas": read_quotas(quota)}), as_json)


def read_quotas(texts: list[str]) -> dict[str, int | None]:
    """The number in `jobs=500`; None for `jobs=default`, which sets the default. Raises InvalidInput."""
    return {name: _number(name, value) for name, _, value in (text.partition("=") for text in texts)}


def _number(name: str, text: str) -> int | None:
    if text == "default":
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 12:
        raise InvalidInput(
            "quota", "must be a quota", value=f"{name}={text}", accepted="a name and a number: jobs=100"
        )
    return int(text)


def _print_quotas(tenant: TenantView, as_json: bool) -> None:
    if as_json:
        print_json({name: tenant[name] for name in ("tenant_id", "usage", "quotas")})
        return
    if tenant["state"] != "active":
        note = f": {tenant['note']}" if tenant.get("note") else ""
        console().print(f"{tenant['tenant_id']} is {tenant['state']}{note}", soft_wrap=True)
    console().print(quota_table(tenant))


def quota_table(tenant: TenantView) -> Table:
    """A table of the quotas; counted ones also show the use and its share."""
    rows: list[tuple[Any, ...]] = []
    used_of = cast("dict[str, int]", tenant["usage"])
    for name, most in cast("dict[str, int]", tenant["quotas"]).items():
        used = used_of.get(name)
        percent = output.used(used, most) if used is not None else "-"
        rows.append((name, f"{most:,}", f"{used:,}" if used is not None else "-", percent))
    return output.table(("QUOTA", "ALLOWED", "USED", "PERCENT"), rows)
