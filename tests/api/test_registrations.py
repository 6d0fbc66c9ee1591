"""Registration by event: messages of the queue, as a rule with an input transformer puts them there."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any

import pytest

from common.storage import keys
from minute8.api import handler, registrations
from minute8.api.registrations import APPLIED, DELETE, PUT, REFUSED, RUN, Registrations
from tests.api.calls import Office
from tests.stand_ins import PublishedEvents
from tests.worlds import job

AT = "2026-11-21T03:12:{:02}Z"
REPORT = job(cron="30 2 * * *")


@dataclass
class RefusedQueue:
    """The dead letters of registrations."""

    dead_letters: list[tuple[str, str]] = field(default_factory=list)

    def send_message(self, *, QueueUrl: str, MessageBody: str, MessageAttributes: Any) -> None:
        assert QueueUrl == "dead"
        self.dead_letters.append((MessageBody, MessageAttributes["reason"]["StringValue"]))


@dataclass
class Rule:
    """Delivers events for alice, and collects what they lead to."""

    office: Office
    published: PublishedEvents = field(default_factory=PublishedEvents)
    dead: RefusedQueue = field(default_factory=RefusedQueue)

    def deliver(self, *bodies: str) -> list[str]:
        """The positions of the messages that are to come again."""
        records = [{"messageId": str(n), "body": body} for n, body in enumerate(bodies)]
        answer = handler.handle({"Records": records}, None)
        return [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]

    def __call__(self, kind: str, detail: Any, **more: Any) -> dict[str, Any]:
        """Deliver one event; what was published about it."""
        assert self.deliver(message(kind, detail, **more)) == []
        _, about = self.published.events[-1]
        return dict(about)

    @property
    def last(self) -> str:
        return self.published.events[-1][0]


def message(
    kind: str, detail: Any, tenant: Any = "alice", second: int = 0, event_id: str = "e1", **more: Any
) -> str:
    event = {
        "id": event_id,
        "detail-type": kind,
        "source": "shop",
        "time": AT.format(second),
        "detail": detail,
    }
    return json.dumps({"tenant": tenant, "event": event | more})


def put(definition: Any = REPORT, **more: Any) -> str:
    return message(PUT, {"job_id": "report", "job": definition}, **more)


@pytest.fixture
def rule(office: Office, monkeypatch: pytest.MonkeyPatch) -> Rule:
    return make_rule(office, monkeypatch)


def make_rule(office: Office, monkeypatch: pytest.MonkeyPatch) -> Rule:
    rule = Rule(office)
    office.world.clock.sleep(60)
    services = handler._services()
    applied = Registrations(services, rule.published, rule.dead, "dead")  # type: ignore[arg-type]
    monkeypatch.setattr(handler, "_registrations", lambda: applied)
    return rule


def test_a_job_is_put_run_and_deleted(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    rule = make_rule(office, monkeypatch)
    created = rule(PUT, {"job_id": "report", "job": REPORT})
    assert created == {
        "tenant": "alice",
        "event_id": "e1",
        "job_id": "report",
        "event": PUT,
        "result": "created",
        "revision": 1,
    }
    assert office.alice("GET", "/v1/jobs/report").json["schedule"]["cron"] == "30 2 * * *"
    again = {"job_id": "report", "job": REPORT}
    assert rule(PUT, again, event_id="e2", second=1)["result"] == "unchanged"
    changed = {"job_id": "report", "job": REPORT | {"timeout_s": 9}}
    assert rule(PUT, changed, event_id="e3", second=2) | {"result": "changed"} == rule.published.events[-1][1]
    run = rule(RUN, {"job_id": "report", "payload": {"n": 7}}, event_id="e4")
    assert office.alice("GET", f"/v1/runs/{run['execution_id']}").json["trigger"] == "manual"
    assert rule(DELETE, {"job_id": "report"}, event_id="e5", second=3)["result"] == "deleted"
    assert office.alice("GET", "/v1/jobs/report").status == 404
    assert rule(DELETE, {"job_id": "report"}, event_id="e6", second=4)["result"] == "absent"
    assert rule.dead.dead_letters == []
    assert {name for name, _ in rule.published.events} == {APPLIED}


def test_the_audit_names_the_event(rule: Rule) -> None:
    rule(PUT, {"job_id": "report", "job": REPORT}, event_id="5f-6a")
    [entry] = rule.office.alice_admin("GET", "/v1/audit?subject=report").json["entries"]
    assert entry["by"] == "event:5f-6a"


def test_an_event_takes_effect_once(rule: Rule) -> None:
    rule.deliver(put())
    rule.office.alice("PATCH", "/v1/jobs/report", {"timeout_s": 9})
    assert rule(PUT, {"job_id": "report", "job": REPORT})["result"] == "duplicate"
    assert rule.office.alice("GET", "/v1/jobs/report").json["timeout_s"] == 9
    first = rule(RUN, {"job_id": "report"}, event_id="r")
    assert rule(RUN, {"job_id": "report"}, event_id="r") == first
    assert len(rule.office.alice("GET", "/v1/jobs/report/runs").json["runs"]) == 1


@pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
def test_the_newest_event_decides_in_whatever_order_they_come(rule: Rule, order: tuple[int, ...]) -> None:
    events = [
        put(REPORT | {"timeout_s": 5}, event_id="e1", second=1),
        message(DELETE, {"job_id": "report"}, event_id="e2", second=2),
        put(REPORT | {"timeout_s": 7}, event_id="e3", second=3),
    ]
    for position in order:
        assert rule.deliver(events[position]) == []
    assert rule.office.alice("GET", "/v1/jobs/report").json["timeout_s"] == 7
    assert rule.dead.dead_letters == []


def test_a_newer_event_between_reading_and_writing_wins(rule: Rule, monkeypatch: pytest.MonkeyPatch) -> None:
    rule.deliver(put(REPORT, event_id="e0"))
    older, newer = (put(REPORT | {"timeout_s": 5 + n}, event_id=f"e{n}", second=n) for n in (1, 2))
    put_route, meanwhile = Registrations._put, [newer]

    def put_late(self: Registrations, *args: Any) -> Any:
        if meanwhile:
            rule.deliver(meanwhile.pop())
        return put_route(self, *args)

    monkeypatch.setattr(Registrations, "_put", put_late)
    assert rule.deliver(older) == []
    assert rule.office.alice("GET", "/v1/jobs/report").json["timeout_s"] == 7
    assert [about["result"] for _, about in rule.published.events] == ["created", "changed", "superseded"]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("no json", "body: is not JSON"),
        ("[1]", "body: must be an object"),
        ("[" * 100_000, "body: is not JSON"),
        (put(tenant=None), "tenant: must be a valid id"),
        (put(tenant="../bob"), "tenant: must be a valid id"),
        (put(tenant={"a": 1}), "tenant: must be a valid id"),
        (put(tenant="nobody"), "API key"),
        (put(event_id="a#b"), "event.id: must be an event's id"),
        (put(event_id="x" * 65), "event.id: must be an event's id"),
        (message("Minute8 Job Patch", {}), "event.detail-type: is not known"),
        (message(PUT, [1]), "event.detail: must be an object"),
        (message(PUT, {"job_id": "report"}), "event.detail.job: must be an object"),
        (message(PUT, {"job_id": "a/run", "job": REPORT}), "event.detail.job_id: must be a valid id"),
        (message(RUN, {"job_id": "x?y=1"}), "event.detail.job_id: must be a valid id"),
        (
            message(PUT, {"job_id": "a", "job": REPORT, "tenant": "bob"}),
            "event.detail.tenant: is not a known",
        ),
        (message(RUN, {"job_id": "a", "nonce": "n"}), "event.detail.nonce: is not a known field"),
        (put(time="yesterday"), "event.time: must be a time"),
        (put(time="2027-01-01T00:00:00Z"), "event.time: is in the future"),
        (put(REPORT | {"tenant": "bob"}), "tenant: is not a known field"),
        (put(job(cron="30 25 * * *")), "schedule.cron"),
        (put(REPORT | {"payload": float("nan")}), "NaN"),
        (message(RUN, {"job_id": "nothing"}), "no job 'nothing'"),
    ],
)
def test_a_refused_event_is_a_dead_letter_with_its_reason(rule: Rule, body: str, reason: str) -> None:
    stored = rule.office.stored()
    assert rule.deliver(body) == []
    [(dead_letter, noted_reason)] = rule.dead.dead_letters
    assert dead_letter == body
    assert reason in noted_reason
    assert rule.last == REFUSED
    assert rule.published.events[-1][1]["problem"]["detail"]
    assert [item for item in rule.office.stored() if not item["sk"]["S"].startswith("EVENT#")] == stored


def test_the_rule_and_not_the_event_chooses_the_tenant(rule: Rule) -> None:
    rule.deliver(put(tenant="bob", account="alice", resources=["alice"]))
    assert rule.office.alice("GET", "/v1/jobs/report").status == 404
    assert rule.office.bob("GET", "/v1/jobs/report").status == 200


def test_quotas_targets_and_suspension_hold(rule: Rule) -> None:
    rule.office.operator("PATCH", "/v1/tenants/alice", {"quotas": {"jobs": 0}})
    rule.office.world.clock.sleep(60)
    rule.deliver(put())
    rule.office.operator("POST", "/v1/tenants/alice/suspend", {"note": "unpaid"})
    rule.office.world.clock.sleep(60)
    rule.deliver(put(event_id="e2", second=1))
    problems = [about["problem"]["type"].rpartition(":")[2] for _, about in rule.published.events]
    assert problems == ["quota-exceeded", "tenant-suspended"]


def test_a_tenant_over_its_rate_is_tried_again_and_harms_nobody_else(rule: Rule) -> None:
    rule.office.operator("PATCH", "/v1/tenants/alice", {"quotas": {"requests_per_minute": 2}})
    rule.office.world.clock.sleep(60)
    bodies = [message(PUT, {"job_id": f"report-{n}", "job": REPORT}, event_id=f"e{n}") for n in range(2)]
    assert rule.deliver(*bodies, put(tenant="bob", event_id="b")) == ["1"]
    assert rule.published.events[-1][1]["tenant"] == "bob"
    assert rule.dead.dead_letters == []
    rule.office.world.clock.sleep(60)
    assert rule.deliver(bodies[1]) == []
    assert rule.office.alice("GET", "/v1/jobs/report-1").status in (200, 429)


@pytest.mark.parametrize("failing", ["begin", "end"])
@pytest.mark.parametrize("after", [False, True])
def test_an_event_that_fails_midway_comes_again_and_then_takes_effect(
    rule: Rule, monkeypatch: pytest.MonkeyPatch, failing: str, after: bool
) -> None:
    """A crash before or after each write of its own."""
    real: Callable[..., Any] = getattr(registrations.EventOrder, failing)

    def crash(*args: Any) -> Any:
        monkeypatch.setattr(registrations.EventOrder, failing, real)
        if after:
            real(*args)
        raise ConnectionError("lost")

    monkeypatch.setattr(registrations.EventOrder, failing, crash)
    assert rule.deliver(put()) == ["0"]
    assert rule.deliver(put()) == []
    assert rule.published.events[-1][1]["result"] in ("created", "unchanged", "duplicate")
    assert rule.office.alice("GET", "/v1/jobs/report").json["revision"] == 1


def test_a_refusal_that_cannot_be_written_down_comes_again(
    rule: Rule, monkeypatch: pytest.MonkeyPatch
) -> None:
    def connection_lost(**_: object) -> None:
        raise ConnectionError("lost")

    monkeypatch.setattr(rule.dead, "send_message", connection_lost)
    assert rule.deliver("no json", put()) == ["0"]
    assert rule.last == APPLIED


def test_what_is_remembered_of_a_job_is_bounded(rule: Rule) -> None:
    for number in range(25):
        rule.deliver(put(event_id=f"e{number}"))
    item = rule.office.world.table("jobs").get(keys.newest_event("alice", "report"))
    assert item is not None
    assert item["done"] == [f"e{number}" for number in range(5, 25)]
    assert item["expires_at"] > rule.office.world.clock.now()
