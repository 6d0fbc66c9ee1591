"""Late, doubled, lost and interrupted ticks plan the same executions, once each."""

from __future__ import annotations

from collections import Counter

import pytest

from common.planning.directory import Listing, Shard
from common.planning.queue import HandOverFailed
from common.storage import keys
from tests.worlds import World, at, job


def minutes(first: int, last: int, hour: int = 3) -> list[str]:
    return [f"2026-11-21T{hour:02}:{minute:02}:00Z" for minute in range(first, last + 1)]


def test_ticks_plan_without_gap_or_overlap(world: World) -> None:
    world.registry.create("alice", "minutely", job(cron="* * * * *"))
    world.run_until("2026-11-21T05:00:00Z", ticks=True)
    assert world.target.fire_times("minutely") == minutes(13, 59) + minutes(0, 59, 4) + minutes(0, 0, 5)
    assert len(world.sqs.bodies) == len(set(world.sqs.bodies))  # nothing was sent twice either


def test_nothing_is_called_early_and_seconds_are_kept(world: World) -> None:
    world.registry.create("alice", "seconds", job(cron="*/10 * * * * *"))
    world.run_until("2026-11-21T03:40:00Z", ticks=True)
    assert len(world.target.calls) == 28 * 6
    for called_at, context in world.target.calls:
        assert called_at >= at(context["due_at"])


def test_a_tick_run_twice_changes_nothing(world: World) -> None:
    world.registry.create("alice", "minutely", job(cron="* * * * *"))
    world.run_until("2026-11-21T03:18:00Z")
    world.scheduler.tick()
    sent = len(world.sqs.bodies)
    assert world.scheduler.tick().planned == 0
    assert len(world.sqs.bodies) == sent


def test_a_lost_tick_is_made_up_for_by_the_next(world: World) -> None:
    world.registry.create("alice", "minutely", job(cron="* * * * *"))
    world.run_until("2026-11-21T03:28:00Z")  # 3:18 never ticked; planned up to 3:20 by the registration
    world.scheduler.tick()
    world.run_until("2026-11-21T03:39:30Z")
    assert sorted(world.target.fire_times("minutely")) == minutes(13, 39)


def test_after_an_outage_the_catch_up_policy_decides_and_the_rest_is_recorded(world: World) -> None:
    for policy in ("none", "latest", "all"):
        world.registry.create("alice", policy, job(cron="* * * * *", catch_up=policy))
    world.run_until("2026-11-21T03:20:00Z")
    before = minutes(13, 19)
    world.clock.move_to(at("2026-11-21T05:08:00Z"))
    world.scheduler.tick()
    world.deliver()
    late = minutes(58, 59, 4) + minutes(0, 8, 5)  # at most ten minutes ago: late, all run
    missed = minutes(20, 59) + minutes(0, 57, 4)
    assert sorted(world.target.fire_times("none")) == before + late
    assert sorted(world.target.fire_times("latest")) == before + missed[-1:] + late
    assert sorted(world.target.fire_times("all")) == before + missed[:1] + late  # the others have their turns
    skipped = [run for run in world.run_items("alice", "latest") if run["status"] == "skipped"]
    assert [(run["reason"], run["skipped_count"]) for run in skipped] == [("missed", 97)]
    assert skipped[0]["skipped_from_at"] == at("2026-11-21T03:20:00Z")
    world.run_until("2026-11-21T07:10:00Z", ticks=True)
    until_the_tick = sorted(each for each in world.target.fire_times("all") if each <= late[-1])
    assert until_the_tick == before + missed + late


def test_a_bad_entry_harms_no_other_and_is_recorded(world: World) -> None:
    for tenant in ("alice", "bob"):
        world.registry.create(tenant, "job", job(cron="* * * * *"))
    bad = world.store.get("alice", "job")
    key = keys.due_entry(bad.group, bad.shard, "alice", "job")
    world.table("due").put({**key, "entry": '["alice","job",{"cron":"99 * * * *"},0,1,"latest"]'})
    world.run_until("2026-11-21T03:18:00Z")
    summary = world.scheduler.tick()
    assert [entry.job for entry in summary.bad] == [("alice", "job")]
    world.run_until("2026-11-21T03:29:30Z")
    assert [run["tenant"] for run in world.run_items("alice", "job") if run.get("reason") == "invalid"] == [
        "alice"
    ]
    assert len(world.run_items("bob", "job")) == 17


