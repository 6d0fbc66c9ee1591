"""Manual commands in the terminal, and what the platform allows a tenant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import boto3
import pytest

from common.platform.tenants import Tenants
from common.runs.outcome import Outcome
from common.storage import aws, keys
from common.tenants.audit import Audit
from minute8.cli.commands import manual
from minute8.client import Client
from tests.cli.conftest import Desk
from tests.worlds import ARN, job

FAILS = Outcome(ok=False, permanent=True, error_type="Boom", error="it went wrong")


def test_run_now_retry_and_cancel(desk: Desk) -> None:
    world = desk.office.world
    desk.office.alice("PUT", "/v1/jobs/report", job(cron="*/5 * * * *"))
    world.target.answer = lambda event: FAILS
    started = desk("jobs", "run", "report", "--json").json
    world.deliver()
    assert desk("runs", "show", started["execution_id"], "--json").json["status"] == "failed"
    world.target.answer = lambda event: Outcome(ok=True)
    assert desk("runs", "retry", started["execution_id"]).out.endswith("is tried again\n")
    world.deliver()
    assert desk("runs", "show", started["execution_id"], "--json").json["status"] == "succeeded"
    assert desk("runs", "retry", started["execution_id"]).code == 4
    cancelled = desk("runs", "cancel", "alice:report:20261121T031500Z", "--note", "not today", "--json").json
    assert (cancelled["status"], cancelled["reason"]) == ("skipped", "cancelled")


def test_a_backfill_is_counted_and_then_started(desk: Desk) -> None:
    desk.office.alice("PUT", "/v1/jobs/report", job(cron="*/10 * * * *"))
    span = ("--from", "2026-11-21T00:00:00Z", "--to", "2026-11-21T01:00:00Z")
    assert desk("backfill", "report", *span, "--dry-run").out == "6 executions\n"
    started = desk("backfill", "report", *span, "--concurrency", "3", "--json").json
    assert (started["total"], started["sent"]) == (6, 3)
    assert desk("backfill", "report", "--from", "nonsense", "--to", "2026-11-21T01:00:00Z").code == 2


def test_a_cut_list_of_backfills_says_so(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.office.alice("PUT", "/v1/jobs/report", job(cron="*/10 * * * *"))
    span = ("--from", "2026-11-21T00:00:00Z", "--to", "2026-11-21T00:20:00Z")
    desk("backfill", "report", *span, "--json")
    uncut = desk("jobs", "backfills", "report")
    assert "of 2" in uncut.out and "more" not in uncut.err
    monkeypatch.setattr("minute8.cli.commands.manual.BACKFILLS_LISTED", 1)
    assert "minute8 runs list report --trigger backfill" in desk("jobs", "backfills", "report").err


def test_a_tenant_may_call_what_the_platform_allows(desk: Desk) -> None:
    stage = ("--stage", "test")
    assert desk("tenants", "create", "carol", "--allow-target", "*", *stage).code == 0
    assert desk("tenants", "edit", "carol", "--quota", "jobs=5", "--retention-days", "7", *stage).code == 0
    assert desk("tenants", "suspend", "carol", "--note", "unpaid", *stage).code == 0
    assert desk("tenants", "resume", "carol", *stage).code == 0
    carol = Tenants(desk.office.world.table("tenants")).get("carol")
    assert (carol.state, carol.allowed_targets, carol.quotas.jobs, carol.retention_days) == (
        "active",
        ["*"],
        5,
        7,
    )
    refused = desk("tenants", "edit", "alice", "--quota", "jobs=many", *stage)
    assert (refused.code, "jobs=many" in refused.err) == (2, True)


def test_dead_letters_are_sent_again_and_garbage_stays(
    on_moto: None, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    sqs = boto3.client("sqs", region_name="us-east-1")
    urls = {
        name: sqs.create_queue(QueueName=f"minute8-test-{name}")["QueueUrl"]
        for name in ("executions", "executions-dead")
    }
    monkeypatch.setattr(aws, "sqs", lambda: sqs)
    desk.office.alice("PUT", "/v1/jobs/report", job(at="2026-11-21T03:15:00Z"))
    (body,) = desk.office.world.sqs.bodies
    pack = f"{body}\n{body.replace('report', 'sync').replace('alice', 'bob')}"
    for text in (body, pack, "garbage"):
        sqs.send_message(QueueUrl=urls["executions-dead"], MessageBody=text)
    results = [
        (dead_letter["result"], dead_letter["what"])
        for dead_letter in desk("redrive", "--stage", "test", "--json").json
    ]
    execution_id = "alice:report:20261121T031500Z"
    assert ("moved", execution_id) in results and (
        "moved",
        f"{execution_id}, bob:sync:20261121T031500Z",
    ) in results
    assert "not an execution" in dict(results)["left"]
    moved = sqs.receive_message(
        QueueUrl=urls["executions"], MaxNumberOfMessages=10, AttributeNames=["MessageGroupId"]
    )["Messages"]
    groups = {message["Body"]: message["Attributes"]["MessageGroupId"] for message in moved}
    assert groups == {body: "alice", pack: "mixed:alice"}
    entries = Audit(desk.office.world.table("tenants")).newest(keys.OPERATORS, 100)
    (entry,) = [entry for entry in entries if entry.action == "dead_letters.redriven"]
    assert (entry.by, entry.subject, entry.after) == ("aws", "executions", {"moved": 2})
    (dead_letter,) = desk("redrive", "--stage", "test", "--dry-run", "--json").json
    assert dead_letter["result"] == "left" and "not an execution" in dead_letter["what"]
    done = desk("redrive", "--stage", "test", "--discard-garbage").out
    assert done.endswith("1 dead letters, 0 moved, 1 discarded\n")
    entries = Audit(desk.office.world.table("tenants")).newest(keys.OPERATORS, 100)
    afters = {entry.action: entry.after for entry in entries if entry.action.startswith("dead_letters.")}
    assert afters == {"dead_letters.redriven": {"moved": 2}, "dead_letters.discarded": {"discarded": 1}}


def test_run_now_waits_for_the_end_and_exits_with_it(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    world = desk.office.world
    monkeypatch.setattr("tests.cli.conftest.no_sleep", lambda _: world.deliver())
    desk("jobs", "create", "report", "--cron", "0 12 * * *", "--target", ARN, "--paused", "--note", "later")
    done = desk("jobs", "run", "report", "--wait", "--payload", '{"customer": 7}')
    assert (done.code, done.out.split()[-1]) == (0, "succeeded")
    world.target.answer = lambda event: FAILS
    failed = desk("jobs", "run", "report", "--wait")
    assert (failed.code, failed.out.strip().endswith("failed Boom: it went wrong")) == (1, True)
    monkeypatch.setattr("tests.cli.conftest.no_sleep", lambda _: None)
    slow = desk("jobs", "run", "report", "--wait", "--wait-for", "2")
    assert (slow.code, "has not ended: queued" in slow.out) == (1, True)

    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tests.cli.conftest.no_sleep", interrupt)
    interrupted = desk("jobs", "run", "report", "--wait")
    assert (interrupted.code, interrupted.err.startswith("it goes on; minute8 runs show alice:report:")) == (
        130,
        True,
    )


def test_run_now_does_not_believe_a_record_that_is_written_before_the_call(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, shown = desk.office.world, []

    def wait(seconds: float) -> None:
        world.clock.sleep(seconds)
        world.deliver()

    def refuses(event: Mapping[str, Any]) -> Outcome:
        name = event["minute8"]["execution_id"]
        run = desk("runs", "show", name, "--json").json
        shown.append((run["status"], run["attempts"][0]["outcome"], desk("runs", "list", "report").out))
        return FAILS

    monkeypatch.setattr("tests.cli.conftest.no_sleep", wait)
    desk.office.alice("PUT", "/v1/jobs/report", job(cron="0 12 * * *", invocation="Event"))
    world.target.answer = refuses
    failed = desk("jobs", "run", "report", "--wait")
    assert (failed.code, failed.out.strip().endswith("failed Boom: it went wrong")) == (1, True)
    ((status, outcome, listed),) = shown
    assert (status, outcome, "dispatching" in listed) == ("dispatching", "dispatching", True)
    world.target.answer = lambda event: Outcome(ok=True)
    began_at = world.clock.now()
    done = desk("jobs", "run", "report", "--wait")
    assert (done.code, done.out.split()[-1]) == (0, "dispatched")
    assert 14 <= world.clock.now() - began_at <= 18, "as long as the service may still refuse it"


def test_permits_says_who_has_one_and_who_waits(desk: Desk) -> None:
    concurrency = {"key": "crm", "limit": 1}
    for job_id in ("first", "second"):
        definition = job(at="2026-11-21T03:15:00Z", concurrency=concurrency, completion="callback")
        desk.office.alice("PUT", f"/v1/jobs/{job_id}", definition)
    desk.office.world.run_until("2026-11-21T03:16:00Z")
    shown = desk("runs", "permits", "crm", "--json").json
    (holder,), (waits,) = shown["holders"], shown["waiting"]
    assert {holder["job_id"], waits["job_id"]} == {"first", "second"}
    assert holder["since_at"] == "2026-11-21T03:15:00Z" and waits["since_at"].startswith("2026-11-21T03:15:0")
    lines = desk("runs", "permits", "crm").out.splitlines()
    assert [line.split()[:3] for line in lines[1:]] == [
        ["has", "one", holder["execution_id"]],
        ["waits", waits["execution_id"], "2026-11-21T03:15:00Z"],
    ]
    assert desk("runs", "permits", "other").out == "nobody has a permit\n"
    assert desk("runs", "permits", "no key").code == 2


def test_cancel_and_end_say_what_becomes_of_the_work(desk: Desk) -> None:
    world, answers = desk.office.world, []
    no_answer = Outcome(ok=False, error_type="TimedOut", error="no answer within 3 s", unanswered=True)

    def cancelled(event: Mapping[str, Any]) -> Outcome:
        answers.append(desk("runs", "cancel", event["minute8"]["execution_id"], "--note", "wrong file"))
        return no_answer

    desk.office.alice("PUT", "/v1/jobs/report", job(cron="* * * * *", overlap="skip", timeout_s=3))
    world.target.answer = cancelled
    world.run_until("2026-11-21T03:14:10Z")
    (answer,) = answers
    assert "is cancelled; nothing can tell its target, which may go on until 2026-11-21T03:28:1" in answer.out
    first, second = desk("runs", "list", "report", "--json").json[::-1]
    assert (first["status"], first["error_type"], second["reason"]) == ("failed", "StoppedByHand", "overlap")
    assert first["work_until"].startswith("2026-11-21T03:28:1")
    name = first["execution_id"]
    assert desk("runs", "end", name, "--yes").code == 5, "its key may write, but is no administrator's"
    desk.environment["MINUTE8_KEY"] = desk.office.new_key("alice", "admin")
    ended = desk("runs", "end", name, "--yes", "--note", "I looked")
    assert (ended.code, ended.out) == (0, f"{name} had ended before (failed); freed: overlap\n")
    desk.environment["MINUTE8_OPERATOR_KEY"] = desk.office.operator.key or ""
    again = desk("runs", "end", name, "--operator", "--yes")
    assert again.out == f"{name} had ended before (failed); it held nothing\n"
    world.target.answer = lambda event: Outcome(ok=True)
    world.run_until("2026-11-21T03:15:10Z")
    assert desk("runs", "list", "report", "--json").json[0]["status"] == "succeeded"
    actions = [entry.action for entry in Audit(world.table("tenants")).newest("alice", 100)]
    assert actions.count("run.ended") == 2


def test_fire_times_are_skipped_and_a_backfill_is_cancelled(desk: Desk) -> None:
    desk("jobs", "create", "report", "--cron", "*/10 * * * *", "--target", ARN)
    skipped = desk("jobs", "skip", "report", "--count", "2", "--note", "move").out
    assert skipped.splitlines()[1] == "2026-11-21T03:30:00Z skipped cancelled by hand: move"
    assert desk("jobs", "next", "report").out.count("skipped") == 2
    undone = desk("jobs", "unskip", "report").out
    assert undone == "2026-11-21T03:20:00Z runs\n2026-11-21T03:30:00Z runs\n"
    assert desk("jobs", "unskip", "report").out.startswith("nothing to undo: ")
    span = ("--from", "2026-11-21T00:00:00Z", "--to", "2026-11-21T01:00:00Z")
    started = desk("backfill", "report", *span, "--json").json
    cancelled = desk("jobs", "cancel-backfill", "report", started["backfill_id"], "--json").json
    assert cancelled["cancelled_at"] == "2026-11-21T03:12:00Z"


def test_many_at_once_are_counted_asked_and_done(desk: Desk) -> None:
    for name, tag in (("a", "red"), ("b", "red"), ("c", "blue")):
        desk("jobs", "create", name, "--cron", "0 12 * * *", "--target", ARN, "--tag", tag)
    assert desk("jobs", "pause-all", "--tag", "red", "--dry-run").out.split() == ["a", "b", "2", "jobs"]
    assert desk("jobs", "pause-all", "--tag", "red", stdin="n\n").code == 1
    assert desk("jobs", "list", "--state", "paused").out == "no jobs\n"
    assert (
        "2 jobs done, 0 refused" in desk("jobs", "pause-all", "--tag", "red", "--note", "move", "--yes").out
    )
    assert desk("jobs", "resume-all", "--all", "--json").json["done"] == 2
    desk.office.world.target.answer = lambda event: FAILS
    assert desk("jobs", "run-all", "--all", "--yes").out == "3 jobs done, 0 refused\n"
    desk.office.world.deliver()
    assert (
        desk("runs", "retry-all", "--since", "1h", "--tag", "blue", "--yes").out == "1 run done, 0 refused\n"
    )
    cancelled = desk("runs", "cancel-all", "--prefix", "c", "--note", "no", "--json")
    assert (cancelled.code, cancelled.json["done"]) == (0, 1)
    assert desk("jobs", "pause-all").code == 2
    assert desk("jobs", "delete-all").code == 2
    assert desk("jobs", "delete-all", "--tag", "red", stdin="n\n").code == 1
    assert desk("jobs", "delete-all", "--tag", "red", "--yes").out == "2 jobs done, 0 refused\n"
    assert desk("jobs", "list", "--json").json[0]["job_id"] == "c"


def test_a_function_that_may_run_longer_than_its_call_waits_is_said(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = desk.office.world.registry
    object.__setattr__(registry.limits, "function_timeout_s", lambda target: 900)
    options = ("--cron", "0 3 * * *", "--target", ARN, "--overlap", "skip", "--timeout", "3")
    created = desk("jobs", "create", "report", *options)
    assert "your function may run 900 s, timeout_s is 3: after a timeout others wait for it" in created.out
    assert desk("jobs", "show", "report", "--json").json["function_timeout_s"] == 900


def test_a_target_tells_the_end_of_its_run(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no key. What it told is repeated, while the run itself is `running` until the end is recorded."""

    def without_a_key(url: str, key: str) -> Client:
        assert (url, key) == ("https://api.test", "")
        return Client(url, key, transport=desk.transport)

    monkeypatch.setattr(manual, "Client", without_a_key)
    due, run = "2026-11-21T03:13:00Z", "alice:report:20261121T031300Z"
    desk.office.alice("PUT", "/v1/jobs/report", job(at=due, completion="callback"))
    desk.office.world.run_until(due)
    token = str(desk.office.world.target.calls[-1][1]["callback"]["token"])
    callback = ("--url", f"https://api.test/v1/runs/{run}/callback", "--token", token)
    assert desk("runs", "call-back", "running", *callback, "--percent", "40").out == f"{run} is running\n"
    ended = desk("runs", "call-back", "succeeded", *callback, "--text", "400 rows")
    assert (ended.code, ended.out) == (0, f"{run} is succeeded\n")
    desk.office.world.deliver()
    assert desk("runs", "show", run, "--json").json["status"] == "succeeded"
