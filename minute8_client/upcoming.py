"""Calls about what is coming."""

from __future__ import annotations

from minute8_client.operations import Listing, ListSteps, Operation, Request, pages, whole_pages
from minute8_client.shapes import (
    ChangedJob,
    ClockChangePage,
    ComingExecution,
    MovedJob,
    TenantDensity,
    TzdataChangePage,
    UpcomingPage,
)


class UpcomingCalls:
    """The next executions, their density per minute, and what clock changes move."""

    @Operation
    def upcoming_page(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        from_at: str | None = None,
        until_at: str | None = None,
    ) -> Request[UpcomingPage]:
        """The next executions of all jobs with fire times in [from_at, until_at); a day from now by default."""
        query = {"limit": limit, "cursor": cursor, "from_at": from_at, "until_at": until_at}
        return Request("GET", "/v1/upcoming", query=query)

    @Listing
    def upcoming(
        self, *, from_at: str | None = None, until_at: str | None = None
    ) -> ListSteps[ComingExecution]:
        """The same, page by page while they are consumed. Each 1,000 jobs have an order of their own."""
        return pages(
            lambda cursor: UpcomingCalls.upcoming_page.request(
                limit=1_000, cursor=cursor, from_at=from_at, until_at=until_at
            ),
            lambda page: page["executions"],
        )

    @Operation
    def density_page(
        self, *, cursor: str | None = None, from_at: str | None = None, until_at: str | None = None
    ) -> Request[TenantDensity]:
        """How many executions of up to 1,000 jobs are due in each minute; counts of pages add up."""
        query = {"cursor": cursor, "from_at": from_at, "until_at": until_at}
        return Request("GET", "/v1/density", query=query)

    @Listing
    def densities(
        self, *, from_at: str | None = None, until_at: str | None = None
    ) -> ListSteps[TenantDensity]:
        """All pages of the density."""
        return whole_pages(
            lambda cursor: UpcomingCalls.density_page.request(
                cursor=cursor, from_at=from_at, until_at=until_at
            )
        )

    @Listing
    def clock_changes(self) -> ListSteps[MovedJob]:
        """The jobs that the next clock change of their time zones moves."""
        return pages(
            lambda cursor: Request[ClockChangePage]("GET", "/v1/clock-changes", query={"cursor": cursor}),
            lambda page: page["moved"],
        )

    @Listing
    def tzdata_changes(self, since: str | None = None) -> ListSteps[ChangedJob]:
        """The jobs whose coming year differs from that by an earlier tzdata release; the one before by default."""
        return pages(
            lambda cursor: Request[TzdataChangePage](
                "GET", "/v1/tzdata-changes", query={"cursor": cursor, "since": since}
            ),
            lambda page: page["moved"],
        )
