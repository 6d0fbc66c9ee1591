"""Faults of a deployment, each with the check that must find it."""

from __future__ import annotations

import httpx

from cli.doctor.expected import FUNCTIONS
from common.platform.findings import Level
from common.platform.signing_masters import parameter_name
from tests.doctor.breaks import (
    Break,
    at_version,
    bad_entry,
    configured,
    cut_off,
    dead,
    deleted,
    elsewhere_dead,
    forever,
    half_divided,
    half_planned,
    later,
    lost,
    mapped,
    no_mark,
    older_zones,
    other_sdk,
    piled_up,
    reserved,
    retimed,
    small_hidden_time,
    state,
    unplug,
    unreadable,
    without_data,
    without_index,
)

F, W = Level.FAILED, Level.WARNING

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
        "notify off",
        lambda p: p["events"].disable_rule(Name=p.name("notify")),
        {"notify rule": F},
        "is disabled: subscriptions get no messages",
    ),
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
        {"mark": W, "time zones": Level.NOT_CHECKED, "sdk": Level.NOT_CHECKED},
        "nothing has been planned yet",
    ),
    ("window open", half_planned, {"unfinished planning": W}, "has not finished its window"),
    ("shares left", half_divided, {"unfinished planning": W}, "2 shares of the window"),
    ("registration cut off", cut_off, {"unfinished planning": W}, "1 registrations were cut off"),
    ("unreadable group", unreadable, {"quarantine": F}, "group cron|Mars/Olympus|* * * * *#0: no such zone"),
    ("bad entry", bad_entry, {"quarantine": W}, "1 jobs cannot be planned: entry alice#report: [9]"),
    ("old zones", older_zones, {"time zones": W}, "ticks plan by tzdata 2019a"),
    ("another SDK", other_sdk, {"sdk": W}, "the last tick ran with botocore 1.40.4"),
    (
        "lost",
        lost,
        {"without record": F},
        "1 executions that were due have no record, the earliest of 2026-11-21T03:10:00Z",
    ),
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
    (
        "loops are stopped",
        lambda patient: patient.loops("Terminate"),
        {"function executor": F},
        "its RecursiveLoop is not Allow",
    ),
    ("switched off", reserved, {"function api": F}, "reserved concurrency is 0"),
    ("old runtime", configured("planner", Runtime="python3.9"), {"function planner": W}, "runs on python3.9"),
    (
        "shorter than believed",
        configured("executor", Timeout=10),
        {
            f"function {name}": F
            for name in ("scheduler", "planner", "executor", "outcomes", "notifier", "api")
        },
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
    ("new account", lambda p: p.at_once(10), {"concurrency": W}, "of its 10 only 10 are not reserved"),
    (
        "more than the account has",
        mapped("executor", ScalingConfig={"MaximumConcurrency": 990}),
        {"concurrency": W},
        "can use 1005 of the account's concurrency at once",
    ),
    (
        "permission gone",
        lambda p: p.simulator.denied.add(("sqs:SendMessage", ":minute8-test-planning")),
        {"permissions scheduler": F, "permissions planner": F, "permissions api": F},
        "may not sqs:SendMessage on arn:aws:sqs:us-east-1:123456789012:minute8-test-planning",
    ),
    (
        "index not readable",
        lambda p: p.simulator.denied.add(("dynamodb:Query", "table/minute8-test-runs/index/failures")),
        {"permissions api": F, "permissions notifier": F},
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
        "alarm without data",
        without_data,
        {"alarms": Level.NOT_CHECKED},
        "1 of 22 alarms have no data, the first since 20",
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
        "deployed by a later version",
        at_version("9.0.0", *FUNCTIONS),
        {"version": W},
        "the deployment's version is 9.0.0, this command's is",
    ),
    (
        "deployed before versions were told",
        at_version("", *FUNCTIONS),
        {"version": W},
        "version is none, so it is before 0.2.0",
    ),
    (
        "half deployed",
        at_version("0.1.9", "executor"),
        {"version": F},
        "the functions run different versions: ",
    ),
    (
        "without the masters of key pairs",
        lambda p: p["ssm"].delete_parameter(Name=parameter_name("test")),
        {"signing masters": W},
        "existing ones cannot sign",
    ),
    (
        "by other means",
        lambda p: setattr(p.stacks, "status", ""),
        {"stack": Level.NOT_CHECKED, "api": Level.NOT_CHECKED},
        "no stack",
    ),
]
