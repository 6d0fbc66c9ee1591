"""Jobs over HTTP: each route as a client uses it."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.api.calls import Office
from tests.worlds import ARN, job


def test_a_job_is_created_and_found(office: Office) -> None:
    created = office.alice(
        "POST", "/v1/jobs", {"job_id": "report", **job(cron="30 4 * * *", timezone="Europe/Paris")}
    )
    assert created.status == 201
    assert created.headers["location"] == "/v1/jobs/report"
    assert created.headers["etag"] == '"1"'
    assert created.headers["x-request-id"] == "request-1"
    expected = {
        "job_id": "report",
        "name": "",
        "tags": [],
        "schedule": {"cron": "30 4 * * *", "timezone": "Europe/Paris"},
        "schedule_resolved": {"cron": "30 4 * * *", "timezone": "Europe/Paris"},
        "schedule_words": "At 04:30, in Europe/Paris",
        "target": {
            "kind": "lambda",
            "arn": ARN,
            "invocation": "RequestResponse",
            "tenant_isolation": False,
            "durable": False,
        },
        "payload": None,
        "timeout_s": 60,
        "retry": {"max_attempts": 3, "base_s": 30, "factor": 2, "cap_s": 900, "max_age_s": 86400},
        "start_deadline_s": None,
        "catch_up": "latest",
        "state": "active",
        "note": "",
        "revision": 1,
        "schedule_revision": 1,
        "created_at": "2026-11-21T03:12:00Z",
        "updated_at": "2026-11-21T03:12:00Z",
        "next_fire_at": "2026-11-21T03:30:00Z",
    }
    assert created.json | expected == created.json
    listed = office.alice_reads("GET", "/v1/jobs/report")
    assert (listed.status, listed.json) == (200, created.json)


def test_without_an_id_one_is_made(office: Office) -> None:
    created = office.alice("POST", "/v1/jobs", job(every="90m"))
    assert re.fullmatch(r"job-[0-9a-f]{16}", created.json["job_id"])
    assert created.json["schedule_resolved"] == {"every_s": 5400, "anchor_at": "2026-11-21T03:12:00Z"}
    assert office.alice("GET", created.headers["location"]).status == 200


def test_an_id_is_taken_once_and_free_again_after_a_delete(office: Office) -> None:
    first = {"job_id": "report", **job(cron="0 3 * * *")}
    assert office.alice("POST", "/v1/jobs", first).status == 201
    again = office.alice("POST", "/v1/jobs", first)
    assert (again.status, again.problem) == (409, "already-exists")
    assert office.alice("DELETE", "/v1/jobs/report").status == 204
    assert office.alice("GET", "/v1/jobs/report").problem == "not-found"
    assert office.alice("POST", "/v1/jobs", first).json["revision"] == 3


def test_put_creates_and_replaces(office: Office) -> None:
    created = office.alice("PUT", "/v1/jobs/report", job(cron="0 3 * * *", tags=["a"]))
    assert (created.status, created.json["revision"]) == (201, 1)
    replaced = office.alice(
        "PUT", "/v1/jobs/report", {"job_id": "report", **job(cron="0 3 * * *", name="Report")}
    )
    assert (replaced.status, replaced.json["revision"], replaced.json["schedule_revision"]) == (200, 2, 1)
    assert (replaced.json["name"], replaced.json["tags"]) == ("Report", [])


def test_a_shown_job_can_be_sent_back(office: Office) -> None:
    sent = job(
        cron="0 3 * * *", payload={"n": 1.5, "text": "é😀", "list": [None, True]}, tags=["x"], catch_up="all"
    )
    shown = office.alice("PUT", "/v1/jobs/report", sent).json
    fields = (
        "schedule",
        "target",
        "payload",
        "timeout_s",
        "retry",
        "start_deadline_s",
        "catch_up",
        "name",
        "tags",
    )
    again = office.alice("PUT", "/v1/jobs/report", {name: shown[name] for name in fields}).json
    assert again == shown
    assert shown["payload"] == sent["payload"]


def test_a_change_against_an_old_revision_is_refused_with_the_current_one(office: Office) -> None:
    office.alice("PUT", "/v1/jobs/report", job(cron="0 3 * * *"))
    assert office.alice("PUT", "/v1/jobs/report", job(cron="0 4 * * *"), If_Match='"1"').status == 200
    for method, url, body in (
        ("PUT", "/v1/jobs/report", job(cron="0 5 * * *")),
        ("POST", "/v1/jobs/report/pause", None),
        ("POST", "/v1/jobs/report/resume", None),
        ("DELETE", "/v1/jobs/report", None),
    ):
        late = office.alice(method, url, body, If_Match='"1"')
        assert (late.status, late.problem, late.json["current_revision"]) == (412, "revision-mismatch", 2)
        assert late.headers["etag"] == '"2"'
    assert office.alice("GET", "/v1/jobs/report").json["schedule"] == {"cron": "0 4 * * *"}
    assert office.alice("PUT", "/v1/jobs/new", job(cron="0 5 * * *"), If_Match="1").status == 404
    for unreadable in (
        "new",
        "",
        "*",
        '"1", "2"',
    ):  # if it were ignored, the request would overwrite the job that it wants to keep
        refused = office.alice("PUT", "/v1/jobs/report", job(cron="0 5 * * *"), If_Match=unreadable)
        assert refused.problem == "invalid-input", unreadable


def test_an_unchanged_job_makes_no_revision_and_no_audit_entry(office: Office) -> None:
    first = office.alice("PUT", "/v1/jobs/report", job(cron="0 3 * * *"))
    entries = office.alice_admin("GET", "/v1/audit").json["entries"]
    office.world.clock.sleep(60)
    again = office.alice("PUT", "/v1/jobs/report", job(cron="0 3 * * *"))
    assert (again.status, again.json, again.headers["etag"]) == (200, first.json, '"1"')
    assert office.alice_admin("GET", "/v1/audit").json["entries"] == entries
    assert office.alice("PUT", "/v1/jobs/report", job(cron="0 3 * * *"), If_Match='"1"').status == 200
    late = office.alice("PUT", "/v1/jobs/report", job(cron="0 3 * * *"), If_Match='"2"')
    assert (late.status, late.json["current_revision"]) == (412, 1)


def test_a_put_that_only_creates_replaces_nothing(office: Office) -> None:
    created = office.alice("PUT", "/v1/jobs/report", job(cron="0 3 * * *"), If_None_Match="*")
    assert (created.status, created.json["revision"]) == (201, 1)
    for definition in (job(cron="0 3 * * *"), job(cron="0 4 * * *")):
        refused = office.alice("PUT", "/v1/jobs/report", definition, If_None_Match="*")
        assert (refused.status, refused.problem, refused.json["current_revision"]) == (
            412,
            "revision-mismatch",
            1,
        )
        assert "exists" in refused.json["detail"]
    assert office.alice("GET", "/v1/jobs/report").json["schedule"] == {"cron": "0 3 * * *"}
    office.alice("DELETE", "/v1/jobs/report")
    again = office.alice("PUT", "/v1/jobs/report", job(cron="0 4 * * *"), If_None_Match="*")
    assert (again.status, again.json["revision"]) == (201, 3)


def test_a_condition_that_is_no_condition_stores_nothing(office: Office) -> None:
    for headers in ({"If_None_Match": '"1"'}, {"If_None_Match": ""}, {"If_None_Match": "*", "If_Match": "1"}):
        refused = office.alice("PUT", "/v1/jobs/report", job(cron="0 3 * * *"), **headers)
        assert (refused.status, refused.problem) == (400, "invalid-input"), headers
        assert refused.json["errors"][0]["field"] == "If-None-Match"
    assert office.alice("GET", "/v1/jobs/report").status == 404


def test_pausing_keeps_a_note_and_resuming_clears_it(office: Office) -> None:
    office.alice("PUT", "/v1/jobs/report", job(cron="0 3 * * *"))
    paused = office.alice("POST", "/v1/jobs/report/pause", {"note": "until the move is done"}).json
    assert (paused["state"], paused["note"], paused["next_fire_at"]) == (
        "paused",
        "until the move is done",
        None,
    )
    assert office.alice("GET", "/v1/jobs/report/next").json["fires"] == []
    resumed = office.alice("POST", "/v1/jobs/report/resume").json
    assert (resumed["state"], resumed["note"], resumed["next_fire_at"]) == (
        "active",
        "",
        "2026-11-22T03:00:00Z",
    )
    assert office.alice("POST", "/v1/jobs/report/pause").json["note"] == ""


def test_the_next_fires_in_utc_and_local_time(office: Office) -> None:
    office.alice("PUT", "/v1/jobs/report", job(cron="30 2 * * *", timezone="Europe/Paris", jitter_s=30))
    answered = office.alice("GET", "/v1/jobs/report/next?count=2").json
    assert (answered["job_id"], answered["state"], answered["timezone"]) == (
        "report",
        "active",
        "Europe/Paris",
    )
    assert [fire["fire_at"] for fire in answered["fires"]] == ["2026-11-22T01:30:00Z", "2026-11-23T01:30:00Z"]
    assert answered["fires"][0]["local"] == "2026-11-22T02:30:00+01:00"
    assert "2026-11-22T01:30:00Z" <= answered["fires"][0]["due_at"] <= "2026-11-22T01:30:30Z"


def test_a_list_goes_on_by_cursor_and_holds_each_job_once(office: Office) -> None:
    names = [f"job-{n:02}" for n in range(7)]
    for name in names:
        office.alice("PUT", f"/v1/jobs/{name}", job(cron="0 3 * * *"))
    office.alice("DELETE", "/v1/jobs/job-03")
    office.bob("PUT", "/v1/jobs/job-bob", job(cron="0 3 * * *"))
    seen, cursor, pages = [], "", 0
    while True:
        page = office.alice("GET", f"/v1/jobs?limit=2{cursor}").json
        seen += [listed["job_id"] for listed in page["jobs"]]
        pages += 1
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"
    assert (seen, pages) == ([name for name in names if name != "job-03"], 3)


def test_a_page_of_all_jobs_reads_one_more_than_it_shows(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(12):
        office.alice("PUT", f"/v1/jobs/j{n:02}", job(cron="0 4 * * *"))
    read: list[int] = []
    query = office.world.dynamodb.query

    def counted(**request: Any) -> Any:
        answer = query(**request)
        read.append(len(answer["Items"]))
        return answer

    monkeypatch.setattr(office.world.dynamodb, "query", counted)
    assert len(office.alice("GET", "/v1/jobs?limit=3").json["jobs"]) == 3
    assert read == [4]


def test_a_tenant_sees_its_name_and_the_role_of_its_key(office: Office) -> None:
    answered = office.alice_reads("GET", "/v1/tenant").json
    assert (answered["tenant_id"], answered["name"], answered["key"]["role"]) == ("alice", "Alice", "read")


def test_patch_changes_what_it_names(office: Office) -> None:
    office.alice(
        "PUT", "/v1/jobs/report", job(every="90m", tags=["a"], payload={"x": 1, "y": [1]}, timeout_s=9)
    )
    office.world.clock.sleep(100)
    before = office.alice("GET", "/v1/jobs/report").json
    patched = office.alice(
        "PATCH",
        "/v1/jobs/report",
        {"name": "Report", "payload": {"x": None, "z": 2}, "retry": {"max_attempts": 9}},
    )
    assert (patched.status, patched.headers["etag"]) == (200, '"2"')
    assert patched.json["payload"] == {"y": [1], "z": 2}
    assert patched.json["retry"] == before["retry"] | {"max_attempts": 9}
    for name in ("tags", "timeout_s", "schedule", "schedule_resolved", "schedule_revision", "target"):
        assert patched.json[name] == before[name]
    back = office.alice(
        "PATCH",
        "/v1/jobs/report",
        {"timeout_s": None, "retry": None},
        Content_Type="application/merge-patch+json",
    )
    assert (back.json["timeout_s"], back.json["retry"]) == (60, before["retry"])


def test_a_patch_that_changes_nothing_is_no_revision(office: Office) -> None:
    office.alice("PUT", "/v1/jobs/report", job(cron="0 3 * * *"))
    assert office.alice("PATCH", "/v1/jobs/report", {"timeout_s": 60, "tags": []}).json["revision"] == 1
    assert office.alice("PATCH", "/v1/jobs/report", {}).json["revision"] == 1


def test_patch_moves_the_times_and_the_queue_follows(office: Office) -> None:
    office.alice("PUT", "/v1/jobs/report", job(cron="15 3 * * *"))
    patched = office.alice("PATCH", "/v1/jobs/report", {"schedule": {"cron": "16 3 * * *"}})
    assert patched.json["schedule_revision"] == 2
    office.world.run_until("2026-11-21T03:30:00Z")
    assert office.world.target.fire_times("report") == ["2026-11-21T03:16:00Z"]


def test_patches_that_are_refused(office: Office) -> None:
    office.alice("PUT", "/v1/jobs/report", job(cron="0 3 * * *"))
    before = office.stored()
    for changes, field in [
        ({"color": "red"}, "color"),
        ({"schedule": {"cron": "61 * * * *"}}, "schedule.cron"),
        ({"schedule": {"every": "1h"}}, "schedule"),
        ({"schedule": None}, "schedule"),
        ({"target": {"arn": "x"}}, "target"),
        ({"timeout_s": "9"}, "timeout_s"),
        ({"job_id": "other"}, "job_id"),
        ({"revision": 7}, "revision"),
    ]:
        refused = office.alice("PATCH", "/v1/jobs/report", changes)
        assert (refused.status, refused.json["errors"][0]["field"].startswith(field)) == (400, True), refused
    late = office.alice("PATCH", "/v1/jobs/report", {"name": "x"}, If_Match='"9"')
    assert (late.status, late.json["current_revision"]) == (412, 1)
    assert office.alice("PATCH", "/v1/jobs/report", [1]).status == 400
    assert office.alice("PATCH", "/v1/jobs/nothing", {"name": "x"}).status == 404
    assert office.stored() == before


def test_a_page_of_large_jobs_fits_in_an_answer(office: Office) -> None:
    for n in range(12):
        office.alice("PUT", f"/v1/jobs/job-{n:02}", job(cron="0 3 * * *", payload="\x01" * 20_000))
    sizes, listed, cursor = [], [], ""
    while cursor is not None:
        page = office.alice("GET", f"/v1/jobs?limit=200{cursor and '&cursor=' + cursor}")
        sizes.append(len(json.dumps({"body": page.text})))  # as Lambda answers
        listed += [listed_job["job_id"] for listed_job in page.json["jobs"]]
        cursor = page.json["next_cursor"]
    assert listed == [f"job-{n:02}" for n in range(12)]
    assert len(sizes) == 2 and max(sizes) < 6_000_000


def test_a_list_by_what_is_wanted(office: Office) -> None:
    other = "arn:aws:lambda:us-east-1:123456789012:function:other"
    office.alice("PUT", "/v1/jobs/a-1", job(cron="0 3 * * *", tags=["red", "blue"]))
    office.alice("PUT", "/v1/jobs/a-2", job(cron="0 3 * * *", tags=["red"], name="bravo"))
    office.alice("PUT", "/v1/jobs/b-1", {**job(cron="0 3 * * *"), "target": {"kind": "lambda", "arn": other}})
    office.alice("POST", "/v1/jobs/a-2/pause")

    def names(query: str) -> list[str]:
        return [listed["job_id"] for listed in office.alice("GET", f"/v1/jobs?{query}").json["jobs"]]

    assert names("state=paused") == ["a-2"]
    assert names("tag=red") == ["a-1", "a-2"]
    assert names("tag=re") == []
    assert names("name_prefix=b") == ["a-2", "b-1"]
    assert names(f"target={other}") == ["b-1"]
    assert names("tag=red&state=active") == ["a-1"]
    first = office.alice("GET", "/v1/jobs?tag=red&limit=1").json
    assert names(f"tag=red&limit=1&cursor={first['next_cursor']}") == ["a-2"]
    assert office.alice("GET", f"/v1/jobs?tag=blue&cursor={first['next_cursor']}").problem == "invalid-input"
    for query in ("state=deleted", "state=", "tag=", "tag=" + "x" * 201):
        assert office.alice("GET", f"/v1/jobs?{query}").problem == "invalid-input"
