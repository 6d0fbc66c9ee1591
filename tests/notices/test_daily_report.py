"""The daily report: what it counts, when it is sent, and that it is sent once."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from common.jobs.not_running import NotRunning, StoppedOfTenant, stopped_tenants
from common.planning.execution import Execution
from common.platform import daily_report
from common.platform.daily_report import DailyReport, DailyReports, read_report
from common.platform.dead_letters import DeadLetters
from common.projection.tenants import ProjectedTenants, TenantTotals
from common.runs.outcome import Outcome
from common.storage import keys
from common.storage.table import Query
from common.truth.contradiction import RUN_STUCK
from scheduler import handler
from tests.api.dead_letters import URL, LetterBox
from tests.scheduler_handler import serve
from tests.worlds import World, at, job, losing_answers

ROOT = Path(__file__).resolve().parents[2]
DAY = "2026-11-22"
TOPIC = "arn:aws:sns:us-east-1:123456789012:report"


@dataclass
class Topic:
    """SNS. `fails` says how many times it refuses."""

    fails: int = 0
    published: list[dict[str, Any]] = field(default_factory=list)

    def publish(self, **message: Any) -> None:
        if self.fails:
            self.fails -= 1
            raise EndpointConnectionError(endpoint_url=TOPIC)
        self.published.append(message)


class DeniedQueues(LetterBox):
    """SQS, which the caller may not ask for the attributes of `denied` queues."""

    denied: tuple[str, ...] = ()

    def get_queue_attributes(self, QueueUrl: str, AttributeNames: list[str]) -> dict[str, Any]:
        if QueueUrl.endswith(self.denied):
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "GetQueueAttributes")
        return super().get_queue_attributes(QueueUrl, AttributeNames)


@pytest.fixture
def lived(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """Ticks from 3:18 on: one job succeeds, another one fails, a third one is skipped."""
    serve(world, monkeypatch)
    world.target.answer = lambda event: Outcome(
        ok=event["minute8"]["job_id"] != "fails", permanent=True, error_type="Boom"
    )
    world.registry.create("alice", "works", job(every="10m"))
    world.registry.create("bob", "fails", job(every="30m"))
    world.registry.create("bob", "skipped", job(at="2026-11-21T03:30:00Z"))
    world.manual.skip_next("bob", "skipped", 1, "")
    for number in range(18, 180, 10):
        world.run_until(f"2026-11-21T{3 + number // 60:02}:{number % 60:02}:00Z")
        handler.handle({}, None)
    return world


def letters_in(box: LetterBox) -> DeadLetters:
    return DeadLetters(box, URL)  # type: ignore[arg-type]


def report_of(world: World, until: str = "2026-11-21T05:00:00Z", box: LetterBox | None = None) -> DailyReport:
    return read_report(world.tables, "prod", at(until), world.clock.now(), letters_in(box or LetterBox()))


def daily_reports(world: World, topic: Topic) -> DailyReports:
    return DailyReports(world.tables, "prod", TOPIC, 6, topic, letters_in(LetterBox()))


def test_it_counts_what_ticks_have_written_down(lived: World) -> None:
    report = report_of(lived)
    assert (report.totals.runs, report.totals.failed, report.totals.skipped) == (14, 3, 1)
    assert (dict(report.failed), dict(report.skipped), report.tenants) == ({"bob": 3}, {"bob": 1}, 2)
    assert (report.wrong, report.dead_letters, report.stuck) == ([], 0, 0)
    assert report.subject == "Minute8 prod: 14 runs, 3 failed"
    assert report.text().splitlines()[:9] == [
        "Minute8 prod",
        "2026-11-20 05:00Z to 2026-11-21 05:00Z",
        "",
        "Nothing to look at.",
        "",
        "Runs: 14 of 2 tenants",
        "Failed: 3 (bob 3)",
        "Skipped: 1 (bob 1)",
        "Late by over 1 s: 0",
    ]


def test_it_names_what_does_not_run_until_it_runs_again(lived: World) -> None:
    now = lived.clock.now()
    for tenant, job_id in (("alice", "works"), ("bob", "fails")):
        lived.store.not_running.begin(tenant, job_id, NotRunning("overlap", now - 60, "3 runs in a row"))
    lines = report_of(lived).text().splitlines()
    first = lines.index("Not running: 2 (alice 1, bob 1)")
    assert lines[first + 1 : first + 3] == [
        "  alice works: overlap since 2026-11-21 05:57Z",
        "  bob fails: overlap since 2026-11-21 05:57Z",
    ]
    lived.store.not_running.end(lived.store.get("alice", "works"), "runs_again")
    lived.store.pause("bob", "fails")  # that ends it
    assert "Not running: 0" in report_of(lived).text().splitlines()
    assert not list(lived.table("jobs").query(Query(keys.STOPPED)))


def test_it_names_five_of_a_tenant_and_thirty_of_all(lived: World) -> None:
    notes = tuple(NotRunning("overlap", 0, "3 runs in a row", name=f"job-{nth}") for nth in range(6))
    stopped = {f"tenant-{nth}": StoppedOfTenant(notes, complete=True) for nth in range(7)}
    text = replace(report_of(lived), not_running=stopped).text()
    named = re.findall(r"^  (tenant-\d) job-(\d)", text, re.MULTILINE)
    assert named == [(f"tenant-{nth // 5}", f"{nth % 5}") for nth in range(30)]
    assert "Not running: 42 (tenant-0 6, tenant-1 6, tenant-2 6, …)" in text


def test_a_note_that_comes_during_a_look_stays_listed(lived: World) -> None:
    notes, at_once = lived.store.not_running, NotRunning("overlap", lived.clock.now(), "3 runs in a row")
    notes.begin("alice", "works", at_once)
    notes.end(lived.store.get("alice", "works"), "runs_again")

    def begin_again(operation: str) -> None:
        if operation == "delete_item":
            lived.dynamodb.before = lambda name: None
            notes.begin("alice", "works", at_once)

    lived.dynamodb.before = begin_again
    stopped_tenants(lived.table("jobs"))  # it saw none, and would take the tenant from the list
    of_tenants, is_all = stopped_tenants(lived.table("jobs"))
    assert is_all and [note.name for note in of_tenants["alice"].notes] == ["works"]


def test_a_deployment_of_this_hour_has_a_report(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    serve(world, monkeypatch)
    world.run_until("2026-11-21T03:18:00Z")
    handler.handle({}, None)
    until_at, now = int(world.clock.now()) // 3_600 * 3_600, world.clock.now()
    report = read_report(world.tables, "test", until_at, now, letters_in(LetterBox()))
    assert (report.totals.runs, report.tenants) == (0, 0)


def test_it_says_what_to_look_at_and_where(lived: World) -> None:
    now = lived.clock.now()
    fire_at = at("2026-11-21T03:10:00Z")
    lived.unrecorded.add([Execution("alice", "lost", fire_at, fire_at, 1)], fire_at)
    lived.table("due").put(
        {
            "pk": keys.CONTRADICTIONS,
            "sk": "run-stuck#run#x",
            "name": RUN_STUCK,
            "about": ["run", "x"],
            "detail": "",
            "found_at": int(now),
            "looked_at": ["run", "x"],
        }
    )
    lived.clock.sleep(7_200)
    report = report_of(lived)
    assert [words.partition(": ")[2] for words in report.wrong] == [
        "planning-lag",
        "contradictions",
        "no-record",
    ]
    for words in report.wrong:
        assert (ROOT / "docs" / "runbook" / f"{words.partition(': ')[2]}.md").exists()
    assert report.subject.endswith("3 failed, 3 to look at")
    assert "Stuck: 1\n" in report.text() and "LOOK AT: executions have no record: no-record" in report.text()


@pytest.mark.parametrize(
    ("missing", "denied", "line", "counted"),
    [
        (("registrations",), (), "Dead letters: 2", 2),
        ((), (), "Dead letters: 3", 3),
        ((), ("outcomes",), "Dead letters: 3, outcomes not counted (AccessDenied)", 3),
        (("registrations",), ("planning",), "Dead letters: 0, planning not counted (AccessDenied)", 0),
        (("registrations", "executions"), (), "Dead letters: 2, executions not counted (no such queue)", 2),
    ],
)
def test_dead_letters_are_counted_where_there_is_a_queue_and_the_right(
    lived: World, missing: tuple[str, ...], denied: tuple[str, ...], line: str, counted: int
) -> None:
    """A deployment without registrations by event has no queue for them. One denied queue leaves the others."""
    box = DeniedQueues(missing={f"{queue}-dead" for queue in missing})
    box.denied = tuple(f"{queue}-dead" for queue in denied)
    box.put("planning-dead", "a", "b")
    box.put("registrations-dead", "c")
    report = report_of(lived, box=box)
    assert report.dead_letters == counted and f"{line}\n" in report.text()
    assert ("there are dead letters: dead-letters" in report.wrong) == (counted > 0)
    assert ("dead letters cannot be counted: dead-letters" in report.wrong) == ("not counted" in line)


def test_without_any_right_no_number_is_made_up(lived: World) -> None:
    box = DeniedQueues()
    box.denied = ("-dead",)
    report = report_of(lived, box=box)
    assert (report.dead_letters, len(report.not_counted)) == (None, 4)
    assert report.subject.endswith("1 to look at")


def test_a_line_fits_a_phone_whatever_tenants_are_called(lived: World) -> None:
    totals = {f"{number}-{'t' * 30}": TenantTotals(10**6, 10**5, 10**5, 99, 10**5) for number in range(40)}
    ProjectedTenants(lived.table("runs"))._set(at("2026-11-21T04:50:00Z"), 3, totals)
    text = report_of(lived).text()
    assert len(text) < 1_500 and max(map(len, text.splitlines())) < 200
    assert "Runs: 40,000," in text and "…)" in text


def test_it_is_sent_once_at_its_hour(lived: World) -> None:
    topic = Topic()
    reports = daily_reports(lived, topic)
    sent = [
        minute
        for minute in range(0, 2 * 1_440, 5)
        if reports.send_if_due(at(f"{DAY}T00:00:00Z") + minute * 60)
    ]
    assert sent == [6 * 60 + 40, 1_440 + 6 * 60 + 40]
    assert topic.published[0]["TopicArn"] == TOPIC
    assert "2026-11-21 06:00Z to 2026-11-22 06:00Z" in topic.published[0]["Message"]
    assert "Dead letters: 0\n" in topic.published[0]["Message"]
    assert topic.published[0]["Subject"].isascii()


def test_it_is_sent_though_the_answer_to_its_lease_is_lost(lived: World) -> None:
    """The notifier took its own repeated request for another one's, and nobody sent the report of that day."""
    topic, due_at = Topic(), at(f"{DAY}T06:40:00Z")
    reports = daily_reports(losing_answers(lived), topic)
    assert [reports.send_if_due(due_at + 60 * minute) for minute in range(3)] == [True, False, False]
    assert len(topic.published) == 1


