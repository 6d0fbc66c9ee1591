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
from common.storage.tables import Item, Table
from tests.faults.interleaving import anywhere, every_order, play, some_orders
from tests.faults.stage import Stage, staged
from tests.faults.wire import KILLS, Fault
from tests.worlds import World, job

PLAIN = job(cron="30 12 * * *")
NAMING = PLAIN | {"schedule": {**PLAIN["schedule"], "exclude": {"calendars": ["feasts"]}}}


@pytest.fixture
def stage() -> Iterator[Stage]:
    with staged("2026-11-21T03:12:00Z") as made:
        made.w.index.ensure_mark(made.w.clock.now())
        store(made.w)
        made.save()
        yield made


def calendars(w: World) -> CalendarStore:
    return CalendarStore(w.table("jobs"), w.store.audited)


def store(w: World) -> None:
    calendars(w).put("alice", "feasts", {"dates": ["2026-12-24"]}, w.clock.now())


def delete(w: World) -> None:
    calendars(w).delete("alice", "feasts", w.clock.now())


def naming(w: World) -> list[str]:
    """The jobs that name the calendar, which exists if there are any."""
    found = [one.job_id for one in w.store.list_jobs("alice") if one.schedule.calendars]
    stored = {one.name for one in calendars(w).list_calendars("alice")}
    assert not found or "feasts" in stored, found
    return found


def bulk_put(w: World) -> None:
    line = Line(1, lambda: NAMING | {"job_id": "report"})
    [outcome] = bulk.put_all(w.registry, "alice", [line], until=w.clock.now() + 10)
    if outcome.error:
        raise outcome.error


def meeting(call: str) -> bool:
    """Where the order matters: the mark, the search for jobs, and the transactions."""
    return call.startswith(("update_item alice", "query alice", "transact_write_items"))


@pytest.mark.parametrize("how", ["create", "put", "change", "bulk"])
def test_a_deletion_and_a_job_that_comes_to_name_the_calendar_in_every_order(stage: Stage, how: str) -> None:
    w = stage.w
    if how == "change":
        w.registry.put("alice", "report", PLAIN)
        stage.save()
    register = {
        "create": lambda: w.registry.create("alice", "report", NAMING),
        "put": lambda: w.registry.put("alice", "report", NAMING),
        "change": lambda: w.registry.put("alice", "report", NAMING),
        "bulk": lambda: bulk_put(w),
    }[how]
    ends = set()
    for choose in every_order():
        stage.restore()
        died = play(stage.wire, {"delete": partial(delete, w), "register": register}, choose, meeting)
        named = naming(w)
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
        w = stage.restore()
        steps = {
            "one": partial(delete, w),
            "two": partial(delete, w),
            "store": partial(store, w),
            "register": partial(w.registry.put, "alice", "report", NAMING),
        }
        died = play(stage.wire, steps, choose, anywhere)
        naming(w)
        for name, error in died.items():
            assert error is None or (
                name != "store" and isinstance(error, Conflict | NotFound | InvalidInput)
            )
        store(w)
        assert w.registry.put("alice", "report", NAMING).schedule.calendars == ("feasts",)


@pytest.mark.parametrize("fault", KILLS)
def test_after_a_deletion_that_was_cut_off_storing_or_deleting_again_goes_on(
    stage: Stage, fault: Fault
) -> None:
    def again(w: World, died: BaseException | None) -> None:
        store(w)
        w.registry.put("alice", "report", NAMING)
        assert naming(w) == ["report"]
        with pytest.raises(CalendarInUse):
            delete(w)
        w.registry.put("alice", "other", NAMING)  # the refused deletion left no mark
        for job_id in ("report", "other"):
            w.store.delete("alice", job_id)
        delete(w)

    assert stage.each_call(delete, fault, again) >= 3


def test_while_a_calendar_is_being_deleted_only_new_names_are_refused(stage: Stage) -> None:
    w = stage.w
    w.registry.put("alice", "old", NAMING)
    stage.wire.arm(2, Fault.KILLED_BEFORE)
    assert stage.attempt(delete)
    with pytest.raises(Conflict, match="'feasts' is being deleted; to keep it, store it again"):
        w.registry.put("alice", "new", NAMING)
    assert w.registry.put("alice", "old", NAMING | {"name": "changed"}).name == "changed"
    w.store.pause("alice", "old")
    w.store.resume("alice", "old")
    with pytest.raises(CalendarInUse):
        delete(w)
    w.registry.put("alice", "new", NAMING)


def test_jobs_that_name_more_calendars_than_a_transaction_checks_are_stored_in_several(stage: Stage) -> None:
    w = stage.w
    names = [f"c{n}" for n in range(100)]
    for name in names:
        w.table("jobs").put({"pk": "alice", "sk": f"CALENDAR#{name}", "name": name, "dates": ""})

    def line(n: int) -> dict[str, object]:
        exclude = {"calendars": names[n * 10 % 100 :][:10]}
        return job(cron="30 12 * * *", exclude=exclude) | {"job_id": f"j{n:02}"}

    before = stage.wire.calls.count("transact_write_items")
    stage.wire.arm(0, None)
    lines = [Line(n + 1, partial(line, n)) for n in range(14)]
    outcomes = bulk.put_all(w.registry, "alice", lines, until=w.clock.now() + 10)
    assert [outcome.result for outcome in outcomes] == ["created"] * 14
    assert len(list(w.store.list_jobs("alice"))) == 14
    opened = 1  # the shard of their group
    assert 2 <= stage.wire.calls.count("transact_write_items") - before - opened <= 4


def test_a_deletion_that_was_overtaken_deletes_nothing(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has found no job that names the calendar. Then the calendar is stored again, and a job names it."""
    w, search = stage.w, Table.query

    def overtaken(table: Table, *arguments: Any, **given: Any) -> Iterator[Item]:
        yield from search(table, *arguments, **given)
        monkeypatch.setattr(Table, "query", search)
        store(w)
        w.registry.put("alice", "report", NAMING)

    monkeypatch.setattr(Table, "query", overtaken)
    with pytest.raises(Conflict):
        delete(w)
    assert naming(w) == ["report"]
