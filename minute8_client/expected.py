"""Calls about expected against actual."""

from __future__ import annotations

from minute8_client.jobs import job_path
from minute8_client.operations import Listing, ListSteps, Operation, Request, whole_pages
from minute8_client.shapes import ExpectedOfJob, ExpectedPage, Explanation


class ExpectedCalls:
    """When jobs were due, and what became of each due instant."""

    @Operation
    def expected_page(
        self,
        job_id: str | None = None,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        from_at: str | None = None,
        until_at: str | None = None,
        problems: bool = False,
    ) -> Request[ExpectedOfJob | ExpectedPage]:
        """A page of the due instants of a job, or of all jobs, with fire times in [from_at, until_at) (RFC 3339).

        A day on each side of now by default. With `problems`, only what needs attention is listed.
        """
        query = {
            "limit": limit,
            "cursor": cursor,
            "from_at": from_at,
            "until_at": until_at,
            "problems": "true" if problems else None,
        }
        path = "/v1/expected" if job_id is None else f"{job_path(job_id)}/expected"
        return Request("GET", path, query=query)

    @Listing
    def expected(
        self,
        job_id: str | None = None,
        *,
        from_at: str | None = None,
        until_at: str | None = None,
        problems: bool = False,
    ) -> ListSteps[ExpectedOfJob | ExpectedPage]:
        """All pages, each when it is consumed."""
        return whole_pages(
            lambda cursor: ExpectedCalls.expected_page.request(
                job_id, cursor=cursor, limit=5_000, from_at=from_at, until_at=until_at, problems=problems
            )
        )

    @Operation
    def explain(self, job_id: str, at: str | None = None) -> Request[Explanation]:
        """Why a job was, is or is not due at an instant (RFC 3339, or a local time of its zone); now by default."""
        return Request("GET", f"{job_path(job_id)}/explain", query={"at": at})
