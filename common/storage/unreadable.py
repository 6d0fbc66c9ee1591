"""An item that cannot be read, as a value: every reader of several items gets it in the place of the item."""

from __future__ import annotations

from dataclasses import dataclass

from common.ids import TENANT_ID_CHARS, is_id
from common.limits import JOB_ID_CHARS
from common.storage.keys import Key
from common.storage.wire import Item


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An item that cannot be read, or not be planned: its table's short name, its key, and why.

    `item` is set if each tick would meet it again: it is then set aside as it is (common/planning/quarantine.py).
    """

    table: str
    key: Key
    reason: str
    item: Item | None = None

    @property
    def name(self) -> str:
        """Partition and sort key, as the quarantine names it."""
        return f"{self.key['pk']} {self.key['sk']}"

    @property
    def job(self) -> tuple[str, str] | None:
        """The tenant and the job that the key names; None: it names none."""
        kind, _, _ = self.key["pk"].partition("#")
        sort_key = self.key["sk"]
        if self.table == "runs":
            tenant, _, job_id = self.key["pk"].partition("#")
        elif kind == "POSTPONED":
            tenant, job_id, *_ = f"{sort_key.partition('#')[2]}::".split(":")
        else:
            tenant, job_id, *_ = f"{sort_key}#".split("#")
        return (tenant, job_id) if is_id(tenant, TENANT_ID_CHARS) and is_id(job_id, JOB_ID_CHARS) else None
