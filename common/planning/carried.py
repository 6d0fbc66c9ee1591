"""What a window's paced executions take of the seconds after it: the next windows leave these places to them.

One item for each pace and window, and only if something is due after the window's end.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from typing import Final

from common.planning.directory import Shard
from common.planning.pace import Name
from common.storage import keys
from common.storage.table import Query, Table
from common.timing.instants import DAY_S

# The longest spread, jitter and tolerance together: a window that ended longer ago cannot reach into this one.
REACH_S: Final = 3 * 3_600
_KEPT_S: Final = DAY_S

Taken = dict[Name, Counter[int]]


class Carried:
    """The records of places that are taken after the end of a window, in the due table."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def into(self, pace: int, start: int) -> Taken:
        """What the windows before `start` took from there on, of the paces with this number."""
        found: defaultdict[Name, Counter[int]] = defaultdict(Counter)
        between = keys.begins_between(start - REACH_S, start)
        for item in self._table.query(Query(keys.pace_carryover(pace, start)["pk"], sk_between=between)):
            for tenant, key, seconds in json.loads(item["taken"]):
                for after_s, count in seconds:
                    if (second := item["end"] + after_s) >= start:
                        found[Name(tenant, key)][second] += count
        return found

    def keep(self, pace: int, end: int, first: Shard, taken: Taken) -> None:
        """Record what a share took from `end` on; `first` is its first shard. Repeated, it replaces the record."""
        rest = [
            (*name, sorted((second - end, count) for second, count in seconds.items() if second >= end))
            for name, seconds in sorted(taken.items())
        ]
        if rest := [one for one in rest if one[-1]]:
            key = keys.pace_carryover(pace, end, first.group, first.shard)
            text = json.dumps(rest, separators=(",", ":"))
            self._table.put({**key, "end": end, "taken": text, "expires_at": end + _KEPT_S})
