"""Keys over time, two tenants side by side, and what fails inside."""

from __future__ import annotations

from typing import Any

import pytest

from common.errors import Busy
from common.registry import Registry
from common.tables import Table
from common.tenants import Tenants, is_well_formed
from tests.api.calls import Caller, Office
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
    assert [found["job_id"] for found in report.bob("GET", "/v1/jobs").json["jobs"]] == ["report"]


def test_a_revoked_key_is_refused_within_a_minute(office: Office) -> None:
    tenants = Tenants(office.world.table("tenants"))  # another process
    raw_key, key = tenants.create_key("alice", "write", office.world.clock.now())
    caller = Caller(raw_key)
    assert caller("GET", "/v1/jobs").status == 200
    tenants.revoke_key("alice", key.key_id, office.world.clock.now())
    office.world.clock.sleep(31)
    assert caller("GET", "/v1/jobs").status == 401


def test_a_key_ends_at_its_second_also_in_a_warm_process(office: Office) -> None:
    caller = Caller(office.new_key("alice", "read", expires_at=int(office.world.clock.now()) + 10))
    assert caller("GET", "/v1/jobs").status == 200
    office.world.clock.sleep(9)
    assert caller("GET", "/v1/jobs").status == 200
    office.world.clock.sleep(1)
    assert caller("GET", "/v1/jobs").status == 401


def test_a_cursor_is_of_one_tenant_and_one_list(report: Office) -> None:
    for name in ("a", "b", "c"):
        report.alice("PUT", f"/v1/jobs/{name}", job(cron="0 3 * * *"))
        report.bob("PUT", f"/v1/jobs/{name}", job(cron="0 3 * * *"))
    report.world.run_until("2026-11-21T03:15:30Z")
    jobs = report.alice("GET", "/v1/jobs?limit=1").json["next_cursor"]
    runs = report.alice("GET", "/v1/jobs/report/runs?limit=1").json["next_cursor"]
    assert report.bob("GET", f"/v1/jobs?cursor={jobs}").problem == "invalid-input"
    assert report.alice("GET", f"/v1/jobs?cursor={runs}").problem == "invalid-input"
    assert report.alice("GET", f"/v1/jobs/report/runs?cursor={jobs}").problem == "invalid-input"
    assert report.alice("GET", f"/v1/jobs/a/runs?cursor={runs}").problem == "invalid-input"
    assert report.alice("GET", f"/v1/jobs/report/runs?cursor={runs}").status == 200


def test_too_many_writers_is_told_as_that(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(*_: Any) -> None:
        raise Busy("too many writers")

    monkeypatch.setattr(Registry, "create", busy)
    refused = office.alice("POST", "/v1/jobs", job(cron="0 3 * * *"))
    assert (refused.status, refused.problem, refused.headers["retry-after"]) == (503, "busy", "1")


def test_a_failure_inside_tells_nothing_of_it(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise KeyError("a secret")

    monkeypatch.setattr(Registry, "get", broken)
    refused = office.alice("GET", "/v1/jobs/report")
    assert (refused.status, refused.problem) == (500, "internal")
    assert "secret" not in refused.text


def test_what_cannot_be_a_key_costs_no_read(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    key = office.new_key("alice")

    def read(*_: Any) -> None:
        raise AssertionError("the table was read")

    monkeypatch.setattr(Table, "get", read)
    swapped = "0" if key[9] != "0" else "1"
    for wrong in (key[:9] + swapped + key[10:], key[:-1], key + "0", key.upper(), "", "m8_", "m9_" + key[3:]):
        assert Caller(wrong)("GET", "/v1/tenant").status == 401
    assert is_well_formed(key)
