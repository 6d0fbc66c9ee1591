"""What follows a tick, in this order. Each chore loads its code when its turn comes, and shares nothing with others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from common.clock import Clock
from common.config import config
from common.planning.chores import Chore, Steps
from common.planning.queue import ExecutionsQueue
from common.storage import aws
from common.storage.table import Tables


class Parts(NamedTuple):
    """What chores are made of."""

    tables: Tables
    queue: ExecutionsQueue
    clock: Clock


def _projection(parts: Parts) -> Steps:
    from scheduler.projector import Projector

    return Projector.of(*parts).steps


def _truth(parts: Parts) -> Steps:
    from common.truth.truth import Truth

    return Truth(*parts).steps


def _sealing(parts: Parts) -> Steps:
    from scheduler.sealing import Sealer

    settings, bucket = config(), None
    if settings.audit_export:
        from scheduler.export_handler import S3Bucket

        bucket = S3Bucket(aws.s3(), settings.audit_export)
    return Sealer(parts.tables, parts.clock, bucket, f"minute8-{settings.stage}/audit").steps


def _ended_jobs(parts: Parts) -> Steps:
    from common.jobs.ended import EndedJobs
    from common.runs.records import Runs
    from scheduler.removal import Completion, job_store_of

    tables = parts.tables
    return Completion(EndedJobs(tables.due, tables.jobs), job_store_of(*parts), Runs(tables.runs)).steps


def _groups(parts: Parts) -> Steps:
    from minute8.eventbridge.group_deletion import GroupDeletions
    from scheduler.removal import job_store_of, removal_of_groups

    return removal_of_groups(GroupDeletions(job_store_of(*parts)), parts.clock).steps


def _tenants(parts: Parts) -> Steps:
    from common.planning.due_index import DueIndex
    from common.platform.deletion import Deletions
    from scheduler.removal import removal_of_tenants

    tables = parts.tables
    deletions = Deletions(tables.tenants, tables.jobs, tables.runs, DueIndex(tables.due))
    return removal_of_tenants(deletions, parts.clock).steps


# Name, code, and share of the time.
Table = tuple[tuple[str, Callable[[Parts], Steps], int], ...]
CHORES: Final[Table] = (
    ("projection", _projection, 6),
    ("truth", _truth, 3),
    ("sealing", _sealing, 1),
)

# What is over is deleted after them, or when a planner is asked for it; by one process at a time.
REMOVALS: Final = (("ended jobs", _ended_jobs, 1), ("groups", _groups, 1), ("tenants", _tenants, 1))


def chores(parts: Parts, table: Table = CHORES) -> list[Chore]:
    """The chores of a table."""
    return [Chore(name, _loaded(code, parts), share) for name, code, share in table]


def _loaded(code: Callable[[Parts], Steps], parts: Parts) -> Steps:
    """What fails while it is loaded fails as the chore's own step."""
    return lambda at, done: code(parts)(at, done)
