"""What the routes of the platform and of keys refuse: the message, and that nothing was stored."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from tests.api.calls import Office


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "tenant_id"),
        ({"tenant_id": None}, "tenant_id"),
        ({"tenant_id": 7}, "tenant_id"),
        ({"tenant_id": "OPERATORS#"}, "tenant_id"),
        ({"tenant_id": "x" * 65}, "tenant_id"),
        ({"tenant_id": "аlice"}, "tenant_id"),
        ({"tenant_id": "carol", "name": 7}, "name"),
        ({"tenant_id": "carol", "name": "x" * 201}, "name"),
        ({"tenant_id": "carol", "state": "suspended"}, "state"),
        ({"tenant_id": "carol", "quotas": {"moons": 1}}, "quotas.moons"),
        ({"tenant_id": "carol", "allowed_targets": ["https://example.com/"]}, "allowed_targets.0"),
        ({"tenant_id": "carol", "retention_days": 0}, "retention_days"),
        ([], "body"),
    ],
)
def test_an_invalid_tenant_is_refused(settled: Office, body: Any, field: str) -> None:
    before = settled.stored()
    refused = settled.operator("POST", "/v1/tenants", body)
    assert (refused.status, refused.problem) == (400, "invalid-input")
    assert refused.json["errors"][0]["field"] == field
    if isinstance(body, dict) and "tenant_id" in body and field != "tenant_id":
        change = {name: value for name, value in body.items() if name != "tenant_id"}
        assert settled.operator("PATCH", "/v1/tenants/alice", change).json["errors"][0]["field"] == field
    assert settled.stored() == before


@pytest.mark.parametrize(
    "tenant_id",
    ["OPERATORS#", "TENANTS#", "KEY#x", "DELETIONS#", "a/b", "a#b", "..", "аlice", "x" * 65, "x" * 5000],
)
def test_an_invalid_tenant_id_names_no_tenant(settled: Office, tenant_id: str) -> None:
    before, path = settled.stored(), f"/v1/tenants/{quote(tenant_id, safe='')}"
    for method, url, body in [
        ("GET", path, None),
        ("PATCH", path, {"name": "x"}),
        ("POST", f"{path}/suspend", None),
        ("POST", f"{path}/resume", None),
        ("GET", f"{path}/keys", None),
        ("POST", f"{path}/keys", {"role": "admin"}),
        ("DELETE", f"{path}/keys/{'0' * 16}", None),
    ]:
        assert settled.operator(method, url, body).status == 404, (method, url)
    assert settled.stored() == before


@pytest.mark.parametrize("role", ["operator", "king", "", None, 7, ["admin"], {"S": "admin"}])
def test_nobody_makes_a_key_of_another_role(settled: Office, role: Any) -> None:
    before = settled.stored()
    for caller, url in [(settled.alice_admin, "/v1/keys"), (settled.operator, "/v1/tenants/alice/keys")]:
        refused = caller("POST", url, {"role": role})
        assert (refused.status, refused.json["errors"][0]["field"]) == (400, "role")
        assert "read, write or admin" in refused.json["errors"][0]["accepted"]
    assert settled.stored() == before


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": "x" * 201}, "name"),
        ({"name": 7}, "name"),
        ({"expires_at": "soon"}, "expires_at"),
        ({"expires_at": 1_800_000_000}, "expires_at"),
        ({"expires_at": "2026-11-21T03:12:00Z"}, "expires_at"),
        ({"tenant_id": "bob"}, "tenant_id"),
        ({"key": "m8_mine"}, "key"),
    ],
)
def test_an_invalid_key_is_refused(settled: Office, body: dict[str, Any], field: str) -> None:
    before = settled.stored()
    for caller, url, more in [
        (settled.alice_admin, "/v1/keys", {"role": "read"}),
        (settled.operator, "/v1/tenants/alice/keys", {"role": "read"}),
        (settled.operator, "/v1/operator-keys", {}),
    ]:
        refused = caller("POST", url, more | body)
        assert (refused.status, refused.json["errors"][0]["field"]) == (400, field), url
    assert settled.stored() == before
