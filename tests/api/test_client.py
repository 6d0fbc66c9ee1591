"""The Python client over the real handler."""

from __future__ import annotations

import inspect
import json
from typing import Any

import httpx
import pytest

from common.errors import Busy
from common.jobs.store import JobStore
from common.registration.definition import JobDefinition
from minute8.client import (
    AlreadyExists,
    Client,
    Forbidden,
    InvalidInput,
    LinesBusy,
    NotFound,
    RevisionMismatch,
    Unauthenticated,
    Unavailable,
    Unreachable,
    definition_in,
)
from tests.api.calls import HandlerTransport, Office
from tests.worlds import job


def client(key: str | None, *failures: int | Exception) -> tuple[Client, HandlerTransport, list[float]]:
    transport, waits = HandlerTransport(failures), list[float]()
    return Client("https://api.test/", key or "", transport=transport, sleep=waits.append), transport, waits


def test_a_job_from_its_creation_to_its_end(office: Office) -> None:
    minute8, _, _ = client(office.alice.key)
    with minute8:
        created = minute8.create_job(job(cron="* * * * *"), "minutely")
        assert minute8.create_job(job(every="1h"))["job_id"].startswith("job-")
        changed = minute8.put_job(
            "minutely", job(cron="* * * * *", name="Minutely"), revision=created["revision"]
        )
        assert minute8.get_job("minutely") == changed
        assert [fire["fire_at"] for fire in minute8.next_fires("minutely", 1)["fires"]] == [
            "2026-11-21T03:13:00Z"
        ]
        office.world.run_until("2026-11-21T03:14:30Z")
        runs = list(minute8.list_runs_of_job("minutely"))
        assert [run["status"] for run in runs] == ["succeeded", "succeeded"]
        assert minute8.get_run(runs[0]["execution_id"]) == runs[0]
        assert minute8.pause_job("minutely", "enough")["note"] == "enough"
        assert minute8.resume_job("minutely")["state"] == "active"
        minute8.delete_job("minutely")
        assert len(list(minute8.list_jobs())) == 1
        assert minute8.get_own_tenant()["tenant_id"] == "alice"


def test_runs_of_all_jobs_come_in_one_order_and_summaries_in_parts(few_at_once: None, office: Office) -> None:
    minute8, _, _ = client(office.alice.key)
    for name in ("a", "b", "c"):
        minute8.put_job(name, job(cron="* * * * *"))
    office.world.run_until("2026-11-21T03:17:30Z")
    fire_times = [run["fire_at"] for run in minute8.list_runs()]
    assert len(fire_times) == 15
    assert fire_times == sorted(fire_times, reverse=True)
    assert len(list(minute8.list_runs(until_at="2026-11-21T03:15:00Z", status="succeeded"))) == 6
    parts = list(minute8.summarise_job("a", values=True))
    assert (len(parts), sum(part["total"]["runs"] for part in parts)) == (2, 5)
    assert parts[0]["days"][0]["lateness_s"]["values"] == [[0, 4]]
    assert minute8.summarise_job_page("a", from_at="2026-11-21T03:16:00Z")["total"]["statuses"] == {
        "succeeded": 2
    }


def test_lists_go_on_over_pages(office: Office) -> None:
    minute8, transport, _ = client(office.alice.key)
    for n in range(5):
        minute8.put_job(f"job-{n}", job(cron="* * * * *"))
    page = minute8.list_jobs_page(limit=3)
    rest = minute8.list_jobs_page(limit=3, cursor=page["next_cursor"])
    assert [listed_job["job_id"] for listed_job in page["jobs"] + rest["jobs"]] == [
        f"job-{n}" for n in range(5)
    ]
    assert len(transport.requests) == 7


def test_refusals_are_exceptions(office: Office) -> None:
    minute8, transport, _ = client(office.alice.key)
    minute8.create_job(job(cron="0 3 * * *"), "report")
    with pytest.raises(AlreadyExists):
        minute8.create_job(job(cron="0 3 * * *"), "report")
    with pytest.raises(NotFound, match="nothing"):
        minute8.get_job("nothing")
    with pytest.raises(InvalidInput) as refused:
        minute8.put_job("report", job(cron="61 3 * * *"))
    assert refused.value.errors[0]["field"] == "schedule.cron"
    assert (refused.value.name, refused.value.request_id) == ("invalid-input", "request-1")
    with pytest.raises(RevisionMismatch) as late:
        minute8.delete_job("report", revision=7)
    assert late.value.current_revision == 1
    with pytest.raises(Forbidden):
        client(office.alice_reads.key)[0].delete_job("report")
    with pytest.raises(Unauthenticated):
        client("m8_nothing")[0].get_own_tenant()
    assert len(transport.requests) == 5  # a refusal is not retried


