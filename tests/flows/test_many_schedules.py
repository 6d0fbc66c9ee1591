"""Several schedules in one job: one run for each instant, with the patch of the schedule that fired."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import InvalidInput
from common.jobs.job import Job
from common.registration.calendar_store import CalendarStore
from common.registration.definition import definition_of
from common.runs.outcome import Outcome
from common.storage import keys
from tests.timing.test_many_schedules import part, text
from tests.worlds import World, at, job, open_world

EXAMPLES = int(os.environ.get("MINUTE8_TIMING_EXAMPLES", "10"))
QUARTER: dict[str, Any] = {"cron": "*/15 * * * *"}
HOURLY: dict[str, Any] = {"cron": "0 * * * *", "payload_patch": {"kind": "full", "detail": None}}
PAYLOAD = {"kind": "part", "detail": {"n": 1.5}, "day": "{{fire_date}}"}


class Witness:
    """What the target got: the fire time's clock, and the payload."""

    def __init__(self, world: World) -> None:
        self.got: list[tuple[str, Any]] = []
        self.fails = False
        world.target.answer = self

    def __call__(self, event: Mapping[str, Any]) -> Outcome:
        self.got.append((event["minute8"]["fire_at"][11:16], json.loads(event["payload"])))
        return Outcome(ok=not self.fails, error_type="Refused" if self.fails else "", error="no")

    @property
    def kinds(self) -> dict[str, str]:
        return {clock: payload["kind"] for clock, payload in self.got}


@pytest.fixture
def world() -> Iterator[World]:
    with open_world("2026-11-21T03:12:00Z") as world:
        yield world


def put(world: World, *schedules: dict[str, Any], payload: object = PAYLOAD, **fields: Any) -> Job:
    return world.registry.put("alice", "job", job(schedules=list(schedules), payload=payload, **fields))


def test_a_shared_instant_fires_once_with_the_patch_of_the_first(world: World) -> None:
    witness = Witness(world)
    put(world, HOURLY, QUARTER)
    world.run_until("2026-11-21T05:10:00Z", ticks=True)
    clocks = [clock for clock, _ in witness.got]
    assert clocks == ["03:15", "03:30", "03:45", "04:00", "04:15", "04:30", "04:45", "05:00"]
    full, part = {"kind": "full", "day": "2026-11-21"}, PAYLOAD | {"day": "2026-11-21"}
    assert [payload for _, payload in witness.got] == [part, part, part, full, part, part, part, full]
    assert len(set(world.target.execution_ids)) == len(clocks)
    put(world, QUARTER, HOURLY)  # now the quarters are the first
    world.run_until("2026-11-21T06:01:00Z", ticks=True)
    assert witness.kinds["06:00"] == "part"


def test_how_large_a_payload_may_be_that_a_schedule_patches(world: World) -> None:
    """Patching parses it, in the executor's processor time."""
    patched = QUARTER | {"payload_patch": {"a": 1}}
    most = "x" * (65_536 - len('{"v":"","a":1}'))
    put(world, patched, payload={"v": most})
    with pytest.raises(
        InvalidInput, match=r"payload has 65537 bytes, with this patch.*at most 65536"
    ) as refused:
        put(world, patched, payload={"v": most + "x"})
    assert refused.value.field == "schedule.schedules.0.payload_patch"
    put(world, QUARTER, payload={"v": most + "x"})


def test_the_patch_is_kept_as_it_was_written(world: World) -> None:
    patch = {"a": None, "b": {"c": None, "d": 0.12345}, "": [None, 1e30]}
    written = put(world, QUARTER | {"payload_patch": patch}, payload={"a": 1})
    stored = world.store.get("alice", "job")
    assert stored.spec.schedule["schedules"][0]["payload_patch"] == patch
    assert definition_of(stored)["schedule"] == {"schedules": [QUARTER | {"payload_patch": patch}]}
    assert put(world, QUARTER | {"payload_patch": patch}, payload={"a": 1}).revision == written.revision


def test_a_changed_patch_applies_at_once_and_changes_no_times(world: World) -> None:
    witness = Witness(world)
    before = put(world, HOURLY, QUARTER)
    world.run_until("2026-11-21T03:50:00Z", ticks=True)  # 04:00 is in the queue
    after = put(world, HOURLY | {"payload_patch": {"kind": "new"}}, QUARTER)
    assert (after.schedule_revision, after.revision) == (before.schedule_revision, before.revision + 1)
    world.run_until("2026-11-21T04:01:00Z", ticks=True)
    assert witness.kinds["04:00"] == "new"


