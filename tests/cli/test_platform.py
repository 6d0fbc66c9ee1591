"""`minute8 tenants` and `minute8 keys`."""

from __future__ import annotations

import re

import pytest

from tests.api.calls import Caller
from tests.cli.conftest import Desk


def test_from_a_tenant_to_its_first_call_and_the_end_of_its_key(desk: Desk) -> None:
    assert "carol created" in desk("tenants", "create", "carol", "--name", "Carol & Co").out
    made = desk("keys", "create", "carol", "--role", "read", "--name", "dashboard", "--expires", "90d")
    key = made.out.strip()
    assert re.fullmatch(r"m8_[0-9A-Za-z]{49}", key)
    assert "read for carol, until 2027-02-19T03:12:00Z (in 90 d)" in made.err
    caller = Caller(key)
    assert caller("GET", "/v1/tenant").json["name"] == "Carol & Co"
    listed = desk("keys", "list", "carol").out
    key_id = listed.splitlines()[1].split()[0]
    assert "active" in listed and "dashboard" in listed and key not in listed
    shown = desk("tenants", "show", "carol").out
    assert shown.startswith("carol (Carol & Co)") and key_id in shown
    assert "revoked" in desk("keys", "revoke", "carol", key_id).out
    desk.office.world.clock.sleep(31)
    assert caller("GET", "/v1/tenant").status == 401
    assert "revoked" in desk("keys", "list", "carol").out


def test_no_key_is_stored_or_shown_again(desk: Desk) -> None:
    made = desk("keys", "create", "alice", "--json").json
    assert made["role"] == "write" and made["state"] == "active" and made["expires_at"] is None
    stored = str(desk.office.stored())
    assert made["key"] not in stored and made["key"][8:] not in stored
    for told in (desk("keys", "list", "alice", "--json"), desk("tenants", "show", "alice", "--json")):
        assert made["key"] not in told.out and made["key_id"] in told.out


def test_the_list_of_tenants(desk: Desk) -> None:
    assert [tenant["tenant_id"] for tenant in desk("tenants", "list", "--json").json] == ["alice", "bob"]
    assert desk("tenants", "list").out.splitlines()[1].split() == ["alice", "now", "Alice"]


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("tenants", "create", "alice"), 4, "exists already"),
        (("tenants", "create", "a/b"), 2, "tenant_id"),
        (("tenants", "create", "a#b"), 2, "tenant_id"),
        (("tenants", "create", "x" * 65), 2, "tenant_id"),
        (("tenants", "create", "аlice"), 2, "tenant_id"),
        (("tenants", "create", "x", "--name", "x" * 201), 2, "name"),
        (("tenants", "show", "nobody"), 3, "nobody"),
        (("keys", "create", "nobody"), 3, "nobody"),
        (("keys", "create", "alice", "--role", "king"), 2, "king"),
        (("keys", "create", "alice", "--expires", "soon"), 2, "soon"),
        (("keys", "create", "alice", "--expires", "2020-01-01T00:00:00Z"), 2, "past"),
        (("keys", "list", "nobody"), 3, "nobody"),
        (("keys", "revoke", "alice", "nothing"), 3, "nothing"),
    ],
)
def test_refusals_store_nothing(desk: Desk, words: tuple[str, ...], code: int, told: str) -> None:
    before = desk.office.stored()
    refused = desk(*words)
    assert (refused.code, told in refused.err, refused.out) == (code, True, ""), refused
    assert desk.office.stored() == before


def test_another_tenants_key_cannot_be_revoked(desk: Desk) -> None:
    key_id = desk("keys", "list", "bob", "--json").json[0]["key_id"]
    assert desk("keys", "revoke", "alice", key_id).code == 3
    assert desk("keys", "list", "bob", "--json").json[0]["state"] == "active"
