"""Idempotency-Key: a repeated creation."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from common.storage.table import Query
from minute8.client import Client
from tests.api.calls import HandlerTransport, Office
from tests.worlds import job

DAY_S = 86_400
BODY = job(every="90m", tags=["a"])


def test_the_same_key_and_body_give_the_same_answer(office: Office) -> None:
    first = office.alice("POST", "/v1/jobs", BODY, Idempotency_Key='"one"')
    assert first.status == 201
    url = first.headers["location"]
    office.world.clock.sleep(3_000)
    office.alice("PATCH", url, {"tags": []})
    other_order = dict(reversed(BODY.items()))
    for key, body in (('"one"', BODY), ("one", BODY), ('"one"', other_order)):
        again = office.alice("POST", "/v1/jobs", body, Idempotency_Key=key)
        assert (again.status, again.text) == (201, first.text)
        assert {**again.headers} == {**first.headers}
    assert len(office.alice("GET", "/v1/jobs").json["jobs"]) == 1
    assert office.alice("GET", url).json["tags"] == []
    office.alice("DELETE", url)
    assert office.alice("POST", "/v1/jobs", BODY, Idempotency_Key='"one"').text == first.text
    assert office.alice("GET", "/v1/jobs").json["jobs"] == []


def recorded(office: Office) -> dict[str, Any]:
    [record] = office.world.table("jobs").query(Query("alice", sk_prefix="ONCE#"))
    return record


def test_the_record_is_small_however_large_the_job_is(office: Office) -> None:
    large = {**BODY, "payload": "x" * 100_000, "tags": [f"{n:02}{'t' * 60}" for n in range(10)]}
    first = office.alice("POST", "/v1/jobs", large, Idempotency_Key="one")
    assert len(json.dumps(recorded(office), default=str)) < 500
    office.alice("DELETE", first.headers["location"])
    assert office.alice("POST", "/v1/jobs", large, Idempotency_Key="one").text == first.text


def test_a_record_with_the_whole_job_is_read_as_before(office: Office) -> None:
    first = office.alice("POST", "/v1/jobs", BODY, Idempotency_Key="one")
    created = office.world.store.get("alice", first.json["job_id"])
    office.world.table("jobs").put(recorded(office) | {"job": created.to_item()})
    office.alice("PATCH", first.headers["location"], {"tags": []})
    assert office.alice("POST", "/v1/jobs", BODY, Idempotency_Key="one").text == first.text


@pytest.mark.parametrize("schedule", [{"cron": "H H * * *"}, {"at": "2026-11-22T03:00:00Z"}, {"every": "7m"}])
def test_a_repeated_creation_gets_the_first_answer(office: Office, schedule: dict[str, str]) -> None:
    """Its revision has changed since, and its first definition may be invalid now."""
    office.alice("PUT", "/v1/calendars/feasts", {"dates": []})
    body = job() | {"job_id": "report", "schedule": {**schedule, "exclude": {"calendars": ["feasts"]}}}
    office.alice("POST", "/v1/jobs", {"job_id": "report", **BODY})
    office.alice("DELETE", "/v1/jobs/report")
    office.world.clock.sleep(0.7)
    first = office.alice("POST", "/v1/jobs", body, Idempotency_Key="one")
    assert (first.status, first.json["revision"]) == (201, 3)
    office.alice("DELETE", "/v1/jobs/report")
    assert office.alice("DELETE", "/v1/calendars/feasts").status == 204
    office.world.clock.sleep(DAY_S - 100)
    again = office.alice("POST", "/v1/jobs", body, Idempotency_Key="one")
    assert (again.status, again.text) == (201, first.text)
    assert {**again.headers} == {**first.headers}


def test_with_an_id_of_the_clients(office: Office) -> None:
    body = {"job_id": "report", **BODY}
    first = office.alice("POST", "/v1/jobs", body, Idempotency_Key="one")
    assert office.alice("POST", "/v1/jobs", body, Idempotency_Key="one").text == first.text
    other = office.alice("POST", "/v1/jobs", body, Idempotency_Key="two")
    assert (other.status, other.problem) == (409, "already-exists")


def test_another_body_under_the_same_key_is_refused(office: Office) -> None:
    office.alice("POST", "/v1/jobs", BODY, Idempotency_Key="one")
    before = office.stored()
    for changed in ({**BODY, "tags": ["b"]}, {**BODY, "job_id": "report"}):
        refused = office.alice("POST", "/v1/jobs", changed, Idempotency_Key="one")
        assert (refused.status, refused.problem) == (422, "idempotency-key-reused")
        assert "'one'" in refused.json["detail"]
    assert office.stored() == before


def test_a_key_is_one_tenants_and_for_a_day(office: Office) -> None:
    first = office.alice("POST", "/v1/jobs", BODY, Idempotency_Key="one").json["job_id"]
    assert office.bob("POST", "/v1/jobs", {**BODY, "tags": []}, Idempotency_Key="one").status == 201
    office.world.clock.sleep(DAY_S - 1)
    assert office.alice("POST", "/v1/jobs", BODY, Idempotency_Key="one").json["job_id"] == first
    office.world.clock.sleep(1)
    second = office.alice("POST", "/v1/jobs", {**BODY, "tags": []}, Idempotency_Key="one")
    assert (second.status, second.json["job_id"] != first) == (201, True)
    assert len(office.alice("GET", "/v1/jobs").json["jobs"]) == 2


def test_a_refused_request_is_judged_again(office: Office) -> None:
    bad = {**BODY, "schedule": {"cron": "61 * * * *"}}
    assert office.alice("POST", "/v1/jobs", bad, Idempotency_Key="one").status == 400
    assert office.alice("POST", "/v1/jobs", BODY, Idempotency_Key="one").status == 201


@pytest.mark.parametrize("key", ["", '""', '"', "x" * 256, "a b", '"é"', "a,\tb", '"a', "a\\b", '"a";x=1'])
def test_an_invalid_idempotency_key_is_refused(office: Office, key: str) -> None:
    before = office.stored()
    refused = office.alice("POST", "/v1/jobs", BODY, Idempotency_Key=key)
    assert (refused.status, refused.json["errors"][0]["field"]) == (400, "Idempotency-Key")
    assert office.stored() == before


def test_a_request_under_way_is_asked_for_again(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    client = office.world.dynamodb
    commit, tries = client.transact_write_items, 0

    def blocked(TransactItems: list[dict[str, Any]], **_: Any) -> Any:
        """DynamoDB's answer while another transaction locks the record of the idempotency key."""
        nonlocal tries
        sks = [
            next(iter(write.values())).get("Item", {}).get("sk", {}).get("S", "") for write in TransactItems
        ]
        tries += any(sk.startswith("ONCE#") for sk in sks)
        if tries != 1:
            return commit(TransactItems=TransactItems)
        codes = ["TransactionConflict" if sk.startswith("ONCE#") else "None" for sk in sks]
        reasons = [{"Code": code} for code in codes]
        error = {"Error": {"Code": "TransactionCanceledException"}, "CancellationReasons": reasons}
        raise client.exceptions.TransactionCanceledException(error, "TransactWriteItems")

    monkeypatch.setattr(client, "transact_write_items", blocked)
    refused = office.alice("POST", "/v1/jobs", BODY, Idempotency_Key="one")
    assert (refused.status, refused.problem) == (409, "request-under-way")
    assert refused.headers["retry-after"] == "1"
    tries = 0
    with Client(
        "https://api.test", office.alice.key or "", transport=HandlerTransport(), sleep=lambda _: None
    ) as minute8:
        assert minute8.create_job(BODY)["revision"] == 1


@pytest.mark.parametrize("failure", [502, httpx.ReadTimeout("slow")])
def test_the_client_repeats_a_creation_whose_answer_was_lost(
    office: Office, failure: int | Exception
) -> None:
    class LosesOne(HandlerTransport):
        """The first request succeeds, and its answer is lost."""

        def handle_request(self, request: httpx.Request) -> httpx.Response:
            answer = super().handle_request(request)
            if len(self.requests) > 1:
                return answer
            if isinstance(failure, Exception):
                raise failure
            return httpx.Response(failure, request=request)

    transport = LosesOne()
    with Client(
        "https://api.test", office.alice.key or "", transport=transport, sleep=lambda _: None
    ) as minute8:
        first, two = minute8.create_job(BODY), minute8.create_job(BODY)
    assert [listed_job["job_id"] for listed_job in office.alice("GET", "/v1/jobs").json["jobs"]] == sorted(
        [first["job_id"], two["job_id"]]
    )
    assert len(transport.requests) == 3
