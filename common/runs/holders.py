"""Who holds the permits of a key, and who waits for a permit.

Overlap is a key with a single permit, which is for all attempts of a run. A concurrency key has several permits, each
for a single attempt. A key's item in the runs table has the holders with the ends of their leases, and the first runs
that wait. The runs' records are the truth, and a lease is a hint: a run that finds no permit reads the records of the
holders, and frees those that have ended. Whoever frees a permit wakes the runs that have waited longest: a run in line
has no message of its own. A list of the keys with a line lets a chore find what was overlooked (`scheduler/lines.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple, TypeVar

from msgspec import Struct, ValidationError, structs, to_builtins

from common.cache import convert
from common.clock import Clock
from common.planning.execution import Execution, UnreadableMessage
from common.planning.queue import ExecutionsQueue
from common.runs.run import LEASE_BOUNDS_S, LEASE_MARGINS_S, Doing, Run
from common.runs.states import ENDED, RUNNING
from common.storage import keys
from common.storage.table import Table
from common.storage.wire import Item
from common.timing.instants import DAY_S

# Whoever holds a permit ends it by then.
MAX_WAIT_S: Final = max(LEASE_BOUNDS_S.values())
# The item holds so many runs that wait, in their order. Others come after these, in no order.
MAX_PLACES: Final = 50
# A place outlives its wait, so that a chore finds whoever has waited too long.
_PLACE_KEPT_S: Final = DAY_S
_RETENTION_S: Final = 7 * DAY_S


class Lease(Struct, frozen=True):
    """A holder's lease. `attempt` 0: the permit is for all attempts of the run."""

    until: float
    attempt: int
    doing: Doing

    @property
    def bound_s(self) -> int:
        """How far away its end can be."""
        return LEASE_BOUNDS_S[self.doing] + LEASE_MARGINS_S


class Place(Struct, frozen=True):
    """A run that waits `since` then, at most `until` then.

    `permits`: how many the key has, by its job. `message`: its execution.
    """

    since: float
    until: float
    attempt: int
    permits: int
    message: str

    @property
    def bound_s(self) -> int:
        """How far away its end can be."""
        return MAX_WAIT_S + LEASE_MARGINS_S


Entry = TypeVar("Entry", Lease, Place)
Named = tuple[str, Lease | Place]


@dataclass(frozen=True, slots=True)
class Limit:
    """A key whose permit an attempt needs. `attempt` 0: the permit is for all attempts of the run.

    The attempt may wait until `wait_until` if fewer than `places` others do. The lease outlives that of the call by
    `margin_s`. Runs that began before `since` hold nothing: their job was deleted, and this one has its id.
    """

    key: keys.Key
    permits: int
    attempt: int
    places: int
    wait_until: float
    margin_s: int = 0
    since: float = 0.0


class Permit(NamedTuple):
    """A permit that an attempt has. `is_new`: it was taken just now. `stored`: the key's item, if it is known."""

    key: keys.Key
    execution: Execution
    attempt: int
    is_new: bool = False
    stored: Item | None = None


