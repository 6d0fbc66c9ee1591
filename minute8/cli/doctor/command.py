"""`minute8 doctor`: the command and its report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Protocol

import typer
from rich.text import Text

from common.platform.findings import Finding, Level, Repair, failed
from common.timing.instants import rfc3339
from minute8.cli import output
from minute8.cli.doctor.deployment import Deployment, connect
from minute8.cli.doctor.examine import DENIED, examine
from minute8.cli.doctor.fix import RepairResult, fix, reexamined, repairs, verified
from minute8.cli.options import AsJson, with_options
from minute8.cli.output import confirm, console, plural, print_json
from minute8.cli.session import api_url, session

_STYLES = {Level.FAILED: "bold red", Level.WARNING: "yellow", Level.NOT_CHECKED: "cyan", Level.OK: "green"}


@dataclass(frozen=True, slots=True)
class DoctorOptions:
    """What counts as healthy, and whether to repair."""

    strict: Annotated[bool, typer.Option(help="Exit with 1 on warnings too.")] = False
    timeout: Annotated[float, typer.Option(min=1, help="Wait for each check at most this many seconds.")] = 30
    fixes: Annotated[
        bool, typer.Option("--fix", help="Repair what can be repaired; each repair is shown, and asked for.")
    ] = False
    yes: Annotated[bool, typer.Option("--yes", help="With --fix: do not ask.")] = False
    watches: Annotated[
        bool,
        typer.Option(
            "--watch", help="For cron: print a line for each failure, and nothing when all is well."
        ),
    ] = False

    def check(self, as_json: bool) -> None:
        """Raises BadParameter for options that contradict each other."""
        if self.watches and (as_json or self.fixes):
            raise typer.BadParameter("--watch prints lines and repairs nothing: no --json, no --fix")
        if as_json and self.fixes and not self.yes:
            raise typer.BadParameter("--fix asks first, which --json cannot; add --yes")

    def is_healthy(self, findings: Sequence[Finding]) -> bool:
        return not self.failures(findings)

    def failures(self, findings: Sequence[Finding]) -> list[Finding]:
        """What makes the exit status 1. A watch that may not look has failed too: it would be quiet for ever."""
        levels = {Level.FAILED, Level.WARNING} if self.strict else {Level.FAILED}
        return [
            finding
            for finding in findings
            if finding.level in levels or (self.watches and finding.message.startswith(DENIED))
        ]


@with_options
def doctor(
    ctx: typer.Context,
    stage: Annotated[str, typer.Option(help="The deployment's stage.", envvar="MINUTE8_STAGE")] = "dev",
    *,
    options: DoctorOptions,
    as_json: AsJson = False,
) -> None:
    """Check a deployment, and say what to do about what is wrong; --fix does some of it. Needs AWS credentials.

    Exits with 0 if nothing has failed, and each repair is seen afterwards (with --strict: and there are no warnings),
    else with 1.
    """
    options.check(as_json)
    current = session(ctx)
    deployment = connect(stage, current.clock, api_url(current.url, current.profile))
    report_type = _JsonReport if as_json else _Watch if options.watches else _TextReport
    report: _Report = report_type(deployment, options)
    findings = examine(deployment, options.timeout) if deployment.exists() else [_no_stage(deployment)]
    results: list[RepairResult] = []
    if options.fixes:
        report.begin_repairs(findings)
        results = fix(deployment, findings, report.agrees, report.repaired)
        if any(result.was_tried for result in results):
            findings = reexamined(deployment, results, options.timeout)
            results = verified(deployment, results, findings)
    report.finish(findings, results)
    has_failed = any(result.was_tried and not result.succeeded for result in results)
    raise typer.Exit(0 if options.is_healthy(findings) and not has_failed else 1)


def _no_stage(deployment: Deployment) -> Finding:
    where = f"in {deployment.region} of account {deployment.account}"
    finding = failed(
        f"there is no Minute8 of stage {deployment.stage!r} {where}",
        "--stage, AWS_REGION and AWS_PROFILE say where to look; `make deploy` makes one",
    )
    return Finding(finding.level, finding.message, finding.remedy, "deployment")


class _Report(Protocol):
    """The command's output: for people, or as JSON."""

    def __init__(self, deployment: Deployment, options: DoctorOptions) -> None: ...
    def begin_repairs(self, findings: Sequence[Finding]) -> None: ...
    def agrees(self, finding: Finding, repair: Repair) -> bool: ...
    def repaired(self, result: RepairResult) -> None: ...
    def finish(self, findings: Sequence[Finding], results: Sequence[RepairResult]) -> None: ...


