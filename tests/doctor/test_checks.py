"""Each check, made to fail once by breaking the one thing that it looks at; no other check may notice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Event
from typing import Any

import httpx
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from moto import mock_aws

from cli.doctor.examine import CHECKS, Check, examine
from cli.doctor.findings import Finding, Level, ok
from cli.doctor.planning import ticks_missed
from cli.doctor.surroundings import clock_off_s
from common.due_index import Mark, Shard
from common.shares import Shares
from tests.doctor.stage import Patient
from tests.worlds import at

Break = Callable[[Patient], Any]


def seen(patient: Patient, checks: tuple[Check, ...] = CHECKS) -> dict[str, list[Finding]]:
    """The findings that are no `ok`, by check."""
    found: dict[str, list[Finding]] = {}
    for finding in examine(patient.deployment, 60, checks):
        if finding.level != Level.OK:
            found.setdefault(finding.check, []).append(finding)
    return found


def worst(findings: list[Finding]) -> Level:
    return min((finding.level for finding in findings), key=list(Level).index)


def test_a_healthy_stage_is_well(patient: Patient) -> None:
    findings = examine(patient.deployment, 60)
    # The two that moto cannot tell: it has no figures, and its Date is today's while the test's clock is not.
    assert {f.check for f in findings if f.level != Level.OK} == {"last hour", "clock"}
    assert [f.check for f in findings] == [check.name for check in CHECKS]


def unplug(patient: Patient) -> None:
    patient["events"].remove_targets(Rule=patient.name("tick"), Ids=["scheduler"])


def retimed(patient: Patient) -> None:
    patient["events"].put_rule(Name=patient.name("tick"), ScheduleExpression="rate(10 minutes)")


def small_hidden_time(patient: Patient) -> None:
    patient["sqs"].set_queue_attributes(
        QueueUrl=patient.queue_url("executions"), Attributes={"VisibilityTimeout": "19"}
    )


def elsewhere_dead(patient: Patient) -> None:
    arn = patient.deployment.queue_arn("outcomes-dead")
    policy = f'{{"deadLetterTargetArn": "{arn}", "maxReceiveCount": 5}}'
    patient["sqs"].set_queue_attributes(
        QueueUrl=patient.queue_url("executions"), Attributes={"RedrivePolicy": policy}
    )


def piled_up(patient: Patient) -> None:
    """Messages that nobody takes: moto would hand them to the function at once."""
    url, stock = patient.queue_url("executions"), patient["sqs"].get_queue_attributes

    def answer(QueueUrl: str, **wanted: Any) -> Any:
        found = stock(QueueUrl=QueueUrl, **wanted)
        if QueueUrl == url:
            found["Attributes"]["ApproximateNumberOfMessages"] = "1010"
        return found

    patient.alter("sqs", get_queue_attributes=answer)


def dead(queue: str) -> Break:
    return lambda patient: patient["sqs"].send_message(
        QueueUrl=patient.queue_url(f"{queue}-dead"), MessageBody="given up"
    )


def mapped(function: str, **changes: Any) -> Break:
    return lambda patient: patient["lambda"].update_event_source_mapping(
        UUID=patient.mapping(function)["UUID"], **changes
    )


def configured(function: str, **changes: Any) -> Break:
    return lambda patient: patient["lambda"].update_function_configuration(
        FunctionName=patient.name(function), **changes
    )


def reserved(patient: Patient) -> None:
    patient["lambda"].put_function_concurrency(
        FunctionName=patient.name("api"), ReservedConcurrentExecutions=0
    )


def state(function: str, **fields: str) -> Break:
    """A state that moto's functions never have."""

    def broken(patient: Patient) -> None:
        stock = patient["lambda"].get_function_configuration

        def answer(FunctionName: str) -> Any:
            found = stock(FunctionName=FunctionName)
            return found | fields if FunctionName == patient.name(function) else found

        patient.alter("lambda", get_function_configuration=answer)

    return broken


def forever(patient: Patient) -> None:
    patient["dynamodb"].update_time_to_live(
        TableName=patient.name("runs"),
        TimeToLiveSpecification={"Enabled": False, "AttributeName": "expires_at"},
    )


