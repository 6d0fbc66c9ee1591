"""One thing done to the jobs or runs that a filter takes: counted, bounded, continued, each with its audit entry."""

from __future__ import annotations

from typing import Any

import pytest

from common import limits
from common.errors import Busy, Conflict
from common.jobs.store import JobStore
from common.registration.manual import ManualCommands
from common.runs.outcome import Outcome
from common.storage import keys
from minute8.api.routes import bulk
from minute8.client import Client
from tests.api.calls import Caller, HandlerTransport, Office
from tests.worlds import job

FAILS = Outcome(ok=False, permanent=True, error_type="Boom", error="it went wrong")


def all_of(caller: Caller, path: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    """The answers of as many requests as are needed."""
    answers: list[dict[str, Any]] = []
    cursor = None
    while True:
        answer = caller("POST", path, body | ({"cursor": cursor} if cursor else {}))
        assert answer.status == 200, answer.text
        answers.append(answer.json)
        if not (cursor := answer.json["next_cursor"]):
            return answers


@pytest.fixture
def fleet(office: Office) -> Office:
    for number in range(5):
        tags = ["red"] if number % 2 else ["blue"]
        office.alice("PUT", f"/v1/jobs/j{number}", job(cron="0 12 * * *", tags=tags))
    office.bob("PUT", "/v1/jobs/j1", job(cron="0 12 * * *", tags=["red"]))
    return office


def states(office: Office) -> str:
    return "".join(listed_job["state"][0] for listed_job in office.alice("GET", "/v1/jobs").json["jobs"])


def test_payloads_are_not_read(fleet: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet.alice("PUT", "/v1/jobs/large", job(cron="0 4 * * *", payload="x" * 100_000))
    read: list[int] = []
    query = fleet.world.dynamodb.query

    def counted(**request: Any) -> Any:
        answer = query(**request)
        read.append(len(str(answer["Items"])))
        return answer

    monkeypatch.setattr(fleet.world.dynamodb, "query", counted)
    done = fleet.alice("POST", "/v1/jobs/_all/pause", {"all": True, "dry_run": True}).json
    assert done["matched"] == 6
    assert max(read) < 20_000


def test_jobs_are_counted_paused_and_resumed(fleet: Office) -> None:
    (counted,) = all_of(fleet.alice, "/v1/jobs/_all/pause", {"tag": "red", "dry_run": True})
    assert (counted["matched"], counted["done"], counted["ids"]) == (2, 0, ["j1", "j3"])
    assert states(fleet) == "aaaaa"
    (done,) = all_of(fleet.alice, "/v1/jobs/_all/pause", {"tag": "red", "note": "move"})
    assert (done["matched"], done["done"], done["refused"]) == (2, 2, [])
    assert states(fleet) == "apapa"
    assert fleet.alice("GET", "/v1/jobs/j1").json["note"] == "move"
    assert fleet.bob("GET", "/v1/jobs/j1").json["state"] == "active"
    paused = fleet.alice_admin("GET", "/v1/audit?action=job.paused").json["entries"]
    assert sorted(entry["subject"] for entry in paused) == ["j1", "j3"]
    all_of(fleet.alice, "/v1/jobs/_all/resume", {"state": "paused"})
    assert states(fleet) == "aaaaa"


def test_a_request_has_a_bound_and_the_next_one_continues(
    fleet: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "MAX_CHANGED", 2)
    parts = all_of(fleet.alice, "/v1/jobs/_all/pause", {"all": True})
    assert [part["ids"] for part in parts] == [["j0", "j1"], ["j2", "j3"], ["j4"]]
    assert states(fleet) == "ppppp"
    cursor = fleet.alice("POST", "/v1/jobs/_all/pause", {"all": True}).json["next_cursor"]
    other = fleet.alice("POST", "/v1/jobs/_all/pause", {"tag": "red", "cursor": cursor})
    assert (other.status, other.json["errors"][0]["field"]) == (400, "cursor")


def test_deleting_many_takes_the_filter_and_nothing_else(
    fleet: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "MAX_CHANGED", 1)
    (counted,) = all_of(fleet.alice, "/v1/jobs/_all/delete", {"tag": "red", "dry_run": True})
    assert (counted["matched"], counted["done"], states(fleet)) == (2, 0, "aaaaa")
    parts = all_of(fleet.alice, "/v1/jobs/_all/delete", {"tag": "red"})
    assert [part["ids"] for part in parts] == [["j1"], ["j3"]]
    assert [job["job_id"] for job in fleet.alice("GET", "/v1/jobs").json["jobs"]] == ["j0", "j2", "j4"]
    assert fleet.bob("GET", "/v1/jobs/j1").status == 200
    assert fleet.alice("POST", "/v1/jobs/_all/delete", {}).json["errors"][0]["field"] == "all"


def test_the_client_changes_all_before_it_returns(fleet: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "MAX_CHANGED", 2)
    transport = HandlerTransport()
    with Client("https://api.test", fleet.alice.key or "", transport=transport) as minute8:
        minute8.pause_jobs(all=True)
        assert states(fleet) == "ppppp"
        assert minute8.resume_jobs(tag="red") == {
            "dry_run": False,
            "matched": 2,
            "done": 2,
            "ids": ["j1", "j3"],
            "refused": [],
            "next_cursor": None,
        }
        assert minute8.delete_jobs(tag="blue", dry_run=True)["done"] == 0
        assert minute8.delete_jobs(tag="blue")["ids"] == ["j0", "j2", "j4"]
    assert states(fleet) == "aa"


def test_a_busy_job_is_left_to_the_next_request(fleet: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    pause, busy = JobStore.pause, iter([False, True, False, False, False, False])

    def sometimes(store: JobStore, *arguments: Any) -> Any:
        if next(busy):
            raise Busy("too many writers")
        return pause(store, *arguments)

    monkeypatch.setattr(JobStore, "pause", sometimes)
    parts = all_of(fleet.alice, "/v1/jobs/_all/pause", {"all": True})
    assert [part["ids"] for part in parts] == [["j0"], ["j1", "j2", "j3", "j4"]]


def test_all_jobs_have_to_be_meant(fleet: Office) -> None:
    for body in ({}, {"note": "move"}, {"dry_run": True}):
        refused = fleet.alice("POST", "/v1/jobs/_all/pause", body)
        assert (refused.status, refused.json["errors"][0]["field"]) == (400, "all")
    for body in ({"all": "yes"}, {"tag": 5}, {"tag": ""}, {"state": "gone"}, {"what": 1}):
        assert fleet.alice("POST", "/v1/jobs/_all/run", body).status == 400


def test_jobs_are_run_once_with_the_same_nonce(fleet: Office) -> None:
    for _ in range(2):
        all_of(fleet.alice, "/v1/jobs/_all/run", {"tag": "red", "nonce": "abc"})
    fleet.world.deliver()
    assert sorted(context["job_id"] for _, context in fleet.world.target.calls) == ["j1", "j3"]


def test_failed_runs_of_a_span_are_tried_again(fleet: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "MAX_CHANGED", 2)
    fleet.world.target.answer = lambda event: FAILS
    all_of(fleet.alice, "/v1/jobs/_all/run", {"all": True})
    fleet.world.deliver()
    span = {"from_at": "2026-11-21T03:00:00Z", "until_at": "2026-11-21T04:00:00Z"}
    for more, matched in (
        ({}, 5),
        ({"tag": "red"}, 2),
        ({"error_type": "Boom"}, 5),
        ({"error_type": "Bang"}, 0),
        ({"until_at": "2026-11-21T03:10:00Z"}, 0),
    ):
        counted = all_of(fleet.alice, "/v1/runs/_all/retry", {**span, **more, "dry_run": True})
        assert sum(part["matched"] for part in counted) == matched, more
    fleet.world.target.answer = lambda event: Outcome(ok=True)
    parts = all_of(fleet.alice, "/v1/runs/_all/retry", span)
    assert sum(part["done"] for part in parts) == 5
    fleet.world.deliver()
    runs = fleet.alice("GET", "/v1/runs").json["runs"]
    assert {run["status"] for run in runs} == {"succeeded"}
    assert fleet.alice("POST", "/v1/runs/_all/retry", {}).json["errors"][0]["field"] == "from_at"


def test_runs_that_wait_are_cancelled(fleet: Office) -> None:
    all_of(fleet.alice, "/v1/jobs/_all/run", {"all": True})
    parts = all_of(
        fleet.alice, "/v1/runs/_all/cancel", {"status": "queued", "job_prefix": "j1", "note": "no"}
    )
    assert sum(part["done"] for part in parts) == 1
    fleet.world.deliver()
    assert sorted(context["job_id"] for _, context in fleet.world.target.calls) == ["j0", "j2", "j3", "j4"]
    (run,) = fleet.alice("GET", "/v1/jobs/j1/runs").json["runs"]
    assert (run["reason"], run["detail"]) == ("cancelled", "cancelled by hand: no")


def test_a_request_cancels_a_hundred_runs_and_the_next_one_continues(office: Office) -> None:
    assert office.alice("PUT", "/v1/jobs/report", job(cron="0 12 * * *")).status == 201
    for _ in range(limits.MAX_CHANGED + 1):
        assert office.alice("POST", "/v1/jobs/report/run").status == 202
    parts = all_of(office.alice, "/v1/runs/_all/cancel", {"status": "queued"})
    assert [part["done"] for part in parts] == [100, 1]


def test_a_refusal_does_not_stop_the_others(fleet: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet.world.target.answer = lambda event: FAILS
    all_of(fleet.alice, "/v1/jobs/_all/run", {"tag": "red"})
    fleet.world.deliver()
    first = fleet.alice("GET", "/v1/failures").json["runs"][0]["execution_id"]
    retry = ManualCommands.retry

    def overtaken(manual: ManualCommands, tenant: str, execution_id: str) -> Any:
        if execution_id == first:  # another request was faster, and the index still shows the run
            raise Conflict(f"run {execution_id} is retrying")
        return retry(manual, tenant, execution_id)

    monkeypatch.setattr(ManualCommands, "retry", overtaken)
    (part,) = all_of(fleet.alice, "/v1/runs/_all/retry", {"from_at": "2026-11-21T03:00:00Z"})
    assert (part["matched"], part["done"]) == (2, 1)
    (refused,) = part["refused"]
    assert (refused["id"], refused["type"]) == (first, "urn:minute8:problem:conflict")


@pytest.mark.parametrize("name", ["job_id", "tag", "error_type", "fingerprint"])
def test_texts_of_a_filter_are_bounded_as_the_document_says(office: Office, name: str) -> None:
    span = {"from_at": "2026-11-21T03:00:00Z"}
    for text, status in (("x" * 200, 200), ("x" * 201, 400), ("", 400)):
        assert office.alice("POST", "/v1/runs/_all/retry", {**span, name: text}).status == status
    if name in ("job_id", "tag"):
        assert office.alice("GET", f"/v1/failures?{name}={'x' * 201}").status == 400


def test_jobs_are_taken_by_the_error_that_they_failed_with(fleet: Office) -> None:
    other = Outcome(ok=False, permanent=True, error_type="Boom", error="another thing")
    for names, outcome in (("j0 j1 j2", FAILS), ("j3", other)):
        fleet.world.target.answer = lambda event, outcome=outcome: outcome  # type: ignore[misc]
        for _ in range(2):
            for name in names.split():
                fleet.alice("POST", f"/v1/jobs/{name}/run")
                fleet.world.deliver()
    groups = fleet.alice("GET", "/v1/failures/groups").json["groups"]
    fingerprint = {group["job_id"]: group["fingerprint"] for group in groups}
    body = {"fingerprint": fingerprint["j1"], "dry_run": True}
    (counted,) = all_of(fleet.alice, "/v1/jobs/_all/pause", body)
    assert counted["ids"] == ["j2", "j1", "j0"]
    (boom,) = all_of(fleet.alice, "/v1/jobs/_all/pause", {"error_type": "Boom", "tag": "red"})
    assert (sorted(boom["ids"]), states(fleet)) == (["j1", "j3"], "apapa")
    assert all_of(fleet.alice, "/v1/jobs/_all/pause", {"error_type": "Bang"})[0]["matched"] == 0
    assert all_of(fleet.bob, "/v1/jobs/_all/pause", {"error_type": "Boom"})[0]["matched"] == 0
    fleet.world.clock.sleep(8 * 86_400)
    assert all_of(fleet.alice, "/v1/jobs/_all/pause", {"error_type": "Boom"})[0]["matched"] == 0


@pytest.mark.parametrize(("pause_s", "paused"), [(5.9, 4), (6.0, 3)])
def test_no_change_begins_after_18_s(
    fleet: Office, monkeypatch: pytest.MonkeyPatch, pause_s: float, paused: int
) -> None:
    commit = JobStore._commit

    def slowly(*arguments: Any) -> Any:
        fleet.world.clock.sleep(pause_s)
        return commit(*arguments)

    monkeypatch.setattr(JobStore, "_commit", slowly)
    first, *later = all_of(fleet.alice, "/v1/jobs/_all/pause", {"all": True})
    assert first["ids"] == [f"j{n}" for n in range(paused)]
    assert len(later) == 1
    assert states(fleet) == "ppppp"


@pytest.mark.parametrize(("other_jobs", "requests"), [(1_999, 1), (2_000, 2)])
def test_a_request_reads_2000_jobs(office: Office, other_jobs: int, requests: int) -> None:
    office.alice("PUT", "/v1/jobs/a", job(cron="0 3 * * *"))
    office.alice("PUT", "/v1/jobs/z", job(cron="0 3 * * *", tags=["last"]))
    table = office.world.table("jobs")
    item = table.get(keys.job("alice", "a"))
    assert item
    ids = [f"j{n:04}" for n in range(other_jobs - 1)]
    table.put_many([item | keys.job("alice", job_id) | {"job_id": job_id} for job_id in ids])
    answers = all_of(office.alice, "/v1/jobs/_all/pause", {"tag": "last", "dry_run": True})
    assert [answer["ids"] for answer in answers] == [[]] * (requests - 1) + [["z"]]


@pytest.mark.parametrize(("damaged", "pages"), [(1_999, 1), (2_000, 2)])
def test_a_page_of_a_list_reads_2000_items(office: Office, damaged: int, pages: int) -> None:
    office.alice("PUT", "/v1/jobs/z", job(cron="0 3 * * *"))
    office.world.table("jobs").put_many([keys.job("alice", f"j{n:04}") for n in range(damaged)])
    first = office.alice("GET", "/v1/jobs").json
    assert len(first["corrupt"]) == damaged
    assert ([listed["job_id"] for listed in first["jobs"]], first["next_cursor"] is None) == (
        ["z"] * (2 - pages),
        pages == 1,
    )


def test_failing_jobs_are_continued_and_run_once(fleet: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet.world.target.answer = lambda event: FAILS
    for _ in range(2):
        for number in range(5):
            fleet.alice("POST", f"/v1/jobs/j{number}/run")
            fleet.world.deliver()
    monkeypatch.setattr(bulk, "MAX_CHANGED", 2)
    fleet.alice("DELETE", "/v1/jobs/j4")
    called = len(fleet.world.target.calls)
    parts = all_of(fleet.alice, "/v1/jobs/_all/run", {"error_type": "Boom", "nonce": "n"})
    assert len(parts) > 1
    assert {name for part in parts for name in part["ids"]} == {"j0", "j1", "j2", "j3"}
    fleet.world.deliver()
    assert len(fleet.world.target.calls) - called == 4
    cursor = {"cursor": parts[0]["next_cursor"]}
    assert fleet.alice("POST", "/v1/jobs/_all/run", {"error_type": "Bang", **cursor}).status == 400
