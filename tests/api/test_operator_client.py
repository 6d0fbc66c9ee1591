"""The Python client for the platform's routes and for a tenant's own keys, over the real handler."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

from minute8.client import (
    AlreadyExists,
    Client,
    Conflict,
    Forbidden,
    InvalidInput,
    NotFound,
    Operator,
    QuotaExceeded,
    RevisionMismatch,
    TenantSuspended,
    Unauthenticated,
    Unavailable,
    Unreachable,
)
from tests.api.calls import HandlerTransport, Office
from tests.worlds import ARN, job


def operator(key: str | None, *failures: int | Exception) -> tuple[Operator, HandlerTransport]:
    transport = HandlerTransport(failures)
    return Operator("https://api.test", key or "", transport=transport, sleep=lambda _: None), transport


def client(key: str) -> Client:
    return Client("https://api.test", key, transport=HandlerTransport(), sleep=lambda _: None)


def test_from_a_tenant_to_the_end_of_its_key(office: Office) -> None:
    platform, _ = operator(office.operator.key)
    with platform:
        created = platform.create_tenant("carol", {"name": "Carol", "allowed_targets": [ARN]})
        assert (created["name"], created["usage"]["jobs"]) == ("Carol", 0)
        key = platform.create_key_of_tenant("carol", "write", name="ci", expires_at="2027-01-01T00:00:00Z")
        client(key["key"]).put_job("report", job(every=60))
        changed = platform.patch_tenant("carol", {"quotas": {"jobs": 1}}, revision=created["revision"])
        assert (changed["quotas"]["jobs"], changed["usage"]["jobs"]) == (1, 1)
        assert platform.suspend_tenant("carol", "unpaid")["note"] == "unpaid"
        assert platform.resume_tenant("carol")["state"] == "active"
        assert platform.get_tenant("carol")["revision"] == 4
        assert [tenant["tenant_id"] for tenant in platform.list_tenants()] == ["alice", "bob", "carol"]
        assert [listed_key["name"] for listed_key in platform.list_keys_of_tenant("carol")] == ["ci"]
        assert platform.revoke_key_of_tenant("carol", key["key_id"])["state"] == "revoked"
        own = platform.create_operator_key(name="deployer")
        assert own["key_id"] in [listed_key["key_id"] for listed_key in platform.list_operator_keys()]
        assert platform.revoke_operator_key(own["key_id"])["state"] == "revoked"


def test_refusals_are_exceptions(office: Office) -> None:
    platform, transport = operator(office.operator.key)
    with pytest.raises(AlreadyExists):
        platform.create_tenant("alice")
    with pytest.raises(NotFound, match="nobody"):
        platform.get_tenant("nobody")
    with pytest.raises(InvalidInput) as invalid:
        platform.patch_tenant("alice", {"quotas": {"moons": 1}})
    assert invalid.value.errors[0]["field"] == "quotas.moons"
    with pytest.raises(RevisionMismatch) as late:
        platform.patch_tenant("alice", {"name": "A"}, revision=7)
    assert late.value.current_revision == 1
    assert len(transport.requests) == 4
    with pytest.raises(Forbidden):
        next(operator(office.alice_admin.key)[0].list_tenants())
    with pytest.raises(Unauthenticated):
        next(operator("m8_nothing")[0].list_tenants())


def test_refusals_of_the_platform_have_exceptions_of_their_own(office: Office) -> None:
    platform, alice = operator(office.operator.key)[0], client(office.alice.key or "")
    platform.patch_tenant("alice", {"quotas": {"jobs": 0}})
    with pytest.raises(QuotaExceeded) as over:
        alice.put_job("report", job(every=60))
    assert over.value.quota == {"name": "jobs", "most": 0, "used": 0, "wanted": 1}
    platform.suspend_tenant("alice")
    with pytest.raises(TenantSuspended):
        alice.put_job("report", job(every=60))
    assert issubclass(TenantSuspended, Forbidden) and issubclass(AlreadyExists, Conflict)


@pytest.mark.parametrize(
    "make",
    [
        lambda platform: platform.create_tenant("carol"),
        lambda platform: platform.create_key_of_tenant("alice", "read"),
        lambda platform: platform.create_operator_key(),
    ],
)
def test_a_creation_is_not_repeated(office: Office, make: Callable[[Operator], object]) -> None:
    platform, transport = operator(office.operator.key, 502, httpx.ReadTimeout("slow"))
    with pytest.raises(Unavailable):
        make(platform)
    with pytest.raises(Unreachable):
        make(platform)
    assert len(transport.requests) == 2


def test_safe_requests_are_repeated(office: Office) -> None:
    platform, transport = operator(office.operator.key, 502, httpx.ReadTimeout("slow"))
    assert platform.suspend_tenant("alice")["state"] == "suspended"
    assert len(transport.requests) == 3


def test_a_tenant_sees_to_its_own_keys(office: Office) -> None:
    admin = client(office.alice_admin.key or "")
    created = admin.create_key("read", name="page")
    assert client(created["key"]).get_own_tenant()["key"]["role"] == "read"
    assert created["key_id"] in [key["key_id"] for key in admin.list_keys()]
    assert admin.revoke_key(created["key_id"])["state"] == "revoked"
    with pytest.raises(Forbidden):
        client(office.alice.key or "").create_key("read")
