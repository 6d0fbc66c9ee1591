"""`minute8 tenants delete` and `deletion`: remove a tenant, and see how far that is."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

from cli.options import AsJson, Yes
from cli.output import console, print_json, relative
from cli.platform import Platform, Stage, platform
from cli.session import session
from common.clock import Clock
from minute8_client import TenantDeletion

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
    with platform(ctx, stage) as here:
        if not yes:
            jobs = here.get_tenant(tenant_id)["usage"]["jobs"]
            question = f"Remove {tenant_id} with its {jobs} jobs and all of their runs? It cannot be undone."
            typer.confirm(question, abort=True, err=True)
        begun = here.delete_tenant(tenant_id)
        _show(_waited(here, session(ctx).clock, begun) if wait else begun, session(ctx).clock, as_json)


def deletion(
    ctx: typer.Context,
    tenant_id: TenantId,
    wait: Wait = False,
    stage: Stage = None,
    as_json: AsJson = False,
) -> None:
    """Show how far the removal of a tenant is."""
    with platform(ctx, stage) as here:
        found = here.deletion_of(tenant_id)
        _show(_waited(here, session(ctx).clock, found) if wait else found, session(ctx).clock, as_json)


def _waited(here: Platform, clock: Clock, found: TenantDeletion) -> TenantDeletion:
    """Wait until it is finished, or Ctrl-C: the removal continues without this command."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[gone]}"),
    )
    with suppress(KeyboardInterrupt), Progress(*columns, console=Console(stderr=True)) as progress:
        bar = progress.add_task("", gone="")
        while True:
            jobs, finished = found["removed"]["jobs"], found["state"] == "finished"
            progress.update(
                bar,
                description=f"{found['tenant_id']}: {found['state']}",
                completed=jobs,
                # The number of jobs is known; the number of runs and other items is not, so for those the bar has no
                # total.
                total=found["jobs_registered"] if jobs < found["jobs_registered"] or finished else None,
                gone=_gone(found),
            )
            if finished:
                return found
            before, found = found, _moved_on(here, found["tenant_id"])
            if found["removed"] == before["removed"] and found["state"] != "finished":
                clock.sleep(_POLL_S)
    return found


def _moved_on(here: Platform, tenant_id: str) -> TenantDeletion:
    """The next state of the removal. With AWS credentials a slice is removed here, else the ticks do it."""
    from cli.platform_tables import TablesPlatform  # boto3 costs every command its start

    return here.move_on(tenant_id) if isinstance(here, TablesPlatform) else here.deletion_of(tenant_id)


def _gone(found: TenantDeletion) -> str:
    return ", ".join(f"{count:,} {kind}" for kind, count in found["removed"].items()) + " removed"


def _show(found: TenantDeletion, clock: Clock, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    say, tenant_id, now = console(), found["tenant_id"], clock.now()
    if found["finished_at"]:
        words = f"{tenant_id} is removed, {relative(found['finished_at'], now)}"
    else:
        words = f"{tenant_id} is stopped, since {relative(found['started_at'], now)}, and being removed"
    say.print(f"{words}: {_gone(found)}", markup=False, soft_wrap=True)
    if not found["finished_at"]:
        say.print(
            f"The ticks go on with it; minute8 tenants deletion {tenant_id} tells how far they are.",
            markup=False,
            soft_wrap=True,
        )
