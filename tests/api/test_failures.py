"""Failed runs by job and error, and their filters; bounded pages whose groups add up."""

from __future__ import annotations

import json
from typing import Any

import pytest

from common.history import failed_runs
from common.history.failed_runs import fingerprint
from common.runs.outcome import Outcome
from minute8.api.http.paging import write_cursor
from minute8.client import Client
from tests.api.calls import HandlerTransport, Office
from tests.worlds import job


def failing(office: Office) -> None:
    """`bills` fails with a number that differs, `mail` with two errors in turn; both each minute."""
    world = office.world
    counts = {"bills": 0, "mail": 0}

    def answer(event: object) -> Outcome:
        job_id = event["minute8"]["job_id"]  # type: ignore[index]
        counts[job_id] += 1
        n = counts[job_id]
        texts = {
            "bills": f"no customer {n} in 3f2504e0-4f89-11d3-9a0c-0305e82c33{n:02}\nline {n}",
            "mail": ("timed out", "refused")[n % 2],
        }
        return Outcome(ok=False, permanent=True, error_type="Boom", error=texts[job_id])

    world.target.answer = answer
    office.alice("PUT", "/v1/jobs/bills", job(cron="* * * * *", tags=["money"]))
    office.alice("PUT", "/v1/jobs/mail", job(cron="* * * * *"))
    world.run_until("2026-11-21T03:18:30Z")


def test_failures_by_job_and_error(office: Office) -> None:
    failing(office)
    answered = office.alice_reads("GET", "/v1/failures/groups").json
    counts = {
        (group["job_id"], group["error"].partition("\n")[0]): group["count"] for group in answered["groups"]
    }
    assert counts == {
        ("bills", "no customer 6 in 3f2504e0-4f89-11d3-9a0c-0305e82c3306"): 6,
        ("mail", "timed out"): 3,
        ("mail", "refused"): 3,
    }
    (bills,) = [group for group in answered["groups"] if group["job_id"] == "bills"]
    assert (bills["first_at"], bills["last_at"]) == ("2026-11-21T03:13:00Z", "2026-11-21T03:18:00Z")
    assert bills["count"] == sum(hour["failed"] for hour in bills["hours"])
    assert bills["hours"][0]["at"] == "2026-11-21T03:00:00Z"
    assert bills["last_execution_id"] == "alice:bills:20261121T031800Z"
    assert office.bob("GET", "/v1/failures/groups").json["groups"] == []


def test_filters_of_the_list_and_of_the_groups(office: Office) -> None:
    failing(office)
    for query, count in (
        ("", 12),
        ("job_id=mail", 6),
        ("tag=money", 6),
        ("tag=none", 0),
        ("from_at=2026-11-21T03:16:00Z", 6),
        ("from_at=2026-11-21T03:16:00Z&tag=money", 3),
    ):
        assert len(office.alice("GET", f"/v1/failures?limit=200&{query}").json["runs"]) == count, query
        groups = office.alice("GET", f"/v1/failures/groups?{query}").json["groups"]
        assert sum(group["count"] for group in groups) == count, query


def test_groups_of_pages_add_up(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    failing(office)
    client = Client("https://api.test", office.alice.key or "", transport=HandlerTransport())
    all_groups = client.list_failure_groups()
    monkeypatch.setattr(failed_runs, "MAX_READ_RECORDS", 5)
    monkeypatch.setattr(failed_runs, "_PAGE", 2)
    assert office.alice("GET", "/v1/failures/groups").json["next_cursor"]
    assert client.list_failure_groups() == all_groups
    page = office.alice("GET", "/v1/failures?tag=none").json
    assert (page["runs"], bool(page["next_cursor"])) == ([], True)
    assert len(list(client.list_failures(tag="money"))) == 6


@pytest.mark.parametrize("failed_at", [True, 1e-200, 0, 1e400, float("nan"), "1", None])
def test_a_cursor_names_a_time_that_can_be_stored(office: Office, failed_at: Any) -> None:
    """`true` counts as 1 in Python; DynamoDB has no number as small as 1e-200."""
    lists = {"/v1/failures": "failures:", "/v1/failures/groups": "failure groups:"}
    for url, name in lists.items():
        list_name = name + json.dumps([None, None, None])
        for at, status in ((failed_at, 400), (1.5, 200)):
            cursor = write_cursor("alice", list_name, [at, "bills", "20261121T031300Z"])
            assert office.alice("GET", f"{url}?cursor={cursor}").status == status


@pytest.mark.parametrize(
    ("error", "other", "same"),
    [
        ("customer 7", "customer 1234", True),
        ("at 0x7fe2 of a1b2c3d4e5f60718", "at 0x1 of 00ff00ff00ff00ff", True),
        ("no such file", "no such table", False),
        ("first line\nsecond", "first line\nthird", True),
        ("decade of facade", "facade of decade", False),
        ("", "", True),
    ],
)
def test_fingerprints(error: str, other: str, same: bool) -> None:
    assert (fingerprint("E", error) == fingerprint("E", other)) is same
    assert fingerprint("E", error) != fingerprint("F", error)
