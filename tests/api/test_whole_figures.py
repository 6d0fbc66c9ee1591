"""Every figure of the overview, of a job, a tenant and the platform, beside an independent count of what is stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from common.runs.outcome import Outcome
from common.storage.wire import from_wire
from common.timing.instants import rfc3339
from tests.api.calls import Caller, Office
from tests.worlds import at, job

# A job's fire times are at this minute of each half hour.
HALF_HOUR = 1_800
BEGIN = at("2026-11-21T03:12:00Z")
# Some kinds of jobs: by the remainder of their number.
FAILS, GOES_ON, RETRIES, PAUSED, HANDED_OVER = 3, 5, 7, 11, 13
SIZES = [400, pytest.param(10_000, marks=pytest.mark.release)]


def minute_of(number: int) -> int:
    return number % 30


def kind_of(number: int) -> int:
    return number % 17


def fill(office: Office, jobs: int) -> None:
    """Jobs that run twice an hour, for an hour and a half. The projection is half an hour old."""
    world = office.world

    def answer(event: dict[str, Any]) -> Outcome:
        kind = kind_of(int(event["minute8"]["job_id"][1:]))
        return Outcome(
            ok=kind not in (FAILS, RETRIES), permanent=kind == FAILS, error_type="Boom", error="no"
        )

    world.target.answer = answer
    for number in range(jobs):
        kind, minute = kind_of(number), minute_of(number)
        more: dict[str, Any] = {}
        if kind == GOES_ON:
            more = {"completion": "callback", "callback_timeout_s": 86_400}
        elif kind == RETRIES:
            more = {"retry": {"max_attempts": 2, "base_s": 80_000, "cap_s": 80_000, "max_age_s": 200_000}}
        elif kind == HANDED_OVER:
            more = {"invocation": "Event"}
        world.registry.create("alice", f"j{number:05}", job(cron=f"{minute},{minute + 30} * * * *", **more))
    world.project()
    world.run_until("2026-11-21T03:55:00Z", ticks=True)
    for number in range(jobs):
        if kind_of(number) == PAUSED:
            world.store.pause("alice", f"j{number:05}")
    world.run_until("2026-11-21T04:28:30Z", ticks=True)
    world.project()
    world.run_until("2026-11-21T04:37:30Z", ticks=True)


def records(office: Office) -> list[dict[str, Any]]:
    """All stored runs of alice, as they are."""
    items = map(from_wire, office.world.dynamodb.scan(TableName="test-runs")["Items"])
    return [item for item in items if item.get("tenant") == "alice" and "fire_at" in item]


def due(jobs: int, start: int, end: int, *, with_paused: bool = False) -> Iterator[tuple[int, str]]:
    """What is due in [start, end), by instant and job: arithmetic of its own."""
    for number in range(jobs):
        if with_paused or kind_of(number) != PAUSED:
            first = start + (minute_of(number) * 60 - start) % HALF_HOUR
            yield from ((instant, f"j{number:05}") for instant in range(first, end, HALF_HOUR))


def pages(caller: Caller, url: str, name: str) -> Iterator[Any]:
    cursor = ""
    while True:
        page = caller("GET", f"{url}{cursor}").json
        yield from page[name]
        if not page["next_cursor"]:
            return
        cursor = f"&cursor={page['next_cursor']}"


@pytest.mark.parametrize("jobs", SIZES)
def test_every_figure_is_an_independent_count(office: Office, jobs: int) -> None:
    fill(office, jobs)
    runs, now = records(office), int(office.world.clock.now())
    statuses = Counter(run["status"] for run in runs)
    assert len(runs) > 2.5 * jobs and len(statuses) == 6, statuses
    check_past(office.alice("GET", "/v1/overview").json["past"], runs, now)
    overview = office.alice("GET", "/v1/overview").json
    check_past(overview["past"], runs, now)
    check_now(overview, runs, jobs, now)
    check_past(office.alice("GET", "/v1/summary").json["total"], runs, now)
    health = office.operator("GET", "/v1/tenants/alice/health").json
    check_past(health["run_totals"], runs, now)
    assert health["run_totals"]["complete"]
    for number in range(0, jobs, jobs // 17):
        of_job = [run for run in runs if run["job_id"] == f"j{number:05}"]
        check_past(office.alice("GET", f"/v1/jobs/j{number:05}/summary").json["total"], of_job, now)
    check_coming(office, jobs, now)


def check_past(shown: dict[str, Any], runs: list[dict[str, Any]], now: int) -> None:
    statuses = Counter(run["status"] for run in runs)
    assert shown["statuses"] == statuses
    assert shown["runs"] == len(runs)
    ended = [run for run in runs if run["status"] not in ("queued", "running", "retrying")]
    paused = [run for run in ended if run.get("reason") == "paused"]
    assert shown["due"] == len(ended) - len(paused)
    good = statuses["succeeded"] + statuses["dispatched"]
    if shown["due"]:
        assert shown["success_rate"] == pytest.approx(good / shown["due"], abs=1e-6)
    assert shown["reasons"] == ({"paused": len(paused)} if paused else {})
    assert shown["lateness_s"]["count"] == sum("lateness_s" in run for run in runs)
    if "fresh_at" in shown:
        assert at(shown["fresh_at"]) >= now - 120
        by_hour = Counter(run["fire_at"] // 3_600 * 3_600 for run in runs)
        assert {at(hour["at"]): hour["runs"] for hour in shown["hours"]} == by_hour
        of_due = Counter(run["fire_at"] // 3_600 * 3_600 for run in ended if run.get("reason") != "paused")
        done = Counter(
            run["fire_at"] // 3_600 * 3_600 for run in runs if run["status"] in ("succeeded", "dispatched")
        )
        for hour in shown["hours"]:
            assert hour["due"] == of_due[at(hour["at"])]
            assert hour["success_rate"] == pytest.approx(done[at(hour["at"])] / hour["due"], abs=1e-6)


def check_now(overview: dict[str, Any], runs: list[dict[str, Any]], jobs: int, now: int) -> None:
    statuses = Counter(run["status"] for run in runs)
    going = overview["open"]
    assert {name: going[name] for name in ("queued", "running", "retrying")} == {
        name: statuses[name] for name in ("queued", "running", "retrying")
    }
    assert (going["complete"], going["stuck"]) == (True, 0)
    paused = sum(kind_of(number) == PAUSED for number in range(jobs))
    assert overview["job_counts"] == {"total": jobs, "active": jobs - paused, "paused": paused}
    assert overview["failing"]["count"] == sum(kind_of(number) == FAILS for number in range(jobs))
    begin = now // 60 * 60 + 60
    ahead = [instant for instant, _ in due(jobs, begin, begin + 86_400)]
    assert (overview["ahead"]["total"], overview["ahead"]["complete"]) == (len(ahead), True)
    by_hour = Counter(instant // 3_600 * 3_600 for instant in ahead)
    assert {at(hour["at"]): hour["executions"] for hour in overview["ahead"]["hours"]} == by_hour
    soonest = sorted(due(jobs, now, now + HALF_HOUR))[:10]
    assert [(at(line["fire_at"]), line["job_id"]) for line in overview["ahead"]["jobs"]] == soonest


def check_coming(office: Office, jobs: int, now: int) -> None:
    expected = sorted(due(jobs, now, now + 3_600))
    url = f"/v1/upcoming?limit=1000&until_at={rfc3339(now + 3_600)}"
    shown = [(at(line["fire_at"]), line["job_id"]) for line in pages(office.alice, url, "executions")]
    assert shown == expected
    density = office.alice("GET", f"/v1/density?until_at={rfc3339(now + 3_600)}").json
    minutes = {at(line["minute_at"]): line["executions"] for line in density["minutes"]}
    assert minutes == Counter(instant for instant, _ in expected)
    assert density["complete"]
    minute = max(minutes)
    in_minute = office.alice("GET", f"/v1/density/minute?minute_at={rfc3339(minute + 30)}").json
    assert in_minute["seconds"] == [{"at": rfc3339(minute), "executions": minutes[minute]}]
    named = [line["job_id"] for line in in_minute["jobs"]]
    assert named == [name for instant, name in expected if instant == minute][:1_000]
    of_platform: Counter[int] = Counter()
    for line in pages(office.operator, "/v1/operator-density?", "minutes"):
        of_platform[at(line["minute_at"])] += line["executions"]
    assert of_platform == minutes
    span = f"from_at={rfc3339(minute)}&until_at={rfc3339(minute + 60)}"
    seconds: Counter[int] = Counter()
    for line in pages(office.operator, f"/v1/operator-density?{span}", "seconds"):
        seconds[at(line["at"])] += line["executions"]
    assert seconds == {minute: minutes[minute]}


def test_a_look_at_many_new_runs_leaves_less_for_the_next(office: Office) -> None:
    fill(office, 400)
    requests: Counter[str] = Counter()
    office.world.dynamodb.before = lambda name: requests.update([name])
    office.alice("GET", "/v1/summary")
    first = requests.total()
    requests.clear()
    office.alice("GET", "/v1/summary")
    assert requests.total() < first
    office.world.dynamodb.before = lambda name: None
    before = office.alice("GET", "/v1/summary").json
    office.world.project()
    assert office.alice("GET", "/v1/summary").json["total"] == before["total"]
