"""Runs all checks at once, within a time limit; a check that fails with an error does not stop the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic
from typing import Final, NamedTuple

from common.platform import planning_checks
from common.platform.findings import Finding, Level, failed, not_checked
from minute8.cli.doctor import (
    audit,
    canary,
    functions,
    planning,
    policies,
    queues,
    settings,
    surroundings,
    tables,
    truth,
)
from minute8.cli.doctor.deployment import Deployment
from minute8.cli.doctor.inventory import FEEDS, FUNCTIONS, TABLES

_NOT_ALLOWED: Final = ("AccessDenied", "AccessDeniedException", "AuthorizationError", "UnauthorizedOperation")
# How a check begins that the credentials do not allow.
DENIED: Final = "your credentials may not"
_UNKNOWN: Final = ("InvalidAction", "NotImplemented", "UnknownOperationException", "UnsupportedOperation")


class Check(NamedTuple):
    """One check."""

    name: str
    look: Callable[[Deployment], Iterable[Finding]]


def _of_planning(
    look: Callable[[planning_checks.PlanningState], Iterable[Finding]], deployment: Deployment
) -> Iterable[Finding]:
    return look(deployment.planning())


CHECKS: Final = (
    Check("stack", surroundings.stack),
    Check("settings", settings.settings),
    Check("strangers", settings.strangers),
    Check("version", functions.version),
    Check("rule", planning.rule),
    Check("notify rule", planning.notify_rule),
    Check("export rule", planning.export_rule),
    *(Check(name, partial(_of_planning, look)) for name, look in planning_checks.CHECKS.items()),
    Check("tables agree", truth.check_tables),
    Check("audit", audit.sealed),
    Check("without record", queues.without_record),
    *(Check(f"queue {feed.queue}", partial(queues.queue, feed=feed)) for feed in FEEDS),
    *(Check(f"dead letters {feed.queue}", partial(queues.dead_letters, feed=feed)) for feed in FEEDS),
    *(Check(f"mapping {feed.queue}", partial(queues.mapping, feed=feed)) for feed in FEEDS),
    *(Check(f"function {name}", partial(functions.function, name=name)) for name in FUNCTIONS),
    Check("concurrency", functions.concurrency),
    *(Check(f"permissions {name}", partial(functions.permissions, name=name)) for name in FUNCTIONS),
    Check("policies", policies.policies),
    *(Check(f"table {name}", partial(tables.table, name=name)) for name in TABLES),
    Check("api", surroundings.api),
    Check("event bus", surroundings.bus),
    Check("signing masters", surroundings.signing_masters),
    Check("secrets key", surroundings.secrets_key),
    Check("canary job", canary.canary),
    Check("alarms", surroundings.alarms),
    Check("last hour", surroundings.figures),
    Check("clock", surroundings.clock),
    Check("time zones", planning.time_zones),
    Check("sdk", planning.sdk),
)


def examine(deployment: Deployment, deadline_s: float, checks: Sequence[Check] = CHECKS) -> list[Finding]:
    """The findings of all checks, in order. A check that has not answered by the deadline has failed."""
    answers: SimpleQueue[tuple[str, list[Finding]]] = SimpleQueue()
    for check in checks:
        # Daemon threads: the program would wait for a pool when it ends.
        Thread(
            target=lambda check=check: answers.put((check.name, _look(check, deployment))), daemon=True
        ).start()
    by_check: dict[str, list[Finding]] = {}
    until = monotonic() + deadline_s
    while len(by_check) < len(checks):
        try:
            name, findings = answers.get(timeout=max(0.0, until - monotonic()))
        except Empty:
            break
        by_check[name] = findings
    late = [failed(f"no answer within {deadline_s:g} s", "try again; --timeout gives it longer")]
    return [
        replace(finding, check=check.name) for check in checks for finding in by_check.get(check.name, late)
    ]


def losses(deployment: Deployment, deadline_s: float = 30) -> str:
    """What loses messages now, in words; empty: nothing that the doctor knows."""
    findings = (finding for finding in examine(deployment, deadline_s) if finding.loses)
    return next((f"{finding.check} fails: {finding.message}" for finding in findings), "")


def _look(check: Check, deployment: Deployment) -> list[Finding]:
    findings: list[Finding] = []
    try:
        findings += check.look(deployment)
    except Exception as error:  # noqa: BLE001  an error in one check must not hide the others
        findings.append(_unanswered(error))
    problems = [finding for finding in findings if finding.level != Level.OK]
    return problems or findings


def _unanswered(error: Exception) -> Finding:
    from botocore.exceptions import BotoCoreError, ClientError

    if isinstance(error, ClientError):
        code, operation = error.response["Error"]["Code"], error.operation_name
        if code in _NOT_ALLOWED:
            return not_checked(
                f"{DENIED} {operation}", "deploy/policies/doctor.json lists what the doctor reads"
            )
        if code in _UNKNOWN:
            return not_checked(f"this AWS does not know {operation}")
        return failed(str(error), "look into it: AWS does not answer this as it should")
    if isinstance(error, BotoCoreError):
        return failed(f"AWS does not answer: {error}", "check the network, and try again")
    return failed(f"the check itself broke: {error!r}", "report it, with this line")