class State(NamedTuple):
    """The holders and the runs that wait, by their names. Of a lease that is over, its run's record decides."""

    holders: dict[str, Lease]
    waiting: dict[str, Place]

    @classmethod
    def of(cls, stored: Item | None, now: float) -> State:
        """What an item holds. What somebody has damaged is past: the limit is exceeded until those runs end.

        Nobody waits behind a damaged place, whose run a chore finds by its record. Pure.
        """
        item = stored or {}
        return cls(_possible(item.get("holders"), Lease, now), _possible(item.get("waiting"), Place, now))

    def to_item(self) -> Item | None:
        """The item; None if there is nothing to store."""
        if not self.holders and not self.waiting:
            return None
        ends = [held.until for held in self.holders.values()]
        ends += [place.until for place in self.waiting.values()]
        return {
            "holders": to_builtins(self.holders),
            "waiting": to_builtins(self.waiting),
            "expires_at": int(max(ends)) + _RETENTION_S,
        }

    def without(self, ended: Iterable[Named]) -> State:
        """Without these entries, unless they have changed since."""
        past = list(ended)
        return State(
            {name: held for name, held in self.holders.items() if (name, held) not in past},
            {name: place for name, place in self.waiting.items() if (name, place) not in past},
        )

    def in_line(self) -> list[str]:
        """The names of those that wait, in their order."""
        return sorted(self.waiting, key=lambda name: (self.waiting[name].since, name))

    def in_line_but(self, name: str) -> list[str]:
        """The others that wait, in their order."""
        return [other for other in self.in_line() if other != name]

    def is_free_for(self, name: str, permits: int) -> bool:
        """Whether there is a permit for this run, which may be new. Nobody overtakes those that wait longer."""
        line = self.in_line()
        ahead = line.index(name) if name in line else len(line)
        return len(self.holders) + ahead < permits

    def holding(self, name: str, lease: Lease) -> State:
        """With this holder, which no longer waits."""
        waiting = {other: place for other, place in self.waiting.items() if other != name}
        return State({**self.holders, name: lease}, waiting)

    def woken(self, now: float) -> list[Execution]:
        """Those that can go on now, the one that waits longest first."""
        going = sum(held.until >= now for held in self.holders.values())
        line = enumerate((self.waiting[name] for name in self.in_line()), going)
        return [Execution.decode(place.message) for nth, place in line if nth < place.permits]

    def with_permits(self, permits: Mapping[str, int]) -> State:
        """With these numbers of permits by the ids of jobs, which a person may have changed since."""
        waiting = {
            name: structs.replace(place, permits=permits.get(name.partition(":")[0], place.permits))
            for name, place in self.waiting.items()
        }
        return State(self.holders, waiting)


class Full(NamedTuple):
    """There is no permit: who has them, and who else waits.

    `has_place`: the attempt waits in line, and is woken. `record`: its own record, if that shows that the attempt does
    not wait for its turn. It has no place then.
    """

    state: State
    waiting: Sequence[str]
    has_place: bool = False
    record: Run | None = None

    @property
    def holders(self) -> Sequence[str]:
        """The names of those that have a permit."""
        return sorted(self.state.holders)


class TakeResult(NamedTuple):
    """Whether the permit that an attempt has now is new, or why it has none; and who goes on by what was freed."""

    answer: bool | Full
    woken: Sequence[Execution] = ()


def take(
    stored: Item | None,
    execution: Execution,
    limit: Limit,
    lease: Lease,
    now: float,
    ended: Sequence[Named] | None = None,
) -> tuple[Item | None, TakeResult]:
    """The item with the attempt's lease, and whether it is new; or why it has none. Pure.

    `ended`: entries that have ended; the attempt then takes a place, if it may wait. None: nobody has looked yet.
    """
    name, before = name_of(execution), State.of(stored, now)
    state = before.without(ended or ())
    own = state.holders.pop(name, None)
    is_held = own is not None and own.attempt == lease.attempt
    if own and is_held and own.until >= lease.until:
        return stored, TakeResult(False)
    if is_held or state.is_free_for(name, limit.permits):
        after, answer = state.holding(name, lease), TakeResult(not is_held)
    elif ended is None:
        return stored, TakeResult(Full(state, state.in_line_but(name)))
    else:
        after, full = _waiting(state, execution, limit, now)
        answer = TakeResult(full)
    freed = len(before.holders) > len(state.holders) + is_held
    woken = [waits for waits in after.woken(now) if name_of(waits) != name] if freed else ()
    return (stored if after == before else after.to_item()), answer._replace(woken=woken)


def _waiting(state: State, execution: Execution, limit: Limit, now: float) -> tuple[State, Full]:
    """The state with the attempt in line, if it may wait."""
    name = name_of(execution)
    full = Full(state, state.in_line_but(name))
    waiting = dict(state.waiting)
    if len(full.waiting) < limit.places:
        since = waiting[name].since if name in waiting else now
        waiting[name] = Place(since, limit.wait_until, execution.attempt, limit.permits, execution.encode())
        full = full._replace(has_place=True)
    return State(state.holders, waiting).with_permits({execution.job_id: limit.permits}), full


