"""Why a job does not run. Each reason has a name here, and all that tells of it reads the same note.

The job's item has the reason's name, so that a run costs nothing unless it changes something. It is the truth: the
note, on the job's streak item (`failures.py`), only says more. A note belongs to the job and outlives its changes: it
ends by a run, by a change of what it is about, or with the job (`ended_by`). Each begin and each end is an event. An
address of a subscription that is switched off has such a note, too.
"""

from __future__ import annotations

import math
import secrets
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from typing import Final, NamedTuple

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from common.cache import convert
from common.jobs.job import CORRUPT, DELETED, PAUSED
from common.limits import STREAK_KEPT_S
from common.planning.execution import SCHEDULE
from common.runs import states
from common.runs.outcome import cut
from common.runs.run import Run
from common.storage import keys
from common.storage.expressions import Attribute
from common.storage.metering import in_threads
from common.storage.table import Query, Table
from common.storage.wire import DAMAGE, Expression, Item
from common.timing.instants import DAY_S


class Reason(NamedTuple):
    """When a job begins not to run for this reason, and when that is over. A pause by hand and a deletion end each."""

    begins: str
    is_over: str


PAUSED_AFTER_FAILURES: Final = "paused_after_failures"
ENDED: Final = "ended"
NEVER_FIRES: Final = "never_fires"
WAITS: Final = "waits"
UNREADABLE: Final = "unreadable"
ADDRESS_OFF: Final = "address_off"
ADDRESS_NOT_ALLOWED: Final = "address_not_allowed"
# Skips that nobody asked for. A suspended tenant is told by its state; what it alone lost, afterwards.
SKIPS: Final = (
    states.MISFIRE,
    states.MISSED,
    states.OVERLAP,
    states.CONCURRENCY,
    states.TARGET_NOT_ALLOWED,
    states.BLOCKED,
    states.INVALID,
)
_IS_SKIPPED: Final = Reason(
    "three runs in a row, or a tenth of a day's, or one that no other follows within 12 hours were skipped",
    "it runs again",
)
# A run does not end these, and no skip replaces them: those runs were planned before.
LASTING: Final = (PAUSED_AFTER_FAILURES, ENDED, NEVER_FIRES)
# How a note ends; a pause by hand, a resumption and a deletion end it, too.
RUNS_AGAIN: Final = "runs_again"
CHANGED: Final = "changed"
RESUMED: Final = "resumed"
OTHER_REASON: Final = "other_reason"
# Of all jobs. A secret that is gone fails the run: that is told as a failure, `SecretMissing`.
REASONS: Final[dict[str, Reason]] = {
    **dict.fromkeys(SKIPS, _IS_SKIPPED),
    states.SUSPENDED_TENANT: Reason(
        "one that no other follows within 12 hours was skipped since the tenant was suspended",
        "it runs again",
    ),
    PAUSED_AFTER_FAILURES: Reason("`pause_after_failures` paused it", "it is resumed"),
    ENDED: Reason(
        "its last fire time has passed: `end_at`, `max_runs` or the dates of calendars", "it changes"
    ),
    NEVER_FIRES: Reason(
        "it, or a calendar, was stored so that no fire time is left", "it or the calendar changes"
    ),
    WAITS: Reason(
        "a run has waited ten minutes for other runs, or a retry for a block, to end", "it runs again"
    ),
    UNREADABLE: Reason("a run is due, and what is stored of it cannot be read", "it is put again"),
    ADDRESS_OFF: Reason("the address of a subscription has failed for three days", "it is switched on"),
    ADDRESS_NOT_ALLOWED: Reason(
        "the platform does not allow the tenant the address of a subscription", "it allows it"
    ),
}

IN_ROW: Final = 3
# A share of the newest runs of a day, of so many at least; over at half of that.
SHARE: Final = 0.1
MIN_DUE: Final = 20
_DETAIL_BYTES: Final = 300
# Of a tenant, and tenants, that a look at the platform reads.
MAX_NOTES: Final = 500
MAX_STOPPED_TENANTS: Final = 200
_THREADS: Final = 10
_ADDRESS_MARK: Final = "#"


