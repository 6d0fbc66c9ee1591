"""A cron timing as masks: its dialect read, and its rule for clock changes applied."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from common.timing.cron import Cron, CronInYears, compile_cron
from common.timing.eventbridge_cron import compile_eventbridge
from common.timing.schedule import MINUTE8, CronTiming, Timing


def compiled(timing: CronTiming) -> Cron:
    """The masks of a stored timing. Raises ValueError for text that is not canonical."""
    cron = in_all_clocks(timing)
    return cron if timing.dst == MINUTE8 else _by_eventbridge_rule(cron)


def in_all_clocks(timing: CronTiming) -> Cron:
    """The same by Minute8's rule for clock changes, by which it fires whenever it fires by another rule."""
    if timing.dialect == MINUTE8:
        return compile_cron(timing.expression)
    return compile_eventbridge(timing.expression)


def names_years(timing: Timing) -> bool:
    """Whether the timing is a cron that ends by itself, with its last year."""
    return isinstance(timing, CronTiming) and isinstance(compiled(timing), CronInYears)


@lru_cache(maxsize=1 << 15)
def _by_eventbridge_rule(cron: Cron) -> Cron:
    """A skipped time is not owed, and nothing fires in the second pass of a repeated time.

    "When time shifts forward in the Spring, if a cron expression falls on a non-existent date and time, your schedule
    invocation is skipped. When time shifts backwards in the Fall, your schedule runs only once and does not repeat its
    invocation."
    https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html#daylist-savings-time
    """
    return replace(cron, names_hour=False, repeats=False)
