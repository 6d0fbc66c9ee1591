"""How a request becomes a result: its tries, the waits between them, and what a refusal raises.

`exchange` neither sends nor waits: a client executes each step that it yields. `Transport` is the one that blocks.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Callable, Generator, Iterator
from types import TracebackType
from typing import Any, Final, Self, TypeVar

import httpx

from minute8.client.errors import Unreachable, problem_of
from minute8.client.known_lists import KnownLists
from minute8.client.operations import AnyCall, Blocking, ListSteps, Request, Steps, Wait

_TIMEOUT: Final = httpx.Timeout(35.0, connect=5.0)
_MAX_TRIES: Final = 4
_FIRST_WAIT_S: Final = 0.2
_MAX_WAIT_S: Final = 10.0

# What a gateway answers when it has no answer from the API, which may have done all. A 500 is the API's own failure.
_ANSWER_LOST: Final = (502, 503, 504)

# Nothing was sent, and so nothing can happen twice.
_NOT_SENT: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)

_NDJSON: Final = "application/x-ndjson"

T = TypeVar("T")
# Each httpx.Request is answered by its response or by the error of sending it, each Wait by None.
Exchange = Generator[httpx.Request | Wait, Any, T]


class Transport(AnyCall, Blocking):
    """Requests with one key. Calls that may be repeated are, when the API throttles, fails or cannot be reached."""

    def __init__(
        self,
        url: str,
        key: str,
        *,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._http = httpx.Client(**base_of(url, key), transport=transport)
        self._sleep = sleep
        self._known = KnownLists()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def _result_of(self, steps: Steps[T]) -> T:
        answer: Any = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration as end:
                result: T = end.value
                return result
            answer = self._execute(step)

    def _items_of(self, steps: ListSteps[T]) -> Iterator[T]:
        answer: Any = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration:
                return
            if isinstance(step, list):
                yield from step
            else:
                answer = self._execute(step)

    def _execute(self, step: Request[Any] | Wait | httpx.Request) -> Any:
        if isinstance(step, Request):
            return self._result_of(exchange(self._http.build_request, step, self._known))
        if isinstance(step, Wait):
            return self._sleep(step.wait_s)
        try:
            return self._http.send(step)
        except httpx.TransportError as error:
            return error


def base_of(url: str, key: str) -> dict[str, Any]:
    """What every request of a client shares, as arguments of httpx's clients."""
    # A callback has no key, and "Bearer " is no header.
    authorization = {"Authorization": f"Bearer {key}"} if key else {}
    return {
        "base_url": url.rstrip("/").removesuffix("/v1"),
        "headers": authorization | {"User-Agent": "minute8-client"},
        "timeout": _TIMEOUT,
    }


def exchange(build: Callable[..., httpx.Request], request: Request[T], known: KnownLists) -> Exchange[T]:
    """The request's result; `build` is `build_request` of the httpx client. Raises Minute8Problem, Unreachable."""
    sent = _built(build, request)
    known.name_in(sent)
    response, is_answer_lost = yield from _tries(sent, _is_repeatable(request))
    response = known.settled(sent, response)
    if response.is_success:
        return request.shape(_content_of(response))
    if request.method == "DELETE" and is_answer_lost and response.status_code == httpx.codes.NOT_FOUND:
        return request.shape(None)  # an earlier try deleted it, and its answer was lost
    raise problem_of(response)


def encoded(value: object) -> bytes:
    """JSON. What is none, such as half a character or an infinite number, is the API's to refuse."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode(errors="backslashreplace")


def _built(build: Callable[..., httpx.Request], request: Request[Any]) -> httpx.Request:
    headers = {"If-Match": f'"{request.revision}"'} if request.revision is not None else {}
    if request.only_new:
        headers["If-None-Match"] = "*"
    if request.key is not None:
        headers["Idempotency-Key"] = f'"{request.key}"'
    content = request.lines
    if content is not None:
        headers["Content-Type"] = _NDJSON
    elif request.body is not None:
        content, headers["Content-Type"] = encoded(request.body), "application/json"
    return build(
        request.method,
        request.path,
        content=content,
        params={name: value for name, value in (request.query or {}).items() if value is not None},
        headers=headers,
    )


def _is_repeatable(request: Request[Any]) -> bool:
    # Repeated after an answer that was lost, a conditional change would meet its own work.
    unconditional = request.revision is None and not request.only_new
    return unconditional if request.repeatable is None else request.repeatable


def _tries(request: httpx.Request, repeatable: bool) -> Exchange[tuple[httpx.Response, bool]]:
    """The answer, and whether the answer to an earlier try was lost on its way."""
    is_answer_lost = False
    for tries_left in reversed(range(_MAX_TRIES)):
        wait_s = _wait_s(_MAX_TRIES - 1 - tries_left)
        answer = yield request
        if isinstance(answer, httpx.TransportError):
            if not tries_left or not (repeatable or isinstance(answer, _NOT_SENT)):
                raise Unreachable(
                    f"no answer from {request.url.copy_with(query=None)}: {_words(answer)}"
                ) from answer
            is_answer_lost = is_answer_lost or not isinstance(answer, _NOT_SENT)
        else:
            if not tries_left or not _is_to_be_repeated(answer, repeatable):
                return answer, is_answer_lost
            is_answer_lost = is_answer_lost or answer.status_code in _ANSWER_LOST
            wait_s = max(wait_s, _asked_to_wait_s(answer))
        yield Wait(wait_s)
    raise AssertionError("unreachable: the last try returns or raises")


def _words(error: httpx.TransportError) -> str:
    """The error without the number that the operating system gives it."""
    return re.sub(r"^\[Errno -?\d+\] ", "", str(error)) or type(error).__name__


def _content_of(response: httpx.Response) -> Any:
    """The answer's JSON; an answer of NDJSON as it is. Raises Unreachable if another server answered."""
    if response.headers.get("Content-Type", "").startswith(_NDJSON):
        return response
    if not response.content:
        return None
    try:
        return response.json()
    except ValueError:
        address = response.request.url.copy_with(query=None)
        raise Unreachable(f"{address} answers, but not as Minute8's API; is the address right?") from None


def _is_to_be_repeated(response: httpx.Response, repeatable: bool) -> bool:
    if response.status_code == 409:  # the one before is still under way, and will have an answer
        return response.headers.get("Retry-After") is not None
    return response.status_code == 429 or (response.status_code >= 500 and repeatable)


def _wait_s(attempt: int) -> float:
    longest = min(_MAX_WAIT_S, _FIRST_WAIT_S * 2**attempt)
    return random.uniform(longest / 2, longest)


def _asked_to_wait_s(response: httpx.Response) -> float:
    try:
        return min(_MAX_WAIT_S, float(response.headers.get("Retry-After", 0)))
    except ValueError:  # a date: our API sends seconds
        return 0.0