def leave(
    stored: Item | None, permit: Permit, now: float, *, is_copy: bool = False, only_places: bool = False
) -> tuple[Item | None, tuple[bool, list[Execution]]]:
    """The item without the attempt's permit or place, whether it had one, and those that can go on. Pure.

    A copy of a message of an ended run finds nothing to leave, and wakes nobody: otherwise each copy would make
    copies of the next run's message, and those the copies of the one after it.
    """
    name, state = name_of(permit.execution), State.of(stored, now)
    own = [
        (name, entry)
        for part in (state[1:] if only_places else state)
        if (entry := part.get(name)) and (entry.attempt == permit.attempt or not permit.attempt)
    ]
    remaining = state.without(own)
    woken = remaining.woken(now) if own or not is_copy else []
    return remaining.to_item() if own else stored, (bool(own), woken)


def keep(stored: Item | None, permit: Permit, lease: Lease, now: float) -> tuple[Item | None, None]:
    """The item with this end of the attempt's lease. Pure.

    Who has lost the permit gets it back only if it goes on: a run between two attempts takes it from nobody.
    """
    name, state = name_of(permit.execution), State.of(stored, now)
    if name not in state.holders and lease.doing == "retry":
        return stored, None
    return state.holding(name, lease).to_item(), None


def has_ended(record: Run | None, entry: Lease | Place, now: float) -> bool:
    """Whether the record shows that a run no longer needs its permit or place. Pure.

    After the end of its lease the record must show that it goes on. None: it has no record, or a damaged one.
    """
    is_over = isinstance(entry, Lease) and entry.until < now
    if record is None:
        return is_over
    if isinstance(entry, Place):
        return record.status in ENDED
    if now <= record.work_until and record.attempt == (entry.attempt or record.attempt):
        return False
    if record.status in ENDED:
        return True
    if entry.attempt and record.attempt != entry.attempt:
        return is_over or record.attempt > entry.attempt
    if entry.attempt and record.status != RUNNING:
        return True
    return is_over and not (record.status == RUNNING and now <= record.lease_until)


def name_of(execution: Execution) -> str:
    """The name of a run among the holders of a key, which are of one tenant."""
    return f"{execution.job_id}:{execution.run_name}"


