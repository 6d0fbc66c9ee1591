"""Registering, changing, pausing, deleting: each takes effect at once."""

from __future__ import annotations

import pytest

from common.errors import AlreadyExists, InvalidInput, NotFound, RevisionMismatch
from tests.worlds import World, job


def test_a_job_registered_inside_a_planned_window_runs_in_it(world: World) -> None:
    world.clock.sleep(8 * 60)  # 3:20, planned up to 3:30
    world.scheduler.tick()
    world.registry.create("alice", "minutely", job(cron="* * * * *"))
    world.run_until("2026-11-21T03:24:30Z")
    assert world.target.fire_times("minutely") == [f"2026-11-21T03:{m}:00Z" for m in (21, 22, 23, 24)]


def test_a_paused_job_has_its_queued_executions_skipped_and_resumes_at_once(world: World) -> None:
    world.registry.create("alice", "minutely", job(cron="* * * * *"))
    world.run_until("2026-11-21T03:14:30Z")
    world.store.pause("alice", "minutely", "maintenance")
    world.run_until("2026-11-21T03:16:30Z")
    world.store.resume("alice", "minutely")
    world.run_until("2026-11-21T03:18:30Z")
    assert world.statuses("alice", "minutely") == [
        "succeeded",
        "succeeded",
        "skipped(paused)",
        "skipped(paused)",
        "succeeded",
        "succeeded",
    ]
    assert "maintenance" in world.run_items("alice", "minutely")[2]["detail"]


def test_a_deleted_job_does_not_run_any_more(world: World) -> None:
    world.registry.create("alice", "minutely", job(cron="* * * * *"))
    world.run_until("2026-11-21T03:13:30Z")
    world.store.delete("alice", "minutely")
    world.run_until("2026-11-21T03:15:30Z", ticks=True)
    assert world.statuses("alice", "minutely") == ["succeeded", "skipped(deleted)", "skipped(deleted)"]
    with pytest.raises(NotFound):
        world.store.get("alice", "minutely")


def test_a_rescheduled_job_runs_by_its_new_times_only(world: World) -> None:
    world.registry.create("alice", "job", job(cron="*/2 * * * *"))
    world.run_until("2026-11-21T03:12:30Z")
    world.registry.put("alice", "job", job(cron="1-59/2 * * * *"))
    world.run_until("2026-11-21T03:29:30Z", ticks=True)
    assert world.target.fire_times("job") == [f"2026-11-21T03:{m}:00Z" for m in range(13, 30, 2)]
    assert (
        world.statuses("alice", "job").count("skipped(rescheduled)") == 3
    )  # 3:14, 3:16, 3:18, queued before


def test_recreated_under_the_same_name_old_messages_do_not_pass_for_the_new_jobs(world: World) -> None:
    world.registry.create("alice", "job", job(cron="*/2 * * * *"))
    world.store.delete("alice", "job")
    created = world.registry.create("alice", "job", job(cron="*/3 * * * *"))
    assert created.schedule_revision == 2
    world.run_until("2026-11-21T03:19:30Z")
    assert world.target.fire_times("job") == [f"2026-11-21T03:{m}:00Z" for m in (15, 18)]


def test_replacing_without_a_change_of_times_keeps_anchor_and_queue(world: World) -> None:
    first = world.registry.create("alice", "job", job(every="7m"))
    world.clock.sleep(100)
    again = world.registry.put("alice", "job", job(every="7m", payload={"new": True}))
    assert (again.schedule, again.schedule_revision, again.revision) == (first.schedule, 1, 2)
    world.run_until("2026-11-21T03:29:30Z", ticks=True)
    assert world.target.fire_times("job") == ["2026-11-21T03:19:00Z", "2026-11-21T03:26:00Z"]


def test_create_twice_is_refused_and_changes_nothing(world: World) -> None:
    world.registry.create("alice", "job", job(cron="0 3 * * *"))
    with pytest.raises(AlreadyExists):
        world.registry.create("alice", "job", job(cron="0 4 * * *"))
    assert world.store.get("alice", "job").spec.schedule == {"cron": "0 3 * * *"}


def test_a_change_against_an_old_revision_is_refused(world: World) -> None:
    world.registry.create("alice", "job", job(cron="0 3 * * *"))
    world.registry.put("alice", "job", job(cron="0 4 * * *"), expected_revision=1)
    with pytest.raises(RevisionMismatch, match="revision 2, the change expected 1"):
        world.registry.put("alice", "job", job(cron="0 5 * * *"), expected_revision=1)


def test_tenants_do_not_see_each_others_jobs(world: World) -> None:
    world.registry.create("alice", "job", job(cron="0 3 * * *"))
    with pytest.raises(NotFound):
        world.store.get("bob", "job")
    with pytest.raises(NotFound):
        world.store.delete("bob", "job")
    assert list(world.store.list_jobs("bob")) == []


@pytest.mark.parametrize(
    ("definition", "field"),
    [
        (job(cron="61 * * * *"), "schedule.cron"),
        (job(cron="0 3 * * *", timezone="Mars/Olympus"), "schedule.timezone"),
        (job(), "schedule"),
        (job(cron="* * * * *", colour="red"), "colour"),
        (job(cron="* * * * *") | {"target": {"kind": "lambda", "arn": "arn:aws:s3:::bucket"}}, "target.arn"),
        (job(cron="* * * * *", payload="x" * 200_000), "payload"),
        (job(cron="* * * * *", timeout_s="60"), "timeout_s"),
        (job(cron="* * * * *", timeout_s=5_000), "timeout_s"),
        ("a text", "job"),
        (None, "job"),
    ],
)
def test_bad_input_is_refused_by_name_and_nothing_is_stored(
    world: World, definition: object, field: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        world.registry.create("alice", "job", definition)
    assert refused.value.field.startswith(field)
    for name in ("jobs", "due"):
        assert world.dynamodb.scan(TableName=f"test-{name}")["Items"] == []
