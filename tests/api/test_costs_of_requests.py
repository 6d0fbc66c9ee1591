"""A request is weighed by what it costs, and its tenant alone pays: at the API and at EventBridge's endpoint."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from botocore.exceptions import ClientError

from common.platform.request_rate import RequestRate
from common.storage import keys
from common.storage.table import Table
from tests.api.aws_schedules import refusal, schedule
from tests.api.calls import Office
from tests.worlds import job

MAX_DEBT_S = 300
PROCESSOR_S = 0.05

QUOTA = 100
JOBS = 400
# Each job takes 4 KiB: an export costs over 400 units, which count as over 40 requests.
LARGE = {
    "note": "x" * 500,
    "tags": [f"{n:02}" + "t" * 60 for n in range(20)],
    "schedule": {
        "cron": "0 3 * * *",
        "exclude": {"dates": [f"2027-{1 + n % 12:02}-{1 + n // 12:02}" for n in range(150)]},
    },
}


@pytest.fixture
def exported(office: Office) -> Office:
    """alice has many large jobs and a small quota; bob has the same quota."""
    for first in range(0, JOBS, 100):
        lines = tuple({"job_id": f"job-{first + n:03}", **job(**LARGE)} for n in range(100))
        assert office.alice("POST", "/v1/jobs/_bulk", lines).status == 200
    for tenant in ("alice", "bob"):
        office.operator("PATCH", f"/v1/tenants/{tenant}", {"quotas": {"requests_per_minute": QUOTA}})
    office.world.clock.sleep(MAX_DEBT_S)
    return office


def used_of(office: Office, tenant: str) -> float:
    """How many requests of its quota the tenant has used, reserved ones included."""
    item = office.world.table("tenants").get(keys.request_rate(tenant)) or {"used_until_us": 0}
    return max(0.0, (item["used_until_us"] / 1e6 - office.world.clock.now() + 60) * QUOTA / 60)


def test_exports_are_throttled_by_what_they_read(exported: Office) -> None:
    """A hostile tenant reads everything, again and again. Another tenant sends its whole quota meanwhile."""
    statuses = [exported.alice("GET", "/v1/jobs/_export").status for _ in range(10)]
    throttled = statuses.index(429)
    assert statuses == [200] * throttled + [429] * (10 - throttled)
    assert throttled in (2, 3), "each counts as some 40 of 100 requests"
    refused = exported.alice("GET", "/v1/tenant")
    wait_s = int(refused.headers["retry-after"])
    assert 1 <= wait_s <= MAX_DEBT_S
    assert [exported.bob("GET", "/v1/tenant").status for _ in range(QUOTA + 1)] == [200] * QUOTA + [429]
    exported.world.clock.sleep(wait_s)
    assert exported.alice("GET", "/v1/tenant").status == 200


def test_one_export_overdraws_and_the_next_request_waits(exported: Office) -> None:
    exported.operator("PATCH", "/v1/tenants/alice", {"quotas": {"requests_per_minute": 10}})
    exported.world.clock.sleep(MAX_DEBT_S)
    assert exported.alice("GET", "/v1/jobs/_export").status == 200
    wait_s = int(exported.alice("GET", "/v1/tenant").headers["retry-after"])
    assert 120 < wait_s < MAX_DEBT_S, "40 requests of 10 a minute"
    exported.world.clock.sleep(wait_s - 1)
    assert exported.alice("GET", "/v1/tenant").status == 429
    exported.world.clock.sleep(1)
    assert exported.alice("GET", "/v1/tenant").status == 200


def test_the_endpoint_of_eventbridge_charges_and_refuses_alike(
    exported: Office, aws: Callable[..., Any]
) -> None:
    alice, bob = aws("alice"), aws("bob")
    for n in range(3):
        alice.create_schedule(**schedule(Name=f"s{n}"))
    exported.world.clock.sleep(60)
    answered = 0
    while answered < 10:
        try:
            alice.list_schedules(NamePrefix="nobody")
        except alice.exceptions.ClientError as error:
            response = error.response
            break
        answered += 1
    assert 1 <= answered <= 4
    assert response["Error"]["Code"] == "ThrottlingException"
    headers = response["ResponseMetadata"]["HTTPHeaders"]
    wait_s = int(headers["retry-after"])
    assert 1 <= wait_s <= MAX_DEBT_S
    assert refusal(alice.get_schedule, Name="s1")[:2] == (429, "ThrottlingException")
    bob.list_schedules()
    exported.world.clock.sleep(wait_s)
    alice.get_schedule(Name="s1")


def test_processor_time_is_charged(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    office.operator("PATCH", "/v1/tenants/alice", {"quotas": {"requests_per_minute": QUOTA}})
    office.world.clock.sleep(60)
    seconds = count()
    monkeypatch.setattr(office.world.clock, "thread_s", lambda: next(seconds) * 30 * PROCESSOR_S)
    statuses = [office.alice("GET", "/v1/tenant").status for _ in range(5)]
    assert statuses == [200] * 4 + [429], "each takes the time of thirty requests"


NORMAL: list[tuple[str, str, Any]] = [
    ("PUT", "/v1/jobs/report", job(cron="0 3 * * *")),
    ("GET", "/v1/jobs/report", None),
    ("GET", "/v1/jobs?limit=50", None),
    ("GET", "/v1/jobs/report/next", None),
    ("GET", "/v1/jobs/report/runs", None),
    ("POST", "/v1/jobs/report/pause", None),
    ("POST", "/v1/jobs/report/resume", None),
    ("GET", "/v1/tenant", None),
    ("POST", "/v1/schedules/preview", {"schedule": {"cron": "0 3 * * *"}}),
    ("DELETE", "/v1/jobs/report", None),
]


def test_a_normal_request_is_charged_nothing_more_and_writes_nothing_more(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    office.alice("PUT", "/v1/jobs/other", job(cron="0 3 * * *"))
    charged: list[int] = []
    charge = RequestRate.charge
    monkeypatch.setattr(
        RequestRate, "charge", lambda self, *words: (charged.append(words[-1]), charge(self, *words))
    )
    writes: list[str] = []
    update = Table.update
    monkeypatch.setattr(
        Table, "update", lambda self, key, *words: (writes.append(key["sk"]), update(self, key, *words))[1]
    )
    office.world.clock.sleep(60)
    for method, url, body in NORMAL:
        assert office.alice(method, url, body).status < 300, url
    assert sum(charged) == 0
    assert writes.count("RATE") == 1, "one reservation"


@pytest.mark.parametrize("kilobytes", [1, 100])
def test_a_write_counts_by_its_size(office: Office, kilobytes: int) -> None:
    """A normal quota reserves 60 requests at a time, so a small one is used here."""
    office.operator("PATCH", "/v1/tenants/alice", {"quotas": {"requests_per_minute": QUOTA}})
    office.world.clock.sleep(60)
    sent = {**job(cron="0 3 * * *"), "payload": "x" * 1_000 * kilobytes}
    assert office.alice("PUT", "/v1/jobs/report", sent).status == 201
    assert used_of(office, "alice") == pytest.approx(1 if kilobytes == 1 else 5, abs=1)


def test_a_charge_that_fails_leaves_the_answer_as_it_is(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise OSError("no table")

    monkeypatch.setattr(RequestRate, "settle", fails)
    assert office.alice("PUT", "/v1/jobs/report", job(cron="0 3 * * *")).status == 201
    assert office.alice("GET", "/v1/jobs/nothing").problem == "not-found"


def test_operators_and_unknown_callers_are_charged_nothing(office: Office) -> None:
    before = used_of(office, "alice")
    assert office.operator("GET", "/v1/tenants").status == 200
    assert {caller("GET", "/v1/jobs").status for caller in office.nobody.values()} == {401}
    assert used_of(office, "alice") == before


def test_a_throttled_partition_is_the_tenant_s_alone_and_said_at_both_doors(
    office: Office, aws: Callable[..., Any]
) -> None:
    """alice's jobs take no more reads. bob's requests succeed, and so do alice's that read no job."""
    world, alice, bob = office.world, aws("alice"), aws("bob")
    query = world.dynamodb.query

    def throttled(**request: Any) -> Any:
        if request["ExpressionAttributeValues"][":pk"] == {"S": "alice"}:
            error: Any = {"Error": {"Code": "ProvisionedThroughputExceededException", "Message": "later"}}
            raise ClientError(error, "Query")
        return query(**request)

    world.dynamodb.query = throttled
    refused = office.alice("GET", "/v1/jobs")
    assert (refused.status, refused.problem, refused.headers["retry-after"]) == (503, "busy", "1")
    assert refusal(alice.list_schedules)[:2] == (429, "ThrottlingException")
    assert office.bob("GET", "/v1/jobs").status == 200
    bob.list_schedules()
    assert office.alice("GET", "/v1/tenant").status == 200


def test_a_search_costs_the_same_whatever_the_payloads_are(
    office: Office, aws: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At both doors. Each of alice's payloads takes 25 read units; a small job takes a twentieth of one."""
    for caller, payload in ((office.alice, "x" * 100_000), (office.bob, "x")):
        for n in range(20):
            sent = {**job(cron="0 3 * * *"), "payload": payload}
            assert caller("PUT", f"/v1/jobs/job-{n}", sent).status == 201
    units: list[float] = []
    monkeypatch.setattr(RequestRate, "settle", lambda _, meter, now: units.append(meter.read_units))
    for caller in (office.alice, office.bob):
        assert caller("GET", "/v1/jobs?tag=nobody").json["jobs"] == []
    for tenant in ("alice", "bob"):
        aws(tenant).list_schedules(NamePrefix="nobody")
    assert units[0] == pytest.approx(units[1], abs=3)
    assert units[2] == pytest.approx(units[3], abs=3)
