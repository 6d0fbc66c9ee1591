"""Random jobs with all that a schedule may have, against `truth.py`: in the searches, and in a whole Minute8."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from common.registration.calendar_store import CalendarStore
from common.registration.schedule_text import parse_schedule
from common.runs.outcome import Outcome
from common.timing.excluded_days import Dates, calendar_days
from common.timing.fires import count_fires, fires, first_firing, limited, newest_fires, next_fires
from common.timing.groups import group_can_fire, group_key
from common.timing.instants import DAY_S
from tests.oracle import truth
from tests.oracle.schedules import Schedules, text
from tests.worlds import at, job, open_world

EXAMPLES = int(os.environ.get("MINUTE8_TIMING_EXAMPLES", "60"))
# Around clock changes of some of the zones, the end of a year and of a February, and on a plain day.
DAYS = ("2026-03-08", "2026-03-29", "2026-10-25", "2026-11-01", "2026-12-31", "2028-02-29", "2027-04-04")
RANDOM = st.randoms(use_true_random=False)


@settings(max_examples=EXAMPLES, deadline=None)
@given(RANDOM)
def test_searches_agree_with_the_truth(rng: Random) -> None:
    start = at(f"{rng.choice(DAYS)}T00:00:00Z") + rng.randint(-2 * DAY_S, DAY_S)
    end = start + rng.randint(1, 12) * DAY_S
    random = Schedules(rng, start + 60, end)
    calendars, written = random.calendars(), random.schedule()
    expected = truth.fire_times(written, calendars, start, end, written.get("max_runs"))
    instants = list(expected)
    parsed = parse_schedule(written, job_key="alice/job", now=start, shortest_interval_s=10)
    schedule = limited(parsed, written, 0, start)
    excluded = calendar_days(schedule, lambda name: Dates(calendars[name]))
    assert list(fires(schedule, start, end, excluded=excluded)) == instants, written
    assert count_fires(schedule, start, end, excluded=excluded) == len(instants)
    assert newest_fires(schedule, start, end, 3, excluded=excluded) == instants[-3:]
    assert next_fires(schedule, start, 4, end, excluded=excluded) == instants[:4]
    for fire_at, place in expected.items():
        assert first_firing(schedule, fire_at, excluded=excluded) == place, written
        window = fire_at - fire_at % 600
        assert group_can_fire(group_key(schedule), window, window + 600)


@settings(max_examples=EXAMPLES // 2, deadline=None)
@given(RANDOM)
def test_each_fire_time_is_called_once_whatever_happens_to_ticks_and_pauses(rng: Random) -> None:
    """Ticks come late and twice; the job is paused and resumed. The payload says which schedule fired, and its date."""
    start = at(f"{rng.choice(DAYS)}T00:00:00Z") + rng.randint(-DAY_S, DAY_S) // 600 * 600 + 7
    end = start + 8 * 3_600
    random = Schedules(rng, start + 60, end, gap_s=300)
    calendars, written = random.calendars(), random.schedule()
    with open_world(text(start)) as world:
        called: list[tuple[int, Any]] = []

        def answer(event: Mapping[str, Any]) -> Outcome:
            called.append((at(event["minute8"]["fire_at"]), json.loads(event["payload"])))
            return Outcome(ok=True)

        world.target.answer = answer
        for name, dates in calendars.items():
            stored = CalendarStore(world.table("jobs"), world.store.audited)
            stored.put("alice", name, {"dates": dates}, world.clock.now())
        payload = {"place": 0, "day": "{{fire_date}}"}
        definition = {**job(payload=payload, catch_up="all"), "schedule": written}
        world.registry.accepting_past().put("alice", "job", definition)
        expected: dict[int, int] = {}
        active_from, runs_left = start + 1, written.get("max_runs")

        def fired_until(until: int) -> None:
            nonlocal runs_left
            fire_times = truth.fire_times(written, calendars, active_from, until, runs_left)
            expected.update(fire_times)
            runs_left = None if runs_left is None else runs_left - len(fire_times)

        while world.clock.now() < end:
            world.run_until(text(int(world.clock.now()) + rng.choice((600, 600, 1_200, 4_800))))
            for _ in range(rng.choice((1, 1, 2))):
                world.tick()
            world.deliver()
            if rng.random() < 0.2:
                world.store.pause("alice", "job")
                fired_until(int(world.clock.now()) + 1)
                world.run_until(text(int(world.clock.now()) + rng.choice((60, 1_200))), ticks=True)
                world.store.resume("alice", "job")
                active_from = int(world.clock.now()) + 1
        fired_until(int(world.clock.now()) + 1)
        assert sorted(called) == [
            (fire_at, {"place": place, "day": truth.local_date(written, place, fire_at)})
            for fire_at, place in sorted(expected.items())
        ], written