def without_index(patient: Patient) -> None:
    patient["dynamodb"].update_table(
        TableName=patient.name("runs"), GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "failures"}}]
    )


def later(text: str) -> Break:
    return lambda patient: patient.clock.move_to(at(text))


def half_planned(patient: Patient) -> None:
    """The tick of 3:28 announced 3:30 to 3:40 and died; nobody has noticed by 3:34, but that it is late."""
    patient.index.begin_planning(
        patient.index.ensure_mark(0), at("2026-11-21T03:40:00Z"), patient.clock.now()
    )
    patient.clock.sleep(301)


def half_divided(patient: Patient) -> None:
    mark = patient.index.begin_planning(
        patient.index.ensure_mark(0), at("2026-11-21T03:40:00Z"), patient.clock.now()
    )
    Shares(patient.deployment.due_table()).record(mark, [[Shard("a", 0)], [Shard("b", 0)]])
    patient.clock.sleep(301)


def cut_off(patient: Patient) -> None:
    """A registration that was committed; what its entry holds does not matter here."""
    patient["dynamodb"].put_item(
        TableName=patient.name("due"),
        Item={"pk": {"S": "PENDING#3"}, "sk": {"S": "alice#report#1"}, "entry": {"S": "[]"}},
    )


def older_zones(patient: Patient) -> None:
    patient["dynamodb"].update_item(
        TableName=patient.name("due"),
        Key={"pk": {"S": "MARK"}, "sk": {"S": "MARK"}},
        UpdateExpression="SET tzdata = :old",
        ExpressionAttributeValues={":old": {"S": "2019a"}},
    )


def no_mark(patient: Patient) -> None:
    patient["dynamodb"].delete_item(
        TableName=patient.name("due"), Key={"pk": {"S": "MARK"}, "sk": {"S": "MARK"}}
    )


def deleted(kind: str, name: str) -> Break:
    def broken(patient: Patient) -> None:
        if kind == "queue":
            patient["sqs"].delete_queue(QueueUrl=patient.queue_url(name))
        elif kind == "table":
            patient["dynamodb"].delete_table(TableName=patient.name(name))
        elif kind == "function":
            patient["lambda"].delete_function(FunctionName=patient.name(name))
        elif kind == "mapping":
            patient["lambda"].delete_event_source_mapping(UUID=patient.mapping(name)["UUID"])
        elif kind == "bus":
            patient["events"].delete_event_bus(Name=patient.name())
        elif kind == "alarm":
            patient["cloudwatch"].delete_alarms(AlarmNames=[patient.name(name)])

    return broken


F, W = Level.FAILED, Level.WARNING

