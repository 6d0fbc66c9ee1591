"""Slots: at most so many attempts of all of a tenant's jobs with the same key go at a time.

One item per key holds the leases of the attempts that go, and the first runs that wait. It is written only as it was
read. A lease outlives that of its attempt, so the slot of a dead executor comes back by itself. A slot that becomes
free wakes the run that has waited longest; each waiting run also looks by itself from time to time.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from common.clock import Clock
from common.jobs.spec import Concurrency
from common.planning.execution import BACKFILL, Execution
from common.planning.queue import ExecutionsQueue
from common.runs import states
from common.runs.claims import Claim
from common.storage import keys
from common.storage.conflicts import ConditionFailed
from common.storage.table import Table
from common.storage.wire import Expression, Item
from common.texts import UNREADABLE
from common.timing.instants import DAY_S
from executor.admission import Skip, Wait

Result = TypeVar("Result")
# A run's executor may need so long to free its slot, and clocks may differ.
_LEASE_MARGIN_S: Final = 60
# A waiting run looks again by itself after so long, and loses its place if it did not for twice as long.
LOOK_EVERY_S: Final = 30
# The item holds so many runs that wait, in their order. Others come after these, in no order.
MAX_PLACES: Final = 50
_MAX_TRIES: Final = 20
_RETENTION_S: Final = 15 * DAY_S


@dataclass(frozen=True, slots=True)
class Slot:
    """A slot that the run has. `is_new`: this claim took it."""

    is_new: bool


class Full(Exception):
    """Others write the item without end."""


@dataclass(frozen=True, slots=True)
class Slots:
    """The items, in the runs table."""

    table: Table
    queue: ExecutionsQueue
    clock: Clock

    def take(self, concurrency: Concurrency, claim: Claim) -> Slot | Skip | Wait:
        """Take a slot for a claim, or decide what the execution does without one."""
        execution = claim.execution

        def with_slot(item: Item, now: float) -> tuple[Item, Slot | Skip | Wait]:
            name = _name(execution)
            if name in item["holders"]:
                return item, Slot(is_new=False)
            free = concurrency.limit - len(item["holders"])
            if free > _ahead(item["waiting"], name):
                waiting = {each: place for each, place in item["waiting"].items() if each != name}
                return _with_holder(item, name, claim) | {"waiting": waiting}, Slot(is_new=True)
            decision = decide(concurrency, execution, sorted(item["holders"]), now)
            if isinstance(decision, Skip) or (
                len(item["waiting"]) >= MAX_PLACES and name not in item["waiting"]
            ):
                return item, decision
            since = item["waiting"].get(name, {}).get("since", now)
            place = {"since": since, "until": now + 2 * LOOK_EVERY_S, "message": execution.encode()}
            return item | {"waiting": {**item["waiting"], name: place}}, decision

        return self._change(keys.slots(execution.tenant, concurrency.key), with_slot)

    def renew(self, key: str, claim: Claim) -> None:
        """Hold the slot for this claim, and until its lease ends."""

        def renewed(item: Item, now: float) -> tuple[Item, None]:
            return _with_holder(item, _name(claim.execution), claim), None

        self._change(keys.slots(claim.execution.tenant, key), renewed)

    def free(self, key: str, execution: Execution, token: str) -> None:
        """Free the slot of this claim, and wake those that may go on."""

        def freed(item: Item, now: float) -> tuple[Item, list[str]]:
            name = _name(execution)
            if item["holders"].get(name, {}).get("token") != token:
                return item, []
            holders = {each: lease for each, lease in item["holders"].items() if each != name}
            first, *_ = sorted(item["waiting"].values(), key=_since) or [None]
            return item | {"holders": holders}, [first["message"]] if first else []

        woken = self._change(keys.slots(execution.tenant, key), freed)
        self.queue.send([replace(Execution.decode(message), not_before_at=0) for message in woken])

    def _change(self, key: keys.Key, change: Callable[[Item, float], tuple[Item, Result]]) -> Result:
        """Write what `change` makes of the item, unless it is the same; again if it was changed meanwhile."""
        for _ in range(_MAX_TRIES):
            now = self.clock.now()
            stored = self.table.get(key) or {}
            item = {name: _living(stored.get(name), now) for name in ("holders", "waiting")}
            changed, result = change(item, now)
            if changed == item:
                return result
            version = stored.get("version", 0)
            next_version = version + 1 if isinstance(version, int) else 1
            expires = {"expires_at": int(_last(changed, now)) + _RETENTION_S, "version": next_version}
            as_read = Expression(
                "attribute_not_exists(#version) OR #version = :version", {":version": version}
            )
            try:
                self.table.put({**key, **changed, **expires}, as_read)
                return result
            except ConditionFailed:
                self.clock.sleep(random.uniform(0.005, 0.05))
        raise Full(f"{key['pk']} was changed by others {_MAX_TRIES} times")


def decide(concurrency: Concurrency, execution: Execution, holders: list[str], now: float) -> Skip | Wait:
    """What an execution does without a slot; later attempts and runs of a backfill wait by any policy. Pure."""
    runs, are = ("run", "is") if len(holders) == 1 else ("runs", "are")
    going = f"{len(holders)} {runs} of the concurrency key {concurrency.key} {are} going"
    going += f", such as {holders[0]}" if holders else ", or waiting"
    must_run = execution.attempt > 1 or execution.trigger == BACKFILL
    if concurrency.when_full == "skip" and not must_run:
        return Skip(states.CONCURRENCY, going)
    asked_at = (
        execution.first_due_at if execution.attempt == 1 and execution.first_due_at else execution.due_at
    )
    if now - asked_at > concurrency.max_wait_s:
        return Skip(states.CONCURRENCY, f"{going}; it waited {now - asked_at:.0f} s for its turn")
    latest = asked_at + concurrency.max_wait_s + 1
    return Wait(int(min(now + LOOK_EVERY_S, latest)) + 1, f"{going}; it waits", queues_up=False)


def _name(execution: Execution) -> str:
    return f"{execution.job_id}:{execution.run_name}"


def _ahead(waiting: Mapping[str, Item], name: str) -> int:
    """How many have waited longer than this run, which may be new."""
    if name not in waiting:
        return len(waiting)
    return sum((_since(place), other) < (_since(waiting[name]), name) for other, place in waiting.items())


def _since(place: Item) -> float:
    return float(place["since"])


def _with_holder(item: Item, name: str, claim: Claim) -> Item:
    lease = {"until": claim.lease_until + _LEASE_MARGIN_S, "token": claim.token}
    return item | {"holders": {**item["holders"], name: lease}}


def _living(places: object, now: float) -> dict[str, Item]:
    """The places that are held. What somebody has damaged is free: the limit is exceeded until those runs end."""
    with suppress(*UNREADABLE, AttributeError):
        return {name: place for name, place in places.items() if place["until"] >= now}  # type: ignore[attr-defined]
    return {}


def _last(item: Item, now: float) -> float:
    return max(
        (place["until"] for name in ("holders", "waiting") for place in item[name].values()), default=now
    )