class NotRunning(Struct, frozen=True, omit_defaults=True):
    """A job that does not run. `name` is its id; of an address that is off, the subscription's name after a `#`.

    `is_share`: some runs are skipped, and others run.
    """

    reason: str
    since_at: int | float
    detail: str
    is_share: bool = False
    name: str = ""
    noted_at: int = 0

    @property
    def is_address(self) -> bool:
        return self.name.startswith(_ADDRESS_MARK)

    @property
    def subject(self) -> str:
        """The job's id, or the subscription's name."""
        return self.name.removeprefix(_ADDRESS_MARK)

    def note(self, now: float) -> Item:
        """What is stored of it now."""
        since_at, detail = math.floor(self.since_at), cut(self.detail, _DETAIL_BYTES)
        noted = replace(self, since_at=since_at, detail=detail, name="", noted_at=math.floor(now))
        note: Item = to_builtins(noted)
        return note

    @classmethod
    def of_item(cls, item: Item) -> NotRunning | None:
        """The note of a streak item; None if it has none that can be read."""
        with suppress(*DAMAGE):
            note = convert(item["not_running"], cls)
            if note.reason in REASONS:
                return replace(note, name=item["sk"].removeprefix(keys.STREAK_PREFIX))
        return None


def skipped(newest: Sequence[Run], now: float, known: str = "") -> NotRunning | None:
    """What the newest runs of a job, the newest first, say of skips. Pure.

    `known` is the reason that is noted: only a row of another one replaces it, not a share.
    """
    due = _due(newest)
    row = list(takewhile(lambda run: _is_skip(run) and (not known or run.reason == due[0].reason), due))
    if sum(map(_fires_of, row)) >= IN_ROW:
        detail = f"{sum(map(_fires_of, row))} runs in a row were skipped: {row[0].detail}"
        return NotRunning(row[0].reason, row[-1].skipped_from_at or row[-1].due_at, detail)
    of_day, skips = _of_day(due, now)
    if known or len(of_day) < MIN_DUE or len(skips) < SHARE * len(of_day):
        return None
    reason = Counter(run.reason for run in skips).most_common(1)[0][0]
    detail = f"{len(skips)} of the newest {len(of_day)} runs were skipped: {skips[0].detail}"
    return NotRunning(reason, skips[-1].due_at, detail, is_share=True)


def goes_on(noted: NotRunning, newest: Sequence[Run], now: float) -> bool:
    """Whether so many of the newest runs are skipped that what is noted is not over, although one ran. Pure."""
    due = _due(newest)
    of_day, skips = _of_day(due, now)
    if noted.is_share:
        return len(skips) >= SHARE / 2 * len(of_day) > 0
    return sum(map(_fires_of, takewhile(_is_skip, due))) >= IN_ROW


def _due(newest: Sequence[Run]) -> list[Run]:
    """The runs of the schedule that nobody asked to skip. One that waits is neither skipped nor run yet."""
    return [
        run
        for run in newest
        if run.trigger == SCHEDULE
        and run.status != states.QUEUED
        and (run.status != states.SKIPPED or _is_skip(run))
    ]


def _of_day(due: Sequence[Run], now: float) -> tuple[list[Run], list[Run]]:
    of_day = [run for run in due if run.fire_at > now - DAY_S]
    return of_day, [run for run in of_day if _is_skip(run)]


def _is_skip(run: Run) -> bool:
    return run.status == states.SKIPPED and run.reason in SKIPS


def _fires_of(run: Run) -> int:
    return run.skipped_count or 1


def ended_by(reason: str, before: str, after: str, *, same_note: bool) -> str:
    """How a change of a job's state ends such a note, in a word; empty: it goes on. Pure.

    `same_note`: so does what the job says of its pause.
    """
    if after == DELETED:
        return DELETED
    if before == CORRUPT:
        return CHANGED
    if reason != PAUSED_AFTER_FAILURES:
        return PAUSED if after == PAUSED else ""
    if after != PAUSED:
        return RESUMED
    return "" if same_note else PAUSED


