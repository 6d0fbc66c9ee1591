"""CalendarStore: stored once, named in jobs, respected by tick, registration and executor."""

from __future__ import annotations

import pytest

from common.errors import Conflict, InvalidInput, NotFound
from common.jobs.preconditions import StillNamed
from common.registration.calendar_store import CalendarStore
from common.storage import keys
from common.storage.table import Table
from common.storage.wire import Expression
from tests.worlds import World, at, job

NOW = at("2026-11-21T03:12:00Z")


@pytest.fixture
def calendars(world: World) -> CalendarStore:
    return CalendarStore(world.table("jobs"), world.store.audited)


def minutely(*calendars: str, **fields: object) -> dict[str, object]:
    return job(cron="* * * * *", exclude={"calendars": list(calendars)}, **fields)


def _moved(until: int) -> Expression:
    """planned_until as ticks would have left it."""
    until -= until % 600
    return Expression(
        "SET #planned_until = :until, #planning_until = :until, #joined_until = :until", {":until": until}
    )


def put(calendars: CalendarStore, name: str, *dates: str, tenant: str = "alice") -> None:
    calendars.put(tenant, name, {"dates": list(dates)}, NOW)


def test_a_stored_calendar_comes_back(calendars: CalendarStore) -> None:
    stored = calendars.put("alice", "feasts", {"dates": ["2026-12-25", "2026-12-24"]}, NOW)
    assert calendars.get("alice", "feasts") == stored
    assert stored.dates == ("2026-12-24", "2026-12-25")
    again = calendars.put("alice", "feasts", {"dates": []}, NOW + 60)
    assert (again.created_at, again.updated_at, again.dates) == (NOW, NOW + 60, ())
    assert calendars.get("alice", "feasts") == again


def test_calendars_are_listed_by_name_page_by_page(calendars: CalendarStore) -> None:
    for name in ("c", "a", "b"):
        put(calendars, name)
    put(calendars, "foreign", tenant="bob")
    assert [c.name for c in calendars.list_calendars("alice")] == ["a", "b", "c"]
    assert [c.name for c in calendars.list_calendars("alice", after_name="a", limit=1)] == ["b"]


