"""Faults of a deployment, each with the check that must find it."""

from __future__ import annotations

import httpx

from cli.doctor.inventory import FUNCTIONS
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
    mapped,
    no_mark,
    older_zones,
    other_sdk,
    piled_up,
    reserved,
    retimed,
    rolled_back,
    small_hidden_time,
    state,
    unplug,
    unreadable,
    unrecorded,
    without_data,
    without_index,
)
from tests.doctor.stage import VARIABLES

FAILED, WARNING = Level.FAILED, Level.WARNING

BROKEN: list[tuple[str, Break, dict[str, Level], str]] = [
    (
        "rule gone",
        lambda p: (unplug(p), p["events"].delete_rule(Name=p.name("tick"))),
        {"rule": FAILED},
        "there is no rule",
    ),
    ("rule off", lambda p: p["events"].disable_rule(Name=p.name("tick")), {"rule": FAILED}, "is disabled"),
    ("other times", retimed, {"rule": FAILED}, "'rate(10 minutes)' instead of 'cron(8/10 * * * ? *)'"),
    ("no target", unplug, {"rule": FAILED}, "calls nothing instead of arn:aws:lambda"),
    (
        "notify off",
        lambda p: p["events"].disable_rule(Name=p.name("notify")),
        {"notify rule": FAILED},
        "is disabled: subscriptions get no messages",
    ),
    (
        "not let in",
        lambda p: p["lambda"].remove_permission(FunctionName=p.name("scheduler"), StatementId="rule"),
        {"rule": FAILED},
        "may not invoke minute8-test-scheduler",
    ),
    (
        "one tick lost",
        later("2026-11-21T03:29:40Z"),
        {"mark": WARNING},
        "about to be late: planned until 2026-11-21T03:30",
    ),
    ("late", later("2026-11-21T03:39:40Z"), {"mark": FAILED}, "(9 min ago), 2 ticks are missed"),
    (
        "nothing planned",
        no_mark,
        {"mark": WARNING, "time zones": Level.NOT_CHECKED, "sdk": Level.NOT_CHECKED},
        "nothing has been planned yet",
    ),
    ("window open", half_planned, {"unfinished planning": WARNING}, "has not finished its window"),
    ("shares left", half_divided, {"unfinished planning": WARNING}, "2 shares of the window"),
    ("registration cut off", cut_off, {"unfinished planning": WARNING}, "1 registrations were cut off"),
    (
        "unreadable group",
        unreadable,
        {"quarantine": FAILED},
        "group cron|Mars/Olympus|* * * * *#0: no such zone",
    ),
    ("bad entry", bad_entry, {"quarantine": WARNING}, "1 job cannot be planned: entry alice#report: [9]"),
    ("old zones", older_zones, {"time zones": WARNING}, "ticks plan by tzdata 2019a"),
    ("another SDK", other_sdk, {"sdk": WARNING}, "the last tick ran with botocore 1.40.4"),
    (
        "lost",
        unrecorded,
        {"without record": FAILED},
        "1 executions that were due have no record, the earliest of 2026-11-21T03:10:00Z",
    ),
    ("queue gone", deleted("queue", "executions"), {"queue executions": FAILED}, "there is no queue"),
    ("hidden too shortly", small_hidden_time, {"queue executions": FAILED}, "come back after 19 s"),
    (
        "wrong dead letters",
        elsewhere_dead,
        {"queue executions": FAILED},
        "instead of minute8-test-executions-dead",
    ),
    ("backlog", piled_up, {"queue executions": WARNING}, "1010 messages are due and wait for executor"),
    (
        "dead executions",
        dead("executions"),
        {"dead letters executions": FAILED},
        "1 message in",
    ),
    (
        "dead shares",
        dead("planning"),
        {"dead letters planning": FAILED},
        "1 message in",
    ),
    (
        "dead outcomes",
        dead("outcomes"),
        {"dead letters outcomes": FAILED},
        "1 message in",
    ),
    (
        "no dead-letter queue",
        deleted("queue", "planning-dead"),
        {"dead letters planning": FAILED},
        "there is no queue",
    ),
    (
        "nobody reads",
        deleted("mapping", "executor"),
        {"mapping executions": FAILED},
        "no event source mappings",
    ),
    (
        "reading is off",
        mapped("planner", Enabled=False),
        {"mapping planning": FAILED},
        "nothing reads the queue planning",
    ),
    (
        "small batches",
        mapped("outcomes", BatchSize=3),
        {"mapping outcomes": WARNING},
        "batches of 3 instead of 10",
    ),
    (
        "waits",
        mapped("executor", MaximumBatchingWindowInSeconds=5),
        {"mapping executions": WARNING},
        "waits 5 s",
    ),
    (
        "whole batches",
        mapped("executor", FunctionResponseTypes=[]),
        {"mapping executions": FAILED},
        "no ReportBatch",
    ),
    (
        "function gone",
        deleted("function", "outcomes"),
        {"function outcomes": FAILED, "permissions outcomes": FAILED},
        "there is no function minute8-test-outcomes",
    ),
    (
        "loops are stopped",
        lambda patient: patient.loops("Terminate"),
        {"function executor": FAILED},
        "its RecursiveLoop is not Allow",
    ),
    ("switched off", reserved("api", 0), {"function api": FAILED}, "reserved concurrency is 0"),
    (
        "reserved too little",
        reserved("executor", 4),
        {"function executor": WARNING},
        "its reserved concurrency is 4, and its queue starts up to 5 at once",
    ),
    (
        "old runtime",
        configured("planner", Runtime="python3.9"),
        {"function planner": WARNING},
        "runs on python3.9",
    ),
    (
        "shorter than believed",
        configured("executor", Timeout=10),
        {
            f"function {name}": FAILED
            for name in ("scheduler", "planner", "executor", "outcomes", "notifier", "api")
        },
        "takes the executor's time limit for 20 s, and it is 10 s",
    ),
    (
        "function failed",
        state("api", State="Failed", StateReason="no image"),
        {"function api": FAILED},
        "no image",
    ),
    ("function idle", state("api", State="Inactive"), {"function api": WARNING}, "it is inactive"),
    (
        "update failed",
        state("api", LastUpdateStatus="Failed"),
        {"function api": FAILED},
        "its last update failed",
    ),
    (
        "update under way",
        state("api", LastUpdateStatus="InProgress"),
        {"function api": WARNING},
        "update is under way",
    ),
    ("new account", lambda p: p.at_once(10), {"concurrency": WARNING}, "of its 10 only 10 are not reserved"),
    (
        "more than the account has",
        mapped("executor", ScalingConfig={"MaximumConcurrency": 990}),
        {"concurrency": WARNING},
        "can use 1005 of the account's concurrency at once",
    ),
    (
        "permission gone",
        lambda p: p.simulator.denied.add(("sqs:SendMessage", ":minute8-test-planning")),
        {f"permissions {function}": FAILED for function in ("scheduler", "planner", "executor", "api")},
        "may not sqs:SendMessage on arn:aws:sqs:us-east-1:123456789012:minute8-test-planning",
    ),
    (
        "index not readable",
        lambda p: p.simulator.denied.add(("dynamodb:Query", "table/minute8-test-runs/index/failures")),
        {"permissions api": FAILED, "permissions notifier": FAILED},
        "may not dynamodb:Query on",
    ),
    (
        "tenants may call Minute8",
        lambda p: p.simulator.allowed.add(("lambda:InvokeFunction", ":minute8-test-api")),
        {"permissions executor": FAILED},
        "tenants' jobs can call Minute8 itself",
    ),
    ("table gone", deleted("table", "tenants"), {"table tenants": FAILED}, "there is no table"),
    ("runs for ever", forever, {"table runs": FAILED}, "time to live is off"),
    ("failures not found", without_index, {"table runs": FAILED}, "its index failures is missing"),
    (
        "api fails",
        lambda p: setattr(p, "api_answers", 502),
        {"api": FAILED},
        "https://api.test/v1/openapi.json answers 502 Bad Gateway",
    ),
    (
        "api is not there",
        lambda p: setattr(p, "api_answers", httpx.ConnectError("no such host")),
        {"api": FAILED},
        "does not answer: no such host",
    ),
    (
        "api's address unknown",
        lambda p: setattr(p.stacks, "tells_url", False),
        {"api": Level.NOT_CHECKED},
        "does not tell the API's address",
    ),
    ("nobody told", deleted("bus", ""), {"event bus": FAILED}, "there is no event bus minute8-test"),
    ("no alarm", deleted("alarm", "no-tick"), {"alarms": WARNING}, "there is no alarm minute8-test-no-tick"),
    (
        "alarm",
        lambda p: p["cloudwatch"].set_alarm_state(
            AlarmName=p.name("no-tick"), StateValue="ALARM", StateReason="no datapoints"
        ),
        {"alarms": FAILED},
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
        {"stack": WARNING},
        "was rolled back",
    ),
    (
        "not made",
        lambda p: setattr(p.stacks, "status", "ROLLBACK_COMPLETE"),
        {"stack": FAILED},
        "ended as ROLLBACK",
    ),
    (
        "being deployed",
        lambda p: setattr(p.stacks, "status", "UPDATE_IN_PROGRESS"),
        {"stack": WARNING},
        "under way",
    ),
    (
        "deployed by a later version",
        at_version("9.0.0", *FUNCTIONS),
        {"version": WARNING},
        "the deployment's version is 9.0.0, this command's is",
    ),
    (
        "deployed before versions were told",
        at_version("", *FUNCTIONS),
        {"version": WARNING},
        "version is none, so it is before 0.2.0",
    ),
    (
        "half deployed",
        at_version("0.1.9", "executor"),
        {"version": FAILED},
        "the functions run different versions: ",
    ),
    (
        "two deployments",
        configured("executor", Environment={"Variables": VARIABLES | {"DEPLOYMENT": "0f0f"}}),
        {"version": FAILED},
        "the functions run different deployments: scheduler",
    ),
    (
        "rolled back, and called past the alias",
        rolled_back("executor"),
        {"version": WARNING, "mapping executions": FAILED},
        "executor run an earlier deployment than the stack's",
    ),
    (
        "without the masters of key pairs",
        lambda p: p["ssm"].delete_parameter(Name=parameter_name("test")),
        {"signing masters": WARNING},
        "existing ones cannot sign",
    ),
    (
        "by other means",
        lambda p: setattr(p.stacks, "status", ""),
        dict.fromkeys(("stack", "settings", "strangers", "api"), Level.NOT_CHECKED),
        "no stack",
    ),
]
