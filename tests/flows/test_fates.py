"""What an edit, a pause or a block does to fire times that are planned: only those that the schedule loses end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from common.runs.outcome import Outcome
from common.tenants.allowed_targets import Block
from common.timing.fires import due_at
from executor import calling
from tests.stand_ins import AnyTenant
from tests.worlds import Killed, World, at, job

KEY = ("alice", "job")
FIRE_AT = "2026-11-21T03:20:00Z"
FAR = {"dates": ["2030-01-01"]}
OK, FAILED = Outcome(ok=True), Outcome(ok=False, error_type="Boom", error="no")


def edited(world: World, definition: Mapping[str, Any]) -> None:
    world.registry.put(*KEY, {**definition, "schedule": {**definition["schedule"], "exclude": FAR}})


def paused(world: World, definition: Mapping[str, Any]) -> None:
    world.store.pause(*KEY)
    world.clock.sleep(1)
    world.store.resume(*KEY)


Change = Callable[[World, Mapping[str, Any]], None]
CHANGES = pytest.mark.parametrize("change", [edited, paused])


def begin_hold(world: World) -> None:
    rules = world.executor.tenants
    assert isinstance(rules, AnyTenant)
    rules.blocked = (Block("*", "", int(world.clock.now()), ""),)


def end_hold(world: World) -> None:
    rules = world.executor.tenants
    assert isinstance(rules, AnyTenant)
    rules.blocked = ()


def pause(world: World) -> None:
    world.store.pause(*KEY)


def resume(world: World) -> None:
    world.store.resume(*KEY)


RESTS = pytest.mark.parametrize(("begin", "end"), [(begin_hold, end_hold), (pause, resume)])


@CHANGES
@pytest.mark.parametrize("delay", [{"spread_s": 240}, {"jitter_s": 240}])
def test_between_its_fire_time_and_its_due_time_it_waits_and_runs(
    world: World, delay: dict[str, int], change: Change
) -> None:
    definition = job(
        cron="20 3 * * *", **{name: value for name, value in delay.items() if name == "jitter_s"}
    )
    definition["schedule"] |= delay
    world.registry.create(*KEY, definition)
    world.run_until("2026-11-21T03:20:01Z", ticks=True)
    assert world.target.calls == [], "it is due later"
    change(world, definition)
    world.run_until("2026-11-21T04:00:00Z", ticks=True)
    assert world.statuses(*KEY) == ["succeeded"]
    assert world.target.calls[0][0] > at(FIRE_AT)


@CHANGES
def test_a_late_executor_runs_what_was_due_before_the_change(world: World, change: Change) -> None:
    definition = job(cron="20 3 * * *")
    world.registry.create(*KEY, definition)
    world.run_until("2026-11-21T03:19:00Z", ticks=True)
    world.clock.move_to(at("2026-11-21T03:20:30Z"))
    change(world, definition)
    world.clock.move_to(at("2026-11-21T03:21:00Z"))
    world.deliver()
    assert world.statuses(*KEY) == ["succeeded"]


def test_a_longer_spread_delays_it_and_a_shorter_one_lets_it_run_at_once(world: World) -> None:
    definition = job(cron="20 3 * * *")
    world.registry.create(*KEY, definition)
    world.run_until("2026-11-21T03:19:00Z", ticks=True)
    world.clock.move_to(at("2026-11-21T03:20:30Z"))
    definition["schedule"]["spread_s"] = 240
    world.registry.put(*KEY, definition)
    stored = world.store.get(*KEY)
    due = due_at(stored.schedule, stored.key, at(FIRE_AT))
    world.run_until("2026-11-21T04:00:00Z", ticks=True)
    ((called_at, context),) = world.target.calls
    assert (called_at, at(context["due_at"])) == (max(due, at("2026-11-21T03:20:30Z")), due)


@RESTS
def test_what_is_due_after_a_pause_by_an_edit_meanwhile_runs_then(
    world: World, begin: Callable[[World], None], end: Callable[[World], None]
) -> None:
    definition = job(cron="20 3 * * *")
    world.registry.create(*KEY, definition)
    world.run_until("2026-11-21T03:19:59Z", ticks=True)
    world.clock.move_to(at(FIRE_AT) + 0.5)
    begin(world)
    definition["schedule"]["spread_s"] = 240
    world.registry.put(*KEY, definition)
    stored = world.store.get(*KEY)
    due = due_at(stored.schedule, stored.key, at(FIRE_AT))
    world.run_until("2026-11-21T03:20:05Z")
    end(world)
    assert due > at("2026-11-21T03:20:05Z")
    world.run_until("2026-11-21T04:00:00Z", ticks=True)
    assert [called_at for called_at, _ in world.target.calls] == [due]


@RESTS
@pytest.mark.parametrize("attempts", [0, 1])
def test_what_waits_for_the_end_of_a_pause_ends_with_its_job_or_its_fire_time(
    world: World, begin: Callable[[World], None], end: Callable[[World], None], attempts: int
) -> None:
    definition = job(cron="20 3 * * *", retry={"max_attempts": 9, "base_s": 60})
    world.target.answer = lambda event: FAILED
    for job_id in ("job", "other"):
        world.registry.create("alice", job_id, definition)
    world.run_until("2026-11-21T03:19:00Z", ticks=True)
    world.clock.move_to(at("2026-11-21T03:20:30Z"))
    if attempts:
        world.deliver()
    begin(world)
    if begin is pause:
        world.store.pause("alice", "other")
    world.run_until("2026-11-21T03:25:00Z")
    assert world.statuses(*KEY) == ["retrying" if attempts else "queued"]
    world.store.delete(*KEY)
    world.registry.create(*KEY, definition | {"state": "paused"})
    world.registry.put("alice", "other", definition | {"schedule": {"cron": "50 5 * * *"}})
    world.run_until("2026-11-21T03:45:00Z", ticks=True)
    ended = (
        ["failed"] if attempts else ["skipped(deleted)"],
        ["failed"] if attempts else ["skipped(rescheduled)"],
    )
    assert (world.statuses(*KEY), world.statuses("alice", "other")) == ended


@RESTS
def test_a_late_executor_lets_wait_what_was_due_before_a_pause(
    world: World, begin: Callable[[World], None], end: Callable[[World], None]
) -> None:
    world.registry.create(*KEY, job(cron="20 3 * * *"))
    world.run_until("2026-11-21T03:19:00Z", ticks=True)
    world.clock.move_to(at("2026-11-21T03:20:30Z"))
    begin(world)
    world.run_until("2026-11-21T03:25:00Z", ticks=True)
    assert world.statuses(*KEY) == ["queued"]
    end(world)
    world.run_until("2026-11-21T04:00:00Z", ticks=True)
    assert world.statuses(*KEY) == ["succeeded"]


def test_a_fire_time_that_the_schedule_loses_ends_with_the_reason(world: World) -> None:
    definition = job(cron="20 3 * * *")
    definition["schedule"]["spread_s"] = 240
    world.registry.create(*KEY, definition)
    world.run_until("2026-11-21T03:20:00Z", ticks=True)
    world.registry.put(*KEY, {**definition, "schedule": {"cron": "50 3 * * *", "spread_s": 0}})
    world.run_until("2026-11-21T04:00:00Z", ticks=True)
    assert world.statuses(*KEY) == ["skipped(rescheduled)", "succeeded"]


def test_a_past_fire_time_that_only_the_new_schedule_has_does_not_run(world: World) -> None:
    world.registry.create(*KEY, job(cron="50 3 * * *"))
    world.run_until("2026-11-21T03:20:30Z", ticks=True)
    world.registry.put(*KEY, job(cron="20,50 3 * * *"))
    world.run_until("2026-11-21T04:00:00Z", ticks=True)
    assert [context["fire_at"] for _, context in world.target.calls] == ["2026-11-21T03:50:00Z"]


def test_a_fire_time_within_a_pause_does_not_run_after_it(world: World) -> None:
    world.registry.create(*KEY, job(cron="20,25 3 * * *"))
    world.run_until("2026-11-21T03:19:00Z", ticks=True)
    world.store.pause(*KEY)
    world.clock.move_to(at("2026-11-21T03:22:00Z"))
    world.store.resume(*KEY)
    world.run_until("2026-11-21T04:00:00Z", ticks=True)
    assert world.statuses(*KEY) == ["skipped(paused)", "succeeded"]


def test_pauses_without_a_second_in_them_make_a_job_forget_no_other(world: World) -> None:
    world.registry.create(*KEY, job(cron="20,25 3 * * *"))
    world.run_until("2026-11-21T03:19:00Z", ticks=True)
    world.store.pause(*KEY)
    world.clock.move_to(at("2026-11-21T03:22:00Z"))
    for _ in range(20):
        world.store.resume(*KEY)
        world.store.pause(*KEY)
    world.clock.move_to(at("2026-11-21T03:22:10Z"))
    for _ in range(20):
        world.store.resume(*KEY)
        world.store.pause(*KEY)
    world.store.resume(*KEY)
    world.run_until("2026-11-21T04:00:00Z", ticks=True)
    assert world.statuses(*KEY) == ["skipped(paused)", "succeeded"]


@pytest.mark.parametrize(("later_pauses", "status"), [(9, "skipped(paused)"), (10, "succeeded")])
def test_a_job_remembers_its_last_ten_pauses(world: World, later_pauses: int, status: str) -> None:
    world.registry.create(*KEY, job(cron="20 3 * * *"))
    world.run_until("2026-11-21T03:19:00Z", ticks=True)
    world.store.pause(*KEY)
    world.clock.move_to(at("2026-11-21T03:20:00Z"))
    for second in range(1, later_pauses + 1):
        world.clock.move_to(at(f"2026-11-21T03:20:{2 * second:02}Z"))
        world.store.resume(*KEY)
        world.clock.move_to(at(f"2026-11-21T03:20:{2 * second + 1:02}Z"))
        world.store.pause(*KEY)
    world.clock.move_to(at("2026-11-21T03:21:00Z"))
    world.store.resume(*KEY)
    world.run_until("2026-11-21T04:00:00Z", ticks=True)
    assert world.statuses(*KEY) == [status]


def blocked(world: World, definition: Mapping[str, Any]) -> None:
    """The platform blocks the target for 48 s."""
    begin_hold(world)
    world.run_until("2026-11-21T03:20:50Z")
    end_hold(world)


def paused_a_minute(world: World, definition: Mapping[str, Any]) -> None:
    world.store.pause(*KEY)
    world.run_until("2026-11-21T03:21:01Z")
    world.store.resume(*KEY)


@pytest.mark.parametrize("timing", [{"cron": "20 3 * * *"}, {"at": FIRE_AT}])
@pytest.mark.parametrize("change", [edited, paused, paused_a_minute, blocked])
def test_a_retry_that_waits_goes_on_with_the_present_payload(
    world: World, change: Change, timing: dict[str, str]
) -> None:
    world.target.answer = lambda event: OK if event["minute8"]["attempt"] == 4 else FAILED
    definition = job(**timing, retry={"max_attempts": 10, "base_s": 20, "cap_s": 20}, payload=1)
    world.registry.create(*KEY, definition)
    world.run_until("2026-11-21T03:20:02Z", ticks=True)
    assert world.statuses(*KEY) == ["retrying"]
    change(world, definition)
    world.run_until("2026-11-21T04:00:00Z", ticks=True)
    (run,) = world.run_items(*KEY)
    assert (run["status"], run["attempt"]) == ("succeeded", 4)


def dies_and_rests(world: World, begin: Callable[[World], None], attempt: int) -> None:
    """The executor dies in the call of this attempt, and a block or a pause begins."""

    def answer(event: Mapping[str, Any]) -> Outcome:
        if event["minute8"]["attempt"] < attempt:
            return FAILED
        if len(world.target.calls) == attempt:
            begin(world)
            raise Killed
        return OK

    world.target.answer = answer


@RESTS
@pytest.mark.parametrize("call", [{}, {"invocation": "Event"}])
@pytest.mark.parametrize("attempt", [1, 2])
def test_an_attempt_whose_executor_died_waits_for_the_end_of_a_rest(
    world: World,
    attempt: int,
    call: dict[str, str],
    begin: Callable[[World], None],
    end: Callable[[World], None],
) -> None:
    """It is made again, and costs the run no attempt, as without the rest."""
    dies_and_rests(world, begin, attempt)
    retry = {"max_attempts": attempt, "base_s": 20, "cap_s": 20, "max_age_s": 86_400}
    world.registry.create(*KEY, job(at=FIRE_AT, retry=retry, **call))
    world.run_until("2026-11-21T05:20:00Z", ticks=True)
    assert (world.statuses(*KEY), len(world.target.calls)) == (["retrying"], attempt)
    end(world)
    world.run_until("2026-11-21T06:20:00Z", ticks=True)
    assert world.statuses(*KEY) == ["dispatched" if call else "succeeded"]
    assert len(world.target.calls) == attempt + 1


@RESTS
@pytest.mark.parametrize("attempt", [1, 2])
def test_an_attempt_whose_executor_died_is_not_made_again_after_a_rest_if_its_job_forbids_it(
    world: World, attempt: int, begin: Callable[[World], None], end: Callable[[World], None]
) -> None:
    dies_and_rests(world, begin, attempt)
    retry = {"max_attempts": 5, "base_s": 20, "cap_s": 20, "max_age_s": 86_400}
    world.registry.create(*KEY, job(at=FIRE_AT, retry=retry, on_crash="fail"))
    world.run_until("2026-11-21T05:20:00Z", ticks=True)
    end(world)
    world.run_until("2026-11-21T06:20:00Z", ticks=True)
    assert (world.statuses(*KEY), len(world.target.calls)) == (["failed"], attempt)


@pytest.mark.parametrize("call", [{}, {"invocation": "Event"}])
def test_an_attempt_whose_executor_died_is_made_again_though_its_tenant_has_no_turn_then(
    world: World, monkeypatch: pytest.MonkeyPatch, call: dict[str, str]
) -> None:
    """Its message was sent again under another id, and an event's record shows no death to that: it was lost."""

    def no_turn(world: World) -> None:
        monkeypatch.setattr(calling, "TURN_S", 0.0)

    dies_and_rests(world, no_turn, 1)
    world.table("jobs").put({"pk": "alice", "sk": "CALENDAR#c", "dates": "2026-11-22"})
    exclude = {"calendars": ["c"]}
    world.registry.create(*KEY, job(cron="20 3 21 11 *", exclude=exclude, retry={"max_attempts": 1}, **call))
    world.run_until("2026-11-21T03:40:00Z", ticks=True)
    assert (world.statuses(*KEY), len(world.target.calls)) == (["retrying"], 1)
    monkeypatch.undo()
    world.run_until("2026-11-21T05:00:00Z", ticks=True)
    assert world.statuses(*KEY) == ["dispatched" if call else "succeeded"]
    assert len(world.target.calls) == 2