@dataclass(frozen=True, slots=True)
class Holders:
    """The items in the runs table. Every write is a `swap`, so that a limit is exact."""

    runs: Table
    queue: ExecutionsQueue
    clock: Clock

    def take(self, limit: Limit, execution: Execution, lease_until: float) -> Permit | Full:
        """Take a permit for an attempt. Without one it takes a place, if it may wait. Raises Busy."""
        lease = Lease(lease_until + limit.margin_s, limit.attempt, "call")
        now = self.clock.now()
        ask = partial(take, execution=execution, limit=limit, lease=lease, now=now)
        stored, result = self.runs.swap(limit.key, ask)
        if isinstance(result.answer, Full):
            own = name_of(execution)
            record, ended = self.looked_up(result.answer.state, execution.tenant, own, limit.since)
            if record and not record.waits_for(execution.attempt):
                return result.answer._replace(record=record)
            ask = partial(ask, ended=ended)
            changed, result = ask(stored)
            if changed != stored:
                if isinstance(result.answer, Full) and result.answer.has_place and not result.answer.waiting:
                    self.runs.put({**keys.line(limit.key), "at": now})  # before the first one has its place
                stored, result = self.runs.swap(limit.key, ask, stored)
            self.wake(result.woken)
        if isinstance(result.answer, Full):
            return result.answer
        return Permit(limit.key, execution, limit.attempt, result.answer, stored)

    def keep(self, permits: Iterable[Permit], until: float, doing: Doing) -> None:
        """Keep the permits until then."""
        now = self.clock.now()
        for permit in permits:
            lease = Lease(until, permit.attempt, doing)
            self.runs.swap(permit.key, partial(keep, permit=permit, lease=lease, now=now), permit.stored)

    def free(
        self, permits: Iterable[Permit], *, is_copy: bool = False, only_places: bool = False
    ) -> list[keys.Key]:
        """Free these permits, or the places of who waits for them, and wake those that can go on.

        Who may have died in between does it again. `is_copy`: another message has done it. Returns the keys of which
        there was something to free.
        """
        now, freed = self.clock.now(), []
        for permit in permits:
            change = partial(leave, permit=permit, now=now, is_copy=is_copy, only_places=only_places)
            _, (is_freed, woken) = self.runs.swap(permit.key, change, permit.stored)
            self.wake(woken)
            freed += [permit.key] if is_freed else []
        return freed

    def wake(self, executions: Sequence[Execution]) -> None:
        """Send the messages of runs that can go on."""
        now = int(self.clock.now())
        self.queue.send([structs.replace(execution, not_before_at=now) for execution in executions])

    def looked_up(
        self, state: State, tenant: str, own: str = "", since: float = 0.0
    ) -> tuple[Run | None, list[Named]]:
        """The record of the run `own`; and which holders, and whether the first that waits, have ended by theirs."""
        first, now = state.in_line()[:1], self.clock.now()
        entries: list[Named] = [*state.holders.items(), *((name, state.waiting[name]) for name in first)]
        records = self._records(tenant, (own, *(name for name, _ in entries)))
        ended = []
        for name, entry in entries:
            of_entry = records.get(name)
            is_former = of_entry is not None and 0 < of_entry.first_started_at < since
            if is_former or has_ended(of_entry, entry, now):
                ended.append((name, entry))
        return records.get(own), ended

    def shown(self, tenant: str, concurrency_key: str) -> tuple[State, dict[str, Run]]:
        """Who has the permits of a concurrency key by their records, and who waits; with the holders' records."""
        now = self.clock.now()
        state = State.of(self.runs.get(keys.key_permits(tenant, concurrency_key)), now)
        records = self._records(tenant, [*state.holders, *state.waiting])
        entries: list[Named] = [*state.holders.items(), *state.waiting.items()]
        return state.without(
            [(name, own) for name, own in entries if has_ended(records.get(name), own, now)]
        ), records

    def _records(self, tenant: str, names: Iterable[str]) -> dict[str, Run]:
        """The records of runs by their names among the holders. Of a damaged one nobody knows: its lease counts."""
        records: dict[str, Run] = {}
        for item in self.runs.get_many([key for name in dict.fromkeys(names) if (key := _key(tenant, name))]):
            with suppress(ValidationError):
                record = Run.from_item(item)
                records[f"{record.job_id}:{record.run_name}"] = record
        return records


def _possible(entries: object, kind: type[Entry], now: float) -> dict[str, Entry]:
    """Those whose end is not further away than it can be. A place is kept for a day after its end."""
    possible = {}
    for name, entry in entries.items() if isinstance(entries, dict) else ():
        with suppress(ValidationError, UnreadableMessage):
            read = convert(entry, kind)
            from_at = 0.0
            if isinstance(read, Place):
                from_at = now - _PLACE_KEPT_S
                Execution.decode(read.message)
            if from_at <= read.until <= now + read.bound_s:
                possible[name] = read
    return possible


def damaged_names(stored: Item) -> list[str]:
    """The runs of a key's item whose lease or place cannot be read; `holders` or `waiting`: none of them can. Pure."""
    damaged = []
    for part, kind in (("holders", Lease), ("waiting", Place)):
        entries = stored.get(part)
        if not isinstance(entries, dict):
            damaged.append(part)
            continue
        for name, entry in entries.items():
            try:
                convert(entry, kind)
                is_readable = kind is Lease or bool(Execution.decode(entry["message"]))
            except (ValidationError, UnreadableMessage):
                is_readable = False
            if not is_readable:
                damaged.append(name)
    return damaged


def _key(tenant: str, name: str) -> keys.Key | None:
    """The key of a run of the tenant; None for a name that nobody has written."""
    job_id, _, run_name = name.partition(":")
    return keys.run(tenant, job_id, run_name) if job_id and run_name else None