def test_entries_that_sqs_reports_as_failed_are_sent_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = world.sqs.send_message_batch
    refusals = iter([True, False, False] * 1000)

    def flaky(QueueUrl: str, Entries: list[dict[str, object]]) -> dict[str, object]:
        failed = [entry for entry in Entries if next(refusals)]
        passed = [entry for entry in Entries if entry not in failed]
        if passed:
            send(QueueUrl, passed)
        return {"Failed": [{"Id": e["Id"], "Code": "InternalError", "SenderFault": False} for e in failed]}

    monkeypatch.setattr(world.sqs, "send_message_batch", flaky)
    world.registry.create("alice", "minutely", job(cron="* * * * *"))
    world.run_until("2026-11-21T03:18:00Z")
    world.scheduler.tick()
    world.run_until("2026-11-21T03:29:30Z")
    assert sorted(world.target.fire_times("minutely")) == minutes(13, 29)


def test_when_sqs_takes_nothing_the_mark_stays_and_the_next_tick_makes_up(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.registry.create("alice", "minutely", job(cron="* * * * *"))
    world.run_until("2026-11-21T03:18:00Z")

    def refuse(QueueUrl: str, Entries: list[dict[str, str]]) -> dict[str, object]:
        return {
            "Failed": [
                {"Id": entry["Id"], "Code": "InternalError", "SenderFault": False} for entry in Entries
            ]
        }

    with monkeypatch.context() as patched:
        patched.setattr(world.sqs, "send_message_batch", refuse)
        with pytest.raises(HandOverFailed):
            world.scheduler.tick()
    world.run_until("2026-11-21T03:28:00Z")
    world.scheduler.tick()
    world.run_until("2026-11-21T03:39:30Z")
    assert sorted(world.target.fire_times("minutely")) == minutes(13, 39)


def test_entries_that_are_not_due_are_not_read(world: World) -> None:
    world.registry.create("alice", "daily", job(cron="0 12 * * *"))
    world.registry.create("alice", "yearly", job(at="2027-01-01T00:00:00Z"))
    world.registry.create("alice", "weekly", job(every="1w", anchor="2026-01-01T12:34:00Z"))
    world.registry.create("alice", "soon", job(cron="25 3 * * *"))
    world.clock.move_to(at("2026-11-21T03:18:00Z"))
    summary = world.scheduler.tick()
    assert (summary.groups_known, summary.shards_due, summary.entries_read, summary.planned) == (1, 1, 1, 1)


def test_a_one_off_years_ahead_runs_on_its_second(world: World) -> None:
    world.registry.create("alice", "once", job(at="2029-02-03T04:05:06Z"))
    world.clock.move_to(at("2029-02-03T03:48:00Z"))
    world.scheduler.tick()
    world.run_until("2029-02-03T05:00:00Z", ticks=True)
    assert [(called_at, context["fire_at"]) for called_at, context in world.target.calls] == [
        (at("2029-02-03T04:05:06Z"), "2029-02-03T04:05:06Z")
    ]


def test_more_empty_shards_than_one_writer_can_drop_one_by_one_are_gone_after_a_tick(world: World) -> None:
    """Of many registrations that died after they had opened their shards."""
    world.registry.create("bob", "quiet", job(cron="* * * * *"))
    dates = [(day, month) for day in range(1, 21) for month in (*range(1, 11), 12)]
    texts = [f"cron|UTC|20-29 3 {day},21 {month},11 *" for day, month in dates]
    world.index.directory.open([Listing(Shard(text, 0)) for text in texts])
    world.run_until("2026-11-21T03:18:00Z")
    requests: Counter[str] = Counter()
    world.dynamodb.before = lambda name: requests.update([name])
    world.scheduler.tick()
    assert [
        listing.shard.jobs for listing in world.index.directory.all() if isinstance(listing, Listing)
    ] == [1]
    assert requests["transact_write_items"] == 5
    assert requests["delete_item"] == 0
