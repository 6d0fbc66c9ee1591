"""What follows a tick, in this order. Each chore loads its code when its turn comes, and shares nothing with others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from common.deployment import Deployment
from common.planning.chores import Chore, Steps
from common.storage import aws


def _projection(deployment: Deployment) -> Steps:
    from scheduler.projector import Projector

    return Projector.of(deployment.tables, deployment.queue, deployment.clock).steps


def _truth(deployment: Deployment) -> Steps:
    from common.truth.truth import Truth

    return Truth(deployment.tables, deployment.queue, deployment.clock).steps


def _lines(deployment: Deployment) -> Steps:
    from scheduler.lines import Lines

    return Lines(deployment.tables, deployment.queue, deployment.clock).steps


def _sealing(deployment: Deployment) -> Steps:
    from scheduler.sealing import Sealer

    settings, bucket = deployment.settings, None
    if settings.audit_export:
        from scheduler.export_handler import S3Bucket

        bucket = S3Bucket(aws.s3(), settings.audit_export)
    return Sealer(deployment.tables, deployment.clock, bucket, f"minute8-{settings.stage}/audit").steps


def _ended_jobs(deployment: Deployment) -> Steps:
    from scheduler.removal import Completion

    return Completion(deployment.ended_jobs, deployment.stored_jobs, deployment.runs).steps


def _groups(deployment: Deployment) -> Steps:
    from minute8.eventbridge.group_deletion import GroupDeletions
    from scheduler.removal import removal_of_groups

    return removal_of_groups(GroupDeletions(deployment.stored_jobs), deployment.clock).steps


def _tenants(deployment: Deployment) -> Steps:
    from common.platform.deletion import Deletions
    from scheduler.removal import removal_of_tenants

    tables = deployment.tables
    deletions = Deletions(tables.tenants, tables.jobs, tables.runs, deployment.index)
    return removal_of_tenants(deletions, deployment.clock).steps


# Name, code, and share of the time.
Table = tuple[tuple[str, Callable[[Deployment], Steps], int], ...]
CHORES: Final[Table] = (
    ("projection", _projection, 6),
    ("lines", _lines, 2),
    ("truth", _truth, 3),
    ("sealing", _sealing, 1),
)

# What is over is deleted after them, or when a planner is asked for it; by one process at a time.
REMOVALS: Final = (("ended jobs", _ended_jobs, 1), ("groups", _groups, 1), ("tenants", _tenants, 1))


def chores(deployment: Deployment, table: Table = CHORES) -> list[Chore]:
    """The chores of a table."""
    return [Chore(name, _loaded(code, deployment), share) for name, code, share in table]


def _loaded(code: Callable[[Deployment], Steps], deployment: Deployment) -> Steps:
    """What fails while it is loaded fails as the chore's own step."""
    return lambda at, done: code(deployment)(at, done)
