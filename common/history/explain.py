"""Why a job is, or is not, due at an instant, and what became of it: in words and as data. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from typing import Any, Final

from msgspec import structs

from common.history.expected import (
    CANCELLED,
    LATE,
    MISSED,
    NO_RECORD,
    NOT_KEPT,
    ON_TIME,
    OVERDUE,
    QUEUED,
    RUNNING,
    SKIPPED,
    TO_COME,
    InstantOutcome,
)
from common.history.schedule_history import ScheduleHistory, ScheduleVersion
from common.jobs.delivery import Delivery
from common.jobs.job import ACTIVE
from common.jobs.ledger import JobTimes
from common.runs.run import Run
from common.timing.compiled import compiled, in_all_clocks
from common.timing.cron import Cron, CronInYears
from common.timing.date_bits import date_bits
from common.timing.excluded_days import WEEKDAYS, Dates, calendar_days
from common.timing.fires import cron_fires, fires, first_firing, local_date
from common.timing.instants import DAY_S, EPOCH_ORDINAL, rfc3339
from common.timing.schedule import SKIP, AtTiming, CronTiming, EveryTiming, ManyTiming, Schedule
from common.timing.zones import Change, changes, offset_at

NOT_MATCHED: Final = "not_matched"
CLOCK_CHANGE: Final = "clock_change"
EXCLUDED_DATE: Final = "excluded_date"
CALENDAR: Final = "calendar"
BOUNDS: Final = "bounds"
PAUSED: Final = "paused"
NO_JOB: Final = "no_job"
NOT_YET: Final = "not_yet_in_force"
UNKNOWN: Final = "unknown"
SUSPENDED: Final = "suspended"
TARGET_NOT_ALLOWED: Final = "target_not_allowed"
BLOCKED: Final = "blocked"

_MAX_SHIFT_S: Final = 26 * 3_600
_MONTHS: Final = ("", "January", "February", "March", "April", "May", "June", "July", "August", "September",
                  "October", "November", "December")  # fmt: skip
_WEEKDAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")

# The dates of one named calendar.
DatesOf = Callable[[str], Dates]


@dataclass(frozen=True, slots=True)
class Reason:
    """A condition that keeps a job from being due: a code, a sentence, and the data behind it."""

    code: str
    text: str
    data: Mapping[str, Any] = field(default_factory=dict)


def why_not(history: ScheduleHistory, at: int, dates_of: DatesOf) -> list[Reason] | None:
    """Everything that keeps the job from being due at an instant; None if nothing does."""
    version = history.at(at)
    if version is None:
        why = "A calendar that it names has changed since, and its former dates are not kept. "
        known = f"What the job's times were is known from {_known(history)} on."
        return [Reason(UNKNOWN, (why if history.by_calendar else "") + known)]
    if version.times is None:
        return [_no_job(version)]
    reasons = list(_of_version(version, version.times, at)) + list(
        schedule_reasons(version.times.schedule, at, dates_of)
    )
    return reasons or None


def schedule_reasons(schedule: Schedule, at: int, dates_of: DatesOf) -> Iterator[Reason]:
    """Why a schedule does not fire at an instant."""
    timing = schedule.timing
    match timing:
        case ManyTiming(schedules):
            if not _fires(schedule, at, dates_of):
                for place, part in enumerate(schedules):
                    for reason in schedule_reasons(part, at, dates_of):
                        yield replace(reason, text=f"schedules.{place}: {reason.text}")
        case CronTiming():
            is_plain = schedule.on_excluded == SKIP and not schedule.interval
            if is_plain or not _fires(schedule, at, dates_of):
                yield from _cron_reasons(timing, at)
                yield from _interval_reasons(schedule, at)
        case EveryTiming(interval_s, anchor_at):
            if (since_s := (at - anchor_at) % interval_s) != 0:
                before, after = rfc3339(at - since_s), rfc3339(at - since_s + interval_s)
                yield _not_matched("every", f"It fires at {before} and then at {after}.", before, after)
        case AtTiming(once_at):
            if at != once_at:
                yield _not_matched("at", f"It fires once, at {rfc3339(once_at)}.", rfc3339(once_at))
    yield from _outside_bounds(schedule, at)
    if not isinstance(timing, ManyTiming):
        yield from _excluded(schedule, at, dates_of)


def _outside_bounds(schedule: Schedule, at: int) -> Iterator[Reason]:
    if schedule.start_at is not None and at < schedule.start_at:
        yield Reason(
            BOUNDS,
            f"It fires from {rfc3339(schedule.start_at)} on.",
            {"start_at": rfc3339(schedule.start_at)},
        )
    if schedule.end_at is not None and at >= schedule.end_at:
        yield Reason(
            BOUNDS, f"It fires before {rfc3339(schedule.end_at)} only.", {"end_at": rfc3339(schedule.end_at)}
        )


def _excluded(schedule: Schedule, at: int, dates_of: DatesOf) -> Iterator[Reason]:
    day = local_date(schedule, at)
    moves = (
        ""
        if schedule.on_excluded == SKIP
        else f" Its times of such a date move to the {schedule.on_excluded} one."
    )
    if day in schedule.exclude_dates:
        yield Reason(EXCLUDED_DATE, f"Its schedule excludes {day}.{moves}", {"date": day})
    if (weekday := WEEKDAYS[date.fromisoformat(day).weekday()]) in schedule.exclude_weekdays:
        yield Reason(EXCLUDED_DATE, f"Its schedule excludes each {weekday}.{moves}", {"date": day})
    for name in schedule.calendars:
        if day in dates_of(name):
            yield Reason(
                CALENDAR, f"The calendar {name} holds {day}.{moves}", {"calendar": name, "date": day}
            )
    included = schedule.include_calendars
    if included and not any(day in dates_of(name) for name in included):
        text = f"It fires on the dates of {' and '.join(included)} only, and {day} is none.{moves}"
        yield Reason(CALENDAR, text, {"calendars": list(included), "date": day})


def _interval_reasons(schedule: Schedule, at: int) -> Iterator[Reason]:
    interval, day = schedule.interval, date.fromisoformat(local_date(schedule, at))
    if interval and not interval.named_days(day.year) >> day.timetuple().tm_yday - 1 & 1:
        text = f"It fires on dates in steps of {interval.text} from {interval.from_date}, and {day} is none."
        yield _not_matched("every", text, interval.text)


def _fires(schedule: Schedule, at: int, dates_of: DatesOf) -> bool:
    """Whether it fires at an instant, its bounds apart."""
    unbounded = structs.replace(schedule, start_at=None, end_at=None)
    return any(True for _ in fires(unbounded, at, at + 1, excluded=calendar_days(schedule, dates_of)))


def _of_version(version: ScheduleVersion, times: JobTimes, at: int) -> Iterator[Reason]:
    change = version.began_by
    by = {"by": change.by, "at": rfc3339(change.at)} if change else {}
    words = f" by {change.author} at {rfc3339(change.at)}" if change else " before the audit begins"
    if times.state != ACTIVE:
        note = str(change.after.get("note", "")) if change else ""
        note_words = f": {note}" if note else ""
        verb = "is" if version.until_at == math.inf else "was"
        yield Reason(PAUSED, f"The job {verb} paused{words}{note_words}.", {**by, "note": note})
    elif at < times.effective_at:
        since = rfc3339(times.effective_at)
        yield Reason(NOT_YET, f"Its times are in force from {since} on.", {"effective_at": since, **by})


def _no_job(version: ScheduleVersion) -> Reason:
    change = version.began_by
    if change and change.action == "job.deleted":
        at = rfc3339(change.at)
        return Reason(NO_JOB, f"The job was deleted by {change.author} at {at}.", {"by": change.by, "at": at})
    return Reason(NO_JOB, "The job did not exist yet.")


def _known(history: ScheduleHistory) -> str:
    return rfc3339(int(history.known_from_at) + 1) if history.versions else "no instant"


def _cron_reasons(timing: CronTiming, at: int) -> Iterator[Reason]:
    """Each field that does not match; or the clock change, if all do and it still does not fire."""
    cron, zone = compiled(timing), timing.timezone
    if any(True for _ in cron_fires(cron, zone, at, at + 1)):
        return
    unmatched = list(_unmatched(cron, zone, at))
    if unmatched and any(True for _ in cron_fires(in_all_clocks(timing), zone, at, at + 1)):
        yield Reason(
            CLOCK_CHANGE,
            f"The clock of {zone} skipped the time that it names; by EventBridge's rule it does not fire then.",
            {"changed_at": rfc3339(gap.at) if (gap := _gap(zone, at)) else None},
        )
        return
    if unmatched:
        yield from unmatched
        return
    local = datetime.fromtimestamp(at + offset_at(zone, at), UTC)
    first = next((change for change in reversed(list(changes(zone, at - _MAX_SHIFT_S, at + 1)))), None)
    earlier = rfc3339(at - (first.before - first.after)) if first else ""
    yield Reason(
        CLOCK_CHANGE,
        f"The clock of {zone} shows {local:%H:%M} twice on this date; it fired the first time, at {earlier}.",
        {"first_at": earlier, "changed_at": rfc3339(first.at) if first else None},
    )


def _unmatched(cron: Cron, zone: str, at: int) -> Iterator[Reason]:
    local = datetime.fromtimestamp(at + offset_at(zone, at), UTC)
    if local.second not in cron.seconds:
        yield _not_matched("second", f"Its seconds are not {local.second}.", local.second)
    if not cron.minutes >> local.minute & 1:
        yield _not_matched("minute", f"Its minutes do not include {local.minute}.", local.minute)
    if not cron.hours >> local.hour & 1:
        yield _not_matched("hour", f"Its hours do not include {local.hour} ({zone}).", local.hour)
    month, date = date_bits((at + offset_at(zone, at)) // DAY_S + EPOCH_ORDINAL)
    if not cron.months & month:
        yield _not_matched("month", f"Its months do not include {_MONTHS[local.month]}.", local.month)
    if isinstance(cron, CronInYears) and not cron.years & date:
        yield _not_matched("year", f"Its years do not include {local.year}.", local.year)
    on_day, on_weekday = bool(cron.days & date), bool(cron.weekdays & date)
    weekday = _WEEKDAYS[local.weekday()]
    if cron.either_day:
        if not on_day and not on_weekday:
            text = (
                f"Neither its days of the month nor its days of the week include {weekday} the {local.day}."
            )
            yield _not_matched("day", text, local.day)
        return
    if not on_day:
        yield _not_matched("day", f"Its days of the month do not include the {local.day}.", local.day)
    if not on_weekday:
        yield _not_matched(
            "weekday", f"Its days of the week do not include {weekday} the {local.day}.", weekday
        )


def _not_matched(field: str, text: str, *values: Any) -> Reason:
    return Reason(NOT_MATCHED, text, {"field": field, "values": list(values)})


def why_there(schedule: Schedule, at: int, dates_of: DatesOf) -> str:
    """Which of several schedules fires, and whether a fire stands for skipped local times, or was moved; else empty."""
    if isinstance(schedule.timing, ManyTiming):
        place = first_firing(schedule, at, excluded=calendar_days(schedule, dates_of))
        why = why_there(schedule.parts[place], at, dates_of) if place is not None else ""
        return f"Its schedules.{place} fires then. {why}".rstrip() if place is not None else ""
    if not isinstance(schedule.timing, CronTiming):
        return ""
    zone = schedule.timing.timezone
    if next(_unmatched(compiled(schedule.timing), zone, at), None) is None:
        return ""
    if _gap(zone, at) is None:
        return (
            f"It moves there from an excluded date ({schedule.on_excluded})."
            if schedule.on_excluded != SKIP
            else ""
        )
    return f"The clock of {zone} skipped the time that it names; it fires at the first instant after that."


def _gap(zone: str, at: int) -> Change | None:
    """The clock change that skipped times right before an instant."""
    return next((change for change in changes(zone, at - 60, at + 1) if change.after > change.before), None)


NOT_DUE: Final = "not_due"
_STATUS_WORDS: Final = {
    SKIPPED: "it was skipped",
    MISSED: "it was missed",
    CANCELLED: "it was cancelled",
    QUEUED: "it waits for its turn",
    NO_RECORD: "nothing is recorded, which must never be: ask the platform's operator to run `minute8 doctor`",
    NOT_KEPT: "its run is no longer kept",
}


@dataclass(frozen=True, slots=True)
class Explanation:
    """`status` is one of `expected.STATUSES`, `not_due` or `unknown`. `instants` are the runs and due instants."""

    status: str
    text: str
    reasons: Sequence[Reason]
    instants: Sequence[InstantOutcome]


def explain(
    history: ScheduleHistory,
    at: int,
    instants: Sequence[InstantOutcome],
    now: float,
    dates_of: DatesOf,
    blocks: Sequence[Reason],
    delivery: Delivery | None = None,
) -> Explanation:
    """Explain an instant. `instants` is what `expected` says of it; `blocks` is what would stop a run now.

    `delivery` says how often the job's target is called.
    """
    reasons = why_not(history, at, dates_of)
    due = next((instant for instant in instants if instant.is_due), None)
    outside = [instant for instant in instants if not instant.is_due]
    if reasons is None and due is not None:
        version = history.at(at)
        why = why_there(version.times.schedule, at, dates_of) if version and version.times else ""
        explanation = _due(due, why, instants, now, blocks)
        return replace(explanation, text=explanation.text + _doubled(due.run, delivery))
    reasons = reasons or []
    if any(instant.code == UNKNOWN for instant in reasons):
        status, begin = UNKNOWN, "It is not known whether it was due."
    else:
        status, begin = NOT_DUE, "It is not due." if at > now else "It was not due."
    words = [begin, *(instant.text for instant in reasons), *(_outside(instant) for instant in outside)]
    return Explanation(status, " ".join(words), reasons, instants)


def _due(
    due: InstantOutcome,
    why: str,
    instants: Sequence[InstantOutcome],
    now: float,
    blocks: Sequence[Reason],
) -> Explanation:
    words = [_became(due, now), *([why] if why else [])]
    waits = due.status in (TO_COME, OVERDUE)
    stops = list(blocks) if waits else []
    words += (
        ["As things are now, it would be skipped.", *(instant.text for instant in stops)] if stops else []
    )
    reasons = [*stops, *([Reason(due.reason, due.detail)] if due.reason else [])]
    return Explanation(due.status, " ".join(words), reasons, instants)


def _became(due: InstantOutcome, now: float) -> str:
    late = f"{due.late_s:.1f} s" if due.late_s is not None else ""
    delay = (
        f" (at {rfc3339(due.due_at)}, with its spread, jitter or pace)" if due.due_at != due.fire_at else ""
    )
    ended = f"; it {_ended(due.run)}" if due.run else ""
    if due.status == TO_COME:
        return (
            f"It is due{delay} and has not started yet." if due.due_at <= now else f"It will be due{delay}."
        )
    if due.status in (ON_TIME, LATE, RUNNING):
        waited = f", waited {due.run.waited_s:.1f} s for its turn" if due.run and due.run.waited_s else ""
        started = (
            f"It was due{delay}{waited} and started {late} later" if late else f"It was due{delay}{waited}"
        )
        return f"{started}{ended}."
    if due.status == OVERDUE:
        return f"It was due{delay} {late} ago and has not started; {due.detail}."
    detail = f": {due.detail}" if due.detail else ""
    words = f"{_STATUS_WORDS[due.status]}{detail}"
    return f"It was due{delay}; {words.replace('cancelled: cancelled', 'cancelled', 1)}."


def _ended(run: Run | None) -> str:
    if run is None:
        return ""
    last = run.last_attempt
    error_type = run.error_type or (last.error_type if last else "")
    error = ": ".join(filter(None, (error_type, run.error or (last.error if last else ""))))
    words = {
        "running": f"is running{_awaited(run)}",
        "retrying": "waits for its next attempt",
        "queued": "waits for its turn",
        "dispatched": "was handed to its target",
        "skipped": "was skipped",
    }.get(run.status, run.status)
    return f"{words} ({error})" if error else words


def _doubled(run: Run | None, delivery: Delivery | None) -> str:
    """That a dead executor's call may have gone out, too, and how the target knows the second."""
    if run is None or delivery is None or not run.lost_calls:
        return ""
    return (
        f" An executor died during attempt {run.lost_calls[-1].attempt}, which was made again: {delivery.kind} "
        f"({delivery.applies_to}) is called {delivery.called}, and {delivery.key} shows a repetition."
    )


def _awaited(run: Run) -> str:
    """What a run that goes on waits for, and how far its target says that it is."""
    if run.accepted_attempt != run.attempt or not run.lease_until:
        return ""
    if durable := run.durable_execution:
        look_at = rfc3339(int(run.lease_until))
        return f" as the durable execution {durable.name}, whose end is looked for again at {look_at}"
    words = f" and waits for a callback of its target until {rfc3339(int(run.lease_until))}"
    progress = run.progress if run.progress and run.progress.attempt == run.attempt else None
    if progress is None:
        return words
    percent = "" if progress.percent is None else f"{progress.percent} %"
    signs = ", ".join(filter(None, (percent, progress.text)))
    return f"{words} ({signs})" if signs else words


def _outside(instant: InstantOutcome) -> str:
    """A run at an instant that is not due: it was planned before the job changed."""
    detail = f": {instant.detail}" if instant.detail else ""
    planned = f"A run was planned by schedule revision {instant.schedule_revision} before the job changed"
    return f"{planned}; it {_ended(instant.run)}{detail}."
