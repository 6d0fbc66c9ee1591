"""The removal of a tenant over HTTP."""

from __future__ import annotations

from common.platform.api_keys import hash_of
from tests.api.calls import Caller, Office
from tests.platform.leftovers import deletions_of
from tests.worlds import job


def deleting(office: Office) -> Office:
    office.alice("PUT", "/v1/jobs/report", job(cron="* * * * *"))
    office.world.run_until("2026-11-21T03:14:30Z")
    answer = office.operator("DELETE", "/v1/tenants/alice")
    assert (answer.status, answer.headers["location"]) == (202, "/v1/tenants/alice/deletion")
    return office


def test_from_the_beginning_to_the_end(office: Office) -> None:
    began_at = deleting(office).world.clock.now()
    first = office.operator("GET", "/v1/tenants/alice/deletion").json
    assert (first["state"], first["finished_at"], first["jobs_registered"]) == ("waiting", None, 1)
    assert (first["started_at"], first["by"]) == (
        "2026-11-21T03:14:30Z",
        f"operator:{hash_of(str(office.operator.key))[:16]}",
    )
    assert office.operator("GET", "/v1/tenants/alice").json["state"] == "deleting"
    office.world.clock.sleep(60)
    assert office.operator("GET", "/v1/tenants/alice/deletion").json["state"] == "removing"
    for _ in range(3):
        deletions_of(office.world).move_on("alice", office.world.clock.now())
    last = office.operator("GET", "/v1/tenants/alice/deletion").json
    assert (last["state"], last["finished_at"]) == ("finished", "2026-11-21T03:15:30Z")
    assert (last["removed"]["jobs"], last["removed"]["runs"]) == (1, 2)
    assert office.world.clock.now() - began_at == 60
    again = office.operator("DELETE", "/v1/tenants/alice")
    assert (again.status, again.json) == (200, last)
    for method, url in (("GET", "/v1/tenants/alice"), ("POST", "/v1/tenants/alice/resume")):
        assert office.operator(method, url).status == 404
    assert [tenant["tenant_id"] for tenant in office.operator("GET", "/v1/tenants").json["tenants"]] == [
        "bob"
    ]
    refused = office.operator("POST", "/v1/tenants", {"tenant_id": "alice"})
    assert (refused.status, refused.problem) == (409, "already-exists")


def test_its_keys_are_worth_nothing_within_seconds(office: Office) -> None:
    deleting(office)
    office.world.clock.sleep(15)
    for caller in (office.alice, office.alice_reads, office.alice_admin):
        for method, url in (("GET", "/v1/jobs"), ("PUT", "/v1/jobs/more"), ("GET", "/v1/audit")):
            refused = caller(method, url, job(every=60) if method == "PUT" else None)
            assert (refused.status, refused.problem) == (401, "unauthenticated")
    assert office.bob("GET", "/v1/jobs").status == 200


def test_before_they_are_it_can_register_no_job(office: Office) -> None:
    """A process caches a tenant's state for 15 s; the condition of the registration's write reads the current one."""
    office.alice("GET", "/v1/tenant")
    office.operator("DELETE", "/v1/tenants/alice")
    assert office.alice("GET", "/v1/tenant").json["state"] == "deleting"
    refused = office.alice("PUT", "/v1/jobs/more", job(every=60))
    assert (refused.status, refused.problem) == (404, "not-found")


def test_a_tenant_being_deleted_cannot_be_changed(office: Office) -> None:
    deleting(office)
    for method, url, body in (
        ("PATCH", "/v1/tenants/alice", {"quotas": {"jobs": 3}}),
        ("POST", "/v1/tenants/alice/suspend", None),
        ("POST", "/v1/tenants/alice/resume", None),
    ):
        refused = office.operator(method, url, body)
        assert (refused.status, refused.problem) == (409, "conflict")
    assert office.operator("POST", "/v1/tenants/alice/keys", {"role": "admin"}).status == 404


def test_a_tenant_that_is_not_being_removed_has_no_progress(office: Office) -> None:
    for tenant in ("alice", "nobody", "x" * 65):
        refused = office.operator("GET", f"/v1/tenants/{tenant}/deletion")
        assert (refused.status, refused.problem) == (404, "not-found")
    assert office.operator("DELETE", "/v1/tenants/nobody").status == 404


def test_a_new_tenant_of_the_same_name_finds_nothing_old(office: Office) -> None:
    deleting(office)
    office.world.clock.sleep(60)
    for _ in range(3):
        deletions_of(office.world).move_on("alice", office.world.clock.now())
    # As DynamoDB does by the tombstone's expires_at.
    office.world.table("tenants").delete({"pk": "alice", "sk": "TENANT"})
    assert office.operator("POST", "/v1/tenants", {"tenant_id": "alice"}).status == 201
    new_key = office.operator("POST", "/v1/tenants/alice/keys", {"role": "admin"}).json["key"]
    office.world.clock.sleep(30)
    fresh = Caller(new_key)
    assert fresh("GET", "/v1/jobs").json["jobs"] == []
    assert {e["action"] for e in fresh("GET", "/v1/audit").json["entries"]} == {
        "tenant.created",
        "key.created",
    }
    assert fresh("GET", "/v1/jobs/report/runs").status == 404
