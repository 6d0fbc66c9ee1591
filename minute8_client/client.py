"""A small synchronous client."""

from __future__ import annotations

from minute8_client.bulk import BulkCalls
from minute8_client.jobs import JobCalls
from minute8_client.keys import KeyCalls
from minute8_client.runs import RunCalls
from minute8_client.tenant import TenantCalls


class Client(JobCalls, BulkCalls, RunCalls, TenantCalls, KeyCalls):
    """The API as one tenant sees it.

    Calls that may be repeated are, when the API is throttling, failing or cannot be reached. Everything that the API
    refuses raises a `Minute8Problem`; no answer at all raises `Unreachable`.
    """