def test_each_has_its_zone_also_for_placeholders(world: World) -> None:
    witness = Witness(world)
    tokyo = {"cron": "30 0 * * *", "timezone": "Asia/Tokyo"}  # 15:30 UTC on the day before
    put(world, tokyo, {"cron": "45 15 * * *"})
    world.run_until("2026-11-21T16:00:00Z", ticks=True)
    assert [(clock, payload["day"]) for clock, payload in witness.got] == [
        ("15:30", "2026-11-22"),
        ("15:45", "2026-11-21"),
    ]


def test_calendars_decide_which_schedule_fires(world: World) -> None:
    witness = Witness(world)
    calendars = CalendarStore(world.table("jobs"), world.store.audited)
    calendars.put("alice", "feasts", {"dates": ["2026-11-22"]}, world.clock.now())
    workday = {"cron": "0 9 * * *", "exclude": {"calendars": ["feasts"]}}
    feast = {"cron": "0 9 * * *", "include_calendars": ["feasts"], "payload_patch": {"kind": "feast"}}
    put(world, workday, feast)
    world.run_until("2026-11-22T10:00:00Z", ticks=True)
    assert [payload["kind"] for _, payload in witness.got] == ["part", "feast"]
    put(world, workday)
    world.run_until("2026-11-23T08:58:30Z", ticks=True)  # 09:00 is in the queue
    calendars.put("alice", "feasts", {"dates": ["2026-11-22", "2026-11-23"]}, world.clock.now())
    world.run_until("2026-11-23T10:00:00Z", ticks=True)
    assert world.statuses("alice", "job")[-1] == "skipped(excluded)"
    put(world, workday, feast)
    world.run_until("2026-11-24T08:58:30Z", ticks=True)
    calendars.put("alice", "feasts", {"dates": ["2026-11-24"]}, world.clock.now())
    world.run_until("2026-11-24T10:00:00Z", ticks=True)
    assert witness.got[-1][1]["kind"] == "feast"


def test_retries_dead_letters_and_backfills_have_the_patch_and_runs_by_hand_none(world: World) -> None:
    witness = Witness(world)
    put(world, HOURLY, QUARTER, retry={"max_attempts": 2, "base_s": 30})
    witness.fails = True
    world.run_until("2026-11-21T04:05:00Z", ticks=True)
    assert [payload["kind"] for clock, payload in witness.got if clock == "04:00"] == ["full", "full"]
    witness.fails = False
    start, end = at("2026-11-20T00:00:00Z"), at("2026-11-20T01:00:00Z")
    world.manual.backfills.start("alice", "job", start, end, concurrency=9, backfill_id="x")
    witness.got.clear()
    world.deliver()
    assert witness.kinds == {"00:00": "full", "00:15": "part", "00:30": "part", "00:45": "part"}
    witness.got.clear()
    world.manual.run_now("alice", "job", "by-hand")
    world.deliver()
    assert [payload["kind"] for _, payload in witness.got] == ["part"]


def test_an_outage_catches_up_each_instant_once(world: World) -> None:
    witness = Witness(world)
    put(world, HOURLY, QUARTER, catch_up="all")
    world.run_until("2026-11-21T03:25:00Z", ticks=True)
    world.clock.move_to(at("2026-11-21T05:08:00Z"))  # no tick for hours
    world.tick()
    world.run_until("2026-11-21T05:45:00Z", ticks=True)
    after = {clock: kind for clock, kind in witness.kinds.items() if "03:30" < clock < "05:15"}
    full = dict.fromkeys(("04:00", "05:00"), "full")
    assert after == dict.fromkeys(("03:45", "04:15", "04:30", "04:45"), "part") | full
    assert len(witness.got) == len(witness.kinds)


def test_max_runs_counts_shared_instants_once(world: World) -> None:
    witness = Witness(world)
    put(world, HOURLY, QUARTER, max_runs=5, after_completion="delete")
    world.run_until("2026-11-21T08:00:00Z", ticks=True)
    assert [clock for clock, _ in witness.got] == ["03:15", "03:30", "03:45", "04:00", "04:15"]
    assert not list(world.store.list_jobs("alice"))


