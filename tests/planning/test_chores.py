"""The runner of chores: an error, a kill or slowness of one reaches no other, and no work is left out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from common.planning.chores import Chore, ChoreRunner, Done, Position
from common.planning.quarantine import Quarantine
from common.storage import keys
from tests.worlds import Killed, World

MAX_TRIES = 3

PAGES = 4


@dataclass
class Pages:
    """A chore of pages with three items each; a page that was begun takes `takes_s`."""

    world: World
    name: str
    takes_s: float = 1.0
    share: int = 1
    # Of these pages, what happens in their midst.
    fails: dict[int, BaseException] = field(default_factory=dict)
    failing_items: set[str] = field(default_factory=set)
    acted: list[str] = field(default_factory=list)

    def steps(self, at: Position | None, done: Done) -> Iterator[Position]:
        page = int((at or {"page": 0})["page"])
        while page < PAGES:
            done.step(f"page {page}", lambda page=page: self._act(page, done))  # type: ignore[misc]
            page += 1
            yield {"page": page}

    def _act(self, page: int, done: Done) -> None:
        def act(item: str) -> None:
            if item in self.failing_items:
                raise LookupError(item)
            self.acted.append(item)

        items = [f"{page}.{item}" for item in range(3)]
        done.each(items[:1], act)
        self.world.clock.sleep(self.takes_s)
        if page in self.fails:
            raise self.fails[page]
        done.each(items[1:], act)

    @property
    def chore(self) -> Chore:
        return Chore(self.name, self.steps, self.share)


ALL = [f"{page}.{item}" for page in range(PAGES) for item in range(3)]


def run(world: World, *pages: Pages, seconds: float = 200) -> dict[str, Done]:
    runner = ChoreRunner(world.table("due"), world.clock, "test")
    done = runner.run([each.chore for each in pages], world.clock.now() + seconds)
    return {each.chore: each for each in done}


def three(world: World) -> tuple[Pages, Pages, Pages]:
    return Pages(world, "first"), Pages(world, "second"), Pages(world, "third")


@pytest.mark.parametrize("page", range(PAGES))
@pytest.mark.parametrize("nth", range(3))
def test_an_error_at_any_step_reaches_no_other_chore(world: World, nth: int, page: int) -> None:
    chores = three(world)
    chores[nth].fails[page] = LookupError("planted")
    done = run(world, *chores)
    for number, chore in enumerate(chores):
        assert chore.acted == (ALL if number != nth else [*ALL[: 3 * page], f"{page}.0"])
        assert bool(done[chore.name].errors) == (number == nth)
    chores[nth].fails.clear()
    run(world, *chores)
    assert (
        chores[nth].acted[-3 * (PAGES - page) :] == ALL[3 * page :]
    )  # the page is done again, and none twice before
    assert len(chores[nth].acted) == len(ALL) + 1


@pytest.mark.parametrize("page", range(PAGES))
def test_a_step_that_fails_three_times_is_listed_and_passed_over(world: World, page: int) -> None:
    chore, other, _ = three(world)
    chore.fails[page] = LookupError("planted")
    for _ in range(MAX_TRIES - 1):
        done = run(world, chore, other)
        assert done["first"].errors == ["LookupError('planted')"] and not done["first"].passed_over
    done = run(world, chore, other)
    assert done["first"].passed_over == [(f"page {page}", "LookupError('planted')")]
    assert set(chore.acted) == {
        item for item in ALL if not item.startswith(f"{page}.") or item.endswith(".0")
    }
    (listed,) = Quarantine(world.table("due")).bad_entries()
    assert (listed.name, listed.reason) == (f"#chore-first-page {page}", "LookupError('planted')")


@pytest.mark.parametrize("page", range(PAGES))
@pytest.mark.parametrize("nth", range(3))
def test_a_step_that_ends_its_process_is_found_and_passed_over(world: World, nth: int, page: int) -> None:
    chores = three(world)
    chores[nth].fails[page] = Killed()
    for _ in range(MAX_TRIES + 1):
        with pytest.raises(Killed):
            run(world, *chores)
    done = run(world, *chores)
    assert [step for step, _ in done[chores[nth].name].passed_over] == [f"page {page}"]
    for number, chore in enumerate(chores):
        missing = {f"{page}.1", f"{page}.2"} if number == nth else set()
        assert set(chore.acted) == set(ALL) - missing


def test_an_item_that_fails_holds_no_other_item_back(world: World) -> None:
    chores = three(world)
    chores[1].failing_items = {"0.0", "2.1"}
    done = run(world, *chores)
    assert chores[0].acted == chores[2].acted == ALL
    assert chores[1].acted == [item for item in ALL if item not in chores[1].failing_items]
    assert done["second"].problems == ["0.0: LookupError('0.0')", "2.1: LookupError('2.1')"]


def test_who_has_waited_longest_is_first_and_nobody_starves(world: World) -> None:
    chores = [Pages(world, name, takes_s=10) for name in ("first", "second", "third")]
    chores_begun = []
    for _ in range(5):
        before = [len(chore.acted) for chore in chores]
        run(world, *chores, seconds=12)
        chores_begun.append(
            [chore.name for chore, count in zip(chores, before, strict=True) if len(chore.acted) > count]
        )
        world.clock.sleep(600)
    assert chores_begun[0] == ["first", "second"] and "third" in chores_begun[1]
    assert all(chore.acted for chore in chores)


def test_a_chore_takes_its_share_and_what_others_leave(world: World) -> None:
    slow, quick = Pages(world, "slow", takes_s=24), Pages(world, "quick", takes_s=0)
    done = run(world, slow, quick, seconds=100)
    assert (len(slow.acted), quick.acted) == (
        len(ALL),
        ALL,
    )  # three pages, and the last one after the other chore
    assert not done["slow"].is_cut


@pytest.mark.parametrize("request_number", range(12))
def test_a_process_may_die_at_every_request(world: World, request_number: int) -> None:
    chores = three(world)
    remaining = [request_number]

    def maybe_die(*_: object) -> None:
        remaining[0] -= 1
        if remaining[0] == -1:
            raise Killed

    world.dynamodb.before = maybe_die
    with pytest.raises(Killed):
        run(world, *chores)
    world.dynamodb.before = lambda *_: None
    run(world, *chores)
    for chore in chores:
        assert set(chore.acted) == set(ALL)
        assert len(chore.acted) <= len(ALL) + 3  # the page whose position was not stored is done again


@pytest.mark.parametrize("stored", [{"at": 7}, {"at": {"page": 0}, "tries": "?"}, {"waits_since": []}, {}])
def test_a_damaged_position_begins_anew(world: World, stored: dict[str, object]) -> None:
    world.table("due").put({**keys.chore("first"), **stored})
    chore = Pages(world, "first")
    assert not run(world, chore)["first"].errors
    assert chore.acted == ALL


def test_a_table_that_answers_nothing_raises_nothing(world: World) -> None:
    def refuse(*_: object) -> None:
        raise OSError("no table")

    world.dynamodb.before = refuse
    assert run(world, Pages(world, "first")) == {}


def test_an_idle_round_costs_three_requests(world: World) -> None:
    chore = Pages(world, "first")
    run(world, chore)
    requests: list[str] = []
    world.dynamodb.before = requests.append
    assert not run(world, chore)["first"].counts
    assert requests == ["query", "put_item", "put_item"]
