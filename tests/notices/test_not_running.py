"""Whatever stops a job is told by name: each row by itself, then worlds in which something stops."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from common.errors import Conflict, InvalidInput, NotFound, QuotaExceeded
from common.events import JOB_NOT_RUNNING, JOB_NOT_RUNNING_OVER
from common.history.failed_runs import group_of
from common.history.job_directory import JobDirectory
from common.jobs import not_running as notes
from common.jobs.job import Job
from common.notices.store import Subscriptions
from common.notices.subscription import KINDS, Notice, Problem, SubscriptionState
from common.registration.calendar_store import CalendarStore, jobs_that_end
from common.registration.manual import erase_details
from common.runs.outcome import Outcome
from common.runs.run import Run
from common.storage import keys
from common.tenants.allowed_targets import Block
from common.tenants.audit import Audit
from common.tenants.tenant import TenantRules
from common.timing.instants import DAY_S, rfc3339
from minute8.api.routes.overview import not_running
from tests.api.calls import Office
from tests.api.conftest import office as office
from tests.notices.conftest import Stage, make_stage
from tests.simulation.memory_dynamodb import MemoryDynamoDB
from tests.stand_ins import AnyTenant
from tests.worlds import World, at, damage_entry, job, make_world

FAILS = Outcome(ok=False, permanent=True, error_type="Boom", error="it went wrong")


class Rules:
    """The rules of all tenants, and what the platform blocks: both can be changed."""

    def __init__(self) -> None:
        self.of_all = AnyTenant().of_all
        self.blocked: list[Block] = []

    def rules(self, tenant: str, now: float) -> TenantRules:
        return self.of_all

    def learn(self, tenants: Iterable[str], now: float) -> set[str]:
        return set(tenants)

    def blocks(self, now: float) -> list[Block]:
        return self.blocked


@dataclass
class Telling:
    """A world with one subscription to everything, whose rules can change."""

    stage: Stage
    rules: Rules

    @property
    def world(self) -> World:
        return self.stage.world

    @property
    def job(self) -> Job:
        return self.world.store.get("alice", "report")

    def put(self, **fields: Any) -> Job:
        return self.world.registry.put("alice", "report", job(**{"cron": "* * * * *"} | fields))

    def minutes(self, count: int) -> None:
        """Run on, with a round of the notifier each minute."""
        for _ in range(count):
            minute = int(self.world.clock.now()) // 60 * 60 + 60
            self.world.run_until(rfc3339(minute), ticks=True)
            self.stage.round()

    def only(self, **rules: Any) -> None:
        self.rules.of_all = structs.replace(self.rules.of_all, **rules)

    @property
    def texts(self) -> list[str]:
        return self.stage.addresses.texts

    @property
    def overview(self) -> dict[str, str]:
        """What the overview names, with the reason."""
        jobs = self.world.tables.jobs
        directory = JobDirectory(jobs, Audit(self.world.tables.tenants))
        _, addresses_off = Subscriptions(jobs).with_addresses_off("alice")
        notes = not_running(jobs, "alice", directory.streaks("alice"), addresses_off)
        return {each.subject: each.reason for each in notes}

    @property
    def events(self) -> list[tuple[str, str]]:
        """The reason of each that began, and how and which ended."""
        named = (JOB_NOT_RUNNING, JOB_NOT_RUNNING_OVER)
        details = [detail for kind, detail in self.world.events if kind in named]
        return [(detail["reason"], detail.get("over_by", "")) for detail in details]


@contextmanager
def telling_world(now: str = "2026-11-21T03:12:00Z") -> Iterator[Telling]:
    rules = Rules()
    world = make_world(MemoryDynamoDB(), now, rules)
    with ThreadPoolExecutor(4) as pool, ThreadPoolExecutor(4) as reads:
        telling = Telling(make_stage(world, pool, reads), rules)
        telling.stage.subscribe(delay_s=60)
        yield telling


@pytest.fixture
def telling() -> Iterator[Telling]:
    with telling_world() as telling:
        yield telling


def test_a_target_that_is_no_longer_allowed_is_told_once_and_so_is_its_return(telling: Telling) -> None:
    allowed = telling.rules.of_all.allowed_targets
    telling.put()
    telling.minutes(3)
    telling.only(allowed_targets=["arn:aws:lambda:us-east-1:123456789012:function:other"])
    telling.minutes(30)
    assert telling.texts == ["Minute8, alice: 1 job not running: target_not_allowed (report)."]
    assert telling.overview == {"report": "target_not_allowed"}
    body = telling.stage.addresses.sent[0][-1]
    assert body["not_running"]["first"][0]["reason"] == "target_not_allowed"
    assert "3 runs in a row were skipped" in body["not_running"]["first"][0]["detail"]
    telling.only(allowed_targets=allowed)
    telling.minutes(5)
    assert telling.texts[1:] == ["Minute8, alice: 1 job recovered (report)."]
    assert telling.overview == {}
    assert telling.events == [("target_not_allowed", ""), ("target_not_allowed", "runs_again")]


def test_a_noted_reason_costs_no_further_write(telling: Telling) -> None:
    telling.put()
    telling.only(allowed_targets=[])
    telling.minutes(10)
    before = telling.world.table("jobs").get(keys.failure_streak("alice", "report"))
    telling.minutes(30)
    assert telling.world.table("jobs").get(keys.failure_streak("alice", "report")) == before


def test_a_run_that_holds_its_jobs_lock_is_told(telling: Telling) -> None:
    telling.put(overlap="skip", completion="callback", callback_timeout_s=39 * 60, retry={"max_attempts": 1})
    telling.minutes(15)
    assert telling.texts == ["Minute8, alice: 1 job not running: overlap (report)."]
    telling.minutes(50)  # its time is over, and the next run has the lock, and skips all others again
    assert telling.overview == {"report": "overlap"}
    assert "recovered" not in " ".join(telling.texts)


def test_a_schedule_whose_last_run_fails_is_told_to_be_over(telling: Telling) -> None:
    telling.put(end_at="2026-11-21T03:16:00Z", retry={"max_attempts": 1})
    telling.world.target.answer = lambda event: FAILS
    telling.minutes(15)
    assert telling.overview == {"report": "ended"}


def test_a_job_that_is_paused_by_hand_is_not_told(telling: Telling) -> None:
    """Runs that were planned before the pause are skipped for another reason."""
    telling.put()
    telling.minutes(7)
    telling.world.store.pause("alice", "report", "by hand")
    telling.only(allowed_targets=[])
    telling.minutes(20)
    assert (telling.texts, telling.overview, telling.events) == ([], {}, [])


def test_a_pause_by_minute8_stays_named_when_planned_runs_are_skipped(telling: Telling) -> None:
    telling.put(pause_after_failures=3)
    telling.world.target.answer = lambda event: FAILS
    telling.minutes(5)
    telling.only(allowed_targets=[])
    telling.minutes(20)
    assert telling.overview == {"report": "paused_after_failures"}


def test_a_run_that_waits_for_a_permit_is_told(telling: Telling) -> None:
    concurrency = {"key": "crm", "limit": 1, "max_wait_s": 7_200}
    waiting = {"completion": "callback", "callback_timeout_s": 7_200, "concurrency": concurrency}
    telling.world.registry.put("alice", "holder", job(at="2026-11-21T03:14:00Z", **waiting))
    telling.put(cron="15 3 * * *", **waiting)
    telling.minutes(18)
    assert telling.texts == ["Minute8, alice: 1 job not running: waits (report)."]
    assert telling.overview == {"report": "waits"}


THROTTLED = Outcome(ok=False, error_type="Throttled", error="too many")


def test_a_retry_that_waits_for_a_permit_is_told_and_its_run_says_for_what(telling: Telling) -> None:
    key = {"key": "crm", "limit": 1, "max_wait_s": 7_200}
    answers = {"report": THROTTLED}
    telling.world.target.answer = lambda event: answers.get(event["minute8"]["job_id"], Outcome(ok=True))
    retry = {"max_attempts": 5, "base_s": 120}
    one_off = job(at="2026-11-21T03:14:00Z", retry=retry, concurrency=key)
    telling.world.registry.put("alice", "report", one_off)
    long = {"completion": "callback", "callback_timeout_s": 2_700, "concurrency": key}
    telling.world.registry.put("alice", "holder", job(at="2026-11-21T03:14:30Z", **long))
    telling.minutes(40)
    assert telling.overview == {"report": "waits"}
    assert "1 job not running: waits (report)" in " ".join(telling.texts)
    (run,) = telling.world.runs.of_job("alice", "report", limit=2)
    assert "of the concurrency key crm is going" in run.detail
    assert run.next_attempt_at > telling.world.clock.now()
    answers.clear()
    telling.minutes(60)
    (run,) = telling.world.runs.of_job("alice", "report", limit=2)
    assert (run.status, run.detail, telling.overview) == ("succeeded", "", {})


def test_a_one_off_that_waits_and_is_cancelled_is_not_named_any_more(telling: Telling) -> None:
    key = {"key": "crm", "limit": 1, "max_wait_s": 7_200}
    long = {"completion": "callback", "callback_timeout_s": 7_200, "concurrency": key}
    telling.world.registry.put("alice", "holder", job(at="2026-11-21T03:14:00Z", **long))
    telling.world.registry.put("alice", "once", job(at="2026-11-21T03:15:00Z", **long))
    telling.minutes(16)
    assert telling.overview == {"once": "waits"}
    telling.world.manual.cancel("alice", "alice:once:20261121T031500Z", "")
    telling.minutes(2)
    assert telling.overview == {}


def test_a_one_off_that_a_suspension_lost_is_told_afterwards(telling: Telling) -> None:
    telling.world.registry.put("alice", "once", job(at="2026-11-21T03:15:00Z"))
    telling.put()
    telling.only(state="suspended")
    telling.minutes(6)
    assert telling.overview == {"once": "suspended"}
    telling.only(state="active")
    telling.minutes(6)
    assert telling.texts == ["Minute8, alice: 1 job not running: suspended (once)."]


def test_a_retry_that_a_hold_stops_is_told_until_it_is_given_up(telling: Telling) -> None:
    telling.world.target.answer = lambda event: THROTTLED
    retry = {"max_attempts": 5, "base_s": 60, "max_age_s": 3_600}
    telling.world.registry.put("alice", "report", job(at="2026-11-21T03:14:00Z", retry=retry))
    telling.minutes(3)
    telling.rules.blocked.append(Block("*", "an incident", 0, "platform"))
    telling.minutes(25)
    assert telling.overview == {"report": "waits"}
    (run,) = telling.world.runs.of_job("alice", "report", limit=2)
    assert "the platform blocks" in run.detail and run.next_attempt_at > telling.world.clock.now()
    telling.minutes(100)
    (run,) = telling.world.runs.of_job("alice", "report", limit=2)
    assert (run.status, run.error_type, telling.overview) == ("failed", "misfire", {})
    assert telling.events == [("waits", ""), ("waits", "runs_again")]


@pytest.mark.parametrize("damage", [{"revision": "x"}, {"spec": "{"}, {"state": 7}, {"schedule": None}])
def test_a_job_that_cannot_be_read_is_told_until_it_is_put_again(
    telling: Telling, damage: dict[str, Any]
) -> None:
    telling.put()
    telling.minutes(3)
    jobs = telling.world.table("jobs")
    jobs.put({**(jobs.get(keys.job("alice", "report")) or {}), **damage})
    telling.minutes(6)
    assert telling.overview == {"report": "unreadable"}
    assert telling.texts == ["Minute8, alice: 1 job not running: unreadable (report)."]
    telling.put()
    telling.minutes(6)
    assert telling.overview == {}
    assert telling.events == [("unreadable", ""), ("unreadable", "changed")]


@pytest.mark.parametrize(
    "fields",
    [
        {"at": "2026-11-21T03:40:00Z", "exclude": {"dates": ["2026-11-21"]}},
        {"cron": "0 0 * * 6", "exclude": {"weekdays": ["sat"]}},
    ],
)
def test_a_schedule_that_excludes_all_its_times_is_told_at_once(
    telling: Telling, fields: dict[str, Any]
) -> None:
    stored = telling.world.registry.put("alice", "report", job(**fields))
    assert stored.not_running == "never_fires"
    telling.minutes(3)
    assert telling.texts == ["Minute8, alice: 1 job not running: never_fires (report)."]
    telling.world.registry.put("alice", "report", job(cron="0 0 * * 6", exclude={"weekdays": ["sun"]}))
    assert telling.overview == {}


def test_a_calendar_that_takes_the_date_of_a_one_off_is_told(telling: Telling) -> None:
    store, now = calendars(telling.world), telling.world.clock.now()
    store.put("alice", "holidays", {"dates": ["2026-11-25"]}, now)
    once = job(at="2026-11-21T05:20:00Z", exclude={"calendars": ["holidays"]})
    assert telling.world.registry.put("alice", "once", once).not_running == ""
    store.put("alice", "holidays", {"dates": ["2026-11-21"]}, now)
    assert list(jobs_that_end(telling.world.store, "alice", "holidays")) == ["once"]
    telling.minutes(3)
    assert telling.texts == ["Minute8, alice: 1 job not running: never_fires (once)."]


def test_a_one_off_whose_time_came_in_a_pause_is_told_until_it_runs_by_hand(telling: Telling) -> None:
    telling.world.registry.put("alice", "once", job(at="2026-11-21T03:20:00Z"))
    telling.world.store.pause("alice", "once", "")
    telling.minutes(12)
    assert telling.overview == {}
    telling.world.store.resume("alice", "once")
    telling.minutes(3)
    assert telling.texts == ["Minute8, alice: 1 job not running: never_fires (once)."]
    telling.world.manual.run_now("alice", "once", "by-hand")
    telling.minutes(3)
    assert telling.overview == {}


def test_a_job_of_two_instants_that_are_both_denied_is_told(telling: Telling) -> None:
    instants = [{"at": "2026-11-21T03:15:00Z"}, {"at": "2026-11-21T03:17:00Z"}]
    telling.world.registry.put("alice", "twice", job(schedules=instants))
    telling.only(allowed_targets=[])
    telling.minutes(10)
    assert telling.overview == {"twice": "target_not_allowed"}


@pytest.mark.parametrize(("cron", "is_told"), [("15 3 21 * *", True), ("15 * * * *", False)])
def test_a_skipped_run_that_no_other_follows_soon_is_told_at_once(
    telling: Telling, cron: str, is_told: bool
) -> None:
    telling.put(cron=cron)
    telling.only(allowed_targets=[])
    telling.minutes(8)
    assert telling.overview == ({"report": "target_not_allowed"} if is_told else {})


def test_a_monthly_run_that_an_outage_lost_is_told(telling: Telling) -> None:
    telling.put(cron="40 3 21 * *", catch_up="none")
    telling.world.clock.move_to(at("2026-11-21T05:05:00Z"))
    telling.minutes(12)
    assert telling.overview == {"report": "missed"}


def test_what_ended_says_why_its_last_run_was_skipped(telling: Telling) -> None:
    telling.put(max_runs=2)
    telling.only(allowed_targets=[])
    telling.minutes(10)
    (note,) = notes.stopped_now(telling.world.tables.jobs, "alice").notes
    assert note.reason == "ended" and "its last run was skipped: the platform does not allow" in note.detail


def test_a_share_of_skips_that_grows_to_all_is_told_again(telling: Telling) -> None:
    telling.put()
    allowed = telling.rules.of_all.allowed_targets
    for nth in range(40):
        telling.only(allowed_targets=[] if nth % 5 == 0 else allowed)
        telling.minutes(1)
    (note,) = notes.stopped_now(telling.world.tables.jobs, "alice").notes
    assert note.is_share
    telling.only(allowed_targets=[])
    telling.minutes(8)
    (note,) = notes.stopped_now(telling.world.tables.jobs, "alice").notes
    assert "runs in a row were skipped" in note.detail
    assert telling.texts == ["Minute8, alice: 1 job not running: target_not_allowed (report)."] * 2


def test_a_backfill_that_is_denied_is_told_until_one_runs(telling: Telling) -> None:
    allowed = telling.rules.of_all.allowed_targets
    telling.put(cron="0 3 * * *")
    telling.only(allowed_targets=[])
    days = at("2026-11-01T00:00:00Z"), at("2026-11-20T00:00:00Z")
    telling.world.manual.backfills.start("alice", "report", *days, concurrency=3, backfill_id="denied")
    telling.minutes(6)
    assert telling.overview == {"report": "target_not_allowed"}
    assert telling.texts == ["Minute8, alice: 1 job not running: target_not_allowed (report)."]
    telling.only(allowed_targets=allowed)
    telling.world.manual.backfills.start("alice", "report", *days, concurrency=3, backfill_id="again")
    telling.minutes(6)
    assert telling.overview == {}


def test_a_pause_by_minute8_is_told_until_it_is_resumed(telling: Telling) -> None:
    telling.put(pause_after_failures=3)
    telling.world.target.answer = lambda event: FAILS
    telling.minutes(10)
    assert "1 job not running: paused_after_failures (report)" in telling.texts[-1]
    assert telling.overview == {"report": "paused_after_failures"}
    telling.world.target.answer = lambda event: Outcome(ok=True)
    telling.world.store.resume("alice", "report")
    telling.minutes(5)
    assert telling.overview == {}
    assert "recovered" in telling.texts[-1]


def test_what_does_not_run_is_told_soon_though_a_message_was_just_sent(telling: Telling) -> None:
    telling.put(pause_after_failures=3)
    telling.world.target.answer = lambda event: FAILS
    telling.minutes(8)
    assert telling.texts == [
        "Minute8, alice: 1 job failed (report).",
        "Minute8, alice: 1 job not running: paused_after_failures (report).",
    ]


def test_jobs_that_stop_one_after_the_other_make_a_message_each_three_minutes(telling: Telling) -> None:
    for nth in range(30):
        name, start_at = f"job{nth:02}", rfc3339(at("2026-11-21T03:13:00Z") + nth * 60)
        telling.world.registry.put("alice", name, job(cron="* * * * *", start_at=start_at))
    telling.only(allowed_targets=[])
    telling.minutes(40)
    assert 8 <= len(telling.texts) <= 12


def test_an_edit_of_a_job_that_minute8_paused_keeps_its_name(telling: Telling) -> None:
    telling.put(pause_after_failures=3)
    telling.world.target.answer = lambda event: FAILS
    telling.minutes(10)
    texts = list(telling.texts)
    telling.put(pause_after_failures=3, name="edited")
    telling.minutes(5)
    assert telling.overview == {"report": "paused_after_failures"}
    assert telling.texts == texts
    telling.world.store.pause("alice", "report", "I look at it")
    telling.minutes(1)
    assert telling.overview == {}
    telling.minutes(60)
    assert telling.texts[-1] == "Minute8, alice: 1 job paused (report)."
    assert telling.events == [("paused_after_failures", ""), ("paused_after_failures", "paused")]


def test_an_edit_of_a_job_whose_target_is_not_allowed_is_no_recovery(telling: Telling) -> None:
    telling.put()
    telling.only(allowed_targets=[])
    telling.minutes(6)
    telling.put(name="edited")
    telling.minutes(6)
    assert telling.overview == {"report": "target_not_allowed"}
    assert telling.texts == ["Minute8, alice: 1 job not running: target_not_allowed (report)."]
    assert telling.events == [("target_not_allowed", "")]


def test_a_one_off_that_an_outage_lost_is_named_and_does_not_recover(telling: Telling) -> None:
    telling.world.registry.put("alice", "once", job(at="2026-11-21T03:40:00Z", catch_up="none"))
    telling.world.clock.move_to(at("2026-11-21T05:05:00Z"))
    telling.stage.round()
    telling.minutes(15)
    assert telling.overview == {"once": "missed"}
    assert "1 job not running: missed (once)" in " ".join(telling.texts)
    assert "recovered" not in " ".join(telling.texts)


def test_a_job_whose_last_runs_an_outage_lost_has_ended(telling: Telling) -> None:
    telling.put(end_at="2026-11-21T03:16:00Z")
    telling.world.clock.move_to(at("2026-11-21T05:00:00Z"))
    telling.minutes(5)
    assert telling.overview == {"report": "ended"}


def test_a_deletion_is_told_as_that(telling: Telling) -> None:
    allowed = telling.rules.of_all.allowed_targets
    telling.put()
    telling.only(allowed_targets=[])
    telling.minutes(6)
    telling.world.store.delete("alice", "report")
    telling.only(allowed_targets=allowed)
    telling.minutes(5)
    assert telling.texts[1:] == ["Minute8, alice: 1 job deleted (report)."]
    telling.put()
    telling.minutes(1)
    assert telling.overview == {}
    assert telling.events == [("target_not_allowed", ""), ("target_not_allowed", "deleted")]


def test_a_skipped_one_off_that_is_deleted_when_it_is_over_is_told(telling: Telling) -> None:
    telling.world.registry.put("alice", "once", job(at="2026-11-21T03:15:00Z", after_completion="delete"))
    telling.only(allowed_targets=[])
    telling.minutes(15)
    with pytest.raises(NotFound):
        telling.world.store.get("alice", "once")
    assert telling.texts[0] == "Minute8, alice: 1 job not running: target_not_allowed (once)."
    assert telling.texts[1:] == ["Minute8, alice: 1 job deleted (once)."]
    assert telling.overview == {}


def test_a_skipped_one_off_that_succeeds_by_hand_is_not_named(telling: Telling) -> None:
    telling.world.registry.put("alice", "once", job(at="2026-11-21T03:15:00Z"))
    allowed = telling.rules.of_all.allowed_targets
    telling.only(allowed_targets=[])
    telling.minutes(6)
    assert telling.overview == {"once": "target_not_allowed"}
    telling.only(allowed_targets=allowed)
    telling.world.manual.run_now("alice", "once", "by-hand")
    telling.minutes(3)
    assert telling.overview == {}


def test_another_reason_is_told_and_is_no_recovery(telling: Telling) -> None:
    telling.put()
    allowed = telling.rules.of_all.allowed_targets
    telling.only(allowed_targets=[])
    telling.minutes(6)
    telling.only(allowed_targets=allowed)
    telling.rules.blocked.append(Block("*", "incident", 0, "platform"))
    telling.minutes(60)
    assert telling.texts[1:] == ["Minute8, alice: 1 job not running: blocked (report)."]
    assert telling.overview == {"report": "blocked"}
    assert telling.events == [
        ("target_not_allowed", ""),
        ("target_not_allowed", "other_reason"),
        ("blocked", ""),
    ]


def test_a_note_by_a_registration_and_one_by_a_tick_are_events(telling: Telling) -> None:
    telling.put(cron="0 3 1 1 *", end_at="2026-12-01T00:00:00Z")
    telling.world.registry.put("alice", "often", job(cron="* * * * *"))
    telling.world.clock.move_to(at("2026-11-21T04:40:00Z"))
    telling.minutes(12)
    assert telling.events[:2] == [("never_fires", ""), ("missed", "")]
    telling.put(cron="0 3 * * *")
    assert telling.events[-1] == ("never_fires", "changed")


def test_an_address_that_is_switched_off_is_told_to_the_other_and_audited(telling: Telling) -> None:
    telling.stage.subscribe(name="chat", job_id="another")
    telling.stage.addresses.answer = lambda subscription: Outcome(ok=subscription.name != "on-call")
    failing_since = telling.world.clock.now() - 4 * DAY_S
    telling.put()
    telling.world.target.answer = lambda event: FAILS
    telling.minutes(3)
    stored = telling.stage.store.stored.get("alice", "on-call")
    state: SubscriptionState = stored.state
    state.failing_since = failing_since
    assert telling.stage.store.stored.save(stored)
    telling.minutes(10)
    assert [text for _, name, _, text in _of(telling, "chat")] == [
        "Minute8, alice: 1 address not running: address_off (on-call)."
    ]
    assert telling.overview["on-call"] == "address_off"
    entries = Audit(telling.world.tables.tenants).newest("alice", 10)
    assert [(entry.action, entry.subject) for entry in entries if "off" in entry.action] == [
        ("subscription.switched_off", "on-call")
    ]
    telling.stage.addresses.answer = lambda subscription: Outcome(ok=True)
    telling.stage.subscribe()
    telling.minutes(3)
    assert "on-call" not in telling.overview
    assert "1 address recovered (on-call)" in _of(telling, "chat")[-1][-1]
    events = [(kind, detail) for kind, detail in telling.world.events if kind.startswith("Address")]
    about = {"tenant": "alice", "subscription": "on-call"}
    assert [kind for kind, _ in events] == ["Address Switched Off", "Address Switched Off Over"]
    assert events[0][1].items() >= about.items()
    assert events[1][1] == {**about, "over_by": "switched_on"}


def test_an_address_that_is_no_longer_allowed_is_told_to_the_other(telling: Telling) -> None:
    stage, tenants = telling.stage, telling.world.table("tenants")
    stage.subscribe(name="chat", target={"kind": "http", "url": "https://hooks.example.org/chat"})
    tenant = tenants.get(keys.tenant("alice")) or {}
    tenants.put({**tenant, "allowed_targets": ["hooks.example.org"]})
    telling.minutes(4)
    assert telling.texts == ["Minute8, alice: 1 address not running: address_not_allowed (on-call)."]
    tenants.put(tenant)
    telling.minutes(62)  # so long are rules trusted that somebody edits by hand
    assert "1 address recovered (on-call)" in _of(telling, "chat")[-1][-1]
    assert telling.events == []


def test_an_overview_names_a_forbidden_address_and_a_suspended_tenant(office: Office) -> None:
    hook = {"target": {"kind": "http", "url": "https://hooks.example.com/a"}}
    office.alice("PUT", "/v1/subscriptions/on-call", hook)
    overview = office.alice("GET", "/v1/overview").json
    assert (overview["suspended"], overview["not_running"]["count"]) == (False, 0)
    office.operator("PATCH", "/v1/tenants/alice", {"allowed_targets": []})
    office.world.clock.sleep(60)
    (stopped,) = office.alice("GET", "/v1/overview").json["not_running"]["first"]
    assert (stopped["subscription"], stopped["reason"]) == ("on-call", "address_not_allowed")
    office.operator("POST", "/v1/tenants/alice/suspend")
    office.world.clock.sleep(60)
    assert office.alice("GET", "/v1/overview").json["suspended"]
    assert office.alice("GET", "/v1/jobs").json["suspended"]


def _of(telling: Telling, name: str) -> list[tuple[str, str, str, str]]:
    return [(*sent[:3], sent[3]["text"]) for sent in telling.stage.addresses.sent if sent[1] == name]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"end_at": "2026-11-21T03:20:00Z"}, "end_at"),
        ({"max_runs": 4}, "max_runs"),
        ({"cron": "0/1 3 21 11 ? 2026", "dialect": "eventbridge"}, "past"),
    ],
)
def test_a_schedule_that_ends_is_told(telling: Telling, fields: dict[str, Any], words: str) -> None:
    telling.put(**fields)
    assert telling.overview == {}
    telling.minutes(60)
    assert telling.texts == ["Minute8, alice: 1 job not running: ended (report)."]
    assert words in telling.stage.addresses.sent[0][-1]["not_running"]["first"][0]["detail"]


def test_a_one_off_that_ran_is_not_told(telling: Telling) -> None:
    telling.world.registry.put("alice", "once", job(at="2026-11-21T03:15:00Z"))
    telling.minutes(20)
    assert telling.texts == []
    assert telling.overview == {}


def calendars(world: World) -> CalendarStore:
    return CalendarStore(world.table("jobs"), world.store.audited)


def test_a_calendar_that_runs_out_is_told_and_so_is_its_renewal() -> None:
    with telling_world("2026-11-21T23:40:00Z") as telling:
        calendars(telling.world).put(
            "alice", "open", {"dates": ["2026-11-20", "2026-11-21"]}, telling.world.clock.now()
        )
        telling.put(include_calendars=["open"])
        telling.minutes(30)
        assert telling.texts == ["Minute8, alice: 1 job not running: ended (report)."]
        now = telling.world.clock.now()
        calendars(telling.world).put("alice", "open", {"dates": ["2026-11-22", "2026-11-23"]}, now)
        assert jobs_that_end(telling.world.store, "alice", "open") == {}
        telling.minutes(3)
        assert telling.overview == {}
        assert "recovered" in telling.texts[-1]


def test_a_calendar_edit_and_a_registration_that_leave_nothing_are_told(telling: Telling) -> None:
    now = telling.world.clock.now()
    calendars(telling.world).put("alice", "open", {"dates": ["2026-11-21"]}, now)
    telling.put(include_calendars=["open"])
    calendars(telling.world).put("alice", "open", {"dates": ["2026-11-20"]}, now)
    assert list(jobs_that_end(telling.world.store, "alice", "open")) == ["report"]
    late = telling.world.registry.put("alice", "late", job(cron="* * * * *", include_calendars=["open"]))
    assert late.not_running == "never_fires"
    telling.minutes(2)
    assert telling.texts == ["Minute8, alice: 2 jobs not running: never_fires (late, report)."]
    assert telling.overview == {"report": "never_fires", "late": "never_fires"}


def test_a_share_of_a_day_is_told_by_reason_and_over_at_half_of_it(telling: Telling) -> None:
    newest = [run_of(n, "overlap" if n % 9 == 5 else "") for n in range(30)]
    noted = notes.skipped(newest, NOW)
    assert noted and (noted.reason, noted.is_share) == ("overlap", True)
    assert notes.skipped(newest[:19], NOW) is None
    assert notes.goes_on(noted, [run_of(n, "overlap" if n == 5 else "") for n in range(20)], NOW)
    assert not notes.goes_on(noted, [run_of(n, "overlap" if n == 5 else "") for n in range(21)], NOW)


NOW = 1_800_000_000


def run_of(number: int, reason: str = "", **fields: Any) -> Run:
    """The run of so many minutes ago, skipped for this reason or succeeded."""
    fire_at = NOW - 60 * number
    words = {"status": "skipped", "reason": reason} if reason else {"status": "succeeded"}
    base = {"tenant": "alice", "job_id": "report", "run_name": f"r{number}", "schedule_revision": 1}
    return Run(**{**base, "fire_at": fire_at, "due_at": fire_at, "trigger": "schedule", **words, **fields})


@pytest.mark.parametrize(
    ("newest", "reason"),
    [
        (["overlap"] * 2, ""),
        (["overlap"] * 3, "overlap"),
        (["blocked", "overlap", "overlap"], "blocked"),
        (["overlap", "", "overlap", "overlap"], ""),
        (["overlap", "cancelled", "overlap", "overlap"], "overlap"),
        (["cancelled"] * 9, ""),
        (["paused"] * 9, ""),
        (["suspended"] * 9, ""),
    ],
)
def test_what_the_newest_runs_say(newest: list[str], reason: str) -> None:
    noted = notes.skipped([run_of(n, why) for n, why in enumerate(newest)], NOW)
    assert (noted.reason if noted else "") == reason


def test_one_record_of_missed_times_counts_as_many(telling: Telling) -> None:
    record = run_of(0, "missed", skipped_count=3, skipped_from_at=NOW - 120)
    noted = notes.skipped([record], NOW)
    assert noted and (noted.reason, noted.since_at) == ("missed", NOW - 120)


# Worlds in which something stops happening: any setting, item, permission, calendar, quota, address, lock or wait.
Stop = Callable[[Telling, random.Random], str]


def _permission(telling: Telling, rng: random.Random) -> str:
    telling.only(allowed_targets=rng.choice([[], ["arn:aws:lambda:us-east-1:123456789012:function:other"]]))
    return "target_not_allowed"


def _block(telling: Telling, rng: random.Random) -> str:
    telling.rules.blocked.append(Block("*", "incident", 0, "platform"))
    return "blocked"


def _lock(telling: Telling, rng: random.Random) -> str:
    policy = rng.choice(["skip", "queue_one"])
    telling.put(overlap=policy, completion="callback", callback_timeout_s=rng.randint(3_000, 9_000))
    return "overlap"


def _failures(telling: Telling, rng: random.Random) -> str:
    telling.put(pause_after_failures=rng.randint(1, 4))
    telling.world.target.answer = lambda event: FAILS
    return "paused_after_failures"


def _bound(telling: Telling, rng: random.Random) -> str:
    end_at = int(telling.world.clock.now()) + rng.randint(90, 500)
    telling.put(**rng.choice([{"end_at": rfc3339(end_at)}, {"max_runs": rng.randint(1, 7)}]))
    return "ended"


def _calendar(telling: Telling, rng: random.Random) -> str:
    now = telling.world.clock.now()
    store = calendars(telling.world)
    store.put("alice", "open", {"dates": ["2026-11-21"]}, now)
    telling.put(include_calendars=["open"])
    store.put("alice", "open", {"dates": rng.choice([[], ["2026-11-19"]])}, now)
    jobs_that_end(telling.world.store, "alice", "open")
    return "never_fires"


def _item(telling: Telling, rng: random.Random) -> str:
    damage_entry(telling.world, "alice", "report")
    return "invalid"


def _secret(telling: Telling, rng: random.Random) -> str:
    telling.world.secrets.put("alice", "token", "a long enough value", telling.world.clock.now())
    payload = {"token": "secret://token"}
    telling.put(payload=payload)
    telling.world.table("tenants").delete(keys.secret("alice", "token"))
    return "SecretMissing"


def _wait(telling: Telling, rng: random.Random) -> str:
    """Another job has the only place of a key that both share."""
    when_full = rng.choice(["wait", "skip"])
    key = {"key": "crm", "limit": 1, "max_wait_s": rng.randint(3_600, 9_000), "when_full": when_full}
    long = {"completion": "callback", "callback_timeout_s": rng.randint(3_000, 9_000), "concurrency": key}
    soon = rfc3339(int(telling.world.clock.now()) + 5)
    telling.world.registry.put("alice", "holder", job(at=soon, **long))
    telling.minutes(1)
    telling.put(concurrency=key)
    return {"wait": "waits", "skip": "concurrency"}[when_full]


def _address(telling: Telling, rng: random.Random) -> str:
    """An address fails for three days; the other one hears of it, whatever its job is."""
    telling.stage.subscribe(name="chat", job_id="another")
    telling.stage.addresses.answer = lambda subscription: Outcome(ok=subscription.name != "on-call")
    telling.world.target.answer = lambda event: FAILS
    telling.minutes(3)
    stored = telling.stage.store.stored.get("alice", "on-call")
    state: SubscriptionState = stored.state
    state.failing_since = telling.world.clock.now() - rng.uniform(3.01, 9) * DAY_S
    assert telling.stage.store.stored.save(stored)
    return "address_off"


STOPS: Mapping[str, Stop] = {
    stop.__name__.removeprefix("_"): stop
    for stop in (
        *(_permission, _block, _lock, _failures, _bound, _calendar, _item, _secret),
        *(_wait, _address),
    )
}


def check_told(name: str, seed: int) -> None:
    rng = random.Random(f"{name}{seed}")
    with telling_world(f"2026-11-21T{rng.randint(3, 20):02}:{rng.randint(0, 59):02}:00Z") as telling:
        telling.put()
        telling.minutes(rng.randint(1, 12))
        reason = STOPS[name](telling, rng)
        telling.minutes(15)
        subject = "on-call" if reason == "address_off" else "report"
        told_bodies = [str(body) for *_, body in telling.stage.addresses.sent]
        assert any(reason in body and f"'{subject}'" in body for body in told_bodies), (reason, telling.texts)
        if reason != "SecretMissing":  # a failure, which the overview names as failing
            assert telling.overview.get(subject) == reason
            of_platform, is_all = notes.stopped_tenants(telling.world.tables.jobs)
            stopped = {(note.subject, note.reason) for note in of_platform["alice"].notes}
            assert is_all and (subject, reason) in stopped


# Sequences of what people and the platform do: after each, the names must be what the records of runs say.
IN_ROW = 3
# A quota, and a secret that is gone, refuse a definition.
REFUSALS = (InvalidInput, QuotaExceeded)


class Sequence:
    """A world with a job of each minute, one-offs and a second address. Its records alone say what should be named."""

    def __init__(self, telling: Telling, rng: random.Random) -> None:
        self.telling, self.rng = telling, rng
        self.allowed = telling.rules.of_all.allowed_targets
        self.quotas = telling.rules.of_all.quotas
        self.works = True
        self.fields: dict[str, Any] = {"pause_after_failures": 3}
        self.one_offs: list[str] = []
        self.done: list[str] = []
        telling.stage.subscribe(name="chat")
        telling.stage.addresses.answer = lambda subscription: Outcome(
            ok=self.works or subscription.name != "chat"
        )
        telling.world.secrets.put("alice", "token", "a long enough value", telling.world.clock.now())
        calendars(telling.world).put("alice", "open", OPEN, telling.world.clock.now())
        self.put()
        telling.minutes(4)

    def put(self, **fields: Any) -> None:
        """Store the job with these fields changed; a quota may refuse that. None takes a field away."""
        changed = {name: value for name, value in (self.fields | fields).items() if value is not None}
        with suppress(*REFUSALS):
            self.telling.put(**changed)
            self.fields = changed

    @property
    def state(self) -> str:
        try:
            return self.telling.job.state
        except NotFound:
            return "deleted"

    def step(self) -> None:
        step = self.rng.choice(STEPS)
        self.done.append(step.__name__)
        step(self)

    def settle(self) -> None:
        """Until the last one-off is due, and five minutes more."""
        self.telling.minutes(20)

    def expected(self) -> dict[str, set[str]]:
        """What should be named now, with the reasons that may be given; an empty one: it may go without a name."""
        subjects = {"report": self._of_job()} | {name: self._of_one_off(name) for name in self.one_offs}
        if self.telling.stage.state("alice", "chat").disabled_at is not None:
            subjects["chat"] = {notes.ADDRESS_OFF}
        return {subject: reasons for subject, reasons in subjects.items() if reasons != {""}}

    def _of_job(self) -> set[str]:
        if self.state == "deleted":
            return {""}
        if self.state == "paused":
            return {"paused_after_failures" if self.telling.job.note.startswith("paused after") else ""}
        now = int(self.telling.world.clock.now())
        newest = [run for run in self._runs("report") if run.due_at < now]
        due = [run for run in newest if not (run.status == "skipped" and run.reason not in notes.SKIPS)]
        if not due or due[0].due_at < now - 180:  # it has a fire time each minute, or none
            return {"ended", "never_fires"}
        if due[0].status == "queued":
            return {"waits", "", *self._reasons(due)}
        row = list(takewhile(lambda run: run.status == "skipped", due))
        if sum(run.skipped_count or 1 for run in row) >= IN_ROW:
            return self._reasons(row[:IN_ROW])
        # A share of the newest runs may have a name: from a tenth on, until half of that.
        is_share = sum(run.status == "skipped" for run in due) >= 0.05 * len(due)
        return {"", *self._reasons(due)} if is_share else {""}

    def _reasons(self, runs: list[Run]) -> set[str]:
        return {run.reason for run in runs if run.status == "skipped"}

    def _of_one_off(self, name: str) -> set[str]:
        skipped = [run for run in self._runs(name) if run.status == "skipped" and run.reason in notes.SKIPS]
        return {skipped[0].reason} if skipped else {""}

    def _runs(self, job_id: str) -> list[Run]:
        runs = self.telling.world.runs.of_job("alice", job_id, limit=50)
        return [run for run in runs if run.trigger == "schedule"]

    def check(self) -> None:
        named, expected = self.telling.overview, self.expected()
        assert named.keys() <= expected.keys(), (self.done, named, expected)
        for subject, reasons in expected.items():
            assert named.get(subject, "") in reasons, (self.done, subject, named, expected)
        assert self.state == "deleted" or self.telling.job.not_running == named.get("report", ""), self.done
        begins = [reason for reason, over_by in self.telling.events if not over_by]
        over = [reason for reason, over_by in self.telling.events if over_by]
        of_jobs = [reason for subject, reason in named.items() if subject != "chat"]
        assert sorted(begins) == sorted(over + of_jobs), (self.done, self.telling.events)
        state = self.telling.stage.state()
        known = {
            (each.address or each.job_id, each.reason)
            for key, each in state.reported.items()
            if each.kind == "not_running" and key not in state.over
        }
        assert known == set(named.items()), (self.done, known, named, self.telling.texts)


OPEN = {"dates": ["2026-11-21", "2026-11-22", "2026-11-23"]}


def forbid(sequence: Sequence) -> None:
    sequence.telling.only(allowed_targets=[])


def allow(sequence: Sequence) -> None:
    sequence.telling.only(allowed_targets=sequence.allowed)


def block(sequence: Sequence) -> None:
    sequence.telling.rules.blocked[:] = [Block("*", "incident", 0, "platform")]


def release(sequence: Sequence) -> None:
    sequence.telling.rules.blocked.clear()


def fail(sequence: Sequence) -> None:
    sequence.telling.world.target.answer = lambda event: FAILS


def succeed(sequence: Sequence) -> None:
    sequence.telling.world.target.answer = lambda event: Outcome(ok=True)


def edit(sequence: Sequence) -> None:
    sequence.put(name=f"n{len(sequence.done)}")


def apply(sequence: Sequence) -> None:
    """The definition as it is: nothing changes."""
    sequence.put()


def reach_its_end(sequence: Sequence) -> None:
    end_at = int(sequence.telling.world.clock.now()) + sequence.rng.randint(30, 400)
    sequence.put(end_at=rfc3339(end_at))


def lift_the_end(sequence: Sequence) -> None:
    sequence.put(end_at=None)


def name_a_calendar(sequence: Sequence) -> None:
    sequence.put(include_calendars=["open"])


def forget_the_calendar(sequence: Sequence) -> None:
    sequence.put(include_calendars=None)


def close_the_calendar(sequence: Sequence) -> None:
    _store_calendar(sequence, {"dates": sequence.rng.choice([[], ["2026-11-19"]])})


def open_the_calendar(sequence: Sequence) -> None:
    _store_calendar(sequence, OPEN)


def _store_calendar(sequence: Sequence, dates: dict[str, Any]) -> None:
    world = sequence.telling.world
    calendars(world).put("alice", "open", dates, world.clock.now())
    jobs_that_end(world.store, "alice", "open")


def go_on_for_hours(sequence: Sequence) -> None:
    sequence.put(overlap="skip", completion="callback", callback_timeout_s=sequence.rng.randint(1_800, 9_000))


def end_at_once(sequence: Sequence) -> None:
    sequence.put(overlap=None, completion=None, callback_timeout_s=None)


def register_a_one_off(sequence: Sequence) -> None:
    now, name = int(sequence.telling.world.clock.now()), f"once{len(sequence.done)}"
    with suppress(*REFUSALS):
        soon = rfc3339(now + sequence.rng.randint(5, 900))
        sequence.telling.world.registry.put("alice", name, job(at=soon, catch_up="none"))
        sequence.one_offs.append(name)


def delete_a_one_off(sequence: Sequence) -> None:
    if sequence.one_offs:
        name = sequence.one_offs.pop(sequence.rng.randrange(len(sequence.one_offs)))
        sequence.telling.world.store.delete("alice", name)


def erase(sequence: Sequence) -> None:
    world = sequence.telling.world
    for run in world.runs.of_job("alice", "report", limit=5):
        with suppress(Conflict):
            erase_details(world.tables, run, group_of(run), world.store.audited, world.clock.now())


def break_an_address(sequence: Sequence) -> None:
    """It has failed for three days, and fails once more."""
    sequence.works = False
    stored = sequence.telling.stage.store.stored.get("alice", "chat")
    message = stored.state.message or Notice("ntc_1", '{"text":""}', sequence.telling.world.clock.now())
    stored.state.message = structs.replace(message, next_at=0.0)
    stored.state.failing_since = sequence.telling.world.clock.now() - 4 * DAY_S
    assert sequence.telling.stage.store.stored.save(stored)


def mend_the_address(sequence: Sequence) -> None:
    sequence.works = True
    stored = sequence.telling.stage.store.stored.get("alice", "chat")
    stored.state.failing_since = stored.state.disabled_at = None
    assert sequence.telling.stage.store.stored.save(stored)


def use_the_secret(sequence: Sequence) -> None:
    sequence.put(payload={"token": "secret://token"})


def remove_the_secret(sequence: Sequence) -> None:
    sequence.telling.world.table("tenants").delete(keys.secret("alice", "token"))


def use_up_the_quota(sequence: Sequence) -> None:
    sequence.telling.only(quotas=structs.replace(sequence.quotas, jobs=0, executions_per_day=0))


def raise_the_quota(sequence: Sequence) -> None:
    sequence.telling.only(quotas=sequence.quotas)


def pause(sequence: Sequence) -> None:
    if sequence.state != "deleted":
        sequence.telling.world.store.pause("alice", "report", "by hand")


def resume(sequence: Sequence) -> None:
    if sequence.state != "deleted":
        sequence.telling.world.store.resume("alice", "report")


def delete(sequence: Sequence) -> None:
    if sequence.state != "deleted":
        sequence.telling.world.store.delete("alice", "report")


def outage(sequence: Sequence) -> None:
    clock = sequence.telling.world.clock
    clock.move_to(int(clock.now()) // 60 * 60 + sequence.rng.choice([5, 30, 90]) * 60)


def start_anew(sequence: Sequence) -> None:
    """All that stops the job is taken back: else most worlds would end in the first stop."""
    for step in (allow, release, succeed, raise_the_quota):
        step(sequence)
    sequence.fields = {"pause_after_failures": 3}
    sequence.put()
    resume(sequence)


def moment(sequence: Sequence) -> None:
    sequence.telling.minutes(sequence.rng.randint(1, 4))


STEPS: list[Callable[[Sequence], None]] = [
    *(forbid, allow, block, release, fail, succeed, edit, apply, reach_its_end, lift_the_end),
    *(name_a_calendar, forget_the_calendar, close_the_calendar, open_the_calendar),
    *(go_on_for_hours, end_at_once, register_a_one_off, delete_a_one_off, erase),
    *(break_an_address, mend_the_address, use_the_secret, remove_the_secret),
    *(use_up_the_quota, raise_the_quota, pause, resume, delete, outage, moment),
    *[start_anew] * 6,
]


def check_sequence(seed: int) -> None:
    rng = random.Random(seed)
    with telling_world(f"2026-11-21T{rng.randint(3, 20):02}:{rng.randint(0, 59):02}:00Z") as telling:
        sequence = Sequence(telling, rng)
        for _ in range(6):
            for _ in range(rng.randint(1, 3)):
                sequence.step()
            sequence.settle()
            sequence.check()


@pytest.mark.parametrize("seed", range(4))
def test_names_are_true_whatever_is_done(seed: int) -> None:
    check_sequence(seed)


@pytest.mark.release
@pytest.mark.parametrize("seed", range(100, 600))
def test_names_are_true_in_many_worlds(seed: int) -> None:
    check_sequence(seed)


def test_a_quota_that_is_used_up_stops_no_job_that_is_registered(telling: Telling) -> None:
    """It refuses registrations, and the answer says so: nothing has to be told."""
    telling.put()
    telling.minutes(3)
    quotas = structs.replace(
        telling.rules.of_all.quotas, jobs=0, executions_per_day=0, shortest_interval_s=3_600
    )
    telling.only(quotas=quotas)
    telling.minutes(20)
    assert (telling.texts, telling.overview) == ([], {})
    runs = telling.world.runs.of_job("alice", "report", limit=100)
    assert sum(run.status == "succeeded" for run in runs) >= 22


@pytest.mark.parametrize("name", STOPS)
def test_no_stop_is_silent(name: str) -> None:
    check_told(name, 0)


@pytest.mark.release
@pytest.mark.parametrize("seed", range(1, 26))
@pytest.mark.parametrize("name", STOPS)
def test_no_stop_is_silent_in_many_worlds(name: str, seed: int) -> None:
    check_told(name, seed)


def test_the_page_names_every_reason_as_the_table_does() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "why-nothing.md").read_text()
    for name, reason in notes.REASONS.items():
        (row,) = [line for line in page.splitlines() if line.startswith("| `") and f"`{name}`" in line][:1]
        assert row.endswith(f"| {reason.begins} | {reason.is_over} |")


@pytest.mark.parametrize("count", [101, 134, 620])
def test_each_one_off_that_an_outage_lost_reaches_a_person(telling: Telling, count: int) -> None:
    for nth in range(count):
        telling.world.registry.put("alice", f"once{nth:03}", job(at="2026-11-21T03:40:00Z", catch_up="none"))
    telling.world.registry.put("bob", "zero", job(at="2026-11-21T03:40:00Z", catch_up="none"))
    telling.stage.subscribe("bob")
    telling.world.clock.move_to(at("2026-11-21T05:05:00Z"))
    telling.minutes(60)
    texts = [text for text in telling.texts if "not running" in text]
    (text,) = [text for text in texts if "alice" in text]
    assert f"{count} jobs not running: missed (once" in text and f" and {count - 3} more)" in text
    assert "Minute8, bob: 1 job not running: missed (zero)" in " ".join(texts)
    assert len(notes.stopped_now(telling.world.tables.jobs, "alice").notes) == min(count, notes.MAX_NOTES)
    telling.put()
    telling.only(allowed_targets=[])
    telling.minutes(10)
    assert telling.overview["report"] == "target_not_allowed"
    assert "not running: target_not_allowed (report)" in telling.texts[-1]
    telling.world.store.delete("alice", "report")
    telling.minutes(60)
    assert telling.texts[-1] == "Minute8, alice: 1 job deleted (report)."


def test_what_is_counted_is_told_to_be_over_in_sum(telling: Telling) -> None:
    for nth in range(70):
        telling.world.registry.put("alice", f"job{nth:02}", job(cron="* * * * *"))
    telling.minutes(3)
    allowed = telling.rules.of_all.allowed_targets
    telling.only(allowed_targets=[])
    telling.minutes(6)
    assert telling.texts == [
        "Minute8, alice: 70 jobs not running: target_not_allowed (job00, job01, job02 and 67 more)."
    ]
    telling.only(allowed_targets=allowed)
    telling.minutes(6)
    assert telling.texts[1:] == ["Minute8, alice: 70 jobs recovered (job00, job01, job02 and 67 more)."]
    telling.minutes(6)
    assert len(telling.texts) == 2


def test_one_offs_that_minute8_deletes_after_an_outage_are_told_first(telling: Telling) -> None:
    for nth in range(70):
        one_off = job(at="2026-11-21T03:40:00Z", catch_up="none", after_completion="delete")
        telling.world.registry.put("alice", f"once{nth:02}", one_off)
    telling.stage.subscribe(name="later", delay_s=300)
    telling.world.clock.move_to(at("2026-11-21T05:05:00Z"))
    telling.minutes(20)
    for name in ("on-call", "later"):
        texts = [body["text"] for _, to, _, body in telling.stage.addresses.sent if to == name]
        assert any(
            "70 jobs not running: missed (once00, once01, once02 and 67 more)" in text for text in texts
        )
        assert sum("not running" in text for text in texts) == 1
    assert telling.overview == {}


def test_an_entry_that_cannot_be_planned_is_told_though_a_hundred_others_are_too(telling: Telling) -> None:
    for nth in range(104):
        telling.world.registry.put("alice", f"job{nth:03}", job(cron="* * * * *"))
        damage_entry(telling.world, "alice", f"job{nth:03}")
    telling.minutes(12)
    assert set(telling.overview.values()) == {"invalid"} and len(telling.overview) == 104


def test_the_console_offers_each_kind_of_message() -> None:
    """A kind that is missing there was taken from a subscription by each edit."""
    page = (Path(__file__).resolve().parents[2] / "console/src/views/subscriptions.tsx").read_text()
    listed = page.partition("const KINDS = [")[2].partition("]")[0]
    assert tuple(word.strip(' "') for word in listed.split(",")) == KINDS


def test_a_subscription_shows_how_many_stopped_jobs_wait_to_be_told(office: Office) -> None:
    hook = {"target": {"kind": "http", "url": "https://hooks.example.com/a"}, "delay_s": 600}
    office.alice("PUT", "/v1/subscriptions/on-call", hook)
    store = Subscriptions(office.world.tables.jobs)
    subscription = store.get("alice", "on-call")
    stopped = Problem("not_running", "a", 1.0, 1.0, "", reason="missed")
    subscription.state.waiting = {"a": stopped, "rest": structs.replace(stopped, job_id="", more=34)}
    store.save(subscription)
    shown = office.alice("GET", "/v1/subscriptions/on-call").json["delivery"]["waiting"]
    assert (shown["not_running"], shown["failed"]) == (35, 0)
