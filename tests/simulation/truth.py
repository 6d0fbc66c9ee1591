"""The executions that there must be, computed directly: per life of a job one call of `fires` over its whole span.

tests/timing compares `fires` itself with croniter.match minute by minute; `spot_checked` does the same here, with
schedules of this very run around the clock changes of its time. What is left for the simulation to prove is that
thousands of windows, faults and changes add up to that one call.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain

from common.timing.excluded_days import Dates, calendar_days
from common.timing.fires import due_at, fires
from common.timing.instants import rfc3339
from common.timing.schedule import CronTiming, Schedule
from common.timing.zones import changes
from tests.simulation.ledger import Ledger, Life, Window
from tests.timing.reference import matching

CATCH_UP_LIMIT = 100
MISSED_AFTER_S = 600
# A hundred caught-up runs go out one a minute.
BACKLOG_S = 7_200

Revision = tuple[str, int]
Missed = tuple[int, int, int]  # first fire time, last, how many


@dataclass(slots=True)
class Expected:
    """Fire times of one schedule revision of a job, by their expected result."""

    runs: set[int] = field(default_factory=set)
    stopped: set[int] = field(default_factory=set)
    """Due after the job was paused, changed or deleted: never called."""
    free: set[int] = field(default_factory=set)
    """Overdue and not known to be planned when their job was changed: called once or not at all."""
    missed: list[Missed] = field(default_factory=list)


def expected(
    ledger: Ledger, tenant: str, until: int, calendars: Mapping[str, Iterable[str]]
) -> dict[Revision, Expected]:
    late = [window for window in ledger.windows if window.start < window.decided_at - MISSED_AFTER_S]
    by_revision: dict[Revision, Expected] = {}
    for life in chain.from_iterable(ledger.lives.values()):
        excluded = calendar_days(life.schedule, lambda name: Dates(calendars[name]))
        times = list(fires(life.schedule, life.begins, until, excluded=excluded))
        of_revision = by_revision.setdefault((life.job_id, life.revision), Expected())
        left_out = _left_out(life, times, late, of_revision)
        for at in times:
            if at not in left_out:
                _sort_in(life, tenant, at, of_revision)
    return by_revision


def _left_out(life: Life, times: list[int], late: list[Window], into: Expected) -> set[int]:
    """For each window that was decided late: the fire times that the job's policy skips, in one record."""
    left_out: set[int] = set()
    for window in late:
        if life.ends <= window.decided_at:
            continue
        missed_before = min(window.end, window.decided_at - MISSED_AFTER_S)
        in_window = [at for at in times if window.start <= at < missed_before]
        if life.ends < window.finished_at:  # changed between the announcement and the end of the planning
            into.free |= set(in_window)
            left_out |= set(in_window)
            continue
        kept = {"none": 0, "latest": 1, "all": CATCH_UP_LIMIT}[life.catch_up]
        first_kept = max(0, len(in_window) - kept)
        if skipped := in_window[:first_kept]:
            into.missed.append((skipped[0], skipped[-1], len(skipped)))
            left_out |= set(skipped)
        if life.ends < window.finished_at + BACKLOG_S:  # some may wait for their turn when the job changes
            into.free |= set(in_window[first_kept:])
            left_out |= set(in_window[first_kept:])
    return left_out


def _sort_in(life: Life, tenant: str, at: int, into: Expected) -> None:
    if due_at(life.schedule, f"{tenant}/{life.job_id}", at) > life.ends:
        into.stopped.add(at)
    elif at >= life.mark_at_end:
        into.free.add(at)
    else:
        into.runs.add(at)


@dataclass(slots=True)
class Verdict:
    """The comparison's counts, and a text for each fault."""

    runs: int = 0
    free: int = 0
    missed: int = 0
    wrong: list[str] = field(default_factory=list)


def compare(
    expected_runs: Mapping[Revision, Expected],
    called: Mapping[Revision, list[int]],
    missed: Mapping[Revision, list[Missed]],
) -> Verdict:
    """Compare the calls and the missed records with the expected ones."""
    verdict = Verdict()
    for key in sorted({*expected_runs, *called, *missed}):
        want, times = expected_runs.get(key, Expected()), called.get(key, [])
        got, recorded = set(times), missed.get(key, [])
        problems: dict[str, Iterable[object]] = {
            "called more than once": [at for at, count in Counter(times).items() if count > 1],
            "never called": want.runs - got,
            "called and not due": got - want.runs - want.free,
            "missed and not recorded": Counter(want.missed) - Counter(recorded),
            "recorded as missed and was not": Counter(recorded) - Counter(want.missed),
        }
        verdict.wrong += [
            f"{key} {problem}: {_shown(values)}" for problem, values in problems.items() if values
        ]
        verdict.runs += len(want.runs)
        verdict.free += len(want.free)
        verdict.missed += sum(count for _, _, count in want.missed)
    return verdict


def _shown(values: Iterable[object]) -> list[object]:
    return [rfc3339(at) if isinstance(at, int) else at for at in sorted(values, key=str)[:3]]


def spot_checked(ledger: Ledger, begins: int, ends: int, rng: random.Random, most: int) -> int:
    """Compare `fires` with croniter.match at each minute of the day around a clock change. Returns how many."""
    timings = {life.schedule.timing for life in chain.from_iterable(ledger.lives.values())}
    crons = [t for t in timings if isinstance(t, CronTiming) and len(t.expression.split()) == 5]
    days = [(t, change.at) for t in sorted(crons, key=str) for change in changes(t.timezone, begins, ends)]
    chosen = rng.sample(days, min(most, len(days)))
    for timing, at in chosen:
        first = at // 60 * 60 - 43_200
        fire_times = list(fires(Schedule.of(timing), first, first + 86_400))
        croniter_times = matching(timing.expression, timing.timezone, range(first, first + 86_400, 60))
        assert fire_times == croniter_times, (timing, rfc3339(at))
    return len(chosen)