# What is broken, who notices, and what it says of it.
BROKEN: list[tuple[str, Break, dict[str, Level], str]] = [
    (
        "rule gone",
        lambda p: (unplug(p), p["events"].delete_rule(Name=p.name("tick"))),
        {"rule": F},
        "there is no rule",
    ),
    ("rule off", lambda p: p["events"].disable_rule(Name=p.name("tick")), {"rule": F}, "is disabled"),
    ("other times", retimed, {"rule": F}, "'rate(10 minutes)' instead of 'cron(8/10 * * * ? *)'"),
    ("no target", unplug, {"rule": F}, "calls nothing instead of arn:aws:lambda"),
    (
        "not let in",
        lambda p: p["lambda"].remove_permission(FunctionName=p.name("scheduler"), StatementId="rule"),
        {"rule": F},
        "may not invoke minute8-test-scheduler",
    ),
    (
        "one tick lost",
        later("2026-11-21T03:29:40Z"),
        {"mark": W},
        "about to be late: planned until 2026-11-21T03:30",
    ),
    ("late", later("2026-11-21T03:39:40Z"), {"mark": F}, "(9 min ago), 2 ticks are missed"),
    (
        "nothing planned",
        no_mark,
        {"mark": W, "time zones": Level.NOT_CHECKED},
        "nothing has been planned yet",
    ),
    ("window open", half_planned, {"unfinished planning": W}, "has not finished its window"),
    ("shares left", half_divided, {"unfinished planning": W}, "2 shares of the window"),
    ("registration cut off", cut_off, {"unfinished planning": W}, "1 registrations were cut off"),
    ("old zones", older_zones, {"time zones": W}, "ticks plan by tzdata 2019a"),
    ("queue gone", deleted("queue", "executions"), {"queue executions": F}, "there is no queue"),
    ("hidden too shortly", small_hidden_time, {"queue executions": F}, "come back after 19 s"),
    (
        "wrong dead letters",
        elsewhere_dead,
        {"queue executions": F},
        "instead of minute8-test-executions-dead",
    ),
    ("backlog", piled_up, {"queue executions": W}, "1010 messages are due and wait for executor"),
    (
        "dead executions",
        dead("executions"),
        {"dead letters executions": F},
        "1 messages in",
    ),
    (
        "dead shares",
        dead("planning"),
        {"dead letters planning": F},
        "1 messages in",
    ),
    (
        "dead outcomes",
        dead("outcomes"),
        {"dead letters outcomes": F},
        "1 messages in",
    ),
    (
        "no dead-letter queue",
        deleted("queue", "planning-dead"),
        {"dead letters planning": F},
        "there is no queue",
    ),
    ("nobody reads", deleted("mapping", "executor"), {"mapping executions": F}, "0 event source mappings"),
    ("reading is off", mapped("planner", Enabled=False), {"mapping planning": F}, "planning is not read"),
    ("small batches", mapped("outcomes", BatchSize=3), {"mapping outcomes": W}, "batches of 3 instead of 10"),
    ("waits", mapped("executor", MaximumBatchingWindowInSeconds=5), {"mapping executions": W}, "waits 5 s"),
    (
        "whole batches",
        mapped("executor", FunctionResponseTypes=[]),
        {"mapping executions": F},
        "no ReportBatch",
    ),
    (
        "function gone",
        deleted("function", "outcomes"),
        {"function outcomes": F, "permissions outcomes": F},
        "there is no function minute8-test-outcomes",
    ),
    ("switched off", reserved, {"function api": F}, "reserved concurrency is 0"),
    ("old runtime", configured("planner", Runtime="python3.9"), {"function planner": W}, "runs on python3.9"),
    (
        "shorter than believed",
        configured("executor", Timeout=10),
        {f"function {name}": F for name in ("scheduler", "planner", "executor", "outcomes", "api")},
        "takes the executor's time limit for 20 s, and it is 10 s",
    ),
    (
        "function failed",
        state("api", State="Failed", StateReason="no image"),
        {"function api": F},
        "no image",
    ),
    ("function idle", state("api", State="Inactive"), {"function api": W}, "it is inactive"),
    ("update failed", state("api", LastUpdateStatus="Failed"), {"function api": F}, "its last update failed"),
    (
        "update under way",
        state("api", LastUpdateStatus="InProgress"),
        {"function api": W},
        "update is under way",
    ),
    (
        "permission gone",
        lambda p: p.simulator.denied.add(("sqs:SendMessage", ":minute8-test-planning")),
        {"permissions scheduler": F},
        "may not sqs:SendMessage on arn:aws:sqs:us-east-1:123456789012:minute8-test-planning",
    ),
    (
        "index not readable",
        lambda p: p.simulator.denied.add(("dynamodb:Query", "table/minute8-test-runs/index/failures")),
        {"permissions api": F},
        "may not dynamodb:Query on",
    ),
    (
        "tenants may call Minute8",
        lambda p: p.simulator.allowed.add(("lambda:InvokeFunction", ":minute8-test-api")),
        {"permissions executor": F},
        "tenants' jobs can call Minute8 itself",
    ),
    ("table gone", deleted("table", "tenants"), {"table tenants": F}, "there is no table"),
    ("runs for ever", forever, {"table runs": F}, "time to live is off"),
    ("failures not found", without_index, {"table runs": F}, "its index failures is missing"),
    (
        "api fails",
        lambda p: setattr(p, "api_answers", 502),
        {"api": F},
        "https://api.test/v1/openapi.json answers 502 Bad Gateway",
    ),
    (
        "api is not there",
        lambda p: setattr(p, "api_answers", httpx.ConnectError("no such host")),
        {"api": F},
        "does not answer: no such host",
    ),
    (
        "api's address unknown",
        lambda p: setattr(p.stacks, "tells_url", False),
        {"api": Level.NOT_CHECKED},
        "does not tell the API's address",
    ),
    ("nobody told", deleted("bus", ""), {"event bus": F}, "there is no event bus minute8-test"),
    ("no alarm", deleted("alarm", "no-tick"), {"alarms": W}, "there is no alarm minute8-test-no-tick"),
    (
        "alarm",
        lambda p: p["cloudwatch"].set_alarm_state(
            AlarmName=p.name("no-tick"), StateValue="ALARM", StateReason="no datapoints"
        ),
        {"alarms": F},
        "minute8-test-no-tick is on: no datapoints",
    ),
    (
        "rolled back",
        lambda p: setattr(p.stacks, "status", "UPDATE_ROLLBACK_COMPLETE"),
        {"stack": W},
        "was rolled back",
    ),
    (
        "not made",
        lambda p: setattr(p.stacks, "status", "ROLLBACK_COMPLETE"),
        {"stack": F},
        "ended as ROLLBACK",
    ),
    (
        "being deployed",
        lambda p: setattr(p.stacks, "status", "UPDATE_IN_PROGRESS"),
        {"stack": W},
        "under way",
    ),
    (
        "by other means",
        lambda p: setattr(p.stacks, "status", ""),
        {"stack": Level.NOT_CHECKED, "api": Level.NOT_CHECKED},
        "no stack",
    ),
]


