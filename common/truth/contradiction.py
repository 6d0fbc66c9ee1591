"""What the tables can say against each other: the names of contradictions, what each means, and how it is repaired."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

# The name of a contradiction and what its repair does; docs/runbook/contradiction.md has a row for each.
JOB_CORRUPT: Final = "job-corrupt"
JOB_LOST: Final = "job-lost"
JOB_ROLLED_BACK: Final = "job-rolled-back"
TEXT_MISSING: Final = "text-missing"
ENTRY_MISSING: Final = "entry-missing"
ENTRY_WRONG: Final = "entry-wrong"
ENTRY_STRAY: Final = "entry-stray"
SHARD_MISSING: Final = "shard-missing"
SHARD_CORRUPT: Final = "shard-corrupt"
SHARD_UNLISTED: Final = "shard-unlisted"
SHARD_COUNT: Final = "shard-count"
TENANT_CORRUPT: Final = "tenant-corrupt"
TENANT_MISSING: Final = "tenant-missing"
TENANT_UNLISTED: Final = "tenant-unlisted"
TENANT_COUNTS: Final = "tenant-counts"
RUN_STUCK: Final = "run-stuck"
RUN_CORRUPT: Final = "run-corrupt"
ITEM_UNREADABLE: Final = "item-unreadable"

REPAIRS: Final[dict[str, str]] = {
    JOB_CORRUPT: "put the job again, or delete it: only its tenant knows what it was",
    JOB_LOST: "put the job again, or restore the table; the audit has its definition",
    JOB_ROLLED_BACK: "put the job again; the audit has the newer definition",
    TEXT_MISSING: "put the job with its payload again",
    ENTRY_MISSING: "write the due entry, enqueue what was not planned, record what was missed",
    ENTRY_WRONG: "write the due entry anew, enqueue what was not planned, record what was missed",
    ENTRY_STRAY: "delete the due entry",
    SHARD_MISSING: "list the shard anew, and plan its jobs",
    SHARD_CORRUPT: "write the directory's item anew, and plan its jobs",
    SHARD_UNLISTED: "list the shard anew, and plan its jobs",
    SHARD_COUNT: "count its entries anew",
    TENANT_CORRUPT: "write the item that cannot be read anew from the other one, and count its jobs",
    TENANT_MISSING: "write the tenant's item anew from the list of tenants, and count its jobs",
    TENANT_UNLISTED: "write the list's item anew from the tenant's",
    TENANT_COUNTS: "count the tenant's jobs anew",
    RUN_STUCK: "send its next attempt again",
    RUN_CORRUPT: "restore the table, or delete the run's item",
    ITEM_UNREADABLE: "write the item as it was and discard this one, or put it back: minute8 check --put-back",
}


class Subject(NamedTuple):
    """What contradicts something else: a `job` tenant/job, `shard` group#number, or another by its key."""

    kind: Literal["job", "shard", "tenant", "run", "item"]
    name: str


def job_subject(tenant: str, job_id: str) -> Subject:
    return Subject("job", f"{tenant}/{job_id}")


def shard_subject(group: str, shard: int) -> Subject:
    return Subject("shard", f"{group}#{shard}")


@dataclass(frozen=True, slots=True)
class Contradiction:
    """One contradiction. `repair` can be made twice; None: a person has to decide.

    A repair that `sends` waits until nothing loses messages.
    """

    name: str
    subject: Subject
    detail: str
    repair: Callable[[], Any] | None = None

    @property
    def sends(self) -> bool:
        return self.name in (
            ENTRY_MISSING,
            ENTRY_WRONG,
            SHARD_MISSING,
            SHARD_CORRUPT,
            SHARD_UNLISTED,
            RUN_STUCK,
        )

    @property
    def remedy(self) -> str:
        """What its repair does, or what to do."""
        return REPAIRS[self.name]
