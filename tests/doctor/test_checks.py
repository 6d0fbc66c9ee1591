"""Each check fails when its own subject is broken, and no other check fails then."""

from __future__ import annotations

import pytest
from moto import mock_aws

from common.planning.due_index import PlanningProgress
from common.platform.alarms import Alarms
from common.platform.findings import Finding, Level, failed, ok
from common.platform.planning_checks import ticks_missed
from minute8.cli.doctor.examine import CHECKS, examine
from tests.doctor.breaks import Break
from tests.doctor.broken import BROKEN, FAILED, WARNING
from tests.doctor.stage import ALARMS, Patient
from tests.worlds import at


def seen(patient: Patient) -> dict[str, list[Finding]]:
    """The findings other than `ok`, by check."""
    by_check: dict[str, list[Finding]] = {}
    for finding in examine(patient.deployment, 60):
        if finding.level != Level.OK:
            by_check.setdefault(finding.check, []).append(finding)
    return by_check


def worst(findings: list[Finding]) -> Level:
    return min((finding.level for finding in findings), key=list(Level).index)


def test_a_healthy_stage_is_well(patient: Patient) -> None:
    findings = examine(patient.deployment, 60)
    # moto cannot serve these two: it has no metrics, and its Date header is today's, unlike the test's clock.
    assert {f.check for f in findings if f.level != Level.OK} == {"last hour", "clock"}
    assert [f.check for f in findings] == [check.name for check in CHECKS]


@pytest.mark.parametrize(
    ("broken", "noticed", "message"), [row[1:] for row in BROKEN], ids=[row[0] for row in BROKEN]
)
def test_the_doctor_notices_each_broken_part(
    patient: Patient, broken: Break, noticed: dict[str, Level], message: str
) -> None:
    before = seen(patient)
    broken(patient)
    after = {check: findings for check, findings in seen(patient).items() if check not in before}
    assert {check: worst(findings) for check, findings in after.items()} == noticed
    problems = [finding for findings in after.values() for finding in findings]
    assert any(message in finding.message for finding in problems), problems
    assert all(finding.remedy for finding in problems if finding.level in (FAILED, WARNING))


def test_every_check_is_broken_by_some_test() -> None:
    noticed = {check for _, _, checks, _ in BROKEN for check in checks}
    siblings = {"queue planning", "queue outcomes", "permissions planner", "permissions outcomes"} | {
        "table jobs",
        "table due",
        "table audit",
    }
    elsewhere = {"canary job"}  # tests/alarms/test_canary.py: this stage has none
    assert {check.name for check in CHECKS} - noticed - siblings - elsewhere == {"clock", "last hour"}


def test_a_production_stage_keeps_its_data_and_wakes_somebody() -> None:
    with mock_aws():
        production = Patient("prod")
        by_check = seen(production)
        for table in ("jobs", "due", "tenants", "audit", "runs"):
            assert [f.message for f in by_check[f"table {table}"]] == [
                "it cannot be brought back to an earlier time: no point-in-time recovery",
                "it can be deleted by mistake",
            ]
            production["dynamodb"].update_continuous_backups(
                TableName=production.name(table),
                PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True},
            )
            production["dynamodb"].update_table(
                TableName=production.name(table), DeletionProtectionEnabled=True
            )
        assert [f.message for f in by_check["alarms"]] == [
            f"minute8-prod-{alarm} tells nobody" for alarm in ALARMS
        ]
        pager = ["arn:aws:sns:us-east-1:123456789012:pager"]
        for alarm in ALARMS:
            production.deploy_alarm(alarm, AlarmActions=pager)
            production.alarm(alarm, AlarmActions=pager)
        assert seen(production).keys() == {"last hour", "clock"}


@pytest.mark.parametrize(
    ("now", "missed"),
    [
        # 3:30 is planned. The tick of 3:28 may take until 3:29:30; from then on one is missed, and every ten minutes.
        ("2026-11-21T03:18:30Z", 0),
        ("2026-11-21T03:29:29Z", 0),
        ("2026-11-21T03:29:30Z", 1),
        ("2026-11-21T03:39:29Z", 1),
        ("2026-11-21T03:39:30Z", 2),
        ("2026-11-22T03:39:30Z", 146),
    ],
)
def test_how_many_ticks_are_missed(now: str, missed: int) -> None:
    planned = at("2026-11-21T03:30:00Z")
    assert (
        ticks_missed(
            PlanningProgress(
                planned_until=planned, planning_until=planned, decided_at=at("2026-11-21T03:18:02Z")
            ),
            at(now),
        )
        == missed
    )


def test_the_api_finds_the_alarms_that_are_on(patient: Patient) -> None:
    """Parts of others and other stages' alarms are left out, also where a stage's name begins like another's."""
    client, now = patient["cloudwatch"], patient.clock.now()
    patient.alarm("burn-slow-now")
    client.set_alarm_state(AlarmName=patient.name("burn-slow-now"), StateValue="ALARM", StateReason="quiet")
    assert Alarms(client, "test").findings(now) == [ok("no alarm is on")]
    client.set_alarm_state(AlarmName=patient.name("overdue"), StateValue="ALARM", StateReason="1,200 wait")
    eu = Patient("test-eu")
    eu["cloudwatch"].set_alarm_state(AlarmName=eu.name("overdue"), StateValue="ALARM", StateReason="eu")
    (finding,) = Alarms(client, "test").findings(now)
    assert finding.since_at is not None
    assert finding == failed(
        "minute8-test-overdue is on: 1,200 wait",
        "What it means. docs/runbook/overdue.md",
        page="overdue",
        since_at=finding.since_at,
    )
    assert Alarms(client, "other").findings(now) == [ok("no alarm is on")]
