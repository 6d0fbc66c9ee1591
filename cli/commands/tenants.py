"""`minute8 tenants` and `minute8 quotas`: the platform's tenants, what they may do, and what they use."""

from __future__ import annotations

from typing import Annotated, Any, cast

import typer
from rich.table import Table

from cli import output
from cli.commands.keys import key_table
from cli.options import AsJson, Since, Until
from cli.output import console, print_json, relative, seconds, state, when
from cli.platform import Stage, operator_api, platform
from cli.session import session
from cli.time_range import range_of
from common.errors import InvalidInput
from minute8_client.shapes import RuleEffects, TenantView

app = typer.Typer(no_args_is_help=True, help="Tenants; needs an operator key or AWS credentials.")

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
Days = Annotated[int | None, typer.Option(help="How long its runs are kept.")]
Spread = Annotated[
    int | None, typer.Option("--spread", help="Jobs that name no second are due within so many seconds.")
]


@app.command("create")
def create(
    ctx: typer.Context,
    tenant_id: TenantId,
    name: Name = None,
    allow_target: Targets = None,
    quota: QuotaList = None,
    retention_days: Days = None,
    spread: Spread = None,
    stage: Stage = None,
    as_json: AsJson = False,
) -> None:
    """Create a tenant. It may call nothing but the targets that are allowed here or by `tenants edit`."""
    settings = _settings(name, allow_target, quota, retention_days, spread)
    with platform(ctx, stage) as here:
        tenant = here.create_tenant(tenant_id, settings)
    _print_done(tenant, f"created; its first key: minute8 keys create {tenant_id} --role admin", as_json)


