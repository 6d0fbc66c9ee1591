"""Whether a tick has anything to delete after planning. Only then is the code that deletes imported (removal.py)."""

from __future__ import annotations

from itertools import chain

from common.storage import keys
from common.storage.table import Query, Table
from eventbridge import keys as group_keys


def anything_left(due: Table, tenants: Table) -> bool:
    """Whether a job has ended, or a group of schedules or a tenant is being deleted.

    True if this cannot be read: what deletes looks again, and logs the error.
    """
    ended = (due.query(Query(partition, limit=1)) for partition in keys.partitions("ENDED"))
    deletions = (
        tenants.query(Query(partition, limit=1)) for partition in (group_keys.DELETIONS, keys.DELETIONS)
    )
    try:
        return any(True for _ in chain.from_iterable(chain(ended, deletions)))
    except Exception:  # noqa: BLE001  the tick stands, whatever this is
        return True
