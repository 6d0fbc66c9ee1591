"""`minute8 doctor --fix`: makes the repairs of findings, one after the other. Each is shown before it is made."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

from common.platform.findings import Finding, Level, Repair
from common.timing.windows import planning_end
from minute8.cli.doctor.deployment import Deployment
from minute8.cli.doctor.examine import CHECKS, examine

_TICK_ORDER: Final = 1
# A cold start and a window of a large stage.
_TICK_TIMEOUT_S: Final = 120
# AWS may take this long to show a repair: IAM for a policy, SQS for a count.
_REPAIR_SHOWS_WITHIN_S: Final = 60
_EXAMINE_AGAIN_S: Final = 5
# A tick repairs the findings of these checks.
_CHECKS_REPAIRED_BY_TICK: Final = ("planned until", "unfinished planning")


@dataclass(frozen=True, slots=True)
class RepairResult:
    """What became of a repair: `result` is `left`, `left: …`, `failed: …`, `done`, or says what was done."""

    check: str
    description: str
    result: str

    @property
    def was_tried(self) -> bool:
        return not self.result.startswith("left")

    @property
    def succeeded(self) -> bool:
        return self.was_tried and not self.result.startswith("failed")


def repairs(deployment: Deployment, findings: Iterable[Finding]) -> list[tuple[Finding, Repair]]:
    """The possible repairs in their order, each once."""
    by_description: dict[str, tuple[Finding, Repair]] = {}
    for finding in findings:
        repair = finding.repair
        if repair is None and _needs_tick(finding):
            repair = tick(deployment)
        if repair:
            by_description.setdefault(repair.description, (finding, repair))
    return sorted(by_description.values(), key=lambda possible: possible[1].order)


def _needs_tick(finding: Finding) -> bool:
    return finding.check in _CHECKS_REPAIRED_BY_TICK and finding.level in (Level.FAILED, Level.WARNING)


def fix(
    deployment: Deployment,
    findings: Iterable[Finding],
    agrees: Callable[[Finding, Repair], bool],
    report: Callable[[RepairResult], None],
) -> list[RepairResult]:
    """Make each repair that `agrees` allows, and report it. An error of one does not stop the others.

    Nothing is sent again while something that loses messages is not repaired.
    """
    findings, results = list(findings), list[RepairResult]()
    for finding, repair in repairs(deployment, findings):
        if repair.sends and (failure := _unrepaired_loss(findings, results)):
            outcome = f"left: what is sent could be lost while {failure.check} fails: {failure.message}"
        else:
            outcome = _outcome(repair) if agrees(finding, repair) else "left"
        results.append(RepairResult(finding.check, repair.description, outcome))
        report(results[-1])
    return results


def _unrepaired_loss(findings: Iterable[Finding], results: Iterable[RepairResult]) -> Finding | None:
    repaired = {result.description for result in results if result.succeeded}
    losses = (finding for finding in findings if finding.loses)
    return next(
        (loss for loss in losses if loss.repair is None or loss.repair.description not in repaired),
        None,
    )


def _outcome(repair: Repair) -> str:
    try:
        outcome = repair.do()
    except Exception as error:  # noqa: BLE001  the others may succeed, and the report that follows shows it
        return f"failed: {error}"
    return str(outcome) if isinstance(outcome, str) else "done"


def reexamined(deployment: Deployment, results: Iterable[RepairResult], deadline_s: float) -> list[Finding]:
    """The findings after these repairs: as soon as none of the repairs is needed again, or a minute later.

    An alarm looks back, so an alarm that is on may be about what was repaired. Its finding is a warning.
    """
    check_by_description = {result.description: result.check for result in results if result.succeeded}
    checks = [check for check in CHECKS if check.name in check_by_description.values()]
    until = deployment.clock.now() + _REPAIR_SHOWS_WITHIN_S
    while deployment.clock.now() < until and any(
        repair.description in check_by_description
        for _, repair in repairs(deployment, examine(deployment, deadline_s, checks))
    ):
        deployment.clock.sleep(_EXAMINE_AGAIN_S)
    findings = examine(deployment, deadline_s)
    return [_looks_back(finding) for finding in findings] if check_by_description else findings


def verified(
    deployment: Deployment, results: Iterable[RepairResult], findings: Iterable[Finding]
) -> list[RepairResult]:
    """The results, by what was found afterwards: a repair that is needed again has failed."""
    again = {repair.description: finding for finding, repair in repairs(deployment, findings)}
    return [
        replace(
            result, result=f"failed: it is {result.result}, and still: {again[result.description].message}"
        )
        if result.succeeded and result.description in again
        else result
        for result in results
    ]


def _looks_back(finding: Finding) -> Finding:
    if finding.check != "alarms" or finding.level != Level.FAILED:
        return finding
    remedy = f"it looks back: if it is still on in twenty minutes, {finding.remedy}"
    return replace(finding, level=Level.WARNING, remedy=remedy)


def tick(deployment: Deployment) -> Repair:
    """Start a tick, and wait until planned_until has moved or is as far as a tick takes it. An extra tick does no harm.

    A registration makes planned_until of a new stage, that of the canary's job too: then a tick has nothing to plan.
    """

    def run() -> None:
        clock, index = deployment.clock, deployment.planning().index()
        before = index.progress()
        deployment.client("lambda").invoke(
            FunctionName=deployment.called_arn("scheduler"), InvocationType="Event"
        )
        until = clock.now() + _TICK_TIMEOUT_S
        while clock.now() < until:
            clock.sleep(2)
            progress = index.progress()
            if progress is None or progress.is_open:
                continue
            has_moved = before is None or progress.planned_until != before.planned_until
            if has_moved or progress.planned_until >= planning_end(clock.now()):
                return
        raise TimeoutError(
            f"no tick moved planned_until within {_TICK_TIMEOUT_S} s; see the log of {deployment.named('scheduler')}"
        )

    function = deployment.named("scheduler")
    return Repair(f"aws lambda invoke --function-name {function} --invocation-type Event", run, _TICK_ORDER)
