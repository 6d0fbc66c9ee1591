"""The webhook secret over HTTP."""

from __future__ import annotations

from common.tenants.webhook_secrets import WebhookSecrets
from tests.api.calls import Office


def test_the_secret_is_made_once_and_rotated_on_demand(office: Office) -> None:
    first = office.alice_admin("GET", "/v1/webhook-secret").json["secret"]
    assert first.startswith("whsec_")
    assert office.alice_admin("GET", "/v1/webhook-secret").json["secret"] == first
    second = office.alice_admin("POST", "/v1/webhook-secret/rotate").json["secret"]
    signing = WebhookSecrets(office.world.table("tenants")).signing("alice", office.world.clock.now())
    assert signing == (second, first)
    assert office.bob("GET", "/v1/webhook-secret").json["secret"] not in (first, second)


def test_only_an_admin_key_sees_it(office: Office) -> None:
    assert office.alice("GET", "/v1/webhook-secret").status == 403
    assert office.alice_reads("POST", "/v1/webhook-secret/rotate").status == 403
