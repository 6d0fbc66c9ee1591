"""The request rate of a tenant: a budget of requests that refills evenly, shared by all processes.

The budget is kept as time. A request uses 60 s divided by `requests_per_minute`, and one number is stored: the instant
up to which time is used. Unused time of the last minute can be used, and no older time. So a tenant can send a
minute's requests at once, and then as many as time brings.

A process reserves a hundredth of the budget at a time and counts its requests locally. A busy tenant costs one
write per hundred requests. A reservation lasts for a minute. In any span of s seconds, all processes together accept
`requests_per_minute` * (1 + s/60) requests at most, and those that they reserved in the minute before: a hundredth for
each process. They can accept less, because idle processes hold reservations.

Further costs of an accepted request are charged afterwards. The charge can use time ahead, up to MAX_DEBT_S. Then
requests are refused until that time has come. Requests that are under way together are all accepted before the first
one is charged, and what exceeds MAX_DEBT_S is forgiven.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from common.errors import RateExceeded
from common.storage import keys
from common.storage.conflicts import ConditionFailed
from common.storage.expressions import Attribute, change
from common.storage.metering import Meter, present_meter
from common.storage.table import Table

# So much of each is one request (docs/limits.md).
READ_UNITS: Final = 10
WRITE_UNITS: Final = 50
PROCESSOR_S: Final = 0.05

BUDGET_S: Final = 60
# The longest time that a tenant waits after expensive requests.
MAX_DEBT_S: Final = 300
_SHARES: Final = 100
_SECOND_US: Final = 1_000_000
_BUDGET_US: Final = BUDGET_S * _SECOND_US
# A process that was told that nothing is left does not ask again for so long: a flood of refusals costs few writes.
_PAUSE_S: Final = 0.5
_LIFETIME_S: Final = 600
_MAX_TENANTS: Final = 10_000
# Each failed write tells the stored instant. Others can have moved it on again by the next one.
_MAX_TRIES: Final = 4


@dataclass(slots=True)
class _Known:
    """What this process knows of a tenant's budget."""

    # Time is used up to here or a later instant.
    used_until_us: int = 0
    reserved: int = 0
    reserved_until: float = 0
    asks_again_at: float = 0


class RequestRate:
    """Counts requests in the tenants table. Use one instance per process."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._tenants: OrderedDict[str, _Known] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, tenant: str, most: int, now: float, weight: int = 1) -> None:
        """Count a request as `weight` requests, at most the whole budget of `most`. Raises RateExceeded."""
        needed = max(1, min(weight, most))
        with self._lock:
            known = self._known(tenant, now)
            if known.reserved < needed and most > 0:
                known.reserved += self._reserve(tenant, known, needed - known.reserved, most, now)
                known.reserved_until = now + BUDGET_S
            if known.reserved < needed:
                raise RateExceeded(most, _wait_s(known, needed - known.reserved, most, now))
            known.reserved -= needed
        _note(tenant, most, needed)

    def settle(self, meter: Meter, now: float) -> None:
        """Charge what a request has cost beyond what it was counted as. Never refuses."""
        if meter.payer and (more := requests_of(meter) - meter.counted) > 0:
            self.charge(*meter.payer, now, more)

    def charge(self, tenant: str, most: int, now: float, requests: int) -> None:
        """Count what an accepted request costs as so many more requests. Never refuses."""
        _note(tenant, most, requests)
        with self._lock:
            known = self._known(tenant, now)
            covered = min(known.reserved, requests)
            known.reserved -= covered
            if requests > covered and most > 0:
                cost_us = _cost_us(requests - covered, most)
                self._use(tenant, known, now, MAX_DEBT_S, lambda unused_us: min(cost_us, unused_us))

    def _known(self, tenant: str, now: float) -> _Known:
        known = self._tenants.setdefault(tenant, _Known())
        self._tenants.move_to_end(tenant)
        while len(self._tenants) > _MAX_TENANTS:
            self._tenants.popitem(last=False)
        if now >= known.reserved_until:
            known.reserved = 0
        return known

    def _reserve(self, tenant: str, known: _Known, missing: int, most: int, now: float) -> int:
        """Reserve a share, or what is left of it; 0 if less than `missing` is left."""

        def share_us(unused_us: int) -> int:
            requests = min(max(missing, most // _SHARES), unused_us * most // _BUDGET_US)
            return _cost_us(requests, most) if requests >= missing else 0

        if now < known.asks_again_at:
            return 0
        used_us = self._use(tenant, known, now, 0, share_us)
        if not used_us and known.used_until_us + _cost_us(1, most) > _us(now):
            known.asks_again_at = now + _PAUSE_S
        return round(used_us * most / _BUDGET_US)

    def _use(
        self, tenant: str, known: _Known, now: float, ahead_s: int, wanted_us: Callable[[int], int]
    ) -> int:
        """Use as much as `wanted_us` returns for the unused time until `ahead_s` from now. Returns what was used."""
        oldest_us, end_us = _us(now - BUDGET_S), _us(now + ahead_s)
        for _ in range(_MAX_TRIES):
            used_us = wanted_us(end_us - max(known.used_until_us, oldest_us))
            if used_us <= 0:
                return 0
            expires = {"expires_at": math.ceil(now) + ahead_s + _LIFETIME_S}
            used_until_us = Attribute("used_until_us")
            if known.used_until_us < oldest_us:
                usage = change({**expires, "used_until_us": oldest_us + used_us})
                condition = used_until_us.is_absent | (used_until_us < oldest_us)
            else:
                usage = change(expires, add={"used_until_us": used_us})
                condition = (used_until_us >= oldest_us) & (used_until_us <= end_us - used_us)
            try:
                item = self._table.update(keys.request_rate(tenant), usage, condition)
            except ConditionFailed as refused:
                stored = (refused.existing or {}).get("used_until_us", 0)
                if type(stored) is not int or stored > _us(now + MAX_DEBT_S + BUDGET_S):
                    # Damaged: nobody uses so much time ahead.
                    self._table.delete(keys.request_rate(tenant))
                    stored = 0
                known.used_until_us = stored
                continue
            known.used_until_us = item["used_until_us"]
            return used_us
        return 0


def requests_of(meter: Meter) -> int:
    """As how many requests the cost counts, rounded down."""
    return math.floor(
        meter.read_units / READ_UNITS + meter.write_units / WRITE_UNITS + meter.processor_s / PROCESSOR_S
    )


def _note(tenant: str, most: int, requests: int) -> None:
    if meter := present_meter():
        meter.counted += requests
        meter.payer = tenant, most


def _wait_s(known: _Known, missing: int, most: int, now: float) -> int:
    """The whole seconds until so many more requests are left, if nobody else sends any."""
    if most <= 0:
        return BUDGET_S
    missing_us = -(-missing * _BUDGET_US // most)
    return max(1, math.ceil((known.used_until_us + missing_us - _us(now)) / _SECOND_US))


def _cost_us(requests: int, most: int) -> int:
    # Rounded down: the shares of a budget then fit into it.
    return requests * _BUDGET_US // most


def _us(at: float) -> int:
    return math.floor(at * _SECOND_US)
