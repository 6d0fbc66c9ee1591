"""`minute8 report`: the platform's last 24 hours, as the daily report tells them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from common.platform.daily_report import read_report
from common.projection.tenants import hour_of
from minute8.cli.doctor.deployment import connect
from minute8.cli.options import AsJson
from minute8.cli.output import console, print_json
from minute8.cli.session import api_url, session


def report(
    ctx: typer.Context,
    stage: Annotated[str, typer.Option(help="The deployment's stage.", envvar="MINUTE8_STAGE")] = "dev",
    as_json: AsJson = False,
) -> None:
    """Show what ran, failed, was late or skipped in 24 hours, and what is wrong now. Needs AWS credentials."""
    current = session(ctx)
    deployment = connect(stage, current.clock, api_url(current.url, current.profile))
    now = current.clock.now()
    read = read_report(deployment.tables(), stage, hour_of(int(now)), now, deployment.dead_letters())
    if as_json:
        print_json(asdict(read))
    else:
        console().print(*read.text().splitlines(), sep="\n", soft_wrap=True)
