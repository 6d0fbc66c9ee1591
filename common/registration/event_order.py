"""Of the events about one job, the newest decides, in whatever order they come and however often.

EventBridge keeps no order and may deliver an event again. So the time of the newest event is stored with the job's id,
before that event changes the job, and which events of that second are done. An older event changes nothing any more.
A change depends on the job's revision from before this was read: if a newer event came between, it is tried again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

from common.storage import keys
from common.storage.expressions import ABSENT, Attribute, change
from common.storage.table import Table
from common.timing.instants import DAY_S

# EventBridge tries for a day, and the queue keeps an event for four.
REMEMBERED_S: Final = 8 * DAY_S
# Times of events are whole seconds. Of one second, so many done events of a job are known; older ones are done again.
REMEMBERED_EVENTS: Final = 20

Turn = Literal["now", "duplicate", "superseded"]


@dataclass(frozen=True, slots=True)
class EventOrder:
    """Which event of each job is the newest, in the jobs table."""

    jobs: Table

    def begin(self, tenant: str, job_id: str, event_id: str, at: int, now: float) -> Turn:
        """Whether this event of the instant `at` may change the job now. Raises Busy."""
        first_sight = change({"at": at, "done": [], "expires_at": math.ceil(now) + REMEMBERED_S})
        is_newest = ABSENT | (Attribute("at") < at)
        newest = self.jobs.update_or_read(keys.newest_event(tenant, job_id), first_sight, is_newest) or {}
        if newest.get("at", 0) > at:
            return "superseded"
        return "duplicate" if event_id in newest.get("done", ()) else "now"

    def end(self, tenant: str, job_id: str, event_id: str, at: int) -> None:
        """Note that the event is done. Raises Busy."""
        item = self.jobs.get(keys.newest_event(tenant, job_id))
        if item and item["at"] == at and event_id not in item["done"]:
            done = [*item["done"], event_id][-REMEMBERED_EVENTS:]
            self.jobs.update(keys.newest_event(tenant, job_id), change({"done": done}))