def test_safe_requests_are_repeated(office: Office) -> None:
    minute8, transport, waits = client(office.alice.key, 503, httpx.ReadTimeout("slow"), 429)
    assert minute8.put_job("report", job(cron="0 3 * * *"))["revision"] == 1
    assert len(transport.requests) == 4
    assert waits == sorted(waits) and len(waits) == 3 and 0.1 <= waits[0] <= 0.2


def test_a_repeated_delete_succeeds_after_a_lost_answer(office: Office) -> None:
    minute8, _, _ = client(office.alice.key, 503)
    minute8.delete_job("gone-by-the-try-before")
    with pytest.raises(NotFound):
        minute8.delete_job("never-there")


def test_a_deletion_that_the_api_fails_at_is_not_taken_for_done(office: Office) -> None:
    minute8, _, _ = client(office.alice.key, 500)
    with pytest.raises(NotFound):
        minute8.delete_job("never-there")


def test_unsafe_requests_are_not_repeated(office: Office) -> None:
    office.alice("PUT", "/v1/jobs/report", job(cron="0 3 * * *"))
    minute8, transport, _ = client(office.alice.key, 502)
    with pytest.raises(Unavailable):
        minute8.pause_job("report", revision=1)
    minute8, transport, _ = client(office.alice.key, httpx.ReadTimeout("slow"))
    with pytest.raises(Unreachable):
        minute8.pause_job("report", revision=1)
    assert len(transport.requests) == 1
    minute8, transport, _ = client(office.alice.key, httpx.ConnectError("refused"), 429)
    assert minute8.pause_job("report", revision=1)["revision"] == 2


@pytest.mark.parametrize("kind", [httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout])
def test_a_request_that_was_never_sent_is_repeated(kind: type[httpx.TransportError], office: Office) -> None:
    office.alice("PUT", "/v1/jobs/report", job(cron="0 3 * * *"))
    minute8, _, _ = client(office.alice.key, kind("not connected"))
    assert minute8.pause_job("report", revision=1)["state"] == "paused"
    minute8, _, _ = client(office.alice.key, kind("not connected"))
    with pytest.raises(NotFound):
        minute8.delete_job("never-there")


def test_the_client_gives_up_after_its_tries(office: Office) -> None:
    minute8, transport, waits = client(office.alice.key, *[503] * 9)
    with pytest.raises(Unavailable) as failed:
        minute8.get_own_tenant()
    assert (failed.value.status, failed.value.detail, len(transport.requests)) == (
        503,
        "Service Unavailable",
        4,
    )
    minute8, transport, waits = client(office.alice.key, *[httpx.ConnectError("refused")] * 9)
    with pytest.raises(Unreachable, match="refused"):
        minute8.get_own_tenant()
    assert (len(transport.requests), len(waits)) == (4, 3)


def test_methods_have_the_names_words_and_parameters_that_editors_show() -> None:
    minute8, _, _ = client("key")
    assert minute8.pause_jobs.__name__ == "pause_jobs"
    assert "JSON merge patch" in (inspect.getdoc(minute8.patch_job) or "")
    assert list(inspect.signature(minute8.pause_job).parameters) == ["job_id", "note", "revision"]
    assert "JSON merge patch" in (inspect.getdoc(Client.patch_job) or "")


def test_the_definition_in_an_answer_can_be_sent_back(office: Office) -> None:
    minute8, _, _ = client(office.alice.key)
    created = minute8.put_job("report", job(cron="0 3 * * *", tags=["a"], catch_up="all"))
    definition = definition_in(created)
    assert definition.keys() == set(JobDefinition.__struct_fields__)
    assert definition_in(minute8.put_job("report", definition)) == definition
    assert minute8.patch_job("report", {"tags": None})["tags"] == []
    assert minute8.preview_schedule({"cron": "0 3 * * *"}, 1)["fires"][0]["fire_at"] == "2026-11-22T03:00:00Z"


