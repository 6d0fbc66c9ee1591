"""What is coming: lists and densities are what previews of the jobs show; crowded minutes come with a way out."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from common.clock import CpuBudget
from common.history import next_fires
from common.history.next_fires import Fires
from common.planning import platform_density
from common.preview.preview import preview
from common.storage import keys
from common.timing.density import due_times
from common.timing.schedule import Schedule
from minute8.api.routes import upcoming as upcoming_routes
from tests.api.calls import Caller, Office
from tests.api.shapes import check_shape
from tests.worlds import World, at, job

NOW = at("2026-11-21T03:12:00Z")
UNTIL = "until_at=2026-11-22T03:12:00Z"
SCHEDULES: list[dict[str, Any]] = [
    {"cron": "0 3 * * *"},
    {"cron": "*/10 * * * *", "timezone": "Asia/Kathmandu"},
    {"cron": "*/5 9-17 * * 1-5", "timezone": "America/New_York"},
    {"every": 450, "anchor": "2026-11-21T00:00:00Z"},
    {"every": "25h", "anchor": "2026-11-21T00:00:00Z"},
    {"at": "2026-11-21T09:30:15Z"},
    {"cron": "30 0 3 * * *"},
    {"cron": "7 * * * *", "jitter_s": 900},
    {"cron": "0 * * * *", "exclude": {"dates": ["2026-11-22"]}},
    {"cron": "0 * * * *", "end_at": "2026-11-21T12:00:00Z"},
    {"cron": "H/15 * * * *"},
]


def pages(caller: Caller, url: str) -> list[dict[str, Any]]:
    fetched, cursor = [], ""
    while True:
        answer = caller("GET", f"{url}{f'&cursor={cursor}' if cursor else ''}")
        assert answer.status == 200, answer
        fetched.append(answer.json)
        if not (cursor := answer.json["next_cursor"]):
            return fetched


def registered(office: Office, count: int) -> dict[str, int]:
    """Jobs of alice's, some paused, and how many fires the preview shows of each that is active."""
    rng, counts = random.Random(8), {}
    for n in range(count):
        schedule = {**rng.choice(SCHEDULES)}
        job_id = f"job-{n:03}"
        assert office.alice("PUT", f"/v1/jobs/{job_id}", job(**schedule)).status == 201
        if rng.random() < 0.1:
            office.alice("POST", f"/v1/jobs/{job_id}/pause")
            continue
        fetched = preview(schedule, now=NOW + 1, count=10_000, until=NOW + 86_400, job_key=f"alice/{job_id}")
        counts[job_id] = len(fetched.fires)
    return counts