def test_what_sns_refuses_is_tried_again_within_the_hour(lived: World) -> None:
    topic = Topic(fails=2)
    reports = daily_reports(lived, topic)
    first = at(f"{DAY}T06:40:00Z")
    for minute in range(2):
        with pytest.raises(EndpointConnectionError):
            reports.send_if_due(first + 60 * minute)
    assert reports.send_if_due(first + 120)
    assert not reports.send_if_due(first + 180)


def test_other_minutes_cost_no_request(lived: World) -> None:
    requests: list[str] = []
    lived.dynamodb.before = requests.append
    assert not daily_reports(lived, Topic()).send_if_due(at(f"{DAY}T05:00:00Z"))
    assert requests == []


def test_its_prices_are_those_of_the_documents() -> None:
    idle = re.search(r"\| \*\*all\*\* \| \| \*\*([\d.]+)\*\*", (ROOT / "docs" / "idle-cost.md").read_text())
    runs = re.search(
        r"a million runs of the mix, everything beyond the idle stage, \$ \| ≤ [\d.]+ \| ([\d.]+)",
        (ROOT / "docs" / "performance.md").read_text(),
    )
    assert idle and float(idle[1]) / 30.4 == daily_report.IDLE_DOLLARS_A_DAY
    # Each run of the benchmark counts a little otherwise.
    assert runs and float(runs[1]) / 1e6 == pytest.approx(daily_report.DOLLARS_A_RUN, rel=0.05)
