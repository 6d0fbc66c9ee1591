"""`minute8 doctor`: the command and its report."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any

import typer
from rich.text import Text

from cli import output
from cli.doctor.deployment import Deployment, connect
from cli.doctor.examine import examine
from cli.output import console, print_json
from cli.session import session
from common.platform.findings import Finding, Level, failed
from common.timing.instants import rfc3339

_STYLES = {Level.FAILED: "bold red", Level.WARNING: "yellow", Level.NOT_CHECKED: "cyan", Level.OK: "green"}


def doctor(
    ctx: typer.Context,
    stage: Annotated[str, typer.Option(help="The deployment's stage.", envvar="MINUTE8_STAGE")] = "dev",
    strict: Annotated[bool, typer.Option(help="Exit with 1 on warnings too.")] = False,
    timeout: Annotated[
        float, typer.Option(min=1, help="Wait for each check at most this many seconds.")
    ] = 30,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check a deployment, and say what to do about what is wrong. Changes nothing; needs AWS credentials.

    Exits with 0 if nothing has failed (with --strict: and there are no warnings), else with 1.
    """
    clock = session(ctx).clock
    deployment = connect(stage, clock, session(ctx).url)
    findings = examine(deployment, timeout) if deployment.is_there() else [_nothing(deployment)]
    counts = Counter(finding.level for finding in findings)
    well = not counts[Level.FAILED] and not (strict and counts[Level.WARNING])
    if as_json:
        print_json(_view(deployment, findings, well, clock.now()))
    else:
        _print(deployment, findings, counts)
    raise typer.Exit(0 if well else 1)


def _nothing(deployment: Deployment) -> Finding:
    where = f"in {deployment.region} of account {deployment.account}"
    finding = failed(
        f"there is no Minute8 of stage {deployment.stage!r} {where}",
        "--stage, AWS_REGION and AWS_PROFILE say where to look; `make deploy` makes one",
    )
    return Finding(finding.level, finding.found, finding.remedy, "deployment")


def _print(deployment: Deployment, findings: list[Finding], counts: Counter[Level]) -> None:
    told = ", ".join(f"{counts[level]} {level}" for level in Level if counts[level])
    where = f"{deployment.named()} in {deployment.region}, account {deployment.account}"
    console().print(f"{where}: {told}", markup=False)
    worst_first = sorted(findings, key=lambda finding: list(Level).index(finding.level))
    rows = [
        (
            Text(finding.level, style=_STYLES[finding.level]),
            finding.check,
            f"{finding.found}\n→ {finding.remedy}" if finding.remedy else finding.found,
        )
        for finding in worst_first
    ]
    console().print(output.table(("", "CHECK", "FOUND"), rows))


def _view(deployment: Deployment, findings: list[Finding], well: bool, now: float) -> dict[str, Any]:
    return {
        "stage": deployment.stage,
        "region": deployment.region,
        "account": deployment.account,
        "checked_at": rfc3339(int(now)),
        "ok": well,
        "findings": [
            {"check": one.check, "level": one.level, "found": one.found, "remedy": one.remedy}
            for one in findings
        ],
    }
