"""The platform's routes: tenants, and the keys of tenants and operators."""

from __future__ import annotations

from typing import Any

import pytest

from common.platform.tenants import Tenants
from common.storage import keys
from common.storage.conflicts import TransactionConflict
from common.storage.transactions import Transaction
from common.tenants.audit import Audit
from common.tenants.tenant import Quotas, Tenant
from tests.api.calls import Caller, Office
from tests.worlds import ARN, job

MAX_KEYS = 1_000

TRUSTED_FOR_S = 60  # longer than any process caches what it has read


def key_id_of(caller: Caller) -> str:
    return str(caller("GET", "/v1/tenant").json["key"]["key_id"])


def test_from_a_new_tenant_to_its_first_run_and_its_suspension(office: Office) -> None:
    created = office.operator("POST", "/v1/tenants", {"tenant_id": "carol", "allowed_targets": [ARN]})
    assert (created.status, created.headers["location"], created.headers["etag"]) == (
        201,
        "/v1/tenants/carol",
        '"1"',
    )
    key = office.operator("POST", "/v1/tenants/carol/keys", {"role": "write"})
    carol = Caller(key.json["key"])
    assert carol("PUT", "/v1/jobs/report", job(every=60)).status == 201
    seen = office.operator("GET", "/v1/tenants/carol").json
    assert seen["usage"] == {"jobs": 1, "executions_per_day": 1440}
    assert seen == {name: value for name, value in carol("GET", "/v1/tenant").json.items() if name != "key"}
    office.world.run_until("2026-11-21T03:14:30Z")
    assert len(carol("GET", "/v1/jobs/report/runs").json["runs"]) == 2
    suspended = office.operator("POST", "/v1/tenants/carol/suspend", {"note": "unpaid"}).json
    assert (suspended["state"], suspended["note"], suspended["revision"]) == ("suspended", "unpaid", 2)
    office.world.clock.sleep(TRUSTED_FOR_S)
    assert carol("POST", "/v1/jobs/report/run").problem == "tenant-suspended"
    resumed = office.operator("POST", "/v1/tenants/carol/resume").json
    assert (resumed["state"], resumed["note"], resumed["revision"]) == ("active", "", 3)


def test_a_tenant_that_exists_is_not_made_again(office: Office) -> None:
    before = office.stored()
    refused = office.operator("POST", "/v1/tenants", {"tenant_id": "alice"})
    assert (refused.status, refused.problem) == (409, "already-exists")
    assert office.stored() == before


def test_a_change_is_of_the_revision_that_was_read(office: Office) -> None:
    read = office.operator("GET", "/v1/tenants/alice")
    changed = office.operator(
        "PATCH", "/v1/tenants/alice", {"quotas": {"jobs": 3}}, If_Match=read.headers["etag"]
    )
    assert (changed.status, changed.headers["etag"]) == (200, '"2"')
    late = office.operator("PATCH", "/v1/tenants/alice", {"quotas": {"jobs": 9}}, If_Match='"1"')
    assert (late.status, late.problem, late.headers["etag"]) == (412, "revision-mismatch", '"2"')
    assert late.json["current_revision"] == 2
    assert office.operator("GET", "/v1/tenants/alice").json["quotas"]["jobs"] == 3


def test_absent_fields_stay_and_null_is_the_default(office: Office) -> None:
    settings = {"quotas": {"jobs": 3, "payload_bytes": 9}, "allowed_targets": ["a.example"], "name": "A"}
    office.operator("PATCH", "/v1/tenants/alice", settings)
    changed = office.operator("PATCH", "/v1/tenants/alice", {"quotas": {"jobs": None}, "name": None}).json
    assert changed["quotas"] == {
        "jobs": Quotas().jobs,
        "executions_per_day": Quotas().executions_per_day,
        "shortest_interval_s": Quotas().shortest_interval_s,
        "payload_bytes": 9,
        "requests_per_minute": Quotas().requests_per_minute,
    }
    assert (changed["name"], changed["allowed_targets"]) == ("", ["a.example"])
    assert (
        office.operator("PATCH", "/v1/tenants/alice", {"allowed_targets": None}).json["allowed_targets"] == []
    )


def test_the_list_of_tenants_goes_on_over_pages(office: Office) -> None:
    for n in range(5):
        office.operator("POST", "/v1/tenants", {"tenant_id": f"tenant-{n}"})
    first = office.operator("GET", "/v1/tenants?limit=4").json
    rest = office.operator("GET", f"/v1/tenants?limit=4&cursor={first['next_cursor']}").json
    listed = [tenant["tenant_id"] for tenant in first["tenants"] + rest["tenants"]]
    assert listed == ["alice", "bob", *(f"tenant-{n}" for n in range(5))]
    assert rest["next_cursor"] is None
    wrong = office.operator("GET", f"/v1/operator-keys?cursor={first['next_cursor']}")
    assert wrong.json["errors"][0]["field"] == "cursor"