def test_a_list_that_has_not_changed_is_not_sent_again(office: Office) -> None:
    minute8, transport, _ = client(office.alice.key, 503)
    minute8.put_job("report", job(cron="0 3 * * *"))
    first = minute8.list_jobs_page(limit=10)
    first["jobs"].clear()  # what a caller does with an answer changes no later one
    again = [minute8.list_jobs_page(limit=10) for _ in range(2)]
    assert [job["job_id"] for page in again for job in page["jobs"]] == ["report", "report"]
    assert [request.headers.get("If-None-Match", "")[:3] for request in transport.requests[2:]] == [
        "",
        'W/"',
        'W/"',
    ]
    minute8.put_job("report", job(cron="0 4 * * *"))
    assert minute8.list_jobs_page(limit=10)["jobs"][0]["revision"] == 2
    assert "If-None-Match" not in transport.requests[-2].headers
    minute8.list_jobs_page(limit=11)
    assert "If-None-Match" not in transport.requests[-1].headers


def test_the_clients_memory_of_lists_is_bounded() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        jobs = "x" * int(request.url.params["limit"])
        return httpx.Response(200, json={"jobs": jobs, "next_cursor": None}, headers={"ETag": 'W/"1"'})

    minute8 = Client("https://api.test/", "", transport=httpx.MockTransport(answer))
    for limit in range(1, 100):
        minute8.list_jobs_page(limit=limit)
    minute8.list_jobs_page(limit=300_000)
    minute8.list_jobs_page(limit=200, cursor="a")
    kept = minute8._known._answers
    assert len(kept) == 32 and sum(len(response.content) for response in kept.values()) < 20_000
    assert "limit=99" in list(kept)[-1] and "limit=68" in next(iter(kept))


def test_lines_that_are_busy_are_sent_again_and_what_stays_busy_raises(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    minute8, _, waits = client(office.alice.key)
    store, busy = JobStore.change_all, [Busy("its shard")] * 2

    def change_all(self: JobStore, tenant: str, changes: Any, *rest: Any) -> Any:
        if "c" in changes and busy:
            raise busy.pop()
        return store(self, tenant, changes, *rest)

    monkeypatch.setattr(JobStore, "change_all", change_all)
    lines = [{**job(cron="* * * * *"), "job_id": name} for name in "abc"]
    results = minute8.put_jobs(lines)
    assert [(line["line"], line["result"]) for line in results] == [(n, "created") for n in (1, 2, 3)]
    assert waits == [1, 2]
    busy += [Busy("its shard")] * 99
    with pytest.raises(LinesBusy, match="3 of 3 lines") as raised:
        minute8.put_jobs([{**line, "name": "changed"} for line in lines])
    assert [line["result"] for line in raised.value.results] == ["refused"] * 3
    assert sum(waits[2:]) == 120


@pytest.mark.parametrize(
    ("count", "stored_each_time", "waits"),
    [(12, 1, [1] * 11), (2_001, 0, [1, 2, 4, 8, 15, 30, 30, 30])],
)
def test_busy_lines_are_sent_again_until_none_was_stored_for_two_minutes(
    count: int, stored_each_time: int, waits: list[float]
) -> None:
    created = {"result": "created"}
    refused = {"result": "refused", "problem": {"type": "urn:minute8:problem:busy", "status": 503}}
    sent, waited = list[int](), list[float]()

    def answer(request: httpx.Request) -> httpx.Response:
        lines = [json.loads(line) for line in request.read().splitlines()]
        sent.append(len(lines))
        results = [
            {"job_id": line["job_id"], **(created if nth < stored_each_time else refused)}
            for nth, line in enumerate(lines)
        ]
        return httpx.Response(200, json={"results": results})

    minute8 = Client("https://api.test/", "", transport=httpx.MockTransport(answer), sleep=waited.append)
    jobs = [{"job_id": f"job-{n}"} for n in range(count)]
    if stored_each_time:
        assert [line["line"] for line in minute8.put_jobs(jobs)] == list(range(1, 13))
        assert sent == list(range(12, 0, -1))
    else:
        with pytest.raises(LinesBusy) as raised:
            minute8.put_jobs(jobs)
        assert len(raised.value.results) == 2_001
        assert sent == [*[1_000] * 10, 1]
    assert waited == waits


def test_a_client_without_a_key_can_call_back() -> None:
    """`Authorization: Bearer ` is refused by the HTTP library itself, so no callback was ever sent."""
    sent: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return httpx.Response(200, json={"execution_id": "a:b:c", "status": "succeeded", "stop": False})

    with Client("https://api.test/", "", transport=httpx.MockTransport(answer)) as minute8:
        minute8.call_back("a:b:c", "token", "succeeded", result="400 rows")
    assert "authorization" not in sent[0].headers
