"""Calendars that are deleted while jobs begin to name them: no job ever names a deleted calendar."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from common.errors import Conflict, InvalidInput, NotFound
from common.registration import bulk
from common.registration.bulk import Line
from common.registration.calendar_store import CalendarInUse, CalendarStore
from common.storage.table import Table
from common.storage.wire import Item
from tests.faults.interleaving import anywhere, every_order, play, some_orders
from tests.faults.stage import Stage, staged
from tests.faults.wire import KILLS, Fault
from tests.worlds import World, job

PLAIN = job(cron="30 12 * * *")
NAMING = PLAIN | {"schedule": {**PLAIN["schedule"], "exclude": {"calendars": ["feasts"]}}}

INCLUDING = PLAIN | {"schedule": {**PLAIN["schedule"], "include_calendars": ["feasts"]}}


@pytest.fixture
def stage() -> Iterator[Stage]:
    with staged("2026-11-21T03:12:00Z") as stage:
        stage.world.index.ensure_mark(stage.world.clock.now())
        store(stage.world)
        stage.save()
        yield stage


def calendars(world: World) -> CalendarStore:
    return CalendarStore(world.table("jobs"), world.store.audited)


def store(world: World) -> None:
    calendars(world).put("alice", "feasts", {"dates": ["2026-12-24"]}, world.clock.now())


def delete(world: World) -> None:
    calendars(world).delete("alice", "feasts", world.clock.now())


def naming(world: World) -> list[str]:
    """The jobs that name the calendar, which exists if there are any."""
    job_ids = [
        stored_job.job_id
        for stored_job in world.store.list_jobs("alice")
        if stored_job.schedule.named_calendars
    ]
    stored = {calendar.name for calendar in calendars(world).list_calendars("alice")}
    assert not job_ids or "feasts" in stored, job_ids
    return job_ids


def bulk_put(world: World) -> None:
    line = Line(1, lambda: NAMING | {"job_id": "report"})
    [outcome] = bulk.put_all(world.registry, "alice", [line], until=world.clock.now() + 10)
    if outcome.error:
        raise outcome.error


def meeting(call: str) -> bool:
    """Where the order matters: the mark, the search for jobs, and the transactions."""
    return call.startswith(("update_item alice", "query alice", "transact_write_items"))


@pytest.mark.parametrize("how", ["create", "put", "change", "bulk"])
def test_a_deletion_and_a_job_that_comes_to_name_the_calendar_in_every_order(stage: Stage, how: str) -> None:
    world = stage.world
    if how == "change":
        world.registry.put("alice", "report", PLAIN)
        stage.save()
    register = {
        "create": lambda: world.registry.create("alice", "report", INCLUDING),
        "put": lambda: world.registry.put("alice", "report", NAMING),
        "change": lambda: world.registry.put("alice", "report", NAMING),
        "bulk": lambda: bulk_put(world),
    }[how]
    ends = set()
    for choose in every_order():
        stage.restore()
        died = play(stage.wire, {"delete": partial(delete, world), "register": register}, choose, meeting)
        named = naming(world)
        ends.add(type(died["register"]))
        if died["register"] is None:
            assert named == ["report"]
            assert isinstance(died["delete"], CalendarInUse), died
        else:
            assert isinstance(died["register"], InvalidInput | Conflict), died
            assert (named, died["delete"]) == ([], None)
    assert {type(None), InvalidInput} <= ends


def test_two_deletions_a_storing_and_a_registration_at_once(stage: Stage) -> None:
    for choose in some_orders(12):
        world = stage.restore()
        steps = {
            "one": partial(delete, world),
            "two": partial(delete, world),
            "store": partial(store, world),
            "register": partial(world.registry.put, "alice", "report", NAMING),
        }
        died = play(stage.wire, steps, choose, anywhere)
        naming(world)
        for name, error in died.items():
            assert error is None or (
                name != "store" and isinstance(error, Conflict | NotFound | InvalidInput)
            )
        store(world)
        assert world.registry.put("alice", "report", NAMING).schedule.calendars == ("feasts",)


@pytest.mark.parametrize("fault", KILLS)
def test_after_a_deletion_that_was_cut_off_storing_or_deleting_again_goes_on(
    stage: Stage, fault: Fault
) -> None:
    def again(world: World, died: BaseException | None) -> None:
        store(world)
        world.registry.put("alice", "report", NAMING)
        assert naming(world) == ["report"]
        with pytest.raises(CalendarInUse):
            delete(world)
        world.registry.put("alice", "other", NAMING)  # the refused deletion left no mark
        for job_id in ("report", "other"):
            world.store.delete("alice", job_id)
        delete(world)

    assert stage.each_call(delete, fault, again) >= 3


def test_while_a_calendar_is_being_deleted_only_new_names_are_refused(stage: Stage) -> None:
    world = stage.world
    world.registry.put("alice", "old", NAMING)
    stage.wire.arm(2, Fault.KILLED_BEFORE)
    assert stage.attempt(delete)
    with pytest.raises(Conflict, match="'feasts' is being deleted; to keep it, store it again"):
        world.registry.put("alice", "new", NAMING)
    assert world.registry.put("alice", "old", NAMING | {"name": "changed"}).name == "changed"
    world.store.pause("alice", "old")
    world.store.resume("alice", "old")
    with pytest.raises(CalendarInUse):
        delete(world)
    world.registry.put("alice", "new", NAMING)


def test_jobs_that_name_more_calendars_than_a_transaction_checks_are_stored_in_several(stage: Stage) -> None:
    world = stage.world
    names = [f"c{n}" for n in range(100)]
    for name in names:
        world.table("jobs").put({"pk": "alice", "sk": f"CALENDAR#{name}", "name": name, "dates": ""})

    def line(n: int) -> dict[str, object]:
        exclude = {"calendars": names[n * 10 % 100 :][:10]}
        return job(cron="30 12 * * *", exclude=exclude) | {"job_id": f"j{n:02}"}

    before = stage.wire.calls.count("transact_write_items")
    stage.wire.arm(0, None)
    lines = [Line(n + 1, partial(line, n)) for n in range(14)]
    outcomes = bulk.put_all(world.registry, "alice", lines, until=world.clock.now() + 10)
    assert [outcome.result for outcome in outcomes] == ["created"] * 14
    assert len(list(world.store.list_jobs("alice"))) == 14
    opened = 1  # the shard of their group
    assert 2 <= stage.wire.calls.count("transact_write_items") - before - opened <= 4


def test_a_deletion_that_was_overtaken_deletes_nothing(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has found no job that names the calendar. Then the calendar is stored again, and a job names it."""
    world, search = stage.world, Table.query

    def overtaken(table: Table, *arguments: Any, **options: Any) -> Iterator[Item]:
        yield from search(table, *arguments, **options)
        monkeypatch.setattr(Table, "query", search)
        store(world)
        world.registry.put("alice", "report", NAMING)

    monkeypatch.setattr(Table, "query", overtaken)
    with pytest.raises(Conflict):
        delete(world)
    assert naming(world) == ["report"]
