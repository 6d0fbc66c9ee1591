"""Secrets from a put to the call of a target, in simulated time."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from common.errors import Conflict, InvalidInput, NotFound
from common.registration.secret_store import SecretStore
from common.runs.outcome import Outcome
from executor.completion import complete_batch
from executor.secrets import JobSecrets
from tests.flows.test_outcomes import EXHAUSTED, Destination
from tests.worlds import World, job

MAX_TENANT_SECRETS = 100

KEY = ("alice", "job")
DUE, VALUE = "2026-11-21T03:15:00Z", "p4ss\"word\\ of 'alice'"


@pytest.fixture
def secret(world: World) -> World:
    world.secrets.put("alice", "token", VALUE, world.clock.now())
    world.secrets.put("bob", "token", "the value of bob", world.clock.now())
    return world


def payloads(world: World, outcome: Callable[[str], Outcome] = lambda _: Outcome(ok=True)) -> list[Any]:
    """What the target gets as its payload from now on; `outcome` makes its answer of the value."""
    seen: list[Any] = []

    def take(event: Mapping[str, Any]) -> Outcome:
        seen.append(json.loads(event["payload"]))
        return outcome(VALUE)

    world.target.answer = take
    return seen


def everything(world: World) -> str:
    """All that is stored, queued and published, as one text."""
    stored = [
        item
        for name in ("jobs", "due", "runs", "tenants", "audit")
        for item in world.dynamodb.scan(TableName=f"test-{name}")["Items"]
    ]
    return json.dumps([stored, world.sqs.bodies, world.events], default=str, ensure_ascii=False)


@pytest.mark.parametrize("invocation", ["RequestResponse", "Event"])
def test_the_target_gets_the_value_and_nothing_else_has_it(secret: World, invocation: str) -> None:
    seen = payloads(secret, lambda value: Outcome(ok=True, log_tail=f"got {value}", request_id=value))
    fields = job(at=DUE, payload={"a": "Bearer secret://token {{attempt}}"}, invocation=invocation)
    secret.registry.create(*KEY, fields)
    secret.run_until(DUE)
    assert seen == [{"a": f"Bearer {VALUE} 1"}]
    assert "p4ss" not in everything(secret)
    assert "secret://token" in everything(secret)


def test_an_error_that_repeats_the_value_is_recorded_without_it(secret: World) -> None:
    payloads(
        secret, lambda value: Outcome(ok=False, permanent=True, error_type=value, error=f"bad token {value}")
    )
    queue = "arn:aws:sqs:us-east-1:123456789012:letters"
    secret.registry.create(*KEY, job(at=DUE, payload="secret://token", dead_letter=queue))
    secret.run_until("2026-11-21T03:20:00Z")
    (run,) = secret.run_items(*KEY)
    attempt = run["attempts"][0]
    assert (attempt["error_type"], attempt["error"]) == ("secret://token", "bad token secret://token")
    assert "p4ss" not in everything(secret)


def test_an_error_that_nobody_foresaw_is_logged_without_it(
    secret: World, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(event: Mapping[str, Any]) -> Outcome:
        raise ValueError(f"cannot send {event['payload']}")

    secret.target.answer = fails
    secret.registry.create(*KEY, job(at=DUE, payload="secret://token", retry={"max_attempts": 1}))
    secret.run_until(DUE)
    assert "secret://token" in secret.run_items(*KEY)[0]["attempts"][0]["error"]
    (logged,) = [vars(record) for record in caplog.records if record.msg == "unforeseen error of a call"]
    assert "secret://token" in logged["error"]
    assert "p4ss" not in f"{logged} {everything(secret)}"


def test_a_payload_of_one_run_and_a_patch_may_name_a_secret(secret: World) -> None:
    seen = payloads(secret)
    schedules = [{"cron": "15 3 * * *", "payload_patch": {"b": "secret://token"}}]
    secret.registry.create(*KEY, {**job(), "schedule": {"schedules": schedules}, "payload": {"a": 1}})
    secret.run_until(DUE)
    secret.manual.run_now(*KEY, "n", json.dumps(["secret://token"]))
    secret.run_until("2026-11-21T03:16:00Z")
    assert seen == [{"a": 1, "b": VALUE}, [VALUE]]
    with pytest.raises(InvalidInput, match="no such secret"):
        secret.manual.run_now(*KEY, "other", json.dumps(["secret://nobody"]))


def test_a_run_whose_secret_is_gone_fails_clearly_and_is_tried_again(secret: World) -> None:
    seen = payloads(secret)
    secret.registry.create(*KEY, job(at=DUE, payload="secret://token"))
    secret.table("tenants").delete({"pk": "alice", "sk": "SECRET#token"})
    secret.run_until(DUE)
    attempt = secret.run_items(*KEY)[0]["attempts"][0]
    assert (attempt["error_type"], attempt["error"]) == ("SecretMissing", "the tenant has no secret 'token'")
    secret.secrets.put("alice", "token", VALUE, secret.clock.now())
    secret.run_until("2026-11-21T03:30:00Z")
    assert (seen, secret.statuses(*KEY)) == ([VALUE], ["succeeded"])


def test_a_secret_that_kms_does_not_decrypt_costs_no_attempt(secret: World) -> None:
    seen, kms = payloads(secret), secret.secret_key.kms
    secret.registry.create(*KEY, job(at=DUE, payload="secret://token", retry={"max_attempts": 1}))
    kms.refuses = "ThrottlingException"
    secret.run_until("2026-11-21T03:15:30Z")
    (run,) = secret.run_items(*KEY)
    assert (run["status"], run["attempts"][0]["error_type"], seen) == ("retrying", "SecretNotRead", [])
    kms.refuses = ""
    secret.run_until("2026-11-21T03:40:00Z")
    assert (seen, secret.statuses(*KEY)) == ([VALUE], ["succeeded"])


def test_a_deployment_that_keeps_no_secrets_any_more_says_so(secret: World) -> None:
    seen = payloads(secret)
    secret.registry.create(*KEY, job(at=DUE, payload="secret://token"))
    known = secret.executor.calls.secrets
    object.__setattr__(secret.executor.calls, "secrets", JobSecrets(None, secret.clock))
    secret.run_until("2026-11-21T03:30:00Z")
    (run,) = secret.run_items(*KEY)
    assert (run["status"], run["attempts"][0]["error_type"], seen) == ("failed", "SecretsOff", [])
    object.__setattr__(secret.executor.calls, "secrets", known)
    secret.manual.retry("alice", "alice:job:20261121T031500Z")
    secret.run_until("2026-11-21T03:40:00Z")
    assert (secret.statuses(*KEY), seen) == (["succeeded"], [VALUE])
    store = SecretStore(secret.tables.tenants, secret.tables.jobs, None, secret.store.audited)
    with pytest.raises(Conflict, match="secretsKey is off"):
        store.put("alice", "token", "another value", secret.clock.now())
    assert [each.name for each in store.listed("alice")] == ["token"]


def test_values_that_make_a_payload_too_large_fail_the_run(secret: World) -> None:
    seen = payloads(secret)
    secret.secrets.put("alice", "large", "\x01" * 4_096, secret.clock.now())
    payload = ["secret://large"] * 10 + ["x" * 200]
    secret.registry.create(*KEY, job(at=DUE, payload=payload))
    secret.run_until(DUE)
    attempt = secret.run_items(*KEY)[0]["attempts"][0]
    assert (attempt["error_type"], seen) == ("PayloadTooLarge", [])


def test_what_a_function_says_later_is_not_kept(secret: World) -> None:
    """Only executors decrypt, and an outcome of an `Event` invocation comes to another function."""
    destination = Destination(secret)
    secret.registry.create(*KEY, job(at=DUE, payload="secret://token", invocation="Event"))
    secret.registry.create("alice", "plain", job(at=DUE, invocation="Event"))
    secret.run_until(DUE)
    secret.manual.run_now("alice", "plain", "n", '"secret://token"')
    secret.run_until("2026-11-21T03:16:00Z")
    response = {"errorType": "ValueError", "errorMessage": f"bad {VALUE}"}
    for nth in range(3):
        body = destination.record(EXHAUSTED, nth, responsePayload=response)
        assert destination.outcomes.complete(body) == "failed"
    errors = [
        run["attempts"][-1]["error"]
        for job_id in ("job", "plain")
        for run in secret.run_items("alice", job_id)
    ]
    assert sorted(error[:8] for error in errors) == ["bad p4ss", "not kept", "not kept"]
    assert [run["attempts"][-1]["error_type"] for run in secret.run_items(*KEY)] == ["ValueError"]


@pytest.mark.parametrize("change", ["put", "delete"])
def test_what_a_function_says_later_is_not_kept_if_the_job_has_changed(secret: World, change: str) -> None:
    destination = Destination(secret)
    secret.registry.create(*KEY, job(at=DUE, payload="secret://token", invocation="Event"))
    secret.run_until(DUE)
    if change == "delete":
        secret.store.delete(*KEY)
    else:
        secret.registry.put(*KEY, job(cron="0 9 * * *", invocation="Event"))
    response = {"errorType": "ValueError", "errorMessage": f"bad {VALUE}"}
    assert destination.outcomes.complete(destination.record(EXHAUSTED, responsePayload=response)) == "failed"
    assert "p4ss" not in everything(secret)


def test_a_record_of_an_unknown_version_is_not_repeated(
    secret: World, caplog: pytest.LogCaptureFixture
) -> None:
    body = json.dumps({"requestPayload": {"payload": VALUE}, "version": "2.0"})
    message = {"messageId": "m", "body": body}
    assert complete_batch(Destination(secret).outcomes, [message])[1] == ["m"]
    assert "p4ss" not in str([vars(record) for record in caplog.records])


def test_a_secret_that_jobs_name_stays(secret: World) -> None:
    now = secret.clock.now()
    for number in range(5):
        secret.registry.create("alice", f"job{number}", job(cron="0 9 * * *", payload="secret://token"))
    with pytest.raises(Conflict, match="named by jobs: job0, job1, job2; change them"):
        secret.secrets.delete("alice", "token", now)
    for number in range(5):
        secret.store.delete("alice", f"job{number}")
    secret.secrets.delete("alice", "token", now)
    with pytest.raises(NotFound):
        secret.secrets.delete("alice", "token", now)
    assert [each.name for each in secret.secrets.listed("bob")] == ["token"]


def test_how_many_secrets_a_tenant_has(secret: World) -> None:
    now = secret.clock.now()
    for number in range(MAX_TENANT_SECRETS - 1):
        secret.secrets.put("alice", f"s{number}", "some value", now)
    encrypted = len(secret.secret_key.kms.encrypted)
    with pytest.raises(Conflict, match="there are 100 secrets"):
        secret.secrets.put("alice", "more", "some value", now)
    assert len(secret.secret_key.kms.encrypted) == encrypted
    assert secret.secrets.put("alice", "s1", "another value", now + 5).revision == 2
    assert secret.secrets.put("bob", "more", "some value", now).revision == 1


def test_the_audit_says_who_and_not_what(secret: World) -> None:
    now = secret.clock.now()
    secret.secrets.put("alice", "token", "a second value", now + 1)
    secret.secrets.delete("alice", "token", now + 2)
    entries = [
        (entry.action, entry.subject, entry.before, entry.after)
        for entry in secret.store.audited.audit.newest("alice", 10)
    ]
    assert entries == [
        ("secret.deleted", "token", {"revision": 2}, {}),
        ("secret.stored", "token", {"revision": 1}, {"revision": 2}),
        ("secret.stored", "token", {}, {"revision": 1}),
    ]