@dataclass(frozen=True, slots=True)
class _JsonReport:
    """Prints one JSON object at the end. Repairs were agreed to by `--yes`."""

    deployment: Deployment
    options: DoctorOptions

    def begin_repairs(self, findings: Sequence[Finding]) -> None: ...

    def agrees(self, finding: Finding, repair: Repair) -> bool:
        return True

    def repaired(self, result: RepairResult) -> None: ...

    def finish(self, findings: Sequence[Finding], results: Sequence[RepairResult]) -> None:
        view: dict[str, Any] = {
            "stage": self.deployment.stage,
            "region": self.deployment.region,
            "account": self.deployment.account,
            "checked_at": rfc3339(int(self.deployment.clock.now())),
            "ok": self.options.is_healthy(findings),
            "findings": [
                {
                    "check": finding.check,
                    "level": finding.level,
                    "found": finding.message,
                    "remedy": finding.remedy,
                }
                for finding in findings
            ],
        }
        if self.options.fixes:
            view["repairs"] = [
                {"check": result.check, "told": result.description, "result": result.result}
                for result in results
            ]
        print_json(view)


@dataclass(frozen=True, slots=True)
class _Watch(_JsonReport):
    """Prints a line for each failure, and nothing if there is none."""

    def finish(self, findings: Sequence[Finding], results: Sequence[RepairResult]) -> None:
        for finding in self.options.failures(findings):
            remedy = f" → {finding.remedy}" if finding.remedy else ""
            line = f"{self.deployment.named()}: {finding.level}: {finding.check}: {finding.message}{remedy}"
            console().print(" ".join(line.split()), soft_wrap=True)


@dataclass(frozen=True, slots=True)
class _TextReport:
    """Prints a table of findings, worst first, and each repair before and after it is made."""

    deployment: Deployment
    options: DoctorOptions

    def begin_repairs(self, findings: Sequence[Finding]) -> None:
        self._print(findings)

    def agrees(self, finding: Finding, repair: Repair) -> bool:
        lines = ("", f"{finding.check}: {finding.message}", f"→ {repair.description}")
        console().print(*lines, sep="\n", soft_wrap=True)
        return self.options.yes or confirm("Do it?")

    def repaired(self, result: RepairResult) -> None:
        console().print(f"{result.check}: {result.result}", soft_wrap=True)

    def finish(self, findings: Sequence[Finding], results: Sequence[RepairResult]) -> None:
        if not self.options.fixes:
            self._print(findings)
            self._point_to_repairs(findings)
        elif tried := [result for result in results if result.was_tried]:
            self._print(findings)
            for result in tried:
                if not result.succeeded:
                    console().print(f"{result.check}: {result.result}", soft_wrap=True)
        else:
            console().print("nothing was repaired" if results else "there is nothing that --fix can repair")

    def _print(self, findings: Sequence[Finding]) -> None:
        deployment = self.deployment
        counts = Counter(finding.level for finding in findings)
        totals = ", ".join(f"{counts[level]} {level}" for level in Level if counts[level])
        where = f"{deployment.named()} in {deployment.region}, account {deployment.account}"
        console().print(f"{where}: {totals}")
        worst_first = sorted(findings, key=lambda finding: list(Level).index(finding.level))
        rows = [
            (
                Text(finding.level, style=_STYLES[finding.level]),
                finding.check,
                (finding.message, f"→ {finding.remedy}") if finding.remedy else finding.message,
            )
            for finding in worst_first
        ]
        console().print(output.table(("", "CHECK", "FOUND"), rows))

    def _point_to_repairs(self, findings: Sequence[Finding]) -> None:
        if possible := repairs(self.deployment, findings):
            has = f"has {plural(len(possible), 'repair')}; it shows each and asks first"
            command = f"`minute8 doctor --stage {self.deployment.stage} --fix`"
            console().print(f"{command} {has}", soft_wrap=True)
