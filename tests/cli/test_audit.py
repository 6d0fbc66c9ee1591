"""`minute8 audit`."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Desk
from tests.worlds import job


@pytest.fixture
def admin(desk: Desk) -> Desk:
    """alice's job is made and paused, an hour apart; the desk has her admin key."""
    desk.office.alice("PUT", "/v1/jobs/report", job(every=60))
    desk.office.world.clock.sleep(3600)
    desk.office.alice("POST", "/v1/jobs/report/pause", {"note": "maintenance until Monday"})
    desk.environment["MINUTE8_KEY"] = desk.office.alice_admin.key or ""
    return desk


def test_the_audit_names_who_changed_what(admin: Desk) -> None:
    key_id = admin.office.alice("GET", "/v1/tenant").json["key"]["key_id"]
    head, paused, created = admin("audit", "--subject", "report").out.splitlines()
    assert head.split() == ["AT", "BY", "ACTION", "OF", "CHANGE"]
    assert paused.split()[:6] == ["2026-11-21T04:12:00Z", "now", key_id, "job.paused", "report", "state:"]
    assert "state: active → paused" in paused and "note: maintenance until Monday" in paused
    assert "1 h ago" in created and "job.created" in created


def test_filters_and_json(admin: Desk) -> None:
    (entry,) = admin("audit", "--action", "job", "--since", "30m", "--json").json
    assert entry["action"] == "job.paused"
    older = admin("audit", "--action", "job", "--until", "2026-11-21T04:00:00Z", "--json").json
    assert [entry["action"] for entry in older] == ["job.created"]
    assert len(admin("audit", "-n", "1", "--json").json) == 1
    assert admin("audit", "--subject", "nothing").out == "no changes\n"


def test_only_an_admin_key_may(desk: Desk) -> None:
    refused = desk("audit")
    assert (refused.code, "admin" in refused.err) == (5, True)
