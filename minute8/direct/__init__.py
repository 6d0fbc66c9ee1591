"""The client without HTTP, for the platform's own services: the API's routes run in this process.

import boto3
from minute8 import direct

with direct.Client(boto3.Session(), "acme", stage="prod") as minute8:
    minute8.put_job("report", {"schedule": {"cron": "30 2 * * *", "timezone": "Europe/Paris"}, "target": {…}})

The clients have the methods, results and exceptions of `minute8.client.Client` and `AsyncClient`. Whatever a route
checks, counts and writes down, it does here too. deploy/policies/direct.json has the permissions that it needs.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Literal

from minute8.client.asynchronous import AsyncTransport
from minute8.client.client import ClientCalls
from minute8.client.transport import Transport
from minute8.direct.in_process import AsyncInProcess, Caller, InProcess

__all__ = ["AsyncClient", "Client"]

# It is never looked up.
_URL = "http://minute8.direct"


class Client(ClientCalls, Transport):
    """A tenant's client on the tables of the deployment `stage`, in the region of the `boto3.Session`.

    The audit names `direct:` and the `actor`, by default the session's ARN. With the role `read` it can change nothing.
    Raises ValueError for a tenant, role or actor that cannot be one.
    """

    def __init__(
        self,
        session: Any,
        tenant: str,
        *,
        stage: str,
        role: Literal["read", "write"] = "write",
        actor: str | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        caller = Caller(session, stage, tenant, role, actor)
        super().__init__(_URL, "", transport=InProcess(caller), sleep=sleep)


class AsyncClient(ClientCalls, AsyncTransport):
    """The same with the methods of `minute8.client.AsyncClient`. Each call runs in a thread of the event loop's."""

    def __init__(
        self,
        session: Any,
        tenant: str,
        *,
        stage: str,
        role: Literal["read", "write"] = "write",
        actor: str | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        caller = Caller(session, stage, tenant, role, actor)
        super().__init__(_URL, "", transport=AsyncInProcess(caller), sleep=sleep)
