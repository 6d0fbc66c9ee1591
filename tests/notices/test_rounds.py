"""Which messages subscribed addresses get about what happens in a world."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from common.runs.outcome import Outcome
from common.storage import keys
from tests.notices.conftest import Stage, make_stage
from tests.worlds import World, job, losing_answers

BAD = Outcome(ok=False, permanent=True, error_type="Boom", error="no such customer")


def failing(*names: str) -> Any:
    return lambda event: BAD if event["minute8"]["job_id"] in names else Outcome(ok=True)


def test_a_burst_of_failures_is_one_message_and_then_a_recovery(stage: Stage) -> None:
    world = stage.world
    stage.subscribe(delay_s=60, group_s=3_600)
    for name in ("a", "b", "c", "good"):
        world.registry.put(
            "alice", name, job(cron="*/5 * * * *", owner="team", runbook="https://x.example.com/")
        )
    world.target.answer = failing("a", "b", "c")
    world.run_until("2026-11-21T03:15:10Z", ticks=True)
    assert stage.round() == {}
    world.run_until("2026-11-21T03:16:10Z", ticks=True)
    assert stage.round() == {"sent": 1}
    ((tenant, name, message_id, body),) = stage.addresses.sent
    assert (tenant, name) == ("alice", "on-call")
    assert body == {
        "type": "minute8.notice",
        "id": message_id,
        "timestamp": "2026-11-21T03:16:10Z",
        "tenant": "alice",
        "subscription": "on-call",
        "text": "Minute8, alice: 3 jobs failed (a, b, c).",
        "complete": True,
        "failed": {
            "jobs": 3,
            "runs": 3,
            "first": [
                {
                    "job_id": job_id,
                    "runs": 1,
                    "first_at": "2026-11-21T03:15:00Z",
                    "last_at": "2026-11-21T03:15:00Z",
                    "execution_id": f"alice:{job_id}:20261121T031500Z",
                    "error_type": "Boom",
                    "error": "no such customer",
                    "owner": "team",
                    "runbook": "https://x.example.com/",
                }
                for job_id in "abc"
            ],
        },
        "overdue": {"jobs": 0, "first": []},
        "not_running": {"jobs": 0, "first": []},
        "too_long": {"jobs": 0, "runs": 0, "first": []},
        "too_short": {"jobs": 0, "runs": 0, "first": []},
        "no_success": {"jobs": 0, "first": []},
        "recovered": {"jobs": 0, "first": []},
    }
    assert stage.state().delivered_at == world.clock.now()
    world.run_until("2026-11-21T03:24:00Z", ticks=True)
    assert stage.round() == {}, "what was reported fails on"
    world.target.answer = failing()
    world.run_until("2026-11-21T03:25:30Z", ticks=True)
    assert stage.round() == {}
    world.run_until("2026-11-21T03:26:40Z", ticks=True)
    assert stage.round() == {"sent": 1}
    assert stage.addresses.texts[1:] == ["Minute8, alice: 3 jobs recovered (a, b, c)."]
    assert stage.addresses.sent[1][3]["recovered"]["first"][0] == {
        "job_id": "a",
        "was": "failed",
        "over_by": "recovered",
        "since_at": "2026-11-21T03:15:00Z",
        "noticed_at": "2026-11-21T03:25:30Z",
        "owner": "team",
        "runbook": "https://x.example.com/",
    }


def test_lost_answers_delay_no_message_and_count_no_try_twice(world: World) -> None:
    """A round took its own repeated request for another one's: it sent nothing, and noted each failed try twice."""
    with ThreadPoolExecutor(4) as pool, ThreadPoolExecutor(4) as reads:
        stage = make_stage(losing_answers(world), pool, reads)
        stage.subscribe()
        world.registry.put("alice", "a", job(cron="*/5 * * * *"))
        world.target.answer = failing("a")
        stage.addresses.answer = lambda subscription: BAD
        world.run_until("2026-11-21T03:16:10Z", ticks=True)
        assert stage.round() == {"failed": 1}
        assert stage.state().message.tries == 1


def test_a_retry_by_hand_that_succeeds_ends_the_problem(stage: Stage) -> None:
    world = stage.world
    stage.subscribe()
    world.registry.put("alice", "once", job(at="2026-11-21T03:15:00Z"))
    world.target.answer = failing("once")
    world.run_until("2026-11-21T03:15:05Z", ticks=True)
    stage.round()
    world.target.answer = failing()
    world.manual.retry("alice", "alice:once:20261121T031500Z")
    world.run_until("2026-11-21T03:15:10Z")
    stage.round()
    assert [text.partition(": ")[2] for text in stage.addresses.texts] == [
        "1 job failed (once).",
        "1 job recovered (once).",
    ]


