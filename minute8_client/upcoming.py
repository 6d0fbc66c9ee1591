"""Calls about what is coming."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from minute8_client.shapes import (
    ChangedJob,
    ClockChangePage,
    ComingExecution,
    MovedJob,
    TenantDensity,
    TzdataChangePage,
    UpcomingPage,
)
from minute8_client.transport import Transport


class UpcomingCalls(Transport):
    """The next executions, their density per minute, and what clock changes move."""

    def upcoming_page(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        from_at: str | None = None,
        until_at: str | None = None,
    ) -> UpcomingPage:
        """The next executions of all jobs with fire times in [from_at, until_at); a day from now by default."""
        query = {"limit": limit, "cursor": cursor, "from_at": from_at, "until_at": until_at}
        return cast(UpcomingPage, self.call("GET", "/v1/upcoming", query=query))

    def upcoming(
        self, *, from_at: str | None = None, until_at: str | None = None
    ) -> Iterator[ComingExecution]:
        """The same, page by page while they are consumed. Each 1,000 jobs have an order of their own."""
        cursor = None
        while True:
            page = self.upcoming_page(limit=1_000, cursor=cursor, from_at=from_at, until_at=until_at)
            yield from page["executions"]
            if not (cursor := page["next_cursor"]):
                return

    def density_page(
        self, *, cursor: str | None = None, from_at: str | None = None, until_at: str | None = None
    ) -> TenantDensity:
        """How many executions of up to 1,000 jobs are due in each minute; counts of pages add up."""
        query = {"cursor": cursor, "from_at": from_at, "until_at": until_at}
        return cast(TenantDensity, self.call("GET", "/v1/density", query=query))

    def densities(
        self, *, from_at: str | None = None, until_at: str | None = None
    ) -> Iterator[TenantDensity]:
        """All pages of the density."""
        cursor = None
        while True:
            page = self.density_page(cursor=cursor, from_at=from_at, until_at=until_at)
            yield page
            if not (cursor := page["next_cursor"]):
                return

    def clock_changes(self) -> Iterator[MovedJob]:
        """The jobs that the next clock change of their time zones moves."""
        cursor = None
        while True:
            query = {"cursor": cursor}
            page = cast(ClockChangePage, self.call("GET", "/v1/clock-changes", query=query))
            yield from page["moved"]
            if not (cursor := page["next_cursor"]):
                return

    def tzdata_changes(self, since: str | None = None) -> Iterator[ChangedJob]:
        """The jobs whose coming year differs from that by an earlier tzdata release; the one before by default."""
        cursor = None
        while True:
            query = {"cursor": cursor, "since": since}
            page = cast(TzdataChangePage, self.call("GET", "/v1/tzdata-changes", query=query))
            yield from page["moved"]
            if not (cursor := page["next_cursor"]):
                return
