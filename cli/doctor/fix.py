"""`minute8 doctor --fix`: does what findings say, one after the other; each is shown before."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

from cli.doctor.deployment import Deployment
from cli.doctor.examine import CHECKS, examine
from common.platform.findings import Finding, Level, Repair

_TICK_ORDER: Final = 1
# A cold start and a window of a large stage.
_TICK_S: Final = 120
# How long AWS may take to show a repair: IAM for a policy, SQS for a count.
_SHOWS_WITHIN_S: Final = 60
_LOOK_AGAIN_S: Final = 5
# The checks whose findings a tick puts right.
_BY_A_TICK: Final = ("mark", "unfinished planning")


@dataclass(frozen=True, slots=True)
class Done:
    """What became of a repair: `result` is `left`, `failed: …`, `done`, or says what was done."""

    check: str
    told: str
    result: str

    @property
    def is_made(self) -> bool:
        return self.result != "left" and not self.result.startswith("failed")


def repairs(deployment: Deployment, findings: Iterable[Finding]) -> list[tuple[Finding, Repair]]:
    """What can be repaired, in the order in which to do it; each repair once."""
    found: dict[str, tuple[Finding, Repair]] = {}
    for one in findings:
        repair = one.repair
        if repair is None and one.check in _BY_A_TICK and one.level in (Level.FAILED, Level.WARNING):
            repair = tick(deployment)
        if repair:
            found.setdefault(repair.description, (one, repair))
    return sorted(found.values(), key=lambda one: one[1].order)


def fix(
    deployment: Deployment,
    findings: Iterable[Finding],
    agrees: Callable[[Finding, Repair], bool],
    tell: Callable[[Done], None],
) -> list[Done]:
    """Make each repair that `agrees` lets pass. An error of one does not stop the others."""
    done = []
    for finding, repair in repairs(deployment, findings):
        result = "left"
        if agrees(finding, repair):
            try:
                said = repair.do()
                result = str(said) if isinstance(said, str) else "done"
            except Exception as error:  # noqa: BLE001  the others may succeed, and the report that follows shows it
                result = f"failed: {error}"
        done.append(Done(finding.check, repair.description, result))
        tell(done[-1])
    return done


def after(deployment: Deployment, done: Iterable[Done], deadline_s: float) -> list[Finding]:
    """The findings after these repairs, as soon as none of them is to be made again, or a minute later.

    An alarm looks back, so one that is on may be about what was repaired. It is a warning.
    """
    made = {one.told: one.check for one in done if one.is_made}
    checks = [check for check in CHECKS if check.name in made.values()]
    until = deployment.clock.now() + _SHOWS_WITHIN_S
    while deployment.clock.now() < until and any(
        repair.description in made
        for _, repair in repairs(deployment, examine(deployment, deadline_s, checks))
    ):
        deployment.clock.sleep(_LOOK_AGAIN_S)
    return [_looks_back(one) if made else one for one in examine(deployment, deadline_s)]


def _looks_back(finding: Finding) -> Finding:
    if finding.check != "alarms" or finding.level != Level.FAILED:
        return finding
    remedy = f"it looks back: if it is still on in twenty minutes, {finding.remedy}"
    return replace(finding, level=Level.WARNING, remedy=remedy)


def tick(deployment: Deployment) -> Repair:
    """Start a tick, and wait until the mark has moved. A tick more does no harm."""

    def run() -> None:
        clock, index = deployment.clock, deployment.index()
        before = index.mark()
        deployment.client("lambda").invoke(FunctionName=deployment.named("scheduler"), InvocationType="Event")
        until = clock.now() + _TICK_S
        while clock.now() < until:
            clock.sleep(2)
            mark = index.mark()
            if mark and not mark.is_open and (before is None or mark.planned_until > before.planned_until):
                return
        raise TimeoutError(
            f"no tick has moved the mark within {_TICK_S} s; look at the log of {deployment.named('scheduler')}"
        )

    function = deployment.named("scheduler")
    return Repair(f"aws lambda invoke --function-name {function} --invocation-type Event", run, _TICK_ORDER)
