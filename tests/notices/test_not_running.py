"""Whatever stops a job is told by name: each row by itself, then worlds in which something stops."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from common.errors import NotFound
from common.events import JOB_NOT_RUNNING, JOB_NOT_RUNNING_OVER
from common.history.job_directory import JobDirectory
from common.jobs import not_running as notes
from common.jobs.job import Job
from common.notices.store import Subscriptions
from common.notices.subscription import SubscriptionState
from common.registration.calendar_store import CalendarStore, jobs_that_end
from common.runs.outcome import Outcome
from common.runs.run import Run
from common.storage import keys
from common.tenants.allowed_targets import Hold
from common.tenants.audit import Audit
from common.tenants.tenant import TenantRules
from common.timing.instants import DAY_S, rfc3339
from minute8.api.routes.overview import not_running
from tests.notices.conftest import Stage, make_stage
from tests.simulation.memory_dynamodb import MemoryDynamoDB
from tests.stand_ins import AnyTenant
from tests.worlds import World, at, damage_entry, job, make_world

FAILS = Outcome(ok=False, permanent=True, error_type="Boom", error="it went wrong")


class Rules:
    """The rules of all tenants, and what the platform holds: both can be changed."""

    def __init__(self) -> None:
        self.of_all = AnyTenant().of_all
        self.held: list[Hold] = []

    def rules(self, tenant: str, now: float) -> TenantRules:
        return self.of_all

    def learn(self, tenants: Iterable[str], now: float) -> set[str]:
        return set(tenants)

    def holds(self, now: float) -> list[Hold]:
        return self.held


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
        telling.stage.subscribe()
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
    telling.minutes(5)
    assert telling.overview == {}
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
    telling.rules.held.append(Hold("*", 0, "platform", "incident"))
    telling.minutes(60)
    assert telling.texts[1:] == ["Minute8, alice: 1 job not running: held (report)."]
    assert telling.overview == {"report": "held"}
    assert telling.events == [
        ("target_not_allowed", ""),
        ("target_not_allowed", "other_reason"),
        ("held", ""),
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
        (["held", "overlap", "overlap"], "held"),
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


def _hold(telling: Telling, rng: random.Random) -> str:
    telling.rules.held.append(Hold("*", 0, "platform", "incident"))
    return "held"


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
        *(_permission, _hold, _lock, _failures, _bound, _calendar, _item, _secret),
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


# Sequences of what people and the platform do to two jobs: the names must be true after each.
class Sequence:
    """A world that knows what should be named, from what was done to it alone."""

    def __init__(self, telling: Telling, rng: random.Random) -> None:
        self.telling, self.rng = telling, rng
        self.allowed = telling.rules.of_all.allowed_targets
        self.done: list[str] = []
        telling.put(pause_after_failures=3)
        telling.minutes(4)

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
        self.telling.minutes(16)

    def expected(self) -> str:
        """The reason that should be named now; empty: none."""
        if self.state != "active":
            job = None if self.state == "deleted" else self.telling.job
            return "paused_after_failures" if job and job.note.startswith("paused after") else ""
        if self.telling.job.schedule.end_at is not None:
            return "ended|never_fires"
        if not self.telling.rules.of_all.allowed_targets:
            return "target_not_allowed"
        return "held" if self.telling.rules.held else ""

    def check(self) -> None:
        named = self.telling.overview.get("report", "")
        assert named in self.expected().split("|"), (self.done, named, self.expected())
        assert set(self.telling.overview) <= {"report"}, self.done
        assert self.state == "deleted" or self.telling.job.not_running == named, self.done
        begins = [reason for reason, over_by in self.telling.events if not over_by]
        over = [reason for reason, over_by in self.telling.events if over_by]
        assert sorted(begins) == sorted(over + [named] * bool(named)), (self.done, self.telling.events)
        reported = self.telling.stage.state().reported
        known = {each.reason for each in reported.values() if each.kind == "not_running"}
        assert known == ({named} if named else set()), (self.done, known, self.telling.texts)


def forbid(sequence: Sequence) -> None:
    sequence.telling.only(allowed_targets=[])


def allow(sequence: Sequence) -> None:
    sequence.telling.only(allowed_targets=sequence.allowed)


def hold(sequence: Sequence) -> None:
    sequence.telling.rules.held[:] = [Hold("*", 0, "platform", "incident")]


def release(sequence: Sequence) -> None:
    sequence.telling.rules.held.clear()


def fail(sequence: Sequence) -> None:
    sequence.telling.world.target.answer = lambda event: FAILS


def succeed(sequence: Sequence) -> None:
    sequence.telling.world.target.answer = lambda event: Outcome(ok=True)


def edit(sequence: Sequence) -> None:
    sequence.telling.put(pause_after_failures=3, name=f"n{len(sequence.done)}")


def reach_its_end(sequence: Sequence) -> None:
    end_at = int(sequence.telling.world.clock.now()) + sequence.rng.randint(30, 400)
    sequence.telling.put(pause_after_failures=3, end_at=rfc3339(end_at))


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


def moment(sequence: Sequence) -> None:
    sequence.telling.minutes(sequence.rng.randint(1, 4))


STEPS: list[Callable[[Sequence], None]] = [
    *(forbid, allow, hold, release, fail, succeed, edit, reach_its_end),
    *(pause, resume, delete, outage, moment),
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
@pytest.mark.parametrize("seed", range(100, 300))
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
