"""A schedule as a sentence for a person."""

from __future__ import annotations

from common.preview.cron_words import cron_words
from common.timing.compiled import in_all_clocks
from common.timing.durations import duration_text
from common.timing.instants import rfc3339
from common.timing.schedule import EVENTBRIDGE, AtTiming, CronTiming, EveryTiming, Schedule


def describe(schedule: Schedule) -> str:
    """Such as "At 09:30, Monday through Friday, in Europe/Berlin". Pure."""
    match schedule.timing:
        case CronTiming(timezone=timezone, dst=dst) as timing:
            sentence = f"{cron_words(in_all_clocks(timing))}, in {timezone}"
            if dst == EVENTBRIDGE and timezone != "UTC":
                sentence += ", skipping times that the clock skips and repeating none"
        case EveryTiming(interval_s, anchor_at):
            sentence = f"Every {duration_text(interval_s)} of elapsed time, in step with {rfc3339(anchor_at)}"
        case AtTiming(at):
            sentence = f"Once, at {rfc3339(at)}"
    if schedule.start_at is not None:
        sentence += f", from {rfc3339(schedule.start_at)}"
    if schedule.end_at is not None:
        sentence += f", before {rfc3339(schedule.end_at)}"
    if schedule.exclude_dates:
        dates = len(schedule.exclude_dates)
        sentence += f", except on {dates} date" + ("s" if dates > 1 else "")
    if schedule.calendars:
        sentence += f", except on the dates of {' and '.join(schedule.calendars)}"
    if schedule.spread_s:
        sentence += f", always the same 0 to {schedule.spread_s} s later"
    if schedule.jitter_s:
        sentence += f", each up to {schedule.jitter_s} s later"
    if pace := schedule.pace:
        shared = f"jobs with the key {pace.key}" if pace.key else "jobs with its target"
        sentence += (
            f", at most {pace.per_second} a second of all {shared}, and so up to {pace.tolerance_s} s later"
        )
    return sentence