def test_a_retry_of_a_fire_time_that_the_schedule_loses_ends(world: World) -> None:
    world.target.answer = lambda event: FAILED
    world.registry.create(*KEY, job(cron="20 3 * * *", retry={"base_s": 60}))
    world.run_until("2026-11-21T03:20:02Z", ticks=True)
    world.registry.put(*KEY, job(cron="50 3 * * *", retry={"base_s": 60}))
    world.run_until("2026-11-21T03:40:00Z", ticks=True)
    (run,) = world.run_items(*KEY)
    assert (run["status"], run["error_type"]) == ("failed", "rescheduled")


@pytest.mark.parametrize(
    "change",
    [{"exclude": FAR}, {"jitter_s": 60}, {"pace": {"per_second": 1, "tolerance_s": 60}}],
    ids=["exclude", "jitter", "pace"],
)
def test_what_is_skipped_beforehand_stays_skipped(world: World, change: dict[str, Any]) -> None:
    world.registry.create(*KEY, job(cron="20,50 3 * * *"))
    world.manual.skip_next(*KEY, 1, "holiday")
    world.registry.put(*KEY, job(cron="20,50 3 * * *", **change))
    assert list(world.store.get(*KEY).skips) == [at(FIRE_AT)]
    world.run_until("2026-11-21T04:00:00Z", ticks=True)
    assert world.statuses(*KEY) == ["skipped(cancelled)", "succeeded"]