def in_force(jobs: Table, tenant: str, notes: Sequence[NotRunning]) -> list[NotRunning]:
    """Those of the notes that their jobs' items have. A read of the jobs, if there are notes."""
    named = [keys.job(tenant, note.name) for note in notes]
    items = jobs.get_many(named, attributes=("sk", "not_running")) if named else ()
    reasons = {item["sk"].removeprefix(keys.JOB_PREFIX): item.get("not_running") for item in items}
    return [note for note in notes if reasons.get(note.name) == note.reason]


def of_tenant(jobs: Table, tenant: str, most: int, *, consistent: bool = False) -> Iterator[NotRunning]:
    """What is noted of a tenant's jobs, at most so many, by names. See `in_force`."""
    query = Query(
        tenant,
        sk_prefix=keys.STREAK_PREFIX,
        where=Expression("attribute_exists(#not_running)", {}),
        attributes=("sk", "not_running"),
        limit=most,
        consistent=consistent,
    )
    return filter(None, map(NotRunning.of_item, jobs.query(query)))


@dataclass(frozen=True, slots=True)
class StoppedOfTenant:
    """What does not run of a tenant now, the newest first. `complete`: these are all."""

    notes: tuple[NotRunning, ...]
    complete: bool

    @property
    def reasons(self) -> dict[str, int]:
        """How many have each reason."""
        return dict(sorted(Counter(note.reason for note in self.notes).items()))


def stopped_now(jobs: Table, tenant: str) -> StoppedOfTenant:
    """The notes in force. Two queries, and a read of the jobs that they name."""
    notes = list(of_tenant(jobs, tenant, MAX_NOTES + 1, consistent=True))
    present = [*in_force(jobs, tenant, notes), *addresses_off(jobs, tenant)]
    present.sort(key=lambda note: (-note.since_at, note.name))
    return StoppedOfTenant(tuple(present[:MAX_NOTES]), len(notes) <= MAX_NOTES)


def stopped_tenants(jobs: Table) -> tuple[dict[str, StoppedOfTenant], bool]:
    """What does not run of each tenant, by id, and whether these are all. Tenants that are over leave the list."""
    listed = list(jobs.query(Query(keys.STOPPED, limit=MAX_STOPPED_TENANTS + 1)))
    known = {item["sk"]: item for item in listed[:MAX_STOPPED_TENANTS]}
    read = in_threads(lambda tenant: stopped_now(jobs, tenant), list(known), _THREADS)
    of_tenants = dict(zip(known, read, strict=True))
    for tenant, stopped in of_tenants.items():
        if not stopped.notes and stopped.complete:
            jobs.delete_if(keys.stopped_tenant(tenant), Attribute("mark") == known[tenant].get("mark"))
    is_all = len(listed) <= MAX_STOPPED_TENANTS
    return {tenant: stopped for tenant, stopped in of_tenants.items() if stopped.notes}, is_all


def listing(tenant: str, now: float) -> Item:
    """Put with each note: the tenant in the list for the platform. The mark shows whether a note came since a look."""
    expires_at = math.floor(now) + STREAK_KEPT_S
    return {**keys.stopped_tenant(tenant), "mark": secrets.token_hex(8), "expires_at": expires_at}


def addresses_off(jobs: Table, tenant: str) -> Iterator[NotRunning]:
    """What is noted of a tenant's addresses that are switched off."""
    query = Query(keys.notices(tenant), sk_prefix=keys.STREAK_PREFIX)
    return filter(None, map(NotRunning.of_item, jobs.query(query)))


def address_off(tenant: str, subscription: str, since_at: float, error: str, now: float) -> Item:
    """The item of such a note. Pure."""
    note = NotRunning(
        ADDRESS_OFF, since_at, f"its address has failed for three days, last with {error}"
    ).note(now)
    streak = {"began_at": math.floor(now), "failures": 0, "failed_run": "", "revision": 0}
    kept = {"not_running": note, "expires_at": math.floor(now) + STREAK_KEPT_S}
    return {**keys.address_off(tenant, subscription), **streak, **kept}


def of_forbidden_address(subscription: str, stored_at: int, why: str) -> NotRunning:
    """What a look says of an address that the platform does not allow. Since when is not known: it was stored then."""
    return NotRunning(
        ADDRESS_NOT_ALLOWED, stored_at, why, name=f"{_ADDRESS_MARK}{subscription}", noted_at=stored_at
    )
