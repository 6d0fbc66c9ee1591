"""Removing a tenant: all of its items, no other tenant's, and at once for its callers."""

from __future__ import annotations

import math
import re

import pytest

from common.errors import AlreadyExists, Conflict, NotFound, Unauthenticated
from common.platform.deletion import Deletion, Deletions
from common.storage import keys
from common.storage.table import Table
from common.tenants.audit import Audit
from tests.platform.leftovers import (
    KINDS_OF_ITEMS,
    PROJECTED,
    TOMBSTONE,
    deletions_of,
    directory,
    finish,
    furnish,
    items_of,
    left_of,
    registry_of,
    tenants_of,
)
from tests.worlds import World, job

TRUSTED_FOR_S = 15


@pytest.mark.parametrize("most", [1, 3, 500])
def test_only_the_tenants_items_are_removed(world: World, most: int) -> None:
    furnish(world)
    bobs, before = left_of(world, "bob"), directory(world)
    deletion = deletions_of(world).begin("alice", world.clock.now(), by="operator:1")
    assert (deletion.by, deletion.jobs, deletion.state(world.clock.now())) == ("operator:1", 3, "waiting")
    slices = finish(world, most)
    assert left_of(world, "alice") == TOMBSTONE
    assert left_of(world, "bob") == bobs
    assert directory(world) == {group: jobs // 2 for group, jobs in before.items()}
    progress = deletions_of(world).progress("alice")
    assert progress.finished_at == world.clock.now() and progress.state(world.clock.now()) == "finished"
    assert (progress.removed["keys"], progress.removed["jobs"], progress.removed["runs"]) == (1, 3, 5)
    assert slices == 2 if most == 500 else slices > 8


def test_the_tenants_of_this_test_have_something_everywhere(world: World) -> None:
    """New kinds of items must be removed too: this test fails for a kind that the removal does not know."""
    furnish(world)
    deletions_of(world).begin("bob", world.clock.now())
    rows = [row for row in vars(keys).values() if isinstance(row, keys.Row)]
    declared: dict[str, set[str]] = {"jobs": {"JOB"}, "tenants": set(), "audit": set()}
    for row in rows:
        if row.pk == "{tenant}":
            for table in row.table.split(", "):
                declared[table].add(row.sk.partition("#")[0])
    assert declared == KINDS_OF_ITEMS
    for table, kinds in KINDS_OF_ITEMS.items():
        alices = [item["sk"]["S"] for item in items_of(world, table) if item["pk"]["S"] == "alice"]
        assert {sk.partition("#")[0] for sk in alices} == kinds
    elsewhere = {re.sub("[{}]", "", row.pk) for row in rows if "{tenant}" in row.pk} - {"tenant"}
    of_jobs = {"tenant#job_id#permit", "tenant#job_id#text"}
    in_slices = {"tenant##permits", "tenant##notices", "tenant##exports", "SEALS#tenant"}
    assert elsewhere - of_jobs == PROJECTED | in_slices, "removed in slices"
    assert elsewhere >= of_jobs, "removed job by job, in _remove_runs"


def test_the_platform_keeps_who_deleted_it_and_when(world: World) -> None:
    furnish(world)
    began_at = world.clock.now()
    deletions_of(world).begin("alice", began_at, by="operator:1")
    deletions_of(world).begin("alice", began_at, by="operator:2")
    finish(world)
    (entry,) = Audit(world.table("tenants")).newest(keys.OPERATORS, 10)
    assert (entry.by, entry.action, entry.subject, entry.at) == (
        "operator:1",
        "tenant.deleted",
        "alice",
        began_at,
    )


def test_the_tenant_stops_at_once(world: World) -> None:
    key = furnish(world)
    registry = registry_of(world)
    deletions_of(world).begin("alice", world.clock.now())
    with pytest.raises(NotFound):
        tenants_of(world).api_keys.create_key("alice", "read", world.clock.now())
    with pytest.raises(NotFound):
        registry.create("alice", "more", job(cron="* * * * *"))
    with pytest.raises(Conflict):
        tenants_of(world).resume("alice", world.clock.now())
    deletions_of(world).move_on("alice", world.clock.now())
    with pytest.raises(Unauthenticated):
        tenants_of(world).api_keys.authenticate(key, world.clock.now())
    world.clock.sleep(TRUSTED_FOR_S)
    world.run_until("2026-11-21T03:15:30Z")
    assert world.statuses("alice", "minutely")[-1] == "skipped(deleted)"
    assert world.run_items("alice", "minutely")[-1]["detail"] == "the tenant was deleted"


def test_a_suspended_tenant_can_be_deleted(world: World) -> None:
    furnish(world)
    tenants_of(world).suspend("alice", "unpaid", world.clock.now())
    deletions_of(world).begin("alice", world.clock.now())
    finish(world)
    assert left_of(world, "alice") == TOMBSTONE


def test_a_registration_that_was_checked_before_loses(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    furnish(world)
    registry, checked = registry_of(world), type(world.registry).validated

    def deleted_then(self: object, *words: object) -> object:
        done = checked(self, *words)  # type: ignore[arg-type]
        deletions_of(world).begin("alice", world.clock.now())
        return done

    monkeypatch.setattr(type(world.registry), "validated", deleted_then)
    with pytest.raises(NotFound):
        registry.create("alice", "more", job(cron="* * * * *"))
    finish(world)
    assert left_of(world, "alice") == TOMBSTONE


def test_a_change_that_was_decided_before_does_not_restore_the_tenant(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    furnish(world)
    tenants = tenants_of(world)
    store = type(tenants)._store

    def deleted_then(self: object, *words: object) -> None:
        deletions_of(world).begin("alice", world.clock.now())
        store(self, *words)  # type: ignore[arg-type]

    monkeypatch.setattr(type(tenants), "_store", deleted_then)
    with pytest.raises(Conflict):
        tenants.edit("alice", {"name": "Alice Inc."}, world.clock.now())
    finish(world)
    assert left_of(world, "alice") == TOMBSTONE


def test_only_keys_are_removed_while_caches_may_be_stale(world: World) -> None:
    furnish(world)
    deletions_of(world).begin("alice", world.clock.now())
    world.clock.sleep(59)
    for _ in range(3):
        deletion = deletions_of(world).move_on("alice", world.clock.now())
    assert deletion.removed == {"keys": 1, "jobs": 0, "runs": 0, "others": 0}
    assert len(list(world.store.list_jobs("alice"))) == 3


def test_queued_executions_end_as_deleted_with_a_short_lived_record(world: World) -> None:
    furnish(world)
    deletions_of(world).begin("alice", world.clock.now())
    finish(world)
    world.run_until("2026-11-21T03:19:30Z")
    late = world.run_items("alice", "minutely")
    assert len(late) == 5 and {run["reason"] for run in late} == {"deleted"}
    assert all(run["expires_at"] <= world.clock.now() + 86_400 for run in late)
    assert {(pk, sk) for pk, sk in left_of(world, "alice") if pk != "alice#minutely"} == set(TOMBSTONE)


def test_the_name_is_free_again_after_the_tombstone(world: World) -> None:
    furnish(world)
    deletions_of(world).begin("alice", world.clock.now())
    assert [deletion.tenant_id for deletion in deletions_of(world).under_way()] == ["alice"]
    finish(world)
    assert list(deletions_of(world).under_way()) == []
    with pytest.raises(NotFound):
        tenants_of(world).get("alice")
    assert [getattr(tenant, "tenant_id", "") for tenant in tenants_of(world).list_tenants()] == ["bob"]
    with pytest.raises(AlreadyExists):
        tenants_of(world).create("alice", "", world.clock.now())
    again = deletions_of(world).begin("alice", world.clock.now())
    assert again.finished_at is not None
    free_at = math.floor(again.finished_at) + 31 * 86_400
    world.clock.move_to(free_at - 1)
    with pytest.raises(AlreadyExists):
        tenants_of(world).create("alice", "", world.clock.now())
    world.clock.move_to(free_at + 60)
    tenants_of(world).create("alice", "", world.clock.now())
    with pytest.raises(NotFound):
        deletions_of(world).progress("alice")
    assert deletions_of(world).begin("alice", world.clock.now()).finished_at is None


def test_an_unknown_tenant_cannot_be_deleted(world: World) -> None:
    for call in (deletions_of(world).begin, deletions_of(world).move_on):
        with pytest.raises(NotFound):
            call("nobody", world.clock.now())


def test_the_next_slice_removes_items_that_were_throttled(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DynamoDB does half of a batch: a job's mark and the tenant go only after the items that depend on them."""
    furnish(world)
    delete_many = Table.delete_many

    def delete_half(self: Table, batch: list[keys.Key]) -> int:
        return delete_many(self, batch[: (len(batch) + 1) // 2])

    monkeypatch.setattr(Table, "delete_many", delete_half)
    deletions_of(world).begin("alice", world.clock.now())
    assert finish(world) > 3
    assert left_of(world, "alice") == TOMBSTONE


def test_a_deletion_does_not_finish_while_dynamodb_throttles(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    furnish(world)
    deletions_of(world).begin("alice", world.clock.now())
    world.clock.sleep(60)
    with monkeypatch.context() as throttled:
        throttled.setattr(Table, "delete_many", lambda self, batch: 0)
        for _ in range(4):
            assert deletions_of(world).move_on("alice", world.clock.now()).finished_at is None
    finish(world)
    assert left_of(world, "alice") == TOMBSTONE


def test_two_callers_at_once_begin_one_deletion(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    furnish(world)
    stop, first = Deletions._stop, []

    def another_first(self: Deletions, deletion: Deletion, now: float) -> None:
        if not first:
            first.append(deletions_of(world))
            first[0].begin("alice", now, by="operator:1")
        stop(self, deletion, now)

    monkeypatch.setattr(Deletions, "_stop", another_first)
    assert deletions_of(world).begin("alice", world.clock.now(), by="operator:2").by == "operator:1"
    assert len(list(Audit(world.table("tenants")).newest(keys.OPERATORS, 10))) == 1


def test_two_slices_at_once_do_no_harm(world: World) -> None:
    """Both read before either writes: items that the other removed are missing, which is fine."""
    furnish(world)
    halves = {group: jobs // 2 for group, jobs in directory(world).items()}
    deletions_of(world).begin("alice", world.clock.now())
    world.clock.sleep(60)

    class Both(Deletions):
        """Between reading and counting, another process finishes the same slice."""

        def _make_former(self, tenant_id: str, item: dict[str, object]) -> bool:
            deletions_of(world).move_on("alice", world.clock.now())
            return super()._make_former(tenant_id, item)

    interleaved = Both(world.table("tenants"), world.table("jobs"), world.table("runs"), world.index)
    interleaved.move_on("alice", world.clock.now())
    assert finish(world) == 1
    assert directory(world) == halves
    assert left_of(world, "alice") == TOMBSTONE
