"""The stored audit: an entry is written together with its change, also for Minute8's own changes; reads are bounded."""

from __future__ import annotations

from dataclasses import replace

import pytest

from common.errors import Busy
from common.runs.outcome import Outcome
from common.storage import keys
from common.storage.conflicts import ConditionFailed, TransactionConflict
from common.storage.transactions import Transaction
from common.storage.wire import Expression
from common.tenants import audit as audit_file
from common.tenants.audit import Audit, AuditedCommit, EntryFilter
from tests.worlds import World, job

MAX_TRIES = 12


def audit_of(world: World) -> Audit:
    return Audit(world.table("tenants"))


def write(world: World, subject: str) -> None:
    tx = Transaction(world.dynamodb)
    audit_of(world).add(tx, "alice", "key", "job.changed", subject, world.clock.now(), after={"n": 1})
    tx.commit()


def test_two_changes_within_a_millisecond_are_two_entries(world: World) -> None:
    for n in range(20):
        write(world, str(n))
    entries, next_place = audit_of(world).page("alice", EntryFilter(), limit=50)
    assert ({entry.subject for entry in entries}, next_place) == ({str(n) for n in range(20)}, "")


def test_a_call_reads_a_bounded_number_of_entries(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_file, "MAX_ENTRIES_READ", 5)
    write(world, "rare")
    for _ in range(12):
        world.clock.sleep(1)
        write(world, "often")
    entry_filter, next_place, pages = EntryFilter(subject="rare"), "", []
    for _ in range(9):
        entries, next_place = audit_of(world).page("alice", entry_filter, limit=3, before_id=next_place)
        pages.append([entry.subject for entry in entries])
        if not next_place:
            break
    assert pages == [[], [], ["rare"]]


def test_a_change_that_is_not_made_is_not_written_down(world: World) -> None:
    tx = Transaction(world.dynamodb)
    exists = Expression("attribute_exists(pk)", {})
    tx.delete(world.table("jobs"), keys.job("alice", "nothing"), exists)
    with pytest.raises(ConditionFailed):
        AuditedCommit(audit_of(world), clock=world.clock).commit(
            tx, "alice", "job.deleted", "nothing", world.clock.now()
        )
    assert audit_of(world).page("alice", EntryFilter(), limit=9) == ([], "")


@pytest.mark.parametrize(("conflicts", "is_committed"), [(MAX_TRIES - 1, True), (MAX_TRIES, False)])
def test_a_commit_waits_for_others_for_so_long(
    world: World, monkeypatch: pytest.MonkeyPatch, conflicts: int, is_committed: bool
) -> None:
    commit, remaining = Transaction.commit, [TransactionConflict()] * conflicts

    def in_the_way(self: Transaction) -> None:
        if remaining:
            raise remaining.pop()
        commit(self)

    monkeypatch.setattr(Transaction, "commit", in_the_way)
    tx, began_at = Transaction(world.dynamodb), world.clock.now()
    audited = AuditedCommit(audit_of(world), clock=world.clock)
    if is_committed:
        audited.commit(tx, "alice", "job.run", "report", began_at)
    else:
        with pytest.raises(Busy, match="'report'"):
            audited.commit(tx, "alice", "job.run", "report", began_at)
    assert len(audit_of(world).page("alice", EntryFilter(), limit=9)[0]) == is_committed
    assert 0 < world.clock.now() - began_at < 4.2


def test_a_pause_after_failures_is_minute8s(world: World) -> None:
    registry = replace(world.registry, store=replace(world.store, by="alice"))
    world.target.answer = lambda event: Outcome(ok=False, permanent=True, error_type="Boom")
    registry.create("alice", "fails", job(cron="* * * * *", pause_after_failures=2))
    world.run_until("2026-11-21T03:16:30Z")
    entry, created = audit_of(world).page("alice", EntryFilter(), limit=9)[0]
    assert (created.by, created.action) == ("alice", "job.created")
    assert (entry.by, entry.action, entry.subject) == ("minute8", "job.paused", "fails")
    assert entry.after["note"] == "paused after 2 failed runs in a row"
    assert (entry.before["state"], entry.after["state"]) == ("active", "paused")


def test_an_entry_is_never_replaced(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """IAM has no key for it: who may put an entry may put one over it, so each writer has to say so itself."""
    monkeypatch.setattr("secrets.token_hex", lambda *_: "same")
    write(world, "first")
    with pytest.raises(ConditionFailed):
        write(world, "second")
    assert [entry.subject for entry in audit_of(world).newest("alice", 9)] == ["first"]
