"""Removing a tenant with everything that it owns, in bounded slices.

`begin` stops the tenant at once: no keys are created, no jobs registered and no runs started from then on. `move_on`
removes one slice. The ticks (`scheduler/removal.py`) and the CLI call it until nothing is left. Each slice reads from
the tables what is left, so an interrupted slice is simply repeated, and two slices may run at the same time.

Keys are removed first. The rest waits for a minute, until no process treats the tenant as active: after that nothing
new can be written. Then each job becomes a former job, in one transaction with its due entry and the directory's count.
Its runs are removed next, and the former job last. A tombstone remains for a month. The platform's own audit entry also
remains, and the tenant's name stays in the log of changed tenants for a day.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, Literal

from msgspec import Struct, structs, to_builtins

from common.cache import convert
from common.clock import Clock, SystemClock
from common.errors import NotFound
from common.jobs.job import DELETED as DELETED_JOB
from common.planning.due_index import DueIndex
from common.storage import keys
from common.storage.conflicts import retry_if_changed
from common.storage.expressions import PRESENT, Attribute, change, unchanged
from common.storage.table import Query, Table
from common.storage.transactions import Transaction
from common.storage.wire import Item
from common.tenants import rules_cache
from common.tenants.audit import AWS, Audit
from common.tenants.rules_cache import TRUSTED_FOR_S
from common.tenants.tenant import DELETED, DELETING, IS_THERE
from common.timing.instants import DAY_S

# Items, about. A slice takes seconds, so every caller stays within its time limit.
SLICE: Final = 250
# Until no process acts on the old state. Rules are trusted for TRUSTED_FOR_S. After that, the API's last request (at
# most 29 s, serverless.yml) and the executor's last claim may still be in progress.
_GRACE_S: Final = TRUSTED_FOR_S + 45
# The name cannot be used again for so long. An execution waits in the queue for at most 14 days. A tick that ran during
# the deletion may have recorded a missed one, which is kept for 30 days.
_TOMBSTONE_LIFETIME_S: Final = 31 * DAY_S

# The counted kinds, in the order of removal. `others`: calendars, backfills, the audit, the secret, counters.
KINDS: Final = ("keys", "jobs", "runs", "others")

State = Literal["waiting", "removing", "finished"]


class Deletion(Struct, frozen=True):
    """The progress of a removal. `jobs` is how many were registered when it began.

    The counts of removed items are minimums, since an interrupted slice may be missing.
    """

    tenant_id: str
    by: str
    started_at: int
    jobs: int = 0
    finished_at: int | None = None
    removed_keys: int = 0
    removed_jobs: int = 0
    removed_runs: int = 0
    removed_others: int = 0

    def state(self, now: float) -> State:
        """Waiting (caches may be stale), removing, or finished."""
        if self.finished_at is not None:
            return "finished"
        return "removing" if now >= self.settles_at else "waiting"

    @property
    def settles_at(self) -> int:
        """The time at which the removal of everything but the keys begins."""
        return self.started_at + _GRACE_S

    @property
    def removed(self) -> dict[str, int]:
        """How many items were removed, by KINDS."""
        return {kind: getattr(self, f"removed_{kind}") for kind in KINDS}


@dataclass(frozen=True, slots=True)
class Deletions:
    """The tables with items of a tenant."""

    tenants: Table
    jobs: Table
    runs: Table
    index: DueIndex
    clock: Clock = field(default_factory=SystemClock)

    def begin(self, tenant_id: str, now: float, *, by: str = AWS) -> Deletion:
        """Stop the tenant permanently. Can be repeated. Raises NotFound, Busy."""

        def attempt() -> Deletion:
            tenant = self.tenants.get(keys.tenant(tenant_id))
            if tenant is None or tenant.get("state") in (DELETING, DELETED):
                return self.progress(tenant_id)
            self._stop(Deletion(tenant_id, by, int(now), tenant.get("jobs", 0)), now)
            return self.progress(tenant_id)

        # Another caller began it, or a registration changed the counts.
        return retry_if_changed(attempt, f"tenant {tenant_id!r}", sleep=self.clock.sleep)

    def _stop(self, deletion: Deletion, now: float) -> None:
        tenant_id = deletion.tenant_id
        # The revision changes too, so that a change that was decided earlier cannot restore the state.
        deleting = change({"state": DELETING}, add={"revision": 1})
        tx = Transaction(self.tenants.client)
        tx.update(self.tenants, keys.tenant(tenant_id), deleting, IS_THERE)
        tx.update(self.tenants, keys.tenant_listing(tenant_id), deleting)
        rules_cache.note_change(tx, self.tenants, tenant_id, now)
        tx.put(self.tenants, {**keys.deletion(tenant_id), **to_builtins(deletion)})
        # The tenant's own audit is removed, so this entry goes to the platform's.
        Audit(self.tenants).add(tx, keys.OPERATORS, deletion.by, "tenant.deleted", tenant_id, now)
        tx.commit()

    def progress(self, tenant_id: str) -> Deletion:
        """The progress; available until the tombstone expires. Raises NotFound."""
        if item := self.tenants.get(keys.deletion(tenant_id)):
            return convert(item, Deletion)
        tenant = self.tenants.get(keys.tenant(tenant_id)) or {}
        if "deletion" not in tenant:
            raise NotFound("deletion of tenant" if tenant else "tenant", tenant_id)
        return convert(tenant["deletion"], Deletion)

    def under_way(self) -> Iterator[Deletion]:
        """The unfinished removals."""
        return (convert(item, Deletion) for item in self.tenants.query(Query(keys.DELETIONS)))

    def move_on(self, tenant_id: str, now: float, most: int = SLICE) -> Deletion:
        """Remove about `most` more items, and finish if nothing is left. Raises NotFound."""
        deletion = self.progress(tenant_id)
        state = deletion.state(now)
        if state == "finished":
            return deletion
        steps = [self._remove_keys]
        if state == "removing":
            steps += [self._remove_jobs, self._remove_runs, self._remove_others]
        # A read item is not always removed: another writer may change it, or DynamoDB may throttle.
        items_read, removed = 0, Counter[str]()
        for step in steps:
            if items_read < most:
                items_read += step(tenant_id, most - items_read, removed)
        self._count(tenant_id, removed)
        if state == "removing" and not items_read:
            self._finish(deletion, now)
        return self.progress(tenant_id)

    def _remove_keys(self, tenant_id: str, most: int, removed: Counter[str]) -> int:
        references = list(
            self.tenants.with_expired().query(
                Query(tenant_id, sk_prefix=keys.KEY_REFERENCE_PREFIX, limit=most)
            )
        )
        for item in references:  # together: the reference is how the key is found again
            tx = Transaction(self.tenants.client)
            tx.delete(self.tenants, keys.api_key(item["key_hash"]))
            tx.delete(self.tenants, keys.key_of(item))
            tx.commit()
            removed["keys"] += 1
        return len(references)

    def _remove_jobs(self, tenant_id: str, most: int, removed: Counter[str]) -> int:
        """Jobs are removed before all runs, so that planning stops soon."""
        jobs = list(self.jobs.with_expired().query(Query(tenant_id, sk_prefix=keys.JOB_PREFIX, limit=most)))
        for item in jobs:
            if self._make_former(tenant_id, item):
                removed["jobs" if item.get("state") != DELETED_JOB else "others"] += 1
        return len(jobs)

    def _make_former(self, tenant_id: str, item: Item) -> bool:
        """Remove a job from the tables that plan. False if it changed meanwhile: the next slice tries again."""
        job_id = item["sk"].removeprefix(keys.JOB_PREFIX)
        tx = Transaction(self.jobs.client)
        tx.delete(self.jobs, keys.key_of(item), unchanged(item, "revision"))
        tx.put(self.jobs, keys.former_job(tenant_id, job_id))
        if item.get("group"):
            self.index.delete_entry(tx, item["group"], item["shard"], tenant_id, job_id)
            self.index.directory.count(tx, item["group"], item["shard"], -1)
        return tx.commit_if_unchanged()

    def _remove_runs(self, tenant_id: str, most: int, removed: Counter[str]) -> int:
        """Remove the runs and large texts of former jobs, and each former job after its last run."""
        items_read = 0
        former = Query(tenant_id, sk_prefix=keys.FORMER_PREFIX, limit=most)
        for mark in self.jobs.with_expired().query(former):
            if items_read >= most:
                break
            job_id = mark["sk"].removeprefix(keys.FORMER_PREFIX)
            of_job = (
                (self.runs, keys.runs_of_job(tenant_id, job_id), "runs"),
                (self.jobs, keys.texts_of_job(tenant_id, job_id), "others"),
            )
            read, is_done = _remove(of_job, most - items_read, removed)
            items_read += read
            if is_done:
                self.runs.delete(keys.overlap_permit(tenant_id, job_id))
                self.index.drop_pending(tenant_id, job_id)
                self.jobs.delete(keys.key_of(mark))
                items_read += 1
                removed["others"] += 1
        # What is projected of the runs, and the concurrency keys.
        projected = (keys.projected_windows, keys.projected_chunks, keys.projected_days)
        partitions = (*(each(tenant_id) for each in projected), keys.key_permits(tenant_id, "")["pk"])
        parts = [(self.runs, partition, "others") for partition in partitions]
        return items_read + _remove(parts, most - items_read, removed)[0]

    def _remove_others(self, tenant_id: str, most: int, removed: Counter[str]) -> int:
        """Remove everything else in the tenant's partitions except the tenant's item."""
        audit = Audit(self.tenants).table
        parts = [(table, tenant_id, "others") for table in (self.jobs, self.tenants, audit)]
        parts.append((audit, keys.seals(tenant_id), "others"))
        parts += [(self.jobs, partition(tenant_id), "others") for partition in (keys.notices, keys.exports)]
        keeps = (keys.JOB_PREFIX, keys.FORMER_PREFIX, keys.tenant(tenant_id)["sk"])
        return _remove(parts, most, removed, keeps)[0]

    def _count(self, tenant_id: str, removed: Counter[str]) -> None:
        counts = {f"removed_{kind}": removed[kind] for kind in KINDS if removed[kind]}
        if counts:  # refused: another slice finished it at the same time
            self.tenants.update_if(keys.deletion(tenant_id), change(add=counts), PRESENT)

    def _finish(self, deletion: Deletion, now: float) -> None:
        """Replace the tenant's item with a tombstone, which records the deletion."""
        finished = structs.replace(deletion, finished_at=int(now))
        tombstone = {
            **keys.tenant(deletion.tenant_id),
            "tenant_id": deletion.tenant_id,
            "state": DELETED,
            "deletion": to_builtins(finished),
            "expires_at": int(now) + _TOMBSTONE_LIFETIME_S,
        }
        tx = Transaction(self.tenants.client)
        tx.put(self.tenants, tombstone, Attribute("state") == DELETING)
        tx.delete(self.tenants, keys.tenant_listing(deletion.tenant_id))
        tx.delete(self.jobs, keys.subscriber(deletion.tenant_id))
        tx.delete(self.jobs, keys.stopped_tenant(deletion.tenant_id))
        rules_cache.note_change(tx, self.tenants, deletion.tenant_id, now)
        tx.delete(self.tenants, keys.deletion(deletion.tenant_id))
        tx.commit_if_unchanged()  # else another slice finished it, or the next one will


def _remove(
    parts: Iterable[tuple[Table, str, str]], most: int, removed: Counter[str], keeps: tuple[str, ...] = ()
) -> tuple[int, bool]:
    """Remove about `most` items of partitions, each with a kind, but for sort keys that begin as `keeps` says.

    Returns how many were read, and whether none is left.
    """
    items_read, all_deleted = 0, True
    for table, partition, kind in parts:
        if (room := most - items_read) > 0:
            items = table.with_expired().query(Query(partition, limit=room + 1, attributes=("pk", "sk")))
            read = [keys.key_of(item) for item in items if not item["sk"].startswith(keeps)]
            deleted = table.delete_many(read)
            items_read += len(read)
            removed[kind] += deleted
            all_deleted &= deleted == len(read)
    return items_read, all_deleted and items_read < most
