"""How a request is sent, repeated and refused."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import quote

import httpx

from minute8_client.errors import Unreachable, problem_of

_TRIES: Final = 4
_FIRST_WAIT_S: Final = 0.2
_LONGEST_WAIT_S: Final = 10.0
_TIMEOUT: Final = httpx.Timeout(35.0, connect=5.0)

# What a gateway answers when it has no answer from the API, which may have done all. A 500 is the API's own failure.
_ANSWER_LOST: Final = (502, 503, 504)

NDJSON: Final = "application/x-ndjson"

Json = Mapping[str, Any]


class Transport:
    """Requests with one key. Calls that may be repeated are, when the API throttles, fails or cannot be reached."""

    def __init__(
        self,
        url: str,
        key: str,
        *,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._http = httpx.Client(
            base_url=url.rstrip("/").removesuffix("/v1"),
            headers={"Authorization": f"Bearer {key}", "User-Agent": "minute8-client"},
            timeout=_TIMEOUT,
            transport=transport,
        )
        self._sleep = sleep

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def call(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        revision: int | None = None,
        query: Mapping[str, Any] | None = None,
        *,
        repeatable: bool | None = None,
        key: str | None = None,
        lines: bytes | None = None,
    ) -> Any:
        """The answer's JSON; an answer of NDJSON as it is. Raises Minute8Problem for what is refused, Unreachable.

        With an idempotency `key` it takes effect once, however often it is sent. `lines` are NDJSON, in `body`'s place.
        """
        headers = {"If-Match": f'"{revision}"'} if revision is not None else {}
        if key is not None:
            headers["Idempotency-Key"] = f'"{key}"'
        if lines is not None:
            headers["Content-Type"] = NDJSON
        request = self._http.build_request(
            method,
            path,
            json=body,
            content=lines,
            params={name: value for name, value in (query or {}).items() if value is not None},
            headers=headers,
        )
        if repeatable is None:
            # Repeated after an answer that was lost, a change of one revision would meet its own work.
            repeatable = revision is None
        response, lost = self._send(request, repeatable)
        if response.is_success:
            if response.headers.get("Content-Type", "").startswith(NDJSON):
                return response
            return _json_of(response)
        if method == "DELETE" and lost and response.status_code == httpx.codes.NOT_FOUND:
            return None  # an earlier try deleted it, and its answer was lost
        raise problem_of(response)

    def _send(self, request: httpx.Request, repeatable: bool) -> tuple[httpx.Response, bool]:
        """The answer, and whether the answer to an earlier try was lost on its way."""
        lost = False
        for tries_left in reversed(range(_TRIES)):
            wait_s = _wait_s(_TRIES - 1 - tries_left)
            try:
                response = self._http.send(request)
            except httpx.TransportError as error:
                # Not connected: nothing was sent, and so nothing can happen twice.
                if not tries_left or not (repeatable or isinstance(error, httpx.ConnectError)):
                    raise Unreachable(
                        f"no answer from {request.url.copy_with(query=None)}: {error}"
                    ) from error
                lost = lost or not isinstance(error, httpx.ConnectError)
            else:
                if not tries_left or not _is_to_be_repeated(response, repeatable):
                    return response, lost
                lost = lost or response.status_code in _ANSWER_LOST
                wait_s = max(wait_s, _asked_to_wait_s(response))
            self._sleep(wait_s)
        raise AssertionError("unreachable: the last try returns or raises")


def pages(client: Transport, path: str, of: str, **wanted: str | None) -> Iterator[Any]:
    """All entries of the list `of` that are `wanted`, page by page as they are consumed."""
    cursor: str | None = None
    while True:
        page = client.call("GET", path, query={"limit": 200, "cursor": cursor, **wanted})
        yield from page[of]
        if not (cursor := page["next_cursor"]):
            return


def path_of(*parts: str) -> str:
    """`/v1/` and the parts, each quoted."""
    return "/v1/" + "/".join(quote(part, safe=":") for part in parts)


def _json_of(response: httpx.Response) -> Any:
    """The answer's JSON. Raises Unreachable if another server answered."""
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
    longest = min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2**attempt)
    return random.uniform(longest / 2, longest)


def _asked_to_wait_s(response: httpx.Response) -> float:
    try:
        return min(_LONGEST_WAIT_S, float(response.headers.get("Retry-After", 0)))
    except ValueError:  # a date: our API sends seconds
        return 0.0
