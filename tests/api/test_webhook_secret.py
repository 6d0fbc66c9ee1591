"""The webhook secret over HTTP."""

from __future__ import annotations

from common.tenants.webhook_secrets import WebhookSecrets
from tests.api.calls import Office
from tests.worlds import job


def test_the_secret_is_made_once_and_rotated_on_demand(office: Office) -> None:
    first = office.alice_admin("GET", "/v1/webhook-secret").json["secret"]
    assert first.startswith("whsec_")
    assert office.alice_admin("GET", "/v1/webhook-secret").json["secret"] == first
    second = office.alice_admin("POST", "/v1/webhook-secret/rotate").json["secret"]
    signing = WebhookSecrets(office.world.table("tenants"), lambda: office.world.secret_key).signing(
        "alice", office.world.clock.now()
    )
    assert signing == (second, first)
    assert office.bob("GET", "/v1/webhook-secret").json["secret"] not in (first, second)


def test_only_an_admin_key_sees_it(office: Office) -> None:
    assert office.alice("GET", "/v1/webhook-secret").status == 403
    assert office.alice_reads("POST", "/v1/webhook-secret/rotate").status == 403


HOOK = {"schedule": {"cron": "0 12 * * *"}, "target": {"kind": "http", "url": "https://hooks.example.com/"}}


def test_the_first_job_that_calls_an_endpoint_makes_the_secret(office: Office) -> None:
    def secrets() -> tuple[str, ...]:
        return WebhookSecrets(office.world.table("tenants"), lambda: office.world.secret_key).signing(
            "alice", office.world.clock.now()
        )

    office.alice("PUT", "/v1/jobs/report", job(cron="0 12 * * *"))
    office.alice("POST", "/v1/jobs/_bulk?dry_run=true", ({"job_id": "hook", **HOOK},))
    assert secrets() == ()
    office.alice("POST", "/v1/jobs/_bulk", ({"job_id": "hook", **HOOK},))
    (secret,) = secrets()
    office.alice("PUT", "/v1/jobs/other", HOOK)
    office.alice("PATCH", "/v1/jobs/report", {"target": {**HOOK["target"], "arn": None, "invocation": None}})
    assert secrets() == (secret,)
    assert office.alice_admin("GET", "/v1/webhook-secret").json["secret"] == secret
    entries = office.alice_admin("GET", "/v1/audit?action=webhook_secret.made").json["entries"]
    assert len(entries) == 1
