"""The request rate of a tenant: one counter per tenant and minute, shared by all processes.

A process reserves a hundredth of the quota at a time and counts its requests locally. A busy tenant therefore costs one
write per hundred requests. The bound is hard: all processes together never accept more than the quota in a minute of
the clock. They can accept less, because idle processes hold reservations. A counter in each process would bound
nothing: Lambda starts a process for each concurrent request.

What an accepted request costs beyond that is charged afterwards. It can exceed the quota; the rest of the minute's
requests are then refused.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from common.errors import RateExceeded
from common.storage import keys
from common.storage.conflicts import ConditionFailed
from common.storage.table import Table
from common.storage.wire import Expression

_MINUTE_S: Final = 60
_SHARES: Final = 100
_KEPT_S: Final = 600
_TENANTS: Final = 10_000


@dataclass(slots=True)
class _Taken:
    """What this process has reserved for one tenant and minute; `all_taken`: the quota is used up."""

    minute: int
    left: int = 0
    all_taken: bool = False


class RequestRate:
    """Counts requests in the tenants table. Use one instance per process."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._taken: OrderedDict[str, _Taken] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, tenant: str, most: int, now: float, weight: int = 1) -> None:
        """Count a request as `weight` requests, at most the whole quota. Raises RateExceeded."""
        minute = math.floor(now / _MINUTE_S)
        with self._lock:
            taken = self._taken_in(tenant, minute)
            wanted = max(1, min(weight, most))
            while taken.left < wanted and not taken.all_taken:
                more = self._more(tenant, minute, most)
                taken.left += more
                taken.all_taken = not more
            if taken.left < wanted:
                raise RateExceeded(most, max(1, math.ceil((minute + 1) * _MINUTE_S - now)))
            taken.left -= wanted

    def charge(self, tenant: str, now: float, requests: int) -> None:
        """Count what an accepted request costs as so many more requests. Never refuses."""
        minute = math.floor(now / _MINUTE_S)
        with self._lock:
            taken = self._taken_in(tenant, minute)
            reserved = min(taken.left, requests)
            taken.left -= reserved
            if requests > reserved:
                self._table.update(keys.request_rate(tenant, minute), _adding(requests - reserved, minute))

    def _taken_in(self, tenant: str, minute: int) -> _Taken:
        taken = self._taken.get(tenant)
        if taken is None or taken.minute != minute:
            taken = self._taken[tenant] = _Taken(minute)
        self._taken.move_to_end(tenant)
        while len(self._taken) > _TENANTS:
            self._taken.popitem(last=False)
        return taken

    def _more(self, tenant: str, minute: int, most: int) -> int:
        share = max(1, most // _SHARES)
        room = Expression("attribute_not_exists(#taken) OR #taken <= :room", {":room": most - share})
        if most < share:
            return 0
        try:
            self._table.update(keys.request_rate(tenant, minute), _adding(share, minute), room)
        except ConditionFailed:
            return 0
        return share


def _adding(requests: int, minute: int) -> Expression:
    return Expression(
        "ADD #taken :more SET #expires_at = :expires",
        {":more": requests, ":expires": (minute + 1) * _MINUTE_S + _KEPT_S},
    )
