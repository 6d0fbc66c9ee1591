"""Calendars that a tick caches: read once, and in bounded memory for any combination."""

from __future__ import annotations

import tracemalloc
from datetime import date, timedelta

import pytest

from common.jobs.calendars import Calendars, MissingCalendar, RememberedCalendars
from common.storage import keys
from common.timing.schedule import EveryTiming, Schedule
from tests.simulation.memory_dynamodb import MemoryDynamoDB
from tests.worlds import Table, make_tables

FIRST = date(2025, 1, 1)


def naming(names: tuple[str, ...], included: tuple[str, ...] = ()) -> Schedule:
    return Schedule.of(EveryTiming(3600, 0), calendars=names, include_calendars=included)


def stored(count: int, dates: int) -> tuple[Table, list[str]]:
    """A table with this many calendars of alice, and the names of the calls that read it."""
    client = MemoryDynamoDB()
    make_tables(client)
    jobs = Table(client, "test-jobs")  # type: ignore[arg-type]
    for n in range(count):
        text = ",".join((FIRST + timedelta(days=n + 2 * step)).isoformat() for step in range(dates))
        jobs.put({**keys.calendar("alice", f"c{n:02}"), "dates": text})
    calls: list[str] = []
    client.before = calls.append
    return jobs, calls


def test_four_hundred_combinations_of_large_calendars_take_the_memory_of_the_calendars() -> None:
    jobs, calls = stored(25, 2_500)
    remembered = RememberedCalendars(Calendars(jobs))
    tracemalloc.start()
    combinations = [tuple(f"c{(n + m * m) % 25:02}" for m in range(10)) for n in range(400)]
    excluded = [
        remembered.excluded("alice", naming(names[n % 10 :] + names)) for n, names in enumerate(combinations)
    ]
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(calls) == 25
    assert used < 3_000_000
    assert all(dates for dates in excluded)


def test_a_date_of_any_named_calendar_is_excluded() -> None:
    jobs, _ = stored(2, 3)  # c00: 1st, 3rd, 5th; c01: 2nd, 4th, 6th
    excluded = RememberedCalendars(Calendars(jobs)).excluded("alice", naming(("c00", "c01")))
    assert [day for day in range(1, 9) if f"2025-01-0{day}" in excluded] == [1, 2, 3, 4, 5, 6]
    assert "2024-12-31" not in Calendars(jobs).excluded("alice", naming(("c00",)))


def test_a_date_of_no_included_calendar_is_excluded() -> None:
    jobs, calls = stored(3, 3)  # c00: 1st, 3rd, 5th; c01: 2nd, 4th, 6th; c02: 3rd, 5th, 7th
    remembered = RememberedCalendars(Calendars(jobs))
    for reader in (remembered, Calendars(jobs)):
        only = reader.excluded("alice", naming((), ("c00", "c01")))
        less = reader.excluded("alice", naming(("c02",), ("c00", "c01")))
        assert [day for day in range(1, 9) if f"2025-01-0{day}" not in only] == [1, 2, 3, 4, 5, 6]
        assert [day for day in range(1, 9) if f"2025-01-0{day}" not in less] == [1, 2, 4, 6]
    assert remembered.excluded("alice", naming(("c00",))) is not remembered.excluded(
        "alice", naming((), ("c00",))
    )
    with pytest.raises(MissingCalendar):
        remembered.excluded("alice", naming((), ("gone",)))
    assert len(calls) == 3 + 5 + 1


def test_a_missing_calendar_is_asked_for_once() -> None:
    jobs, calls = stored(0, 0)
    remembered = RememberedCalendars(Calendars(jobs))
    for _ in range(3):
        with pytest.raises(MissingCalendar, match="'gone', which does not exist"):
            remembered.excluded("alice", naming(("gone",)))
    assert calls == ["get_item"]


def test_an_unreadable_calendar_is_its_jobs_trouble() -> None:
    jobs, _ = stored(0, 0)
    jobs.put({**keys.calendar("alice", "odd"), "dates": "2025-02-30"})
    with pytest.raises(MissingCalendar, match="'odd', which cannot be read"):
        RememberedCalendars(Calendars(jobs)).excluded("alice", naming(("odd",)))


def test_the_calendar_used_longest_ago_is_forgotten_at_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RememberedCalendars, "MAX_DATES", 450)
    jobs, calls = stored(3, 100)  # each weighs 200
    remembered = RememberedCalendars(Calendars(jobs))
    for name in ("c00", "c01", "c00", "c02", "c00", "c01"):
        assert "2031-01-01" not in remembered.excluded("alice", naming((name,)))
    assert len(calls) == 4  # c01 was forgotten for c02
