"""The request rate of a tenant: one counter per tenant and minute, shared by all processes.

A process reserves a hundredth of the quota at a time and counts its requests locally. A busy tenant therefore costs one
write per hundred requests. The bound is hard: all processes together never accept more than the quota in a minute of
the clock. They can accept less, because idle processes hold reservations. A counter in each process would bound
nothing: Lambda starts a process for each concurrent request.

Further costs of an accepted request are charged afterwards. The charge can exceed the quota; then the other requests of
the minute are refused.
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
_COUNTER_LIFETIME_S: Final = 600
_MAX_TENANTS: Final = 10_000


@dataclass(slots=True)
class _Reservation:
    """The requests that this process has reserved for one tenant and minute."""

    minute: int
    remaining: int = 0
    quota_used_up: bool = False


class RequestRate:
    """Counts requests in the tenants table. Use one instance per process."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._reservations: OrderedDict[str, _Reservation] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, tenant: str, most: int, now: float, weight: int = 1) -> None:
        """Count a request as `weight` requests, at most the whole quota. Raises RateExceeded."""
        minute = math.floor(now / _MINUTE_S)
        with self._lock:
            reservation = self._reservation(tenant, minute)
            needed = max(1, min(weight, most))
            while reservation.remaining < needed and not reservation.quota_used_up:
                more = self._more(tenant, minute, most)
                reservation.remaining += more
                reservation.quota_used_up = not more
            if reservation.remaining < needed:
                raise RateExceeded(most, max(1, math.ceil((minute + 1) * _MINUTE_S - now)))
            reservation.remaining -= needed

    def charge(self, tenant: str, now: float, requests: int) -> None:
        """Count what an accepted request costs as so many more requests. Never refuses."""
        minute = math.floor(now / _MINUTE_S)
        with self._lock:
            reservation = self._reservation(tenant, minute)
            covered = min(reservation.remaining, requests)
            reservation.remaining -= covered
            if requests > covered:
                self._table.update(keys.request_rate(tenant, minute), _adding(requests - covered, minute))

    def _reservation(self, tenant: str, minute: int) -> _Reservation:
        reservation = self._reservations.get(tenant)
        if reservation is None or reservation.minute != minute:
            reservation = self._reservations[tenant] = _Reservation(minute)
        self._reservations.move_to_end(tenant)
        while len(self._reservations) > _MAX_TENANTS:
            self._reservations.popitem(last=False)
        return reservation

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
        {":more": requests, ":expires": (minute + 1) * _MINUTE_S + _COUNTER_LIFETIME_S},
    )