def test_an_admin_rotates_its_own_key(office: Office) -> None:
    old = office.alice_admin
    created = old("POST", "/v1/keys", {"role": "admin", "name": "next", "expires_at": "2027-01-01T00:00:00Z"})
    assert (created.status, created.json["role"], created.json["expires_at"]) == (
        201,
        "admin",
        "2027-01-01T00:00:00Z",
    )
    new = Caller(created.json["key"])
    ended = new("DELETE", f"/v1/keys/{key_id_of(old)}").json
    assert (ended["state"], ended["revoked_at"]) == ("revoked", "2026-11-21T03:12:00Z")
    assert old("GET", "/v1/tenant").status == 401
    listed = new("GET", "/v1/keys").json["keys"]
    assert [key["state"] for key in listed if key["key_id"] == ended["key_id"]] == ["revoked"]
    assert created.json["key"] not in str(listed) + str(office.stored())


def test_a_key_may_end_itself(office: Office) -> None:
    office.alice_admin("DELETE", f"/v1/keys/{key_id_of(office.alice_admin)}")
    assert office.alice_admin("GET", "/v1/tenant").status == 401


def test_a_revocation_in_another_process_is_known_within_a_minute(office: Office) -> None:
    assert office.alice("GET", "/v1/tenant").status == 200
    Tenants(office.world.table("tenants")).api_keys.revoke_key(
        "alice", key_id_of(office.alice), office.world.clock.now()
    )
    office.world.clock.sleep(TRUSTED_FOR_S)
    assert office.alice("GET", "/v1/tenant").status == 401


def test_the_platforms_keys_are_listed_and_end(office: Office) -> None:
    created = office.operator("POST", "/v1/operator-keys", {"name": "deployer"}).json
    assert (created["role"], created["state"], created["expires_at"]) == ("operator", "active", None)
    deployer = Caller(created["key"])
    listed = deployer("GET", "/v1/operator-keys").json["keys"]
    assert created["key_id"] in [key["key_id"] for key in listed]
    assert deployer("DELETE", f"/v1/operator-keys/{created['key_id']}").status == 200
    assert deployer("GET", "/v1/tenants").status == 401
    again = office.operator("DELETE", f"/v1/operator-keys/{created['key_id']}").json
    assert again["state"] == "revoked"


def test_a_key_is_found_with_its_owner_alone(office: Office) -> None:
    alices = key_id_of(office.alice)
    before = office.stored()
    for caller, url in [
        (office.bob, f"/v1/keys/{alices}"),
        (office.operator, f"/v1/tenants/bob/keys/{alices}"),
        (office.operator, f"/v1/operator-keys/{alices}"),
        (office.alice_admin, "/v1/keys/TENANT"),
        (office.alice_admin, f"/v1/keys/{alices.upper()}x"),
    ]:
        assert caller("DELETE", url).problem == "not-found", url
    assert office.stored() == before


def test_keys_come_in_pages_oldest_first(office: Office) -> None:
    office.world.clock.sleep(1)
    for n in range(3):
        office.bob("POST", "/v1/keys", {"role": "read", "name": f"key-{n}"})
        office.world.clock.sleep(1)
    first = office.bob("GET", "/v1/keys?limit=2").json
    rest = office.bob("GET", f"/v1/keys?limit=2&cursor={first['next_cursor']}").json
    assert [key["name"] for key in first["keys"] + rest["keys"]] == ["", "key-0", "key-1", "key-2"]
    assert rest["next_cursor"] is None