def test_a_deleted_job_s_failure_is_still_reported(stage: Stage) -> None:
    world = stage.world
    stage.subscribe(delay_s=60)
    world.registry.put("alice", "once", job(at="2026-11-21T03:15:00Z"))
    world.target.answer = failing("once")
    world.run_until("2026-11-21T03:15:05Z")
    world.store.delete("alice", "once")
    world.run_until("2026-11-21T03:16:05Z")
    stage.round()
    assert stage.addresses.texts == ["Minute8, alice: 1 job failed (once)."]


def test_an_overdue_job_is_reported_and_then_its_recovery(stage: Stage) -> None:
    world = stage.world
    stage.subscribe(kinds=["overdue", "recoveries"], delay_s=60)
    world.registry.put("alice", "late", job(cron="15 * * * *"))
    world.registry.put("alice", "fine", job(cron="50 4 * * *"))
    world.table("jobs").put({**keys.calendar("alice", "c"), "dates": "2026-11-21"})
    world.registry.put("alice", "excluded", job(cron="15 * * * *", exclude={"calendars": ["c"]}))
    world.scheduler.tick()
    # The message is in the queue, and no executor takes it.
    world.clock.move_to(world.clock.now() + 300)
    stage.round()
    assert stage.addresses.texts == ["Minute8, alice: 1 job overdue (late)."]
    assert stage.addresses.sent[0][3]["overdue"]["first"] == [
        {"job_id": "late", "due_at": "2026-11-21T03:15:00Z"}
    ]
    world.deliver()
    stage.round()
    world.clock.sleep(60)
    stage.round()
    assert stage.addresses.texts[1:] == ["Minute8, alice: 1 job recovered (late)."]


def test_a_job_that_started_a_little_late_is_not_reported(stage: Stage) -> None:
    world = stage.world
    stage.subscribe(delay_s=60)
    world.registry.put("alice", "late", job(cron="15 * * * *"))
    world.scheduler.tick()
    world.clock.move_to(world.clock.now() + 200)
    stage.round()
    assert len(stage.state().waiting) == 1
    world.deliver()
    world.clock.sleep(60)
    stage.round()
    assert (stage.addresses.sent, stage.state().waiting) == ([], {})


def test_filters(stage: Stage) -> None:
    world = stage.world
    for name, fields in (
        ("by-id", {"job_id": "report"}),
        ("by-prefix", {"name_prefix": "rep"}),
        ("by-name", {"name_prefix": "Night"}),
        ("by-tag", {"tag": "money"}),
        ("no-failures", {"kinds": ["overdue"]}),
    ):
        stage.subscribe(name=name, **fields)
    world.registry.put("alice", "report", job(at="2026-11-21T03:15:00Z"))
    world.registry.put("alice", "replay", job(at="2026-11-21T03:15:00Z", name="Nightly"))
    world.registry.put("alice", "bill", job(at="2026-11-21T03:15:00Z", tags=["money"]))
    world.target.answer = failing("report", "replay", "bill")
    world.run_until("2026-11-21T03:15:05Z", ticks=True)
    stage.round()
    reported = {
        name: [job["job_id"] for job in body["failed"]["first"]] for _, name, _, body in stage.addresses.sent
    }
    assert reported == {
        "by-id": ["report"],
        "by-prefix": ["replay", "report"],
        "by-name": ["replay"],
        "by-tag": ["bill"],
    }


def test_no_tenant_hears_of_another(stage: Stage) -> None:
    world = stage.world
    for tenant in ("alice", "bob"):
        stage.subscribe(tenant)
        world.registry.put(tenant, f"of-{tenant}", job(at="2026-11-21T03:15:00Z"))
    world.target.answer = failing("of-alice")
    world.run_until("2026-11-21T03:15:05Z", ticks=True)
    stage.round()
    assert [(tenant, name) for tenant, name, *_ in stage.addresses.sent] == [("alice", "on-call")]


def test_a_new_subscription_hears_only_of_what_happens_from_then_on(stage: Stage) -> None:
    world = stage.world
    world.registry.put("alice", "once", job(at="2026-11-21T03:15:00Z"))
    world.target.answer = failing("once")
    world.run_until("2026-11-21T03:15:05Z", ticks=True)
    stage.subscribe()
    assert stage.round() == {}


def test_without_subscriptions_a_round_is_one_request(stage: Stage) -> None:
    requests: list[str] = []
    stage.world.dynamodb.before = requests.append
    assert stage.round() == {}
    assert requests == ["query"]


def test_a_tenant_whose_last_subscription_is_gone_leaves_the_list(stage: Stage) -> None:
    world = stage.world
    stage.subscribe()
    stage.store.delete("alice", "on-call", world.clock.now(), stage.commit)
    assert world.table("jobs").get(keys.subscriber("alice"))
    stage.round()
    assert world.table("jobs").get(keys.subscriber("alice")) is None


def test_a_subscription_that_is_stored_meanwhile_stays_in_the_list(stage: Stage) -> None:
    stage.subscribe()
    ((tenant, progress),) = stage.store.stored.subscribers()
    stage.subscribe(name="other")
    stage.store.stored.drop_subscriber(tenant, progress)
    assert len(list(stage.store.stored.subscribers())) == 1
