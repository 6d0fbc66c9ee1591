"""Secrets over HTTP: written, listed and deleted, and never read."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.calls import Office
from tests.worlds import job

VALUE = "correct horse battery staple"


def test_a_secret_is_put_listed_and_deleted(office: Office) -> None:
    stored = office.alice("PUT", "/v1/secrets/token", {"value": VALUE})
    assert stored.status == 201
    office.world.clock.sleep(60)
    again = office.alice("PUT", "/v1/secrets/token", {"value": VALUE + "!"})
    assert (again.status, again.json["revision"]) == (200, 2)
    assert again.json == {
        "name": "token",
        "revision": 2,
        "created_at": "2026-11-21T03:12:00Z",
        "updated_at": "2026-11-21T03:13:00Z",
    }
    assert office.alice_reads("GET", "/v1/secrets").json == {"secrets": [again.json]}
    assert office.bob("GET", "/v1/secrets").json == {"secrets": []}
    assert office.bob("DELETE", "/v1/secrets/token").status == 404
    office.world.clock.sleep(1)
    assert office.alice("DELETE", "/v1/secrets/token").status == 204
    assert office.alice("DELETE", "/v1/secrets/token").status == 404
    assert office.alice("GET", "/v1/secrets").json == {"secrets": []}
    actions = [
        entry["action"] for entry in office.alice_admin("GET", "/v1/audit?action=secret").json["entries"]
    ]
    assert actions == ["secret.deleted", "secret.stored", "secret.stored"]


def test_who_may_change_secrets(office: Office) -> None:
    office.alice("PUT", "/v1/secrets/token", {"value": VALUE})
    for caller in (office.alice_reads, office.operator):
        assert caller("PUT", "/v1/secrets/token", {"value": VALUE}).status == 403
        assert caller("DELETE", "/v1/secrets/token").status == 403
    assert office.alice("GET", "/v1/secrets/token").status == 405


def test_a_secret_that_a_job_names_stays(office: Office) -> None:
    office.alice("PUT", "/v1/secrets/token", {"value": VALUE})
    named = job(cron="0 9 * * *", payload={"a": "secret://token"})
    assert office.alice("PUT", "/v1/jobs/report", named).status == 201
    refused = office.alice("DELETE", "/v1/secrets/token")
    assert (refused.status, refused.problem) == (409, "conflict")
    assert "report" in refused.json["detail"]
    shown = office.alice("GET", "/v1/jobs/report").json
    assert (shown["payload"], "secrets" in shown) == ({"a": "secret://token"}, False)


@pytest.mark.parametrize(
    "body",
    [
        {"value": VALUE, "extra": VALUE},
        {"valeu": VALUE},
        {"value": [VALUE]},
        {"value": {VALUE: VALUE}},
        {"value": VALUE * 200},
        {"value": None},
        {},
        [VALUE],
        VALUE,
    ],
)
def test_a_refusal_does_not_show_the_value(
    office: Office, body: Any, caplog: pytest.LogCaptureFixture
) -> None:
    refused = office.alice("PUT", "/v1/secrets/token", body)
    assert refused.status == 400
    assert VALUE not in refused.text
    assert VALUE not in str([vars(record) for record in caplog.records])


@pytest.mark.parametrize("name", ["-x", "a b", "x" * 65, "ä"])
def test_a_name_that_none_can_have_is_refused(office: Office, name: str) -> None:
    assert office.alice("PUT", f"/v1/secrets/{name}", {"value": VALUE}).status == 400


def test_kms_that_does_not_answer_is_busy_and_nothing_is_stored(office: Office) -> None:
    kms: Any = office.world.secret_key.kms
    kms.refuses = "KMSInternalException"
    refused = office.alice("PUT", "/v1/secrets/token", {"value": VALUE})
    assert (refused.status, refused.problem) == (503, "busy")
    assert office.alice("GET", "/v1/secrets").json == {"secrets": []}