def test_the_densitys_sum_is_the_previews_count(
    office: Office, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = registered(office, 40)
    office.bob("PUT", "/v1/jobs/other", job(cron="* * * * *"))
    all_jobs = office.alice("GET", f"/v1/density?{UNTIL}").json
    assert all_jobs["complete"]
    assert all_jobs["executions"] == sum(counts.values())
    assert sum(minute["executions"] for minute in all_jobs["minutes"]) == all_jobs["executions"]
    assert all_jobs["jobs_counted"] == len(counts)
    # The platform's, of both tenants; what cannot be read counts once.
    other = world.store.get("bob", "other")
    for key in (
        {"pk": next(iter(keys.partitions("DIRECTORY"))), "sk": "damaged"},
        {"pk": keys.shard_partition(other.group, other.shard), "sk": "bob#damaged", "entry": "[]"},
    ):
        world.tables.due.put(key)
    monkeypatch.setattr(platform_density, "CpuBudget", partial(CpuBudget, 0))
    monkeypatch.setattr(platform_density, "MAX_SHARDS", 4)
    parts = pages(office.operator, f"/v1/operator-density?{UNTIL}")
    assert len(parts) > 8
    assert sum(part["executions"] for part in parts) == all_jobs["executions"] + 1_439
    assert sum(part["unreadable"] for part in parts) == 2


def test_the_list_is_in_order_and_complete(office: Office) -> None:
    counts = registered(office, 20)
    listed = [
        entry
        for page in pages(office.alice, f"/v1/upcoming?{UNTIL}&limit=97")
        for entry in page["executions"]
    ]
    assert Counter(entry["job_id"] for entry in listed) == +Counter(counts)
    assert listed == sorted(listed, key=lambda entry: (entry["fire_at"], entry["job_id"]))


def test_what_there_is_no_time_for_is_said(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(4):
        office.alice("PUT", f"/v1/jobs/job-{n}", job(cron=f"{n} 4 * * *"))
    monkeypatch.setattr(Fires, "of", partial(Fires.of, cpu_s=0))
    for url in ("/v1/upcoming", "/v1/density", "/v1/density/minute?minute_at=2026-11-21T04:01Z"):
        shown = office.alice("GET", url).json
        assert (shown["complete"], shown["jobs_counted"]) == (False, 0), url


def test_a_minute_by_second_with_its_jobs(office: Office) -> None:
    for n in range(3):
        office.alice("PUT", f"/v1/jobs/job-{n}", job(cron=f"{20 * n} 30 18 * * *", name=f"Report {n}"))
    office.alice("PUT", "/v1/jobs/often", job(every=15, anchor="2026-11-21T00:00:05Z"))
    office.alice("PUT", "/v1/jobs/moved", job(cron="29 18 * * *", jitter_s=60))
    office.alice("PUT", "/v1/jobs/paused", job(cron="30 18 * * *"))
    office.alice("POST", "/v1/jobs/paused/pause")
    answer = office.alice("GET", "/v1/density/minute?minute_at=2026-11-21T18:30:31Z").json
    check_shape("MinuteDensity", answer)
    due = Counter(entry["due_at"][17:19] for entry in answer["jobs"])
    assert {second["at"][17:19]: second["executions"] for second in answer["seconds"]} == due
    of_often = {entry["due_at"][17:19] for entry in answer["jobs"] if entry["job_id"] == "often"}
    assert of_often == {"05", "20", "35", "50"}
    assert [entry["name"] for entry in answer["jobs"] if entry["due_at"].endswith("30:20Z")] == [
        "Report 1",
        "",
    ]
    other = office.alice("GET", "/v1/density/minute?minute_at=2026-11-21T18:29:00Z").json
    assert [entry["job_id"] for page in (answer, other) for entry in page["jobs"]].count("moved") == 1
    assert answer["executions"] == len(answer["jobs"]) and "paused" not in str(answer)
    for wrong in ("", "2026-11-21T03:11Z", "2026-11-24T03:12Z", "now"):
        assert office.alice("GET", f"/v1/density/minute?minute_at={wrong}").problem == "invalid-input"


def test_a_crowded_minute_is_named_with_what_would_spread_it(office: Office) -> None:
    for n in range(12):
        office.alice("PUT", f"/v1/jobs/daily-{n:02}", job(cron="0 4 * * *"))
    office.alice("PUT", "/v1/jobs/a-often", job(cron="*/20 * * * *"))
    office.alice("PUT", "/v1/jobs/b-every", job(every=3600, anchor="2026-11-21T04:00:00Z"))
    office.alice("PUT", "/v1/jobs/c-calm", job(cron="0 4 * * *", jitter_s=600))
    page = office.alice("GET", f"/v1/density?{UNTIL}").json
    (minute,) = page["crowded"]
    assert minute["minute_at"] == "2026-11-21T04:00:00Z"
    assert minute["executions"] in (14, 15)  # the jitter may leave the last one there
    assert {entry["job_id"]: entry["proposal"] for entry in minute["jobs"]} == {
        "a-often": {"cron": "H/20 * * * *"},
        "b-every": {"jitter_s": 300},
        "daily-00": {"cron": "H 4 * * *"},
        "daily-01": {"cron": "H 4 * * *"},
        "daily-02": {"cron": "H 4 * * *"},
    }
    for entry in minute["jobs"]:  # each can be made
        patch = {"schedule": entry["proposal"]}
        assert office.alice("PATCH", f"/v1/jobs/{entry['job_id']}", patch).status == 200
    assert office.alice("GET", f"/v1/density?{UNTIL}").json["crowded"] == []


def test_the_paces_of_the_jobs_and_what_they_cannot_keep(office: Office) -> None:
    for n in range(6):
        crm = {"per_second": 2 + n, "tolerance_s": 1, "key": "crm"}
        assert office.alice("PUT", f"/v1/jobs/crm-{n}", job(cron="0 4 * * *", pace=crm)).status == 201
        office.alice(
            "PUT", f"/v1/jobs/calm-{n}", job(cron="0 5 * * *", pace={"per_second": 3, "key": "calm"})
        )
    page = office.alice("GET", f"/v1/density?{UNTIL}").json
    assert page["paces"] == [
        {"key": "crm", "per_second": 2, "executions": 6, "delayed": 3, "longest_s": 1, "over": 2},
        {"key": "calm", "per_second": 3, "executions": 6, "delayed": 3, "longest_s": 1, "over": 0},
    ]
    assert sum(entry["executions"] for entry in page["minutes"]) == 12


def test_the_keys_of_the_jobs_and_how_many_find_no_place(office: Office) -> None:
    for name, cron, limit in (
        ("a", "0 4 * * *", 2),
        ("b", "0 4,5 * * *", 2),
        ("c", "0 4 * * *", 3),
        ("d", "0 4 * * *", 1),
    ):
        concurrency = {"key": "crm" if name != "d" else "alone", "limit": limit}
        office.alice("PUT", f"/v1/jobs/{name}", job(cron=cron, concurrency=concurrency))
    page = office.alice("GET", "/v1/density").json
    assert page["concurrency"] == [
        {"key": "crm", "limit": 2, "executions": 4, "crowded": 1},
        {"key": "alone", "limit": 1, "executions": 1, "crowded": 0},
    ]
    assert page["executions"] == 5


def test_jobs_that_the_next_clock_change_moves(office: Office) -> None:
    for job_id, cron, zone in (
        ("skipped", "30 2 * * *", "Europe/Paris"),
        ("noon", "0 12 * * *", "Europe/Paris"),
        ("utc", "30 2 * * *", "UTC"),
        ("doubled", "30 1 * * *", "America/Havana"),
    ):
        office.alice("PUT", f"/v1/jobs/{job_id}", job(cron=cron, timezone=zone))
    once = job(at="2027-03-14T02:30", timezone="America/New_York")
    office.alice("PUT", "/v1/jobs/once", once)
    (page,) = pages(office.alice, "/v1/clock-changes?")
    moved = {entry["job_id"]: entry for entry in page["moved"]}
    assert moved.keys() == {"skipped", "once"}
    assert moved["once"]["timezone"] == "America/New_York"
    assert moved["once"]["change_at"] == "2027-03-14T07:00:00Z"
    assert moved["skipped"]["change_at"] == "2027-03-28T01:00:00Z"
    assert "it fires once, at 2027-03-28T03:00:00+02:00" in moved["skipped"]["text"]


def test_a_density_walks_equal_schedules_once_and_each_pace_once(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(20):
        office.alice("PUT", f"/v1/jobs/same-{n:02}", job(cron="*/5 * * * *"))
    office.alice("PUT", "/v1/jobs/paced", job(cron="0 * * * *", pace={"per_second": 2, "key": "crm"}))
    walked: Counter[str] = Counter()

    def counted(schedule: Schedule, *more: Any) -> Iterator[int]:
        for due in due_times(schedule, *more):
            walked["paced" if schedule.pace else "same"] += 1
            yield due

    monkeypatch.setattr(next_fires, "due_times", counted)
    office.alice("GET", "/v1/upcoming")  # makes the directory of jobs
    requests: Counter[str] = Counter()
    office.world.dynamodb.before = lambda name: requests.update([name])
    page = office.alice("GET", f"/v1/density?{UNTIL}").json
    assert page["executions"] == 20 * 288 + 24
    assert walked == {"same": 288, "paced": 24}
    assert requests["query"] == 1  # what has changed since the directory was made


def test_an_invalid_query_is_refused(office: Office) -> None:
    for url in (
        "/v1/upcoming?until_at=2026-11-21T03:11:59Z",
        "/v1/density?until_at=2026-11-21T03:11:59Z",
        "/v1/upcoming?until_at=2026-11-24T00:00:00Z",
        "/v1/upcoming?limit=1001",
        "/v1/density?cursor=nonsense",
        "/v1/upcoming?cursor=nonsense",
        "/v1/density?from_at=yesterday",
    ):
        assert office.alice("GET", url).problem == "invalid-input"
    past = office.alice("GET", "/v1/density?until_at=2026-11-21T03:11:59Z").json["errors"]
    assert past == [
        {
            "field": "until_at",
            "message": "is before now, where the range begins",
            "value": "'2026-11-21T03:11:59Z'",
            "accepted": "2026-11-21T03:12:00Z or later",
        }
    ]
    assert office.alice("GET", "/v1/operator-density").problem == "forbidden"


def test_jobs_that_a_tzdata_update_moved(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    former = {"releases": {"2001a": {"Europe/Paris": [[NOW - 86_400, 3_600]]}, "2000z": {}}}
    monkeypatch.setattr("common.preview.zone_releases._file", lambda: former)
    for job_id, cron in (("nine", "0 9 * * *"), ("hourly", "0 * * * *")):
        office.alice("PUT", f"/v1/jobs/{job_id}", job(cron=cron, timezone="Europe/Paris"))
    (page,) = pages(office.alice, "/v1/tzdata-changes?")
    assert page["since"] == "2001a"
    (entry,) = page["moved"]
    assert (entry["job_id"], entry["before_at"], entry["after_at"]) == (
        "nine",
        "2027-03-28T08:00:00Z",
        "2027-03-28T07:00:00Z",
    )
    assert pages(office.alice, "/v1/tzdata-changes?since=2000z")[0]["moved"] == []
    assert office.alice("GET", "/v1/tzdata-changes?since=1999a").problem == "invalid-input"


def test_a_call_compares_few_timings(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand jobs took 17 s."""
    former = {"releases": {"2001a": {"Europe/Paris": [[NOW - 86_400, 3_600]]}}}
    monkeypatch.setattr("common.preview.zone_releases._file", lambda: former)
    monkeypatch.setattr(upcoming_routes, "MAX_COMPARED", 2)
    for hour in range(5):
        office.alice("PUT", f"/v1/jobs/at-{hour}", job(cron=f"0 {hour + 8} * * *", timezone="Europe/Paris"))
        office.alice("PUT", f"/v1/jobs/same-{hour}", job(cron="0 8 * * *", timezone="Europe/Paris"))
        office.alice("PUT", f"/v1/jobs/utc-{hour}", job(cron=f"0 {hour} * * *"))
    fetched = [
        [entry["job_id"] for entry in page["moved"]] for page in pages(office.alice, "/v1/tzdata-changes?")
    ]
    assert fetched == [
        ["at-0", "at-1"],
        ["at-2", "at-3"],
        ["at-4", *(f"same-{hour}" for hour in range(5))],
    ]
