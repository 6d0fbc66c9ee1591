"""Permits of a key: tables of the pure decisions, and a model of many runs in random orders."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from msgspec import structs

from common.planning.execution import Execution
from common.runs.holders import Full, Lease, Limit, Permit, State, has_ended, keep, leave, take
from common.runs.run import LEASE_BOUNDS_S, Doing, Run
from common.storage.wire import Item

MAX_PLACES = 50

NOW = 1_800_000_000
KEY = {"pk": "alice##permits", "sk": "crm"}
RUN = Execution("alice", "report", NOW, NOW, 1)
ME, OTHER, THIRD = "report:20270115T080000Z", "other:20270115T080000Z", "third:20270115T080000Z"
MARGINS_S = 900


def limit(permits: int = 1, places: int = MAX_PLACES, attempt: int = 1) -> Limit:
    return Limit(KEY, permits, attempt, places, NOW + 900)


def held(until: float = NOW + 40, attempt: int = 1, doing: Doing = "call") -> Item:
    return {"until": until, "attempt": attempt, "doing": doing}


def place(since: int = NOW - 5, permits: int = 1, job_id: str = "other", attempt: int = 1) -> Item:
    execution = structs.replace(RUN, job_id=job_id, attempt=attempt)
    return {
        "since": since,
        "until": NOW + 900,
        "attempt": attempt,
        "permits": permits,
        "message": execution.encode(),
    }


def item(holders: Any = None, waiting: Any = None) -> Item:
    return {"holders": holders or {}, "waiting": waiting or {}}


def answer(stored: Item | None, limit: Limit) -> str:
    """What a run gets that asks at NOW for a call of 40 s."""
    lease = Lease(NOW + 40, limit.attempt, "call")
    changed, (result, woken) = take(stored, RUN, limit, lease, NOW)
    if isinstance(result, bool):
        assert not woken
        return "taken" if result else "had it"
    assert changed is stored
    changed, (result, woken) = take(stored, RUN, limit, lease, NOW, ended=[])
    assert isinstance(result, Full)
    assert not woken
    assert result.has_place == (ME in State.of(changed, NOW).waiting)
    return "waits" if result.has_place else "full"


@pytest.mark.parametrize(
    ("stored", "of", "gets"),
    [
        (None, limit(), "taken"),
        (item({ME: held()}), limit(), "had it"),
        (item({ME: held(NOW + 10)}), limit(), "had it"),
        (item({ME: held(attempt=2)}), limit(), "taken"),  # of another attempt of the same run
        (item({OTHER: held()}), limit(), "waits"),
        (item({OTHER: held()}), limit(2), "taken"),
        (item({OTHER: held(), THIRD: held(NOW + 20)}), limit(2), "waits"),
        (item({OTHER: held(NOW - 1)}), limit(), "waits"),  # its record may show that it goes on
        (item(None, {OTHER: place()}), limit(), "waits"),  # it is about to take it
        (item(None, {OTHER: place(), ME: place(NOW - 6)}), limit(), "taken"),
        (item(None, {OTHER: place(), ME: place(NOW - 4)}), limit(), "waits"),
        (item({THIRD: held()}, {OTHER: place()}), limit(2), "waits"),
        (item({THIRD: held()}, {OTHER: place()}), limit(3), "taken"),
        (item({OTHER: held()}), limit(places=0), "full"),
        (item({OTHER: held()}), limit(places=1), "waits"),
        (item({OTHER: held()}, {ME: place()}), limit(places=1), "waits"),
        (item({OTHER: held()}, {THIRD: place()}), limit(places=1), "full"),
        (item({OTHER: held()}, {f"{n}:x": place() for n in range(MAX_PLACES)}), limit(), "full"),
    ],
)
def test_a_permit_a_place_or_neither(stored: Item | None, of: Limit, gets: str) -> None:
    assert answer(stored, of) == gets


def test_a_place_whose_message_cannot_be_read_is_passed_over() -> None:
    damaged = {**place(NOW - 9), "message": "?"}
    assert answer(item(None, {OTHER: damaged}), limit()) == "taken"
    assert answer(item(None, {OTHER: damaged, ME: place()}), limit()) == "taken"
    waits = place(job_id="third")
    _, (is_left, woken) = leave(item({ME: held()}, {OTHER: damaged, THIRD: waits}), Permit(KEY, RUN, 1), NOW)
    assert (is_left, [execution.job_id for execution in woken]) == (True, ["third"])


@pytest.mark.parametrize(("doing", "bound_s"), LEASE_BOUNDS_S.items())
def test_an_end_further_away_than_its_kind_allows_is_past(doing: Doing, bound_s: int) -> None:
    furthest = NOW + bound_s + MARGINS_S
    assert answer(item({OTHER: held(furthest, doing=doing)}), limit(places=0)) == "full"
    assert answer(item({OTHER: held(furthest + 1, doing=doing)}), limit(places=0)) == "taken"


@pytest.mark.parametrize(
    "damaged",
    [
        {},
        "nobody",
        held() | {"until": "soon"},
        held() | {"until": None},
        held() | {"doing": "nothing"},
        held() | {"attempt": "x"},
        {"attempt": 1, "doing": "call"},
    ],
)
def test_what_somebody_has_damaged_holds_nothing(damaged: Any) -> None:
    assert answer(item({OTHER: damaged}), limit()) == "taken"
    assert answer(item({OTHER: damaged, THIRD: held()}), limit()) == "waits"
    assert answer({"holders": damaged, "waiting": [], "etag": 3}, limit()) == "taken"


def record(status: Any, attempt: int = 1, **fields: Any) -> Run:
    return Run(
        tenant="alice",
        job_id="report",
        run_name="20270115T080000Z",
        fire_at=NOW,
        due_at=NOW,
        schedule_revision=1,
        trigger="schedule",
        status=status,
        attempt=attempt,
        **fields,
    )


@pytest.mark.parametrize(
    ("run", "of_the_run", "of_its_first_attempt", "a_place"),
    [
        (record("queued", 0), False, False, False),
        (record("running"), False, False, False),
        (record("retrying"), False, True, False),
        (record("running", 2), False, True, False),
        (record("succeeded"), True, True, True),
        (record("failed", 2), True, True, True),
        (record("dispatched"), True, True, True),
        (record("skipped", 0), True, True, True),
    ],
)
def test_a_record_says_who_no_longer_needs_it(
    run: Run, of_the_run: bool, of_its_first_attempt: bool, a_place: bool
) -> None:
    waits = State.of(item(None, {ME: place()}), NOW).waiting[ME]
    assert has_ended(run, Lease(NOW, 0, "call"), NOW) is of_the_run
    assert has_ended(run, Lease(NOW, 1, "call"), NOW) is of_its_first_attempt
    assert has_ended(run, waits, NOW) is a_place


def test_an_attempt_that_has_taken_a_permit_and_is_not_claimed_yet_has_not_ended() -> None:
    assert not has_ended(record("retrying"), Lease(NOW, 2, "call"), NOW)


@pytest.mark.parametrize(
    ("run", "goes_on"),
    [
        (None, False),
        (record("retrying"), False),
        (record("queued", 0), False),
        (record("running", lease_until=NOW - 1), False),
        (record("running", lease_until=NOW), True),  # its target gave a sign, and its message is late
        (record("running", 2, lease_until=NOW), False),
        (record("failed", work_until=NOW), True),
        (record("retrying", work_until=NOW), True),
        (record("failed", work_until=NOW - 1), False),
    ],
)
def test_after_the_lease_the_record_must_show_that_the_attempt_goes_on(
    run: Run | None, goes_on: bool
) -> None:
    assert has_ended(run, Lease(NOW - 1, 1, "callback"), NOW) is not goes_on


def test_work_that_goes_on_after_the_end_of_its_run_keeps_the_permit() -> None:
    for attempt in (0, 1):
        assert not has_ended(record("failed", work_until=NOW), Lease(NOW, attempt, "call"), NOW)
        assert has_ended(record("failed", work_until=NOW - 1), Lease(NOW, attempt, "call"), NOW)


def test_who_finds_that_a_holder_has_ended_wakes_the_line() -> None:
    """Those in line have no message of their own."""
    waiting = {"b:x": place(NOW - 4, 2, "b"), "a:x": place(NOW - 3, 2, "a")}
    ended = (OTHER, Lease(NOW + 40, 1, "call"))
    changed, (result, woken) = take(
        item({OTHER: held()}, waiting), RUN, limit(2), Lease(NOW + 40, 1, "call"), NOW, ended=[ended]
    )
    assert isinstance(result, Full)
    assert [execution.job_id for execution in woken] == ["b", "a"]
    assert State.of(changed, NOW).holders == {}


def test_a_changed_number_of_permits_holds_for_all_that_wait_of_the_job() -> None:
    waiting = {"report:a": place(NOW - 4, 1), "other:b": place(NOW - 3, 1)}
    stored = item({f"x:{n}": held() for n in range(3)}, waiting)
    changed, _ = take(stored, RUN, limit(3), Lease(NOW + 40, 1, "call"), NOW, ended=[])
    assert [waits.permits for waits in State.of(changed, NOW).waiting.values()] == [3, 1, 3]


def permit(attempt: int = 1) -> Permit:
    return Permit(KEY, RUN, attempt)


def after_leaving(stored: Item | None, permit: Permit) -> tuple[Item | None, list[str]]:
    changed, (_, woken) = leave(stored, permit, NOW)
    return changed, [execution.job_id for execution in woken]


def test_who_frees_a_permit_wakes_those_that_waited_longest() -> None:
    waiting = {"b:x": place(NOW - 4, 2, "b"), "a:x": place(NOW - 3, 2, "a"), "c:x": place(NOW - 2, 2, "c")}
    assert after_leaving(item({ME: held()}), permit()) == (None, [])
    assert after_leaving(item({ME: held()}, waiting), permit())[1] == ["b", "a"]
    assert after_leaving(item({ME: held(), OTHER: held()}, waiting), permit())[1] == ["b"]
    assert after_leaving(item({ME: held(), OTHER: held(), THIRD: held()}, waiting), permit())[1] == []


def test_freed_twice_it_wakes_again_and_changes_nothing() -> None:
    """The executor may have died before it sent the messages."""
    stored = item({}, {"b:x": place(NOW - 4, 1, "b")})
    assert after_leaving(stored, permit()) == (stored, ["b"])


def test_a_copy_wakes_others_only_if_it_leaves_something() -> None:
    """Each copy would otherwise make copies of the next run's message, and those again of the one after it."""
    waiting = {"b:x": place(NOW - 4, 1, "b")}
    for stored, is_woken in [
        (item({}, waiting), False),
        (item({ME: held()}, waiting), True),
        (item({}, {ME: place(NOW - 5), **waiting}), True),
    ]:
        _, (_, woken) = leave(stored, permit(), NOW, is_copy=True)
        assert [execution.job_id for execution in woken] == ["b"] * is_woken


