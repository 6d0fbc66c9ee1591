"""The blocking clients."""

from __future__ import annotations

from minute8.client.generated import PlatformOperations, TenantOperations
from minute8.client.jobs import JobCalls
from minute8.client.runs import RunCalls
from minute8.client.transport import Transport


class ClientCalls(TenantOperations, JobCalls, RunCalls):
    """All operations of a tenant."""


class Client(ClientCalls, Transport):
    """The API for one tenant.

    Calls that are safe to repeat are repeated if the API throttles, fails or cannot be reached. A refusal raises a
    `Minute8Problem`; a missing answer raises `Unreachable`.
    """


class Operator(PlatformOperations, Transport):
    """The API for the platform: tenants, their keys and the platform's own. Tenants' jobs and runs are not visible."""
