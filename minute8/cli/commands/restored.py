"""`minute8 restored`: what it means that tables were restored to an earlier instant, said before anything is done."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Annotated, Any

import typer

from common.platform.views import of_jobs_view
from common.storage.table import Table
from common.tenants.audit import AWS
from common.timing.instants import DAY_S, relative, rfc3339
from minute8.cli import output
from minute8.cli.commands.operations import print_by_job
from minute8.cli.doctor.deployment import Deployment, connect
from minute8.cli.options import AsJson
from minute8.cli.output import console, plural, print_json
from minute8.cli.restored_tables import Restorable, Restored
from minute8.cli.session import session
from minute8.cli.time_range import since_at


def restored(
    ctx: typer.Context,
    table: Annotated[
        list[Restorable], typer.Option(help="A table that was restored, or is to be; repeatable.")
    ],
    to: Annotated[str, typer.Option(help="To which instant: 12:40 (UTC), 40m before now, or a time.")],
    former: Annotated[
        str | None, typer.Option(help="The runs table as it was, under this name: its records are copied.")
    ] = None,
    stage: Annotated[str, typer.Option(help="The deployment's stage.", envvar="MINUTE8_STAGE")] = "dev",
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Record anew what had a record; nothing is sent.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Say what a restore of tables calls again, only records, or loses. Needs AWS credentials.

    With --yes what is known to have had a record gets one. `minute8 unrecorded run` sends the rest, by a plan first.
    """
    clock = session(ctx).clock
    to_at = _instant(to, clock.now())
    deployment = connect(stage, clock)
    state = Restored(
        deployment.tables(),
        deployment.executions(),
        clock,
        table,
        to_at,
        set(_logged(deployment, to_at)),
        Table(deployment.client("dynamodb"), former) if former else None,
    )
    effects = [
        {**effect._asdict(), "jobs": of_jobs_view(effect.jobs)}
        for effect in state.effects()
        if effect.total != 0
    ]
    recorded = state.record(AWS) if yes and Restorable.RUNS in table else 0
    if as_json:
        print_json({"to_at": rfc3339(to_at), "recorded": recorded, "effects": effects})
        return
    console().print(f"{', '.join(table)} as of {rfc3339(to_at)}, {relative(rfc3339(to_at), clock.now())}")
    _print(effects)
    if Restorable.RUNS in table:
        done = (
            f"{plural(recorded, 'execution')} recorded anew" if yes else "nothing is recorded without --yes"
        )
        console().print(f"{done}; `minute8 unrecorded run --all` shows what is sent again", soft_wrap=True)


def _print(effects: Sequence[Mapping[str, Any]]) -> None:
    rows = [
        (each["table"], each["fate"], "?" if each["total"] is None else each["total"], each["words"])
        for each in effects
    ]
    console().print(output.table(("TABLE", "FATE", "COUNT", "WHAT"), rows))
    for effect in effects:
        if effect["jobs"]:
            console().print(f"{effect['fate']}:")
            print_by_job(effect["jobs"])


def _instant(text: str, now: float) -> int:
    """The instant of `--to`. Raises InvalidInput."""
    if re.fullmatch(r"\d\d:\d\d(:\d\d)?", text):
        time = text if len(text) == len("12:40:00") else f"{text}:00"
        today = since_at(f"{rfc3339(int(now))[:11]}{time}Z", now, "to")
        return today if today <= now else today - DAY_S
    return since_at(text, now, "to")


def _logged(deployment: Deployment, since: int) -> Iterator[str]:
    """The ids of the executions that the executor's log names as failed or skipped."""
    logs = deployment.client("logs")
    pages = logs.get_paginator("filter_log_events").paginate(
        logGroupName=f"/aws/lambda/{deployment.named('executor')}",
        startTime=since * 1_000,
        filterPattern="?failed ?skipped",
    )
    with suppress(logs.exceptions.ResourceNotFoundException):
        for event in chain.from_iterable(page["events"] for page in pages):
            with suppress(ValueError):
                line: Any = json.loads(event["message"][event["message"].index("{") :])
                if isinstance(line, dict) and line.get("message") in ("failed", "skipped"):
                    yield str(line.get("execution_id", ""))