@pytest.mark.parametrize(
    ("broken", "noticed", "told"), [row[1:] for row in BROKEN], ids=[row[0] for row in BROKEN]
)
def test_what_is_broken_is_noticed(
    patient: Patient, broken: Break, noticed: dict[str, Level], told: str
) -> None:
    before = seen(patient)
    broken(patient)
    after = {check: found for check, found in seen(patient).items() if check not in before}
    assert {check: worst(found) for check, found in after.items()} == noticed
    problems = [finding for found in after.values() for finding in found]
    assert any(told in finding.found for finding in problems), problems
    assert all(finding.remedy for finding in problems if finding.level in (F, W))


def test_every_check_is_broken_by_some_test() -> None:
    noticed = {check for _, _, checks, _ in BROKEN for check in checks}
    siblings = {"queue planning", "queue outcomes", "permissions planner", "permissions outcomes"} | {
        "table jobs",
        "table due",
    }
    assert {check.name for check in CHECKS} - noticed - siblings == {"clock", "last hour"}


def test_a_production_stage_keeps_its_data_and_wakes_somebody() -> None:
    with mock_aws():
        production = Patient("prod")
        found = seen(production)
        for table in ("jobs", "due", "tenants", "runs"):
            assert [f.found for f in found[f"table {table}"]] == [
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
        assert [f.found for f in found["alarms"]] == [
            "minute8-prod-dead-letters tells nobody",
            "minute8-prod-no-tick tells nobody",
        ]
        for alarm in ("dead-letters", "no-tick"):
            production.alarm(alarm, AlarmActions=["arn:aws:sns:us-east-1:123456789012:pager"])
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
    assert ticks_missed(Mark(planned, planned, at("2026-11-21T03:18:02Z")), at(now)) == missed


@pytest.mark.parametrize(
    ("before", "after", "off_s"),
    [
        (100.0, 100.2, 0.0),
        (100.9, 101.2, 0.0),
        (
            101.5,
            101.7,
            0.5,
        ),  # AWS wrote 100 before 101.0, so a clock at 101.5 is half a second ahead at least
        (160.0, 160.2, 59.0),
        (99.0, 99.5, -0.5),
        (40.0, 40.2, -59.8),
    ],
)
def test_a_clock_is_off_by_what_the_date_leaves_no_doubt_of(
    before: float, after: float, off_s: float
) -> None:
    assert clock_off_s(before, 100, after) == pytest.approx(off_s)


@dataclass
class Sts:
    """Tells the time, also while it refuses who asks."""

    date: str
    refuses: bool = False

    class exceptions:
        ClientError = ClientError

    def get_caller_identity(self) -> Any:
        answer = {"ResponseMetadata": {"HTTPHeaders": {"date": self.date}}}
        if self.refuses:
            raise ClientError({"Error": {"Code": "SignatureDoesNotMatch"}, **answer}, "GetCallerIdentity")  # type: ignore[typeddict-item]
        return answer


@pytest.mark.parametrize(
    ("date", "refuses", "level", "told"),
    [
        ("Sat, 21 Nov 2026 03:20:00 GMT", False, Level.OK, "to the second"),
        ("Sat, 21 Nov 2026 03:19:30 GMT", False, W, "29.0 s ahead of AWS's"),
        ("Sat, 21 Nov 2026 03:30:30 GMT", True, F, "10 min 30 s behind AWS's"),
    ],
)
def test_the_clock(patient: Patient, date: str, refuses: bool, level: Level, told: str) -> None:
    patient.clients["sts"] = Sts(date, refuses)
    (finding,) = [f for f in examine(patient.deployment, 60) if f.check == "clock"]
    assert (finding.level, told in finding.found) == (level, True), finding


@dataclass
class Figures:
    """CloudWatch with figures of the last hour, by metric and function or queue."""

    values: dict[tuple[str, str], list[float]]

    def get_metric_data(self, MetricDataQueries: Any, **_: Any) -> Any:
        def of(query: Any) -> list[float]:
            metric = query["MetricStat"]["Metric"]
            return self.values.get((metric["MetricName"], metric["Dimensions"][0]["Value"]), [])

        return {"MetricDataResults": [{"Id": q["Id"], "Values": of(q)} for q in MetricDataQueries]}


@pytest.mark.parametrize(
    ("values", "level", "told"),
    [
        ({}, Level.NOT_CHECKED, "no figures"),
        ({("Invocations", "minute8-test-scheduler"): [1, 2, 3]}, Level.OK, "6 ticks"),
        (
            {("Invocations", "minute8-test-api"): [90], ("Errors", "minute8-test-api"): [2, 1]},
            W,
            "3 of 90 invocations of api failed",
        ),
        ({("Throttles", "minute8-test-executor"): [7]}, W, "7 invocations of executor were throttled"),
        ({("ApproximateAgeOfOldestMessage", "minute8-test-executions"): [1800.0, 5.0]}, W, "for 30 min"),
        ({("ApproximateAgeOfOldestMessage", "minute8-test-executions"): [5.0, 1800.0]}, Level.OK, ""),
    ],
)
def test_the_last_hour(patient: Patient, values: Any, level: Level, told: str) -> None:
    patient.clients["cloudwatch"] = Figures(values)
    last_hour = [check for check in CHECKS if check.name == "last hour"]
    (finding,) = examine(patient.deployment, 60, last_hour)
    assert (finding.level, told in finding.found) == (level, True), finding


def raising(error: Exception) -> Check:
    def look(_: object) -> list[Finding]:
        raise error

    return Check("broken", look)


def refusal(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "no"}}, "DescribeRule")


@pytest.mark.parametrize(
    ("error", "level", "told"),
    [
        (refusal("AccessDeniedException"), Level.NOT_CHECKED, "your credentials may not DescribeRule"),
        (refusal("InvalidAction"), Level.NOT_CHECKED, "this AWS does not know DescribeRule"),
        (refusal("InternalError"), F, "InternalError"),
        (EndpointConnectionError(endpoint_url="https://nowhere"), F, "AWS does not answer"),
        (KeyError("State"), F, "the check itself broke: KeyError('State')"),
    ],
)
def test_a_check_that_breaks_says_so_and_hides_no_other(
    patient: Patient, error: Exception, level: Level, told: str
) -> None:
    broken, other = examine(patient.deployment, 60, (raising(error), Check("other", lambda _: [ok("well")])))
    assert (broken.level, told in broken.found, other.found) == (level, True, "well"), broken


def test_what_does_not_answer_is_not_waited_for(patient: Patient) -> None:
    never = Event()
    stuck = Check("stuck", lambda _: [ok(str(never.wait()))])
    late, other = examine(patient.deployment, 0.2, (stuck, Check("other", lambda _: [ok("well")])))
    never.set()
    assert (late.level, late.found, other.found) == (F, "no answer within 0.2 s", "well")
