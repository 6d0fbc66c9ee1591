"""The clients for asyncio: the same operations, to be awaited."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from minute8.client.client import ClientCalls
from minute8.client.generated import PlatformOperations
from minute8.client.known_lists import KnownLists
from minute8.client.operations import AnyCall, Awaiting, ListSteps, Request, Steps, Wait
from minute8.client.transport import base_of, exchange

T = TypeVar("T")


class AsyncTransport(AnyCall, Awaiting):
    """What Transport is, without blocking. One client serves any number of tasks at the same time."""

    def __init__(
        self,
        url: str,
        key: str,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._http = httpx.AsyncClient(**base_of(url, key), transport=transport)
        self._sleep = sleep
        self._known = KnownLists()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._http.aclose()

    async def _result_of(self, steps: Steps[T]) -> T:
        answer: Any = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration as end:
                result: T = end.value
                return result
            answer = await self._execute(step)

    async def _items_of(self, steps: ListSteps[T]) -> AsyncIterator[T]:
        answer: Any = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration:
                return
            if isinstance(step, list):
                for item in step:
                    yield item
            else:
                answer = await self._execute(step)

    async def _execute(self, step: Request[Any] | Wait | httpx.Request) -> Any:
        if isinstance(step, Request):
            return await self._result_of(exchange(self._http.build_request, step, self._known))
        if isinstance(step, Wait):
            return await self._sleep(step.wait_s)
        try:
            return await self._http.send(step)
        except httpx.TransportError as error:
            return error


class AsyncClient(ClientCalls, AsyncTransport):
    """The API for one tenant: each method of `Client`, to be awaited; lists are for `async for`."""


class AsyncOperator(PlatformOperations, AsyncTransport):
    """The API for the platform: each method of `Operator`, to be awaited."""
