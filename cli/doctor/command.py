"""`minute8 doctor`: the command and its report."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.text import Text

from cli import output
from cli.doctor.deployment import Deployment, connect
from cli.doctor.examine import examine
from cli.doctor.fix import Done, after, fix, repairs
from cli.options import AsJson
from cli.output import console, plural, print_json
from cli.session import api_url, session
from common.platform.findings import Finding, Level, Repair, failed
from common.timing.instants import rfc3339

_STYLES = {Level.FAILED: "bold red", Level.WARNING: "yellow", Level.NOT_CHECKED: "cyan", Level.OK: "green"}


def doctor(
    ctx: typer.Context,
    stage: Annotated[str, typer.Option(help="The deployment's stage.", envvar="MINUTE8_STAGE")] = "dev",
    strict: Annotated[bool, typer.Option(help="Exit with 1 on warnings too.")] = False,
    timeout: Annotated[
        float, typer.Option(min=1, help="Wait for each check at most this many seconds.")
    ] = 30,
    fixes: Annotated[
        bool, typer.Option("--fix", help="Repair what can be repaired; each repair is shown, and asked for.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --fix: do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Check a deployment, and say what to do about what is wrong; --fix does some of it. Needs AWS credentials.

    Exits with 0 if nothing has failed (with --strict: and there are no warnings), else with 1.
    """
    clock = session(ctx).clock
    if as_json and fixes and not yes:
        raise typer.BadParameter("--fix asks first, which --json cannot; add --yes")
    deployment = connect(stage, clock, api_url(session(ctx).url, session(ctx).profile))
    findings = examine(deployment, timeout) if deployment.is_there() else [_nothing(deployment)]
    done: list[Done] = []
    if fixes:
        if not as_json:
            _print(deployment, findings)
        done = fix(
            deployment,
            findings,
            lambda finding, repair: _agrees(finding, repair, yes, as_json),
            lambda one: _print_done(one, as_json),
        )
        if any(one.result != "left" for one in done):
            findings = after(deployment, done, timeout)
        elif not as_json:
            console().print("nothing was repaired" if done else "there is nothing that --fix can repair")
    counts = Counter(finding.level for finding in findings)
    well = not counts[Level.FAILED] and not (strict and counts[Level.WARNING])
    if as_json:
        view = _view(deployment, findings, well, clock.now())
        print_json(view | ({"repairs": [asdict(one) for one in done]} if fixes else {}))
    elif not fixes or any(one.result != "left" for one in done):
        _print(deployment, findings)
    if not as_json and not fixes and (found := repairs(deployment, findings)):
        has = f"has {plural(len(found), 'repair')}; it shows each and asks first"
        console().print(f"`minute8 doctor --stage {stage} --fix` {has}", soft_wrap=True, markup=False)
    raise typer.Exit(0 if well else 1)


def _nothing(deployment: Deployment) -> Finding:
    where = f"in {deployment.region} of account {deployment.account}"
    finding = failed(
        f"there is no Minute8 of stage {deployment.stage!r} {where}",
        "--stage, AWS_REGION and AWS_PROFILE say where to look; `make deploy` makes one",
    )
    return Finding(finding.level, finding.message, finding.remedy, "deployment")


def _agrees(finding: Finding, repair: Repair, yes: bool, as_json: bool) -> bool:
    if not as_json:
        console().print(
            f"\n{finding.check}: {finding.message}\n→ {repair.description}", soft_wrap=True, markup=False
        )
    return yes or typer.confirm("Do it?")


def _print_done(done: Done, as_json: bool) -> None:
    if not as_json:
        console().print(f"{done.check}: {done.result}", soft_wrap=True, markup=False)


def _print(deployment: Deployment, findings: list[Finding]) -> None:
    counts = Counter(finding.level for finding in findings)
    totals = ", ".join(f"{counts[level]} {level}" for level in Level if counts[level])
    where = f"{deployment.named()} in {deployment.region}, account {deployment.account}"
    console().print(f"{where}: {totals}", markup=False)
    worst_first = sorted(findings, key=lambda finding: list(Level).index(finding.level))
    rows = [
        (
            Text(finding.level, style=_STYLES[finding.level]),
            finding.check,
            f"{finding.message}\n→ {finding.remedy}" if finding.remedy else finding.message,
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
            {"check": one.check, "level": one.level, "found": one.message, "remedy": one.remedy}
            for one in findings
        ],
    }
