"""Lines of a bulk request that come from another API's resources. That API's room implements these protocols."""

from __future__ import annotations

from typing import Any, Protocol

from common.jobs.job import Job
from common.jobs.store import JobStore


class GroupReview(Protocol):
    """The groups of one tenant's resources, while the lines of a request are checked one after the other."""

    def check(self, old: Job | None, new: Job) -> None:
        """Whether the group of a new resource takes it. Raises Conflict, QuotaExceeded."""

    def take(self, old: Job | None, new: Job) -> None:
        """Count the resource, and its group if the request makes it."""


class Origins(Protocol):
    """How a line keeps what it comes from. The member `field` of the line holds the resource."""

    @property
    def field(self) -> str: ...

    def group_in(self, resource: object) -> str:
        """The group of a resource, before the resource is checked."""

    def with_origin(self, new: Job, resource: Any, old: Job | None) -> Job:
        """The job with the resource that it is. Raises InvalidInput."""

    def resource_of(self, store: JobStore, job: Job) -> dict[str, Any] | None:
        """The resource that a job is, as a line holds it; None if it is none. Raises MissingText, Busy."""

    def are_same(self, old: Job, new: Job) -> bool:
        """Whether the other API says the same of both jobs."""

    def review(self, store: JobStore, tenant: str) -> GroupReview:
        """The groups at the beginning of a request."""

    def ensure_group(self, store: JobStore, tenant: str, group: str) -> None:
        """Create the group if it does not exist. Raises QuotaExceeded, Busy."""