def test_unwritten_anchors_stay_and_past_one_offs_may_stay(world: World) -> None:
    soon = {"at": "2026-11-21T03:20:00Z"}
    first = put(world, {"every": "90m"}, soon, {"every": "2w", "timezone": "Asia/Tokyo"})
    world.run_until("2026-11-21T03:30:00Z", ticks=True)
    late = {"at": "2026-11-21T03:50:00Z"}
    second = put(world, late, {"every": "90m"}, soon, {"every": "2w", "timezone": "Asia/Tokyo"})
    assert second.schedule.parts[1:] == first.schedule.parts
    with pytest.raises(InvalidInput) as caught:
        put(world, {"every": "90m"}, {"at": "2026-11-21T03:21:00Z"})
    assert caught.value.field == "schedule.schedules.1.at"


@pytest.mark.parametrize(
    ("fields", "accepted"),
    [
        ({"payload_patch": {"text": "x" * 1_024}}, "at most 1024 bytes"),
        ({"payload_patch": {"day": "{{fire_dat}}"}}, "{{fire_date}}"),
    ],
)
def test_a_patch_is_short_and_its_payload_is_checked(
    world: World, fields: dict[str, Any], accepted: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        put(world, QUARTER, HOURLY | fields)
    assert caught.value.field == "schedule.schedules.1.payload_patch"
    assert accepted in caught.value.accepted
    put(world, QUARTER, HOURLY | {"payload_patch": {"text": "x" * (1_024 - 11)}})


def test_a_deep_patch_is_refused_and_not_followed(world: World) -> None:
    deep: Any = 1
    for _ in range(150):
        deep = {"a": deep}
    with pytest.raises(InvalidInput):
        put(world, HOURLY | {"payload_patch": deep})


def test_a_job_whose_schedules_cannot_be_read_is_set_aside_alone(world: World) -> None:
    """As a version before several schedules does: its reader finds no timing."""
    witness = Witness(world)
    put(world, QUARTER)
    world.registry.put("bob", "job", job(**QUARTER, payload={"kind": "bob"}))
    stored = world.store.get("alice", "job")
    key = keys.due_entry(stored.group, stored.shard, "alice", "job")
    entry = world.table("due").get(key)
    assert entry
    world.table("due").put(entry | {"entry": entry["entry"].replace('"schedules"', '"later"')})
    world.run_until("2026-11-21T03:31:00Z", ticks=True)
    assert set(witness.kinds.values()) >= {"bob"}
    assert "failed" not in "".join(world.statuses("bob", "job"))


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.data())
def test_random_jobs_fire_at_the_union_of_what_each_would_whatever_happens_to_ticks(
    data: st.DataObject,
) -> None:
    """Ticks that come late or twice, messages that are delivered twice; the reference shares no code."""
    draw = data.draw
    start = at(
        draw(st.sampled_from(("2026-10-24T21:12:00Z", "2026-11-21T03:12:00Z", "2027-03-27T20:12:00Z")))
    )
    end = start + 8 * 3_600
    drawn = draw(st.lists(part(start, end), min_size=1, max_size=3))
    schedules = [(raw, times) for raw, times, dates in drawn if not dates]
    if not schedules:
        return
    written = [{**raw, "payload_patch": {"n": place}} for place, (raw, _) in enumerate(schedules)]
    with open_world(text(start)) as world:
        got: dict[int, list[int]] = {}

        def answer(event: Mapping[str, Any]) -> Outcome:
            got.setdefault(at(event["minute8"]["fire_at"]), []).append(json.loads(event["payload"])["n"])
            return Outcome(ok=True)

        world.target.answer = answer
        definition = job(schedules=written, payload={"n": -1}, catch_up="all", overlap="allow")
        world.registry.accepting_past().put("alice", "job", definition)
        while world.clock.now() < end:
            world.run_until(text(int(world.clock.now()) + draw(st.sampled_from((600, 1_200, 4_800)))))
            for _ in range(draw(st.sampled_from((1, 1, 2)))):
                world.tick()
        world.run_until(text(max(end, int(world.clock.now())) + 600), ticks=True)
        expected = {
            fire_at: [next(place for place, (_, times) in enumerate(schedules) if fire_at in times)]
            for fire_at in {at for _, times in schedules for at in times if start < at < end}
        }
        assert {fire_at: places for fire_at, places in got.items() if fire_at < end} == expected, written
