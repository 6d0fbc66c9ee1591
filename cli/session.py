"""What the commands share: the client, created on first use, and the current time for relative times."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import typer

from cli.settings import read_settings
from common.clock import Clock, SystemClock

if TYPE_CHECKING:
    from minute8_client import Client


@dataclass
class Session:
    """One invocation of the command."""

    url: str | None = None
    key: str | None = None
    profile: str | None = None
    clock: Clock = field(default_factory=lambda: SystemClock())

    def client(self) -> Client:
        """A client of the API, to be closed by the caller. Raises typer.BadParameter."""
        from minute8_client import Client  # httpx is slow to load, and `--help` does not need it

        settings = read_settings(self.url, self.key, self.profile)
        return Client(settings.url, settings.key)


def session(ctx: typer.Context) -> Session:
    """The session of a command."""
    found = ctx.find_object(Session)
    assert found is not None
    return found
