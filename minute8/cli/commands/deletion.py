"""`minute8 tenants delete`, `deletion` and `rebuild-runs`: work on a tenant that takes many steps."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

from common.clock import Clock
from common.timing.instants import relative
from minute8.cli.options import AsJson, Yes
from minute8.cli.output import confirm, console, print_json
from minute8.cli.platform import Platform, Stage, operator_api, platform
from minute8.cli.session import session
from minute8.client import TenantDeletion

_POLL_S = 2.0

TenantId = Annotated[str, typer.Argument(help="The tenant's id.")]
Wait = Annotated[
    bool,
    typer.Option(
        help="Wait until it is done; with AWS credentials the command itself removes the items, which is faster."
    ),
]


def delete(
    ctx: typer.Context,
    tenant_id: TenantId,
    wait: Wait = False,
    yes: Yes = False,
    stage: Stage = None,
    as_json: AsJson = False,
) -> None:
    """Stop a tenant at once and for good, and remove all of it: keys, jobs, runs, audit. Asks first."""
    with platform(ctx, stage) as api:
        if not yes:
            jobs = api.get_tenant(tenant_id)["usage"]["jobs"]
            question = f"Remove {tenant_id} with its {jobs} jobs and all of their runs? It cannot be undone."
            confirm(question, abort=True, err=True)
        deletion = api.delete_tenant(tenant_id)
        _show_deletion(api, deletion, session(ctx).clock, wait, as_json)


def deletion(
    ctx: typer.Context,
    tenant_id: TenantId,
    wait: Wait = False,
    stage: Stage = None,
    as_json: AsJson = False,
) -> None:
    """Show how far the removal of a tenant is."""
    with platform(ctx, stage) as api:
        _show_deletion(api, api.get_tenant_deletion(tenant_id), session(ctx).clock, wait, as_json)


def _waited(api: Platform, clock: Clock, deletion: TenantDeletion) -> TenantDeletion:
    """Wait until it is finished, or Ctrl-C: the removal continues without this command."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[removed]}"),
    )
    with suppress(KeyboardInterrupt), Progress(*columns, console=console(on_stderr=True)) as progress:
        bar = progress.add_task("", removed="")
        while True:
            jobs, finished = deletion["removed"]["jobs"], deletion["state"] == "finished"
            progress.update(
                bar,
                description=f"{deletion['tenant_id']}: {deletion['state']}",
                completed=jobs,
                # Only the number of jobs is known. For runs and other items the bar has no total.
                total=deletion["jobs_registered"] if jobs < deletion["jobs_registered"] or finished else None,
                removed=_removed_words(deletion),
            )
            if finished:
                return deletion
            before, deletion = deletion, _moved_on(api, deletion["tenant_id"])
            if deletion["removed"] == before["removed"] and deletion["state"] != "finished":
                clock.sleep(_POLL_S)
    return deletion


def _moved_on(api: Platform, tenant_id: str) -> TenantDeletion:
    """The next state of the removal. With AWS credentials a slice is removed here, else the ticks do it."""
    from minute8.cli.platform_tables import TablesPlatform  # boto3 would slow the start of every command

    return api.move_on(tenant_id) if isinstance(api, TablesPlatform) else api.get_tenant_deletion(tenant_id)


def _removed_words(deletion: TenantDeletion) -> str:
    return ", ".join(f"{count:,} {kind}" for kind, count in deletion["removed"].items()) + " removed"


def _show_deletion(api: Platform, deletion: TenantDeletion, clock: Clock, wait: bool, as_json: bool) -> None:
    if wait:
        deletion = _waited(api, clock, deletion)
    if as_json:
        print_json(deletion)
        return
    out, tenant_id, now = console(), deletion["tenant_id"], clock.now()
    if deletion["finished_at"]:
        words = f"{tenant_id} is removed, {relative(deletion['finished_at'], now)}"
    else:
        words = f"{tenant_id} is stopped, since {relative(deletion['started_at'], now)}, and being removed"
    out.print(f"{words}: {_removed_words(deletion)}", soft_wrap=True)
    if not deletion["finished_at"]:
        out.print(
            f"The ticks go on with it; minute8 tenants deletion {tenant_id} tells how far they are.",
            markup=False,
            soft_wrap=True,
        )


def rebuild_runs(
    ctx: typer.Context,
    tenant_id: TenantId,
    days: Annotated[int, typer.Option("--days", min=1, max=400, help="So many days back.")] = 30,
    as_json: AsJson = False,
) -> None:
    """Write down a tenant's runs by time again: what lists across jobs read is made from the runs of its jobs."""
    runs = 0
    with operator_api(ctx) as api:
        for step in api.rebuild_projection(tenant_id, days=days):
            runs += step["runs_read"]
    if as_json:
        print_json({"tenant_id": tenant_id, "runs": runs})
    else:
        console().print(f"{runs:,} runs of {tenant_id} are written down by time")