def test_keys_are_bounded_and_revoked_ones_forgotten(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("common.platform.api_keys.MAX_KEYS", 2)
    created = office.bob("POST", "/v1/keys", {"role": "read"}).json
    before = office.stored()
    refused = office.bob("POST", "/v1/keys", {"role": "read"})
    assert (refused.status, refused.problem) == (409, "conflict")
    assert "accepted: 2" in refused.json["detail"]
    assert office.stored() == before
    revoked = office.bob("DELETE", f"/v1/keys/{created['key_id']}").json
    assert (revoked["state"], revoked["expires_at"]) == ("revoked", None)
    office.world.clock.sleep(30 * 86_400)
    assert office.bob("POST", "/v1/keys", {"role": "read"}).status == 201
    assert MAX_KEYS == 1_000


@pytest.mark.parametrize(
    ("method", "url", "body"),
    [
        ("POST", "/v1/tenants/bob/suspend", None),
        ("PATCH", "/v1/tenants/bob", {"quotas": {"jobs": 3}}),
        ("POST", "/v1/tenants/bob/keys", {"role": "read"}),
    ],
)
def test_a_flood_of_registrations_keeps_nobody_out(
    office: Office, monkeypatch: pytest.MonkeyPatch, method: str, url: str, body: Any
) -> None:
    commit, in_the_way, began_at = Transaction.commit, [TransactionConflict()] * 8, office.world.clock.now()

    def commit_some_time(tx: Transaction) -> None:
        if in_the_way:
            raise in_the_way.pop()
        commit(tx)

    monkeypatch.setattr(Transaction, "commit", commit_some_time)
    assert office.operator(method, url, body).status in (200, 201)
    assert 0 < office.world.clock.now() - began_at < 10
    in_the_way += [TransactionConflict()] * 99
    refused = office.operator(
        method, url, {"note": "another"} if body is None else {**body, "name": "another"}
    )
    assert (refused.problem, refused.headers["retry-after"]) == ("busy", "1")


def test_each_change_is_written_down_with_the_operators_key(office: Office) -> None:
    office.operator("POST", "/v1/tenants", {"tenant_id": "carol", "name": "Carol"})
    office.world.clock.sleep(1)
    office.operator("PATCH", "/v1/tenants/carol", {"quotas": {"jobs": 3}})
    office.world.clock.sleep(1)
    key = office.operator("POST", "/v1/tenants/carol/keys", {"role": "read"}).json
    office.world.clock.sleep(1)
    office.operator("DELETE", f"/v1/tenants/carol/keys/{key['key_id']}")
    office.world.clock.sleep(1)
    office.operator("POST", "/v1/tenants/carol/suspend", {"note": "unpaid"})
    table = office.world.table("tenants")
    entries = list(Audit(table).newest("carol", 100))[::-1]
    assert [entry.action for entry in entries] == [
        "tenant.created", "tenant.changed", "key.created", "key.revoked", "tenant.suspended",
    ]  # fmt: skip
    me = [
        key
        for key in Tenants(table).api_keys.keys_of(keys.OPERATORS)
        if not key.name and key.state(0) == "active"
    ]
    assert {entry.by for entry in entries} <= {f"operator:{key.key_id}" for key in me}
    assert entries[3].after == {"revoked_at": 1795230723}
    assert key["key"] not in str(entries)


def test_a_change_between_reading_and_writing_is_kept(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    get, other_changes = Tenants.get, [{"quotas": {"jobs": 5}}]

    def get_and_be_overtaken(tenants: Tenants, tenant_id: str) -> Tenant:
        listed = get(tenants, tenant_id)
        if other_changes:
            Tenants(office.world.table("tenants")).edit(
                tenant_id, other_changes.pop(), office.world.clock.now()
            )
        return listed

    monkeypatch.setattr(Tenants, "get", get_and_be_overtaken)
    changed = office.operator("PATCH", "/v1/tenants/alice", {"quotas": {"payload_bytes": 7}}).json
    assert (changed["quotas"]["jobs"], changed["quotas"]["payload_bytes"], changed["revision"]) == (5, 7, 3)


def test_the_platform_reads_a_tenants_audit_and_its_own(office: Office) -> None:
    office.world.clock.sleep(1)
    office.alice("PUT", "/v1/jobs/report", job(every=60))
    office.world.clock.sleep(1)
    office.operator("PATCH", "/v1/tenants/alice", {"quotas": {"jobs": 3}})
    of_alice = office.operator("GET", "/v1/tenants/alice/audit?limit=2").json
    assert [entry["action"] for entry in of_alice["entries"]] == ["tenant.changed", "job.created"]
    assert of_alice == office.alice_admin("GET", "/v1/audit?limit=2").json
    changed = of_alice["entries"][0]
    assert changed["by"].startswith("operator:")
    assert (changed["before"]["quotas"]["jobs"], changed["after"]["quotas"]["jobs"]) == (10_000, 3)
    office.world.clock.sleep(1)
    created = office.operator("POST", "/v1/operator-keys", {"name": "deployer"}).json
    (newest,) = office.operator("GET", "/v1/operator-audit?limit=1").json["entries"]
    assert (newest["action"], newest["subject"], newest["by"]) == (
        "key.created",
        created["key_id"],
        changed["by"],
    )
    subjects = office.operator("GET", f"/v1/tenants/alice/audit?subject={created['key_id']}").json["entries"]
    assert subjects == []
