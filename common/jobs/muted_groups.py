"""Muted groups of failures: failed runs of one job with one error that a person knows of and need not see again.

A group is muted until an instant, or until it changes: its job, having succeeded or having been changed since, fails
again. Both end after 30 days. Another error is another group, which is not muted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from msgspec import Struct, structs

from common.cache import convert
from common.limits import MAX_MUTED_S
from common.storage import keys
from common.storage.aws import readable
from common.storage.table import Query, Table
from common.storage.wire import Item

# A job and the fingerprint of an error.
GroupKey = tuple[str, str]


class MutedGroup(Struct, frozen=True):
    """A muted group, with its error when it was muted. Without `until_at` it is muted until it changes."""

    tenant: str
    job_id: str
    fingerprint: str
    muted_at: int
    until_at: int | None = None
    note: str = ""
    error_type: str = ""
    error: str = ""

    @property
    def key(self) -> GroupKey:
        return self.job_id, self.fingerprint

    @property
    def ends_at(self) -> int:
        """When it ends at the latest."""
        return self.muted_at + MAX_MUTED_S if self.until_at is None else self.until_at

    def in_force(self, streak: Mapping[str, int] | None, now: float) -> bool:
        """Whether the group is muted now. `streak`: the item of its job's failures in a row."""
        if now >= self.ends_at:
            return False
        changed = bool(streak and streak["failures"] and streak["began_at"] > self.muted_at)
        return self.until_at is not None or not changed

    def to_item(self) -> Item:
        """What is stored, with its key."""
        key = keys.muted_group(self.tenant, self.job_id, self.fingerprint)
        return {**key, **structs.asdict(self), "expires_at": self.ends_at}


@dataclass(frozen=True, slots=True)
class Muted:
    """What is muted of a tenant now, and of each failing job with a muted group the name of its last failed run."""

    groups: Mapping[GroupKey, MutedGroup] = field(default_factory=dict)
    last_failed: Mapping[str, str] = field(default_factory=dict)


class MutedGroups:
    """The muted groups in the jobs table. The tenant always comes from the credential."""

    def __init__(self, jobs: Table) -> None:
        self.table = jobs

    def now_muted(self, tenant: str, now: float) -> Muted:
        """What is muted now: one query, and one read for each job of it."""
        stored = self.stored(tenant)
        streaks = self.streaks(tenant, (group.job_id for group in stored))
        muted = [group for group in stored if group.in_force(streaks.get(group.job_id), now)]
        job_ids = {group.job_id for group in muted}
        last_failed = {
            job_id: streak["failed_run"]
            for job_id, streak in streaks.items()
            if job_id in job_ids and streak["failures"]
        }
        return Muted({group.key: group for group in muted}, last_failed)

    def stored(self, tenant: str) -> list[MutedGroup]:
        """All that are stored, by job: some may be over."""
        items = self.table.query(Query(tenant, sk_prefix=keys.MUTED_PREFIX))
        return list(readable(items, lambda stored: convert(stored, MutedGroup)))

    def streaks(self, tenant: str, job_ids: Iterable[str]) -> dict[str, Item]:
        """The failures in a row of these jobs, of those that had some."""
        streaks_of_jobs = [keys.failure_streak(tenant, job_id) for job_id in sorted(set(job_ids))]
        items = self.table.get_many(streaks_of_jobs, attributes=("sk", "failures", "failed_run", "began_at"))
        return {item["sk"].removeprefix(keys.STREAK_PREFIX): item for item in readable(items, _checked)}


def _checked(item: Item) -> Item:
    """The item of a job's failures in a row. Raises ValidationError, KeyError."""
    convert((item["failures"], item["failed_run"], item["began_at"]), tuple[int, str, float])
    return item
