"""The audit over HTTP: an entry for each change, and who may read which."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest

from common.errors import Busy
from common.planning.execution import Execution
from common.platform.api_keys import hash_of
from common.platform.signing_masters import Masters, StoredMasters
from common.runs.outcome import Outcome
from minute8.api import handler
from tests.api.calls import Caller, Office
from tests.api.walk import BODIES, Call, calls_of_document
from tests.worlds import ARN, at, job

# POST, but it changes nothing, or only what is derived from the runs.
NO_CHANGE = {
    "/v1/schedules/preview",
    "/v1/tenants/{tenant_id}/check",
    "/v1/tenants/{tenant_id}/projection",
}
CHANGES = [
    call for call in calls_of_document() if call.method not in ("GET", "HEAD") and call.path not in NO_CHANGE
]


@pytest.fixture
def busy(office: Office) -> Office:
    """What every call of the walk needs."""
    office.world.target.answer = lambda event: Outcome(
        ok=event["minute8"]["job_id"] != "fails", permanent=True, error_type="Boom", error="it went wrong"
    )
    office.alice("PUT", "/v1/jobs/report", job(every=10))
    office.alice("PUT", "/v1/jobs/fails", job(at="2026-11-21T03:12:30Z"))
    office.alice("PUT", "/v1/calendars/holidays", {"dates": ["2026-12-25"]})
    office.alice("PUT", "/v1/subscriptions/holidays", BODIES["NewSubscription"])
    office.dead_letters.put("executions-dead", office.world.sqs.bodies[0])
    fire_at = at("2026-11-21T03:10:00Z")
    office.world.unrecorded.add([Execution("alice", "lost", fire_at, fire_at, 1)], fire_at)
    office.world.run_until("2026-11-21T03:13:00Z")
    return office


def entries(caller: Caller, **query: Any) -> list[dict[str, Any]]:
    words = "&".join(f"{name}={value}" for name, value in query.items())
    page_of_entries = caller("GET", f"/v1/audit?{words}")
    assert page_of_entries.status == 200, page_of_entries.text
    return list(page_of_entries.json["entries"])


def written(office: Office) -> list[dict[str, Any]]:
    return [item for item in office.stored() if item["sk"]["S"].startswith("AUDIT#")]


@pytest.mark.parametrize("call", CHANGES, ids=str)
def test_every_change_is_written_down_with_who_made_it(busy: Office, call: Call) -> None:
    caller = busy.operator if call.role == "operator" else busy.alice_admin
    if call.path.endswith("/resume"):
        before_that = {"operator": "/v1/tenants/alice/suspend", "write": "/v1/jobs/report/pause"}
        assert caller("POST", before_that[call.role]).status == 200
    if "/backfills/" in call.path:
        past = {"start_at": "2026-11-21T00:00:00Z", "end_at": "2026-11-21T00:02:00Z", "backfill_id": "one"}
        assert caller("POST", "/v1/jobs/report/backfills", past).status < 300
    if call.path == "/v1/blocks/release":
        assert caller("POST", "/v1/blocks", {"pattern": "hooks.example.com"}).status == 200
    if (call.method, call.path) == ("DELETE", "/v1/jobs/{job_id}/skip"):
        assert caller("POST", "/v1/runs/alice:report:20261121T031900Z/cancel").status == 200
    if call.path == "/v1/runs/_all/cancel":
        assert caller("POST", "/v1/jobs/report/run").status == 202
    if (call.method, call.path.endswith("/mute")) == ("DELETE", True):
        assert caller("PUT", call.url, {}).status == 200
    if call.path == "/v1/secrets/{name}":
        assert caller("PUT", call.url, {"value": "a value of before"}).status == 201
    before = written(busy)
    answer = caller(call.method, call.url, call.body)
    assert answer.status < 300, answer.text
    (entry,) = [item for item in written(busy) if item not in before]
    key_id = hash_of(str(caller.key))[:16]
    if call.role == "operator":
        assert entry["by"]["S"] == f"operator:{key_id}"
    else:
        assert (entry["pk"]["S"], entry["by"]["S"]) == ("alice", key_id)
    assert float(entry["at"]["N"]) == busy.world.clock.now()


def test_a_refused_change_leaves_no_entry(busy: Office) -> None:
    before = written(busy)
    for method, url, body in (
        ("PUT", "/v1/jobs/report", {"schedule": {"cron": "61 * * * *"}}),
        ("POST", "/v1/runs/alice:report:20261121T031250Z/retry", None),
        ("POST", "/v1/runs/alice:report:20261121T031250Z/cancel", None),
        ("DELETE", "/v1/calendars/nothing", None),
    ):
        assert busy.alice(method, url, body).status >= 400
    assert written(busy) == before


def test_an_entry_has_the_values_before_and_after(office: Office) -> None:
    for method, path, body in (
        ("PUT", "", job(every=60, payload="x" * 2_000)),
        ("PATCH", "", {"timeout_s": 7}),
        ("POST", "/pause", {"note": "maintenance"}),
        ("DELETE", "", None),
    ):
        office.alice(method, f"/v1/jobs/report{path}", body)
        office.world.clock.sleep(1)
    deleted, paused, changed, created = entries(office.alice_admin, subject="report")
    assert [entry["action"] for entry in (created, changed, paused, deleted)] == [
        "job.created",
        "job.changed",
        "job.paused",
        "job.deleted",
    ]
    assert (created["before"], created["after"]["target"]["arn"]) == ({}, ARN)
    assert created["after"]["payload"].keys() == {"hmac"}
    assert (changed["before"]["timeout_s"], changed["after"]["timeout_s"]) != (7, 7)
    assert changed["after"] == {"revision": 2, "timeout_s": 7}
    assert paused["after"] == {"revision": 3, "state": "paused", "note": "maintenance"}
    assert (deleted["before"]["note"], deleted["after"]) == ("maintenance", {})
    assert created["at"] == "2026-11-21T03:12:00Z"


def test_no_entry_holds_a_value_of_a_header_a_payload_or_a_password(office: Office) -> None:
    def definition(word: str) -> dict[str, Any]:
        headers = {"authorization": f"Bearer {word}", "accept": "text/plain"}
        target = {"kind": "http", "url": "https://example.com/hook", "headers": headers}
        parts = [{"every": 3_600}, {"every": 7_200, "payload_patch": {"token": word}}]
        return {"schedule": {"schedules": parts}, "target": target, "payload": {"token": word}}

    for word in ("first-word", "second-word", "first-word"):
        answer = office.alice("PUT", "/v1/jobs/report", definition(word))
        assert answer.status < 300, answer.text
        office.world.clock.sleep(1)
    stored = json.dumps(written(office))
    assert "first-word" not in stored and "second-word" not in stored
    again, changed, created = entries(office.alice_admin, subject="report")
    headers = changed["after"]["target"]["headers"]
    assert headers["authorization"]["hmac"] != changed["before"]["target"]["headers"]["authorization"]["hmac"]
    assert headers["accept"] == changed["before"]["target"]["headers"]["accept"]
    assert again["after"]["payload"] == created["after"]["payload"] == changed["before"]["payload"]
    assert again["after"]["payload"]["hmac"].startswith("1:")


def test_no_entry_holds_a_credential_in_a_url_or_a_name(office: Office) -> None:
    definition = {
        **job(every=3_600),
        "target": {"kind": "http", "url": "https://example.com/?a=1&token=hunter1"},
        "name": "Bearer hunter2",
        "owner": "sk-hunter3hunter3hunter3",
        "runbook": "https://ops:hunter4@example.com/?api_key=hunter5",
    }
    assert office.alice("PUT", "/v1/jobs/report", definition).status == 201
    (created,) = entries(office.alice_admin, subject="report")
    assert created["after"]["target"]["url"] == "https://example.com/?a=1&token=…"
    assert "hunter" not in json.dumps(written(office))


def test_without_a_key_an_entry_names_what_changed_alone(office: Office) -> None:
    handler._services().parts["masters"] = StoredMasters(lambda: None)
    office.alice("PUT", "/v1/jobs/report", job(every=60, payload="first-word"))
    office.world.clock.sleep(1)
    office.alice("PATCH", "/v1/jobs/report", {"payload": "second-word"})
    changed = entries(office.alice_admin, subject="report")[0]
    assert (changed["before"]["payload"], changed["after"]["payload"]) == ({"hmac": None}, {"hmac": None})


def test_a_change_does_not_wait_again_for_a_key_that_cannot_be_read() -> None:
    reads: list[int] = []

    def read() -> str | None:
        reads.append(1)
        raise Busy("SSM does not answer")

    masters = StoredMasters(read)
    assert [masters.hmac_of("text", now) for now in (0, 1, 59, 61)] == [None] * 4
    assert len(reads) == 2


def test_a_payload_cannot_ask_for_the_secret_of_a_key_pair() -> None:
    masters = Masters.rotated(None)
    pair = masters.new_access_key_id()
    hashed = masters.hmac_of(pair).partition(":")[2]
    secret = base64.urlsafe_b64encode(bytes.fromhex(hashed)).decode().rstrip("=")
    assert masters.secret_of(pair) not in (None, secret)


def test_manual_commands_are_audited(busy: Office) -> None:
    busy.alice("POST", "/v1/jobs/report/run", {"nonce": "one"})
    busy.alice("POST", "/v1/jobs/report/run", {"nonce": "one"})
    busy.alice("POST", "/v1/runs/alice:fails:20261121T031230Z/retry")
    busy.alice("POST", "/v1/runs/alice:fails:20261121T031230Z/retry")
    busy.alice("POST", "/v1/runs/alice:report:20261121T031900Z/cancel", {"note": "not today"})
    past = {"start_at": "2026-11-21T00:00:00Z", "end_at": "2026-11-21T00:02:00Z", "backfill_id": "two"}
    busy.alice("POST", "/v1/jobs/report/backfills", past)
    of_report = entries(busy.alice_admin, subject="report")[:3]
    assert {entry["action"]: entry["after"] for entry in of_report} == {
        "job.backfilled": {
            "backfill_id": "two",
            "start_at": "2026-11-21T00:00:00Z",
            "end_at": "2026-11-21T00:02:00Z",
            "total": 12,
        },
        "run.cancelled": {"execution_id": "alice:report:20261121T031900Z", "note": "not today"},
        "job.run": {"execution_id": "alice:report:20261121T031300Z:m-one"},
    }
    (retried,) = entries(busy.alice_admin, action="run.retried")
    assert (retried["subject"], retried["after"]) == (
        "fails",
        {"execution_id": "alice:fails:20261121T031230Z"},
    )


def test_no_entry_holds_a_secret(office: Office) -> None:
    secrets = {office.alice_admin("GET", "/v1/webhook-secret").json["secret"] for _ in range(2)}
    secrets.add(office.alice_admin("POST", "/v1/webhook-secret/rotate").json["secret"])
    page_of_entries = entries(office.alice_admin, action="webhook_secret")
    assert {entry["action"] for entry in page_of_entries} == {"webhook_secret.made", "webhook_secret.rotated"}
    assert len(page_of_entries) == len(secrets) == 2
    assert not [secret for secret in secrets if secret.removeprefix("whsec_") in str(written(office))]


def test_pages_newest_first_whatever_is_asked_for(office: Office) -> None:
    for n in range(7):
        office.alice("PUT", f"/v1/jobs/{'ab'[n % 2]}", job(every=60 + n))
        office.world.clock.sleep(60)
    all_entries = entries(office.alice_admin, action="job")
    assert [entry["subject"] for entry in all_entries] == ["a", "b", "a", "b", "a", "b", "a"]
    assert [entry["at"] for entry in all_entries] == sorted(
        (entry["at"] for entry in all_entries), reverse=True
    )
    for query, expected in (
        ("action=job", all_entries),
        ("subject=b", [entry for entry in all_entries if entry["subject"] == "b"]),
        ("action=job.created", all_entries[-2:]),
        ("from_at=2026-11-21T03:14:00Z&until_at=2026-11-21T03:16:00Z", all_entries[-4:-2]),
        ("action=job&until_at=2026-11-21T03:14:00Z", all_entries[-2:]),
        ("from_at=2026-11-21T03:18:00Z", all_entries[:1]),
        ("from_at=2026-11-21T03:19:00Z", []),
        ("from_at=2026-11-21T03:14:00Z&until_at=2026-11-21T03:14:00Z", []),
        ("from_at=2199-01-01T00:00:00Z", []),
        ("until_at=1971-01-01T00:00:00Z", []),
    ):
        page_of_entries: list[dict[str, Any]] = []
        cursor = ""
        for _ in range(10):
            page = office.alice_admin("GET", f"/v1/audit?{query}&limit=2{cursor}").json
            assert len(page["entries"]) <= 2
            page_of_entries += page["entries"]
            if page["next_cursor"] is None:
                break
            cursor = f"&cursor={page['next_cursor']}"
        assert page_of_entries == expected, query


@pytest.mark.parametrize("bound", ["0", "~~~", "9999999999999-zzzz", "JOB", "a#b"])
def test_a_cursor_made_by_hand_leads_nowhere_else(office: Office, bound: str) -> None:
    office.alice("PUT", "/v1/jobs/one", job(every=60))
    office.alice("PUT", "/v1/jobs/two", job(every=60))
    cursor = office.alice_admin("GET", "/v1/audit?limit=1").json["next_cursor"]
    scope, _ = json.loads(base64.urlsafe_b64decode(cursor + "=="))
    forged = base64.urlsafe_b64encode(json.dumps([scope, bound]).encode()).decode().rstrip("=")
    page_of_entries = entries(office.alice_admin, cursor=forged)
    assert {entry["subject"] for entry in page_of_entries} <= {
        entry["subject"] for entry in entries(office.alice_admin)
    }
    assert office.bob("GET", f"/v1/audit?cursor={forged}").status == 400


def test_a_tenant_sees_its_own_audit_alone(office: Office) -> None:
    office.alice("PUT", "/v1/jobs/report", job(every=60))
    office.bob("PUT", "/v1/jobs/bobs", job(every=60))
    assert {entry["subject"] for entry in entries(office.bob, action="job")} == {"bobs"}
    assert {entry["subject"] for entry in entries(office.alice_admin, action="job")} == {"report"}
    cursor = office.alice_admin("GET", "/v1/audit?limit=1").json["next_cursor"]
    assert office.bob("GET", f"/v1/audit?limit=1&cursor={cursor}").status == 400


def test_changes_of_the_platform_are_in_the_tenants_audit(office: Office) -> None:
    (created,) = entries(office.alice_admin, action="tenant")
    assert (created["action"], created["by"]) == ("tenant.created", "aws")


@pytest.mark.parametrize("query", ["subject=" + "x" * 201, "action=" + "x" * 201, "from_at=soon", "by=me"])
def test_an_invalid_query_of_the_audit_is_refused(office: Office, query: str) -> None:
    refused = office.alice_admin("GET", f"/v1/audit?{query}")
    assert (refused.status, refused.problem) == (400, "invalid-input")


def test_an_entry_names_its_key(office: Office) -> None:
    named = office.new_key("alice", "admin", name="laptop")
    Caller(named)("PUT", "/v1/jobs/report", job(cron="0 12 * * *"))
    office.alice("PUT", "/v1/jobs/other", job(cron="0 12 * * *"))
    by = {entry["subject"]: entry.get("by_name") for entry in entries(office.alice_admin, action="job")}
    assert by == {"report": "laptop", "other": None}
    office.operator("POST", "/v1/tenants/alice/suspend", {"note": "unpaid"})
    (entry,) = entries(office.alice_admin, action="tenant.suspended")
    assert "by_name" not in entry, "a tenant does not see the names of the platform's keys"


def test_a_request_of_aws_is_named_with_its_source(office: Office, aws: Callable[..., Any]) -> None:
    client = aws()
    client.create_schedule_group(Name="billing")
    client.create_schedule(
        Name="a",
        GroupName="billing",
        ScheduleExpression="rate(1 day)",
        FlexibleTimeWindow={"Mode": "OFF"},
        Target={"Arn": ARN, "RoleArn": "arn:aws:iam::123456789012:role/r"},
    )
    client.delete_schedule(Name="a", GroupName="billing")
    office.alice("PUT", "/v1/jobs/own", job(every=60))
    entries = office.alice_admin("GET", "/v1/audit").json["entries"]
    requests = {entry["action"]: entry.get("request") for entry in entries}
    address = {"source_address": "192.0.2.1"}
    assert requests["group.created"] == {"operation": "scheduler:CreateScheduleGroup", **address}
    assert requests["job.deleted"] == {"operation": "scheduler:DeleteSchedule", **address}
    created = {e["subject"]: e.get("request") for e in entries if e["action"] == "job.created"}
    assert created == {"own": None, "billing..a": {"operation": "scheduler:CreateSchedule", **address}}