def test_only_its_own_attempt_frees_a_permit() -> None:
    stored = item({ME: held(attempt=2)})
    assert after_leaving(stored, permit(attempt=1)) == (stored, [])
    assert after_leaving(stored, permit(attempt=2)) == (None, [])
    assert after_leaving(item({ME: held(attempt=0)}, {}), permit(attempt=0)) == (None, [])
    assert after_leaving(item({}, {ME: place(attempt=3)}), permit(attempt=0)) == (None, [])


def test_a_lost_permit_comes_back_only_to_what_goes_on() -> None:
    stored = item({OTHER: held()})
    waits, goes_on = Lease(NOW + 900, 0, "retry"), Lease(NOW + 900, 0, "callback")
    assert keep(stored, permit(0), waits, NOW)[0] is stored
    assert set(State.of(keep(stored, permit(0), goes_on, NOW)[0], NOW).holders) == {ME, OTHER}
    kept = keep(item({ME: held(attempt=0)}), permit(0), waits, NOW)[0]
    assert State.of(kept, NOW).holders == {ME: waits}


@pytest.mark.parametrize("seed", range(40))
def test_many_runs_in_a_random_order(seed: int) -> None:
    """Never more hold than the limit, nobody who waits is overtaken, and all get their turn."""
    random, permits, now = Random(seed), 1 + seed % 3, float(NOW)
    runs = [structs.replace(RUN, job_id=f"job-{n}") for n in range(12)]
    stored: Item | None = None
    going: list[Execution] = []
    line: list[Execution] = []
    ended = 0
    ready = list(runs)
    while ended < len(runs):
        now += 1
        if ready and (random.random() < 0.6 or not going):
            run = ready.pop(random.randrange(len(ready)))
            lease = Lease(now + 40, 1, "call")
            stored, (result, _) = take(stored, run, limit(permits), lease, now, ended=[])
            if isinstance(result, Full):
                assert result.has_place
                line += [run] if run not in line else []
                continue
            assert run not in line or line.index(run) < permits
            line = [waits for waits in line if waits != run]
            going.append(run)
        elif going:
            run = going.pop(random.randrange(len(going)))
            ended += 1
            stored, (_, woken) = leave(stored, Permit(KEY, run, 1), now)
            ready += [waits for waits in woken if waits not in ready]
        assert len(going) <= permits
        assert len(State.of(stored, now).holders) == len(going)
    assert stored is None