@CHANGES
def test_what_no_tick_planned_before_the_change_is_caught_up(world: World, change: Change) -> None:
    definition = job(cron="*/10 * * * *", catch_up="all")
    world.registry.create(*KEY, definition)
    world.run_until("2026-11-21T03:29:00Z", ticks=True)
    world.clock.move_to(at("2026-11-21T05:35:00Z"))
    change(world, definition)
    world.run_until("2026-11-21T06:30:00Z", ticks=True)
    fire_times = range(at("2026-11-21T03:20:00Z"), at("2026-11-21T06:30:00Z") + 1, 600)
    assert [run["fire_at"] for run in world.run_items(*KEY)] == list(fire_times)
    assert set(world.statuses(*KEY)) == {"succeeded"}


def test_what_no_tick_planned_and_the_schedule_loses_is_recorded(world: World) -> None:
    world.registry.create(*KEY, job(cron="*/10 * * * *", catch_up="all"))
    world.run_until("2026-11-21T03:29:00Z", ticks=True)
    world.clock.move_to(at("2026-11-21T05:35:00Z"))
    world.registry.put(*KEY, job(cron="*/20 * * * *", catch_up="all"))
    world.run_until("2026-11-21T06:30:00Z", ticks=True)
    became = {run["fire_at"]: run.get("reason", run["status"]) for run in world.run_items(*KEY)}
    for fire_at in range(at("2026-11-21T03:40:00Z"), at("2026-11-21T05:31:00Z"), 600):
        assert became[fire_at] == ("rescheduled" if fire_at % 1200 else "succeeded")


def test_a_nonce_is_forgotten_after_a_day_whether_or_not_its_item_is_swept(world: World) -> None:
    world.registry.create(*KEY, job(cron="20 3 * * *"))
    first = world.manual.run_now(*KEY, "one")
    assert world.manual.run_now(*KEY, "one") == first
    world.clock.sleep(25 * 3_600)
    assert world.manual.run_now(*KEY, "one").fire_at == first.fire_at + 25 * 3_600
