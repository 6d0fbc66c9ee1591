"""A client that notes what is requested of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Requests:
    """A client that counts requests by name; `before` is called ahead of each."""

    def __init__(self, client: Any, before: Callable[[str], None] = lambda name: None) -> None:
        self.exceptions = client.exceptions
        self.names: list[str] = []
        self._client, self._before = client, before

    def __getattr__(self, name: str) -> Any:
        def call(**request: Any) -> Any:
            self.names.append(name)
            self._before(name)
            return getattr(self._client, name)(**request)

        return call