@app.command("edit")
def edit(
    ctx: typer.Context,
    tenant_id: TenantId,
    name: Name = None,
    allow_target: Targets = None,
    allow_nothing: Annotated[bool, typer.Option(help="Remove all allowed targets.")] = False,
    add_target: Annotated[
        list[str] | None, typer.Option(help="A pattern to add to the others; may be repeated.")
    ] = None,
    remove_target: Annotated[
        list[str] | None, typer.Option(help="One of the patterns, to remove; may be repeated.")
    ] = None,
    quota: QuotaList = None,
    retention_days: Days = None,
    spread: Spread = None,
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
    if allow_nothing and allow_target:
        raise typer.BadParameter("--allow-nothing and --allow-target exclude each other")
    changes = _settings(name, [] if allow_nothing else allow_target, quota, retention_days, spread)
    single = {"add_targets": add_target, "remove_targets": remove_target}
    changes |= {field: patterns for field, patterns in single.items() if patterns}
    if not changes:
        raise typer.BadParameter("nothing to change; name at least one option")
    if dry_run:
        with operator_api(ctx) as operator:
            _print_effects(operator.check_tenant(tenant_id, changes), as_json)
        return
    with platform(ctx, stage) as here:
        tenant = here.patch_tenant(tenant_id, changes)
    _print_done(tenant, "is changed; the executors know within 15 s", as_json)


@app.command("overview")
def overview(
    ctx: typer.Context,
    since: Since = None,
    until: Until = None,
    problems: Annotated[
        bool, typer.Option("--problems", help="Only suspended tenants, and those with failures.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List all tenants with their use of quotas and their failures of a day; needs an operator key."""
    now = session(ctx).clock.now()
    from_at, until_at = range_of(since, until, now)
    with operator_api(ctx) as operator:
        found = list(operator.overview(from_at=from_at, until_at=until_at, problems=problems))
    if as_json:
        print_json(found)
        return
    rows = [
        (
            tenant["tenant_id"],
            state(tenant["state"]),
            tenant["usage"]["jobs"],
            output.used(tenant["usage"]["jobs"], tenant["quotas"]["jobs"]),
            f"{tenant['failures']['count']}{'' if tenant['failures']['complete'] else '+'}",
            tenant["failures"]["jobs"],
            relative(tenant["failures"]["last_at"], now),
            tenant["note"] or tenant["name"],
        )
        for tenant in found
    ]
    columns = ("TENANT", "STATE", "JOBS", "OF QUOTA", "FAILED RUNS", "OF JOBS", "LAST", "")
    console().print(output.table(columns, rows) if rows else "no tenants")


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
        found = operator.tenant_health(tenant_id, from_at=from_at, until_at=until_at)
    if as_json:
        print_json(found)
        return
    runs, jobs, late = found["run_totals"], found["job_counts"], found["run_totals"]["lateness_s"]
    rate = "-" if runs["success_rate"] is None else f"{runs['success_rate']:.2%}"
    statuses = ", ".join(f"{name} {count}" for name, count in runs["statuses"].items())
    overdue = (
        f", {jobs['overdue']} overdue by up to {seconds(jobs['most_late_s'])}" if jobs["overdue"] else ""
    )
    rows = [
        ("runs", f"{runs['runs']}: {statuses}" if runs["runs"] else "none"),
        ("succeeded", rate),
        (
            "late",
            " · ".join(
                f"{name} {seconds(late[name])}" for name in ("p50", "p95", "p99", "max") if name in late
            ),
        ),
        ("jobs", f"{jobs['active']} active, {jobs['paused']} paused, {jobs['failing']} failing{overdue}"),
    ]
    console().print(output.table(("", ""), [row for row in rows if row[1]]))
    if not (runs["complete"] and jobs["complete"]):
        typer.echo("minute8: the newest 10,000 runs of 1,000 jobs, and 500 jobs; there are more", err=True)


@app.command("suspend")
def suspend(
    ctx: typer.Context,
    tenant_id: TenantId,
    note: Annotated[str, typer.Option(help="The reason; the tenant can read it.")] = "",
    stage: Stage = None,
    as_json: AsJson = False,
) -> None:
    """Stop all jobs of a tenant; what becomes due meanwhile is skipped."""
    with platform(ctx, stage) as here:
        tenant = here.suspend_tenant(tenant_id, note)
    _print_done(tenant, "is suspended; the executors know within 15 s", as_json)


@app.command("resume")
def resume(ctx: typer.Context, tenant_id: TenantId, stage: Stage = None, as_json: AsJson = False) -> None:
    """Let a suspended tenant's jobs run again."""
    with platform(ctx, stage) as here:
        tenant = here.resume_tenant(tenant_id)
    _print_done(tenant, "is resumed; the executors know within 15 s", as_json)


@app.command("list")
def list_tenants(ctx: typer.Context, stage: Stage = None, as_json: AsJson = False) -> None:
    """List the tenants."""
    with platform(ctx, stage) as here:
        found = list(here.tenants())
    if as_json:
        print_json(found)
        return
    now = session(ctx).clock.now()
    rows = [
        (
            tenant["tenant_id"],
            state(tenant["state"]),
            relative(tenant["created_at"], now),
            tenant["name"],
            tenant["note"],
        )
        for tenant in found
    ]
    columns = ("TENANT", "STATE", "CREATED", "NAME", "NOTE")
    console().print(output.table(columns, rows) if rows else "no tenants")


@app.command("show")
def show(ctx: typer.Context, tenant_id: TenantId, stage: Stage = None, as_json: AsJson = False) -> None:
    """Show a tenant, how much of its quotas is used, and its keys."""
    with platform(ctx, stage) as here:
        tenant, keys = here.get_tenant(tenant_id), list(here.keys_of(tenant_id))
    if as_json:
        print_json({**tenant, "keys": keys})
        return
    now, say = session(ctx).clock.now(), console()
    name = f" ({tenant['name']})" if tenant["name"] else ""
    note = f": {tenant['note']}" if tenant["note"] else ""
    created = when(tenant["created_at"], now)
    say.print(f"{tenant_id}{name}, {tenant['state']}{note}, created {created}", markup=False, soft_wrap=True)
    targets = ", ".join(tenant["allowed_targets"]) or "nothing: minute8 tenants edit --allow-target"
    say.print(f"may call {targets}", markup=False, soft_wrap=True)
    say.print(f"runs are kept for {tenant['retention_days']} days")
    if (spread_s := tenant["spread_s"]) is not None:
        say.print(f"jobs that name no second are due within {spread_s} s")
    say.print(quota_table(tenant))
    say.print(key_table(keys, now))


def _print_effects(found: RuleEffects, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    out = console()
    words = [f"{found['jobs_read']} jobs read{'' if found['complete'] else ', and there are more'}"]
    words += (
        [f"{found['not_allowed']} would stop: their targets are not allowed"] if found["not_allowed"] else []
    )
    words += [f"  {one['jobs']} call {one['target']}" for one in found["targets"]]
    for count, what in (
        (found["interval_too_short"], "an interval too short"),
        (found["payload_too_large"], "a payload too large"),
    ):
        if count:
            words.append(f"{count} would go on, with {what} to be registered again")
    for one in found["overused"]:
        words.append(
            f"{one['quota']}: {one['used']} used of {one['allowed']}; it keeps its jobs, and can add none"
        )
    out.print(
        "\n".join(words if len(words) > 1 else [*words, "nothing would break"]), markup=False, soft_wrap=True
    )


def _settings(
    name: str | None,
    targets: list[str] | None,
    quotas: list[str] | None,
    days: int | None,
    spread_s: int | None,
) -> dict[str, Any]:
    """The given options only."""
    given = {
        "name": name,
        "allowed_targets": targets,
        "quotas": read_quotas(quotas) if quotas else None,
        "retention_days": days,
        "spread_s": spread_s,
    }
    return {field: value for field, value in given.items() if value is not None}


def _print_done(tenant: TenantView, what: str, as_json: bool) -> None:
    if as_json:
        print_json(tenant)
        return
    console().print(f"{tenant['tenant_id']} {what}", markup=False, soft_wrap=True)


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
            _print_quotas(client.tenant(), as_json)
    else:
        with platform(ctx, stage) as here:
            _print_quotas(here.get_tenant(tenant_id), as_json)


@quotas_app.command("set")
def set_quotas(
    ctx: typer.Context,
    tenant_id: Annotated[str, typer.Argument(help="The tenant's id.")],
    quota: Annotated[list[str], typer.Argument(help="jobs=500, or jobs=default.", metavar="NAME=NUMBER…")],
    stage: Stage = None,
    as_json: AsJson = False,
) -> None:
    """Change some of a tenant's quotas; the others stay. In force within 15 s."""
    with platform(ctx, stage) as here:
        _print_quotas(here.patch_tenant(tenant_id, {"quotas": read_quotas(quota)}), as_json)


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
        console().print(f"{tenant['tenant_id']} is {tenant['state']}{note}", soft_wrap=True, markup=False)
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
