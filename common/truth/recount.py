"""The entries of a shard, and the directory's count of them."""

from __future__ import annotations

from typing import Final

from common.errors import Busy
from common.planning.directory import Shard
from common.storage import keys
from common.storage.expressions import Attribute, change
from common.storage.table import Query, Table

# Registrations of a busy group may change the shard at each look.
MAX_LOOKS: Final = 5


def entry_names(due: Table, group: str, shard: int) -> list[tuple[str, str]]:
    """Tenant and job id of each entry."""
    items = due.query(Query(keys.shard_partition(group, shard), attributes=("sk",)))
    return [keys.tenant_and_job(item["sk"]) for item in items]


def recount(due: Table, shard: Shard) -> None:
    """Let the directory count the entries that there are, if it has the shard.

    Raises Busy if registrations change them each time.
    """
    key = keys.directory(shard.group, shard.shard)
    for _ in range(MAX_LOOKS):
        before = (due.get(key) or {}).get("jobs")
        if before is None:
            return
        entries = len(entry_names(due, shard.group, shard.shard))
        if due.update_if(key, change({"jobs": entries}), Attribute("jobs") == before):
            return
    raise Busy(f"the shard {key['sk']} is being written; try again later")
