"""The lists that a client has read lately: asked for again, one that is still the same is not sent again."""

from __future__ import annotations

from typing import Final

import httpx

_MAX_LISTS: Final = 32
_MAX_LIST_BYTES: Final = 256 * 1024


class KnownLists:
    """The answers to the latest requests whose ETag is of the whole answer, by address. Bounded to 8 MB."""

    def __init__(self) -> None:
        self._answers: dict[str, httpx.Response] = {}

    def name_in(self, request: httpx.Request) -> None:
        """Ask for an answer only if it differs from the one that is known."""
        if (answer := self._answers.get(str(request.url))) is not None:
            request.headers["If-None-Match"] = answer.headers["ETag"]

    def settled(self, request: httpx.Request, response: httpx.Response) -> httpx.Response:
        """The response; the known one if the server says that it is still the same."""
        url = str(request.url)
        if response.status_code == httpx.codes.NOT_MODIFIED and url in self._answers:
            return self._answers[url]
        is_of_all = request.method == "GET" and response.headers.get("ETag", "").startswith("W/")
        # Pages after the first are read once.
        if is_of_all and "cursor" not in request.url.params and len(response.content) <= _MAX_LIST_BYTES:
            self._answers.pop(url, None)
            self._answers[url] = response
            while len(self._answers) > _MAX_LISTS:
                self._answers.pop(next(iter(self._answers)), None)
        return response