def test_the_number_of_calendars_is_bounded(
    calendars: CalendarStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("common.registration.calendar_store.MAX_TENANT_CALENDARS", 3)
    for name in ("a", "b", "c"):
        put(calendars, name)
    put(calendars, "d", tenant="bob")
    with pytest.raises(Conflict, match="there are 3 calendars"):
        put(calendars, "d")
    put(calendars, "a", "2026-12-24")
    calendars.delete("alice", "b", NOW)
    put(calendars, "d")


@pytest.mark.parametrize("name", ["", "-x", "x" * 65, "a#b", "a/b", None])
def test_a_bad_name_is_refused(calendars: CalendarStore, name: str) -> None:
    with pytest.raises(InvalidInput, match="name"):
        put(calendars, name)


def test_a_job_that_names_an_unknown_calendar_is_refused(world: World, calendars: CalendarStore) -> None:
    put(calendars, "feasts", tenant="bob")
    for change in (world.registry.create, world.registry.put):
        with pytest.raises(InvalidInput, match=r"exclude\.calendars: no such calendar \(got 'feasts'\)"):
            change("alice", "job", minutely("feasts"))
    with pytest.raises(NotFound):
        world.store.get("alice", "job")


def test_a_calendar_that_jobs_name_is_not_deleted(world: World, calendars: CalendarStore) -> None:
    put(calendars, "feasts")
    world.registry.create("alice", "job", minutely("feasts"))
    world.store.pause("alice", "job")
    with pytest.raises(StillNamed, match="'feasts' is named by jobs: job"):
        calendars.delete("alice", "feasts", world.clock.now())
    world.store.delete("alice", "job")
    calendars.delete("alice", "feasts", world.clock.now())
    with pytest.raises(NotFound):
        calendars.delete("alice", "feasts", world.clock.now())


def test_a_calendar_that_one_of_several_schedules_names_is_not_deleted(
    world: World, calendars: CalendarStore
) -> None:
    plain = {"cron": "0 9 * * *"}
    for number, named in enumerate(
        ({"exclude": {"calendars": ["feasts"]}}, {"include_calendars": ["feasts"]})
    ):
        put(calendars, "feasts")
        schedule = {"schedules": [plain, {"cron": "0 10 * * *"} | named]}
        world.registry.create("alice", f"job{number}", {**job(), "schedule": schedule})
        with pytest.raises(StillNamed, match=f"named by jobs: job{number}"):
            calendars.delete("alice", "feasts", world.clock.now())
        world.store.delete("alice", f"job{number}")


def test_a_damaged_job_does_not_hinder_a_deletion(world: World, calendars: CalendarStore) -> None:
    put(calendars, "feasts")
    world.secrets.put("alice", "token", "some value", world.clock.now())
    for number, damaged in enumerate(({}, {"schedule": "x", "secrets": 5, "target": []})):
        world.table("jobs").put({"pk": "alice", "sk": f"JOB#{number}", "state": "active", **damaged})
    calendars.delete("alice", "feasts", world.clock.now())
    world.secrets.delete("alice", "token", world.clock.now())


def test_nothing_is_planned_on_an_excluded_date(world: World, calendars: CalendarStore) -> None:
    put(calendars, "feasts", "2026-11-22")
    put(calendars, "other", "2026-11-23")
    world.clock.move_to(at("2026-11-21T14:38:00Z"))
    world.registry.create(
        "alice", "utc", job(cron="*/10 * * * *", exclude={"calendars": ["feasts", "other"]})
    )
    tokyo = {"timezone": "Asia/Tokyo", "exclude": {"calendars": ["feasts"], "dates": ["2026-11-23"]}}
    world.registry.create("alice", "tokyo", job(cron="*/10 * * * *", **tokyo))
    for midnight in ("2026-11-21T15", "2026-11-22T00", "2026-11-23T15", "2026-11-24T00"):
        before = at(f"{midnight}:00:00Z") - 1_300
        world.scheduler.tick()  # nothing is due in the hours between
        world.index._table.update(keys.PROGRESS, _moved(before))
        world.clock.move_to(before)
        world.run_until(f"{midnight}:15:00Z", ticks=True)
    utc, tokyo = world.target.fire_times("utc"), world.target.fire_times("tokyo")
    assert max(t for t in tokyo if t < "2026-11-22") == "2026-11-21T14:50:00Z"
    assert min(t for t in tokyo if t > "2026-11-22") == "2026-11-23T15:00:00Z"  # the 24th in Tokyo
    assert max(t for t in utc if t < "2026-11-22") == "2026-11-21T23:50:00Z"
    assert min(t for t in utc if t > "2026-11-22") == "2026-11-24T00:00:00Z"
    assert set(world.statuses("alice", "utc")) == {"succeeded"}


def test_a_registration_hands_over_nothing_on_an_excluded_date(
    world: World, calendars: CalendarStore
) -> None:
    put(calendars, "feasts", "2026-11-21")
    world.registry.create("alice", "job", minutely("feasts"))
    assert world.sqs.bodies == []
    assert list(world.index.pending()) == []


def test_a_date_added_at_the_last_minute_stops_what_is_queued(world: World, calendars: CalendarStore) -> None:
    put(calendars, "feasts")
    world.registry.create("alice", "job", minutely("feasts"))
    world.run_until("2026-11-21T03:14:30Z")
    put(calendars, "feasts", "2026-11-21")
    world.run_until("2026-11-21T03:16:30Z")
    assert world.statuses("alice", "job") == [
        "succeeded",
        "succeeded",
        "skipped(excluded)",
        "skipped(excluded)",
    ]
    assert "2026-11-21 is in a calendar" in world.run_items("alice", "job")[-1]["detail"]


def test_a_date_removed_takes_effect_in_the_next_window(world: World, calendars: CalendarStore) -> None:
    put(calendars, "feasts", "2026-11-21")
    world.registry.create("alice", "job", minutely("feasts"))
    world.run_until("2026-11-21T03:18:30Z", ticks=True)
    put(calendars, "feasts")
    world.run_until("2026-11-21T03:31:30Z", ticks=True)
    assert world.target.fire_times("job") == ["2026-11-21T03:30:00Z", "2026-11-21T03:31:00Z"]


def test_a_tick_reads_a_calendar_once_however_many_jobs_name_it(
    world: World, calendars: CalendarStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(calendars, "feasts", "2026-11-22")
    put(calendars, "more", "2026-11-23")
    for n in range(5):
        world.registry.create("alice", f"job{n}", minutely("feasts"))
        world.registry.create("alice", f"both{n}", minutely("feasts", "more"))
    world.clock.move_to(at("2026-11-21T03:18:00Z"))
    read: list[str] = []
    get = Table.get

    def counted(self: Table, key: keys.Key, *, consistent: bool = True) -> object:
        read.append(key["sk"])
        assert consistent
        return get(self, key, consistent=consistent)

    monkeypatch.setattr(Table, "get", counted)
    assert world.scheduler.tick().planned == 100
    assert sorted(sk for sk in read if sk.startswith("CALENDAR#")) == ["CALENDAR#feasts", "CALENDAR#more"]


def test_a_job_whose_calendar_vanished_does_not_fire_and_says_so(
    world: World, calendars: CalendarStore
) -> None:
    put(calendars, "feasts")
    world.registry.create("alice", "job", minutely("feasts"))
    world.registry.create("alice", "other", job(cron="* * * * *"))
    world.dynamodb.delete_item(
        TableName="test-jobs", Key={"pk": {"S": "alice"}, "sk": {"S": "CALENDAR#feasts"}}
    )
    world.run_until("2026-11-21T03:29:30Z", ticks=True)
    assert set(world.statuses("alice", "job")) == {"skipped(invalid)"}
    assert "calendar 'feasts', which does not exist" in world.run_items("alice", "job")[0]["detail"]
    assert world.statuses("alice", "other") == ["succeeded"] * 17
    put(calendars, "feasts")
    world.run_until("2026-11-21T03:44:30Z", ticks=True)
    assert world.statuses("alice", "job")[-1] == "succeeded"


def test_jobs_do_not_show_up_as_calendars_nor_calendars_as_jobs(
    world: World, calendars: CalendarStore
) -> None:
    put(calendars, "feasts")
    world.registry.create("alice", "job", minutely("feasts"))
    assert [stored.job_id for stored in world.store.list_jobs("alice")] == ["job"]
    assert [stored.name for stored in calendars.list_calendars("alice")] == ["feasts"]
