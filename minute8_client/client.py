"""A small synchronous client."""

from __future__ import annotations

from minute8_client.bulk import BulkCalls
from minute8_client.expected import ExpectedCalls
from minute8_client.jobs import JobCalls
from minute8_client.many import ManyCalls
from minute8_client.runs import RunCalls
from minute8_client.tenant import KeyCalls, TenantCalls
from minute8_client.transport import Transport
from minute8_client.upcoming import UpcomingCalls


class ClientCalls(
    JobCalls, BulkCalls, ManyCalls, RunCalls, ExpectedCalls, UpcomingCalls, TenantCalls, KeyCalls
):
    """All operations of a tenant."""


class Client(ClientCalls, Transport):
    """The API for one tenant.

    Calls that are safe to repeat are repeated if the API throttles, fails or cannot be reached. A refusal raises a
    `Minute8Problem`; a missing answer raises `Unreachable`.
    """
