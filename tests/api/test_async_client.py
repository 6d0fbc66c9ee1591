"""The asynchronous Python clients over the real handler."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

import httpx
import pytest

from minute8.client import (
    AlreadyExists,
    AsyncClient,
    AsyncOperator,
    Client,
    NotFound,
    Operator,
    Unavailable,
    Unreachable,
)
from tests.api.calls import AsyncHandlerTransport, Office
from tests.worlds import job

T = TypeVar("T")


def client(
    key: str | None, *failures: int | Exception
) -> tuple[AsyncClient, list[httpx.Request], list[float]]:
    """A client, and lists of the requests that it sends and the waits between them."""
    transport, waits = AsyncHandlerTransport(failures), list[float]()

    async def sleep(wait_s: float) -> None:
        waits.append(wait_s)

    minute8 = AsyncClient("https://api.test/", key or "", transport=transport, sleep=sleep)
    return minute8, transport.handler.requests, waits


def run(office: Office, steps: Callable[[AsyncClient], Awaitable[T]], *failures: int | Exception) -> T:
    async def main() -> T:
        async with client(office.alice.key, *failures)[0] as minute8:
            return await steps(minute8)

    return asyncio.run(main())


async def all_of(items: AsyncIterator[T]) -> list[T]:
    return [item async for item in items]


@pytest.mark.parametrize(("blocking", "awaiting"), [(Client, AsyncClient), (Operator, AsyncOperator)])
def test_both_clients_have_the_same_operations(blocking: type, awaiting: type) -> None:
    def operations(client: type) -> dict[str, Any]:
        names = [name for name in dir(client) if not name.startswith("_")]
        return {name: inspect.getattr_static(client, name) for name in names}

    of_blocking, of_awaiting = operations(blocking), operations(awaiting)
    del of_blocking["close"], of_awaiting["aclose"]
    assert len(of_blocking) > 20
    assert of_blocking == of_awaiting  # not only the names: they are the same objects


def test_a_job_from_its_creation_to_its_end(office: Office) -> None:
    async def steps(minute8: AsyncClient) -> None:
        created = await minute8.create_job(job(cron="* * * * *"), "minutely")
        changed = await minute8.put_job("minutely", job(cron="* * * * *", name="M"), created["revision"])
        assert await minute8.get_job("minutely") == changed
        office.world.run_until("2026-11-21T03:14:30Z")
        runs = await all_of(minute8.list_runs_of_job("minutely"))
        assert [run["status"] for run in runs] == ["succeeded", "succeeded"]
        assert await minute8.get_run(runs[0]["execution_id"]) == runs[0]
        assert (await minute8.pause_job("minutely", "enough"))["note"] == "enough"
        await minute8.delete_job("minutely")
        assert await all_of(minute8.list_jobs()) == []
        assert (await minute8.call("GET", "/v1/tenant"))["tenant_id"] == "alice"

    run(office, steps)


def test_lists_are_those_of_the_blocking_client(few_at_once: None, office: Office) -> None:
    async def steps(minute8: AsyncClient) -> None:
        lines = await minute8.put_jobs({"job_id": n, **job(cron="* * * * *")} for n in "abc")
        assert [line["line"] for line in lines] == [1, 2, 3]
        assert [exported["job_id"] for exported in await all_of(minute8.export_jobs())] == ["a", "b", "c"]
        office.world.run_until("2026-11-21T03:17:30Z")
        fire_times = [run["fire_at"] for run in await all_of(minute8.list_runs())]
        assert len(fire_times) == 15
        assert fire_times == sorted(fire_times, reverse=True)
        parts = await all_of(minute8.summarise_job("a"))
        assert (len(parts), sum(part["total"]["runs"] for part in parts)) == (2, 5)
        assert (await minute8.pause_jobs(all=True))["done"] == 3
        assert await minute8.list_failure_groups() == []

    run(office, steps)


def test_a_page_is_fetched_when_it_is_needed(few_at_once: None, office: Office) -> None:
    minute8, requests, _ = client(office.alice.key)

    async def steps() -> None:
        for name in "abc":
            await minute8.put_job(name, job(cron="* * * * *"))
        office.world.run_until("2026-11-21T03:17:30Z")
        requests.clear()
        parts = minute8.summarise_job("a")
        assert requests == []
        await anext(parts)
        assert len(requests) == 1
        await anext(parts)
        assert len(requests) == 2
        assert "cursor" in requests[1].url.params

    asyncio.run(steps())


def test_refusals_are_exceptions(office: Office) -> None:
    async def steps(minute8: AsyncClient) -> None:
        await minute8.create_job(job(cron="0 3 * * *"), "report")
        with pytest.raises(AlreadyExists):
            await minute8.create_job(job(cron="0 3 * * *"), "report")
        with pytest.raises(NotFound, match="nothing"):
            await all_of(minute8.list_runs_of_job("nothing"))

    run(office, steps)


def test_safe_requests_are_repeated(office: Office) -> None:
    minute8, requests, waits = client(office.alice.key, 503, httpx.ReadTimeout("slow"), 429)
    created = asyncio.run(minute8.put_job("report", job(cron="0 3 * * *")))
    assert (created["revision"], len(requests)) == (1, 4)
    assert waits == sorted(waits) and len(waits) == 3 and 0.1 <= waits[0] <= 0.2


def test_unsafe_requests_are_not_repeated(office: Office) -> None:
    office.alice("PUT", "/v1/jobs/report", job(cron="0 3 * * *"))
    failures = {502: Unavailable, httpx.ReadTimeout("slow"): Unreachable}
    for failure, raised in failures.items():
        minute8, requests, waits = client(office.alice.key, failure)
        with pytest.raises(raised):
            asyncio.run(minute8.pause_job("report", revision=1))
        assert (len(requests), waits) == (1, [])


def test_waiting_for_a_run_waits_with_the_given_sleep(office: Office) -> None:
    office.alice("PUT", "/v1/jobs/report", job(cron="0 3 * * *"))

    async def sleep(wait_s: float) -> None:
        assert wait_s == 7
        office.world.run_until("2026-11-21T03:14:30Z")

    async def main() -> None:
        transport = AsyncHandlerTransport()
        minute8 = AsyncClient("https://api.test", office.alice.key or "", transport=transport, sleep=sleep)
        started = await minute8.run_job("report")
        ended = await minute8.wait_for_run(started["execution_id"], every_s=7)
        assert (started["status"], ended["status"]) == ("queued", "succeeded")

    asyncio.run(main())


def test_tasks_share_a_client(office: Office) -> None:
    async def steps(minute8: AsyncClient) -> None:
        names = [f"job-{n}" for n in range(20)]
        created = await asyncio.gather(*(minute8.put_job(name, job(every="1h")) for name in names))
        assert [created_job["job_id"] for created_job in created] == names

    run(office, steps, 503, 503)


@pytest.mark.parametrize("while_waiting", [True, False], ids=["between tries", "during a try"])
def test_a_cancelled_call_ends_at_once_and_is_not_repeated(while_waiting: bool, office: Office) -> None:
    reached, requests = asyncio.Event(), list[httpx.Request]()

    async def forever(_: float = 0) -> None:
        reached.set()
        await asyncio.Event().wait()

    async def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        if len(requests) > 1:
            return httpx.Response(200, json={"tenant_id": "alice"})
        if not while_waiting:
            await forever()
        return httpx.Response(503)

    async def main() -> None:
        transport = httpx.MockTransport(answer)
        async with AsyncClient("https://api.test", "key", transport=transport, sleep=forever) as minute8:
            task = asyncio.create_task(minute8.get_own_tenant())
            await asyncio.wait_for(reached.wait(), 60)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asyncio.wait_for(task, 60)
            assert len(requests) == 1
            assert (await minute8.get_own_tenant())["tenant_id"] == "alice"  # the client still works

    asyncio.run(main())


def test_the_operators_client(office: Office) -> None:
    async def main() -> None:
        transport = AsyncHandlerTransport()
        async with AsyncOperator(
            "https://api.test", office.operator.key or "", transport=transport
        ) as platform:
            assert [tenant["tenant_id"] async for tenant in platform.list_tenants()] == ["alice", "bob"]
            [blocked] = await platform.block_target("*", "an incident")
            assert blocked["pattern"] == "*"
            assert await platform.release_target("*") == []

    asyncio.run(main())


def test_a_list_that_has_not_changed_is_not_sent_again(office: Office) -> None:
    async def main() -> list[httpx.Request]:
        minute8, requests, _ = client(office.alice.key)
        await minute8.put_job("report", job(cron="0 3 * * *"))
        pages = [await minute8.list_jobs_page() for _ in range(2)]
        assert pages[0] == pages[1]
        return requests

    assert [request.headers.get("If-None-Match", "")[:3] for request in asyncio.run(main())[1:]] == [
        "",
        'W/"',
    ]
