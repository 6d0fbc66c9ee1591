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


# Name, code, and share of the time.
CHORES: Final[tuple[tuple[str, Callable[[Parts], Steps], int], ...]] = (
    ("projection", _projection, 6),
    ("truth", _truth, 3),
    ("sealing", _sealing, 1),
)


def chores(parts: Parts, *names: str) -> list[Chore]:
    """These chores, or all of them."""
    return [
        Chore(name, _loaded(code, parts), share) for name, code, share in CHORES if not names or name in names
    ]


def _loaded(code: Callable[[Parts], Steps], parts: Parts) -> Steps:
    """What fails while it is loaded fails as the chore's own step."""
    return lambda at, done: code(parts)(at, done)
