"""The list of a job's runs by time and outcome.

Each call reads a bounded number of records and returns where the next call continues, even if it found nothing yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from common.runs.claims import ATTEMPTS_KEPT
from common.storage import keys
from common.storage.tables import Item, Table

# How many records one call reads.
MAX_SEEN: Final = 2_000
# A page ends early after this many retries: each takes up to 1.6 KB, which an answer's JSON can triple, and Lambda's
# answer is limited to 6 MB.
MAX_RETRIES: Final = 800
_PAGE: Final = 200


@dataclass(frozen=True, slots=True)
class RunFilter:
    """A filter of a job's runs: fire times in [from_at, until_at), a status, a trigger. None sets no condition."""

    from_at: int | None = None
    until_at: int | None = None
    status: str = ""
    trigger: str = ""

    def takes(self, item: Mapping[str, Any]) -> bool:
        """Whether the run has the wanted status and trigger."""
        return self.status in ("", item["status"]) and self.trigger in ("", item.get("trigger"))


def retries_in(item: Mapping[str, Any]) -> int:
    """The most attempts that a record can hold beyond one. The item may come without them."""
    attempts: int = item.get("attempt", 0)
    return max(0, min(attempts, ATTEMPTS_KEPT) - 1)


class RunLists:
    """Lists over many records of the runs table."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def of_job(
        self, tenant: str, job_id: str, wanted: RunFilter, *, limit: int, before: str = ""
    ) -> tuple[list[Item], str]:
        """A job's runs, newest fire time first, and the run name after which the next page starts; empty at the end."""
        between = None
        if wanted.from_at is not None or wanted.until_at is not None:
            between = keys.runs_between(wanted.from_at, wanted.until_at)
            if between[0] >= between[1]:
                return [], ""
        after = keys.run(tenant, job_id, before) if before else None
        items = self._table.query(
            keys.runs_of_job(tenant, job_id), sk_between=between, after=after, newest_first=True, page=_PAGE
        )
        found: list[Item] = []
        last_seen, retries = before, 0
        for seen, item in enumerate(items):
            is_full = len(found) == limit and wanted.takes(item)
            if seen == MAX_SEEN or retries >= MAX_RETRIES or is_full:
                return found, last_seen
            retries += retries_in(item)
            if wanted.takes(item):
                found.append(item)
            last_seen = item["sk"]
        return found, ""
