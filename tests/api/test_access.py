"""Keys over time, two tenants side by side, and what fails inside."""

from __future__ import annotations

from typing import Any

import pytest

from common.errors import Busy
from common.jobs.store import JobStore
from common.platform.api_keys import OPERATOR, is_well_formed
from common.platform.tenants import Tenants
from common.registration.registry import Registry
from common.storage.table import Table
from tests.api.calls import Caller, Office
from tests.api.conftest import settle
from tests.api.walk import calls_of_document
from tests.worlds import job


@pytest.fixture
def report(office: Office) -> Office:
    """alice has a job with a run."""
    office.alice("PUT", "/v1/jobs/report", job(cron="* * * * *"))
    office.world.run_until("2026-11-21T03:13:30Z")
    return office


def test_the_same_id_is_two_jobs_of_two_tenants(report: Office) -> None:
    assert report.bob("PUT", "/v1/jobs/report", job(cron="0 9 * * *")).status == 201
    assert report.bob("GET", "/v1/jobs/report/runs").json["runs"] == []
    assert report.alice("GET", "/v1/jobs/report").json["schedule"] == {"cron": "* * * * *"}
    assert [listed_job["job_id"] for listed_job in report.bob("GET", "/v1/jobs").json["jobs"]] == ["report"]


def test_a_revoked_key_is_refused_within_a_minute(office: Office) -> None:
    tenants = Tenants(office.world.table("tenants"))  # another process
    raw_key, key = tenants.api_keys.create_key("alice", "write", office.world.clock.now())
    caller = Caller(raw_key)
    assert caller("GET", "/v1/jobs").status == 200
    tenants.api_keys.revoke_key("alice", key.key_id, office.world.clock.now())
    office.world.clock.sleep(31)
    assert caller("GET", "/v1/jobs").status == 401


def test_a_key_ends_at_its_second_also_in_a_warm_process(office: Office) -> None:
    caller = Caller(office.new_key("alice", "read", expires_at=int(office.world.clock.now()) + 10))
    assert caller("GET", "/v1/jobs").status == 200
    office.world.clock.sleep(9)
    assert caller("GET", "/v1/jobs").status == 200
    office.world.clock.sleep(1)
    assert caller("GET", "/v1/jobs").status == 401


def test_a_cursor_leads_nowhere_but_where_it_is_from(office: Office) -> None:
    settle(office, office.alice, office.bob)
    lists = [call for call in calls_of_document() if call.pages and call.method == "GET"]
    who = {call.url: office.operator if call.role == OPERATOR else office.alice_admin for call in lists}
    # A summary, for example, has pages only for very many runs, and no limit.
    first = {url: caller("GET", f"{url}?limit=1") for url, caller in who.items()}
    cursors = {url: page.json["next_cursor"] for url, page in first.items() if page.status == 200}
    assert len(cursors) >= 16 and all(cursors.values())
    for url, caller in who.items():
        for other, cursor in cursors.items():
            status = caller("GET", f"{url}?cursor={cursor}").status
            assert status == (200 if _list(url) == _list(other) else 400), (url, other)
    for call in lists:
        if call.role != OPERATOR and call.url in cursors:
            refused = office.bob("GET", f"{call.url}?cursor={cursors[call.url]}")
            assert (refused.status, refused.json["errors"][0]["field"]) == (400, "cursor"), call


def _list(url: str) -> str:
    """The operator sees the same lists of alice's things as alice does."""
    return url.replace("/v1/tenants/alice/", "/v1/")


def test_too_many_writers_are_reported(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(*_: Any) -> None:
        raise Busy("too many writers")

    monkeypatch.setattr(Registry, "create", busy)
    refused = office.alice("POST", "/v1/jobs", job(cron="0 3 * * *"))
    assert (refused.status, refused.problem, refused.headers["retry-after"]) == (503, "busy", "1")


def test_an_internal_failure_reveals_no_details(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise KeyError("a secret")

    monkeypatch.setattr(JobStore, "get", broken)
    refused = office.alice("GET", "/v1/jobs/report")
    assert (refused.status, refused.problem) == (500, "internal")
    assert "secret" not in refused.text


def test_text_that_cannot_be_a_key_costs_no_read(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    key = office.new_key("alice")

    def read(*_: Any) -> None:
        raise AssertionError("the table was read")

    monkeypatch.setattr(Table, "get", read)
    swapped = "0" if key[9] != "0" else "1"
    for wrong in (key[:9] + swapped + key[10:], key[:-1], key + "0", key.upper(), "", "m8_", "m9_" + key[3:]):
        assert Caller(wrong)("GET", "/v1/tenant").status == 401
    assert is_well_formed(key)
