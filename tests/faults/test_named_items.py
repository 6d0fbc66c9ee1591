"""Calendars and secrets that are deleted while jobs begin to name them: no job ever names a deleted one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from common.errors import Conflict, InvalidInput, NotFound
from common.jobs.job import Job
from common.jobs.preconditions import StillNamed
from common.registration import bulk
from common.registration.bulk import Line
from common.registration.calendar_store import CalendarStore
from common.storage.table import Table
from common.storage.wire import Item
from tests.faults.interleaving import anywhere, every_order, play, some_orders
from tests.faults.stage import Stage, staged
from tests.faults.wire import KILLS, Fault
from tests.worlds import World, job

PLAIN = job(cron="30 12 * * *")


def on(**fields: Any) -> dict[str, Any]:
    return PLAIN | {"schedule": {**PLAIN["schedule"], **fields}}


@dataclass(frozen=True)
class Kind:
    """What jobs name as `feasts`. `naming` and `also_naming` are definitions, `names` are those of a stored job."""

    word: str
    naming: dict[str, Any]
    also_naming: dict[str, Any]
    names: Callable[[Job], Iterable[str]]

    def store(self, world: World) -> None:
        now = world.clock.now()
        if self.word == "secret":
            world.secrets.put("alice", "feasts", "a value of it", now)
        else:
            calendars(world).put("alice", "feasts", {"dates": ["2026-12-24"]}, now)

    def delete(self, world: World) -> None:
        store = world.secrets if self.word == "secret" else calendars(world)
        store.delete("alice", "feasts", world.clock.now())

    def naming_jobs(self, world: World) -> list[str]:
        """The jobs that name it; it is stored if there are any."""
        job_ids = [job.job_id for job in world.store.list_jobs("alice") if self.names(job)]
        stored: list[Any] = world.secrets.listed("alice")
        if self.word == "calendar":
            stored = list(calendars(world).list_calendars("alice"))
        assert not job_ids or "feasts" in {each.name for each in stored}, job_ids
        return job_ids


CALENDAR = Kind(
    "calendar",
    on(exclude={"calendars": ["feasts"]}),
    {
        **PLAIN,
        "schedule": {
            "schedules": [PLAIN["schedule"], {"cron": "1 1 * * *", "include_calendars": ["feasts"]}]
        },
    },
    lambda job: job.schedule.named_calendars,
)
SECRET = Kind(
    "secret",
    PLAIN | {"payload": {"a": "secret://feasts"}},
    PLAIN | {"payload": {"a": "secret://feasts", "b": "x" * 2_000}},
    lambda job: job.secrets,
)


@pytest.fixture(params=[CALENDAR, SECRET], ids=lambda kind: kind.word)
def kind(request: pytest.FixtureRequest) -> Kind:
    named_kind: Kind = request.param
    return named_kind


@pytest.fixture
def stage(kind: Kind) -> Iterator[Stage]:
    with staged("2026-11-21T03:12:00Z") as stage:
        stage.world.index.ensure_progress(stage.world.clock.now())
        kind.store(stage.world)
        stage.save()
        yield stage


def calendars(world: World) -> CalendarStore:
    return CalendarStore(world.table("jobs"), world.store.audited)


def bulk_put(world: World, definition: dict[str, Any]) -> None:
    line = Line(1, lambda: definition | {"job_id": "report"})
    [outcome] = bulk.put_all(world.registry, "alice", [line], until=world.clock.now() + 10)
    if outcome.error:
        raise outcome.error


def meeting(call: str) -> bool:
    """Where the order matters: the mark, the search for jobs, and the transactions."""
    return call.startswith(("update_item alice", "query alice", "transact_write_items"))


@pytest.mark.parametrize("how", ["create", "put", "change", "bulk"])
def test_a_deletion_and_a_job_that_comes_to_name_it_in_every_order(
    stage: Stage, kind: Kind, how: str
) -> None:
    world = stage.world
    if how == "change":
        world.registry.put("alice", "report", PLAIN)
        stage.save()
    register = {
        "create": lambda: world.registry.create("alice", "report", kind.also_naming),
        "put": lambda: world.registry.put("alice", "report", kind.naming),
        "change": lambda: world.registry.put("alice", "report", kind.naming),
        "bulk": lambda: bulk_put(world, kind.naming),
    }[how]
    ends = set()
    for choose in every_order():
        stage.restore()
        died = play(
            stage.wire, {"delete": partial(kind.delete, world), "register": register}, choose, meeting
        )
        named = kind.naming_jobs(world)
        ends.add(type(died["register"]))
        if died["register"] is None:
            assert named == ["report"]
            assert isinstance(died["delete"], StillNamed), died
        else:
            assert isinstance(died["register"], InvalidInput | Conflict), died
            assert (named, died["delete"]) == ([], None)
    assert {type(None), InvalidInput} <= ends


def test_two_deletions_a_storing_and_a_registration_at_once(stage: Stage, kind: Kind) -> None:
    for choose in some_orders(12):
        world = stage.restore()
        steps = {
            "one": partial(kind.delete, world),
            "two": partial(kind.delete, world),
            "store": partial(kind.store, world),
            "register": partial(world.registry.put, "alice", "report", kind.naming),
        }
        died = play(stage.wire, steps, choose, anywhere)
        kind.naming_jobs(world)
        for name, error in died.items():
            assert error is None or (
                name != "store" and isinstance(error, Conflict | NotFound | InvalidInput)
            )
        kind.store(world)
        assert tuple(kind.names(world.registry.put("alice", "report", kind.naming))) == ("feasts",)


@pytest.mark.parametrize("fault", KILLS)
def test_after_a_deletion_that_was_cut_off_storing_or_deleting_again_goes_on(
    stage: Stage, kind: Kind, fault: Fault
) -> None:
    def again(world: World, died: BaseException | None) -> None:
        kind.store(world)
        world.registry.put("alice", "report", kind.naming)
        assert kind.naming_jobs(world) == ["report"]
        with pytest.raises(StillNamed):
            kind.delete(world)
        world.registry.put("alice", "other", kind.naming)  # the refused deletion left no mark
        for job_id in ("report", "other"):
            world.store.delete("alice", job_id)
        kind.delete(world)

    assert stage.each_call(kind.delete, fault, again) >= 3


def test_while_it_is_being_deleted_only_new_names_are_refused(stage: Stage, kind: Kind) -> None:
    world = stage.world
    world.registry.put("alice", "old", kind.naming)
    stage.wire.arm(2, Fault.KILLED_BEFORE)
    assert stage.attempt(kind.delete)
    with pytest.raises(Conflict, match=f"{kind.word} 'feasts' is being deleted; to keep it, store it again"):
        world.registry.put("alice", "new", kind.naming)
    assert world.registry.put("alice", "old", kind.naming | {"name": "changed"}).spec.name == "changed"
    world.store.pause("alice", "old")
    world.store.resume("alice", "old")
    with pytest.raises(StillNamed):
        kind.delete(world)
    world.registry.put("alice", "new", kind.naming)


@pytest.mark.parametrize("fault", list(Fault))
def test_a_deletion_that_is_repeated_after_any_fault_ends_the_same(
    stage: Stage, kind: Kind, fault: Fault
) -> None:
    def again(world: World, died: BaseException | None) -> None:
        with pytest.raises(NotFound) if died is None else suppress(NotFound):
            kind.delete(world)
        with pytest.raises(InvalidInput, match=f"no such {kind.word}"):
            world.registry.put("alice", "report", kind.naming)
        deletions = [
            entry for entry in world.store.audited.audit.newest("alice", 50) if "deleted" in entry.action
        ]
        assert len(deletions) == 1

    assert stage.each_call(kind.delete, fault, again) >= 3


@pytest.mark.parametrize("kind", [CALENDAR], indirect=True)
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


def test_a_deletion_that_was_overtaken_deletes_nothing(
    stage: Stage, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has found no job that names it. Then it is stored again, and a job names it."""
    world, search = stage.world, Table.query

    def overtaken(table: Table, *arguments: Any, **options: Any) -> Iterator[Item]:
        yield from search(table, *arguments, **options)
        monkeypatch.setattr(Table, "query", search)
        kind.store(world)
        world.registry.put("alice", "report", kind.naming)

    monkeypatch.setattr(Table, "query", overtaken)
    with pytest.raises(Conflict):
        kind.delete(world)
    assert kind.naming_jobs(world) == ["report"]
