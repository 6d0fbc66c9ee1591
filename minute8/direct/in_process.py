"""The API's routes in place of a network: what httpx would send becomes a request of a known caller."""

from __future__ import annotations

import asyncio
import re
import uuid
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import httpx
from botocore.exceptions import BotoCoreError, ClientError

from common.config import LIVE, Config
from common.ids import TENANT_ID_CHARS, is_id
from common.platform.api_keys import Credential
from common.platform.signing_masters import StoredMasters
from common.storage import aws
from minute8.api.app import Event, resolve_for
from minute8.api.services import Services
from minute8.client.errors import Unreachable

_ROLES: Final = ("read", "write")
_ACTOR: Final = re.compile(r"[!-~]{1,200}")
# Deployments and regions that one process works on.
_MAX_DEPLOYMENTS: Final = 16
_AWS_ERRORS: Final = (BotoCoreError, ClientError)


@dataclass(frozen=True)
class Caller:
    """Who calls: `session` is a `boto3.Session`. Raises ValueError for a tenant, role or actor that cannot be one."""

    session: Any
    stage: str
    tenant: str
    role: str
    actor: str | None

    def __post_init__(self) -> None:
        if not is_id(self.tenant, TENANT_ID_CHARS):
            raise ValueError(f"tenant: must be a tenant's id (got {self.tenant!r})")
        if self.role not in _ROLES:
            raise ValueError(f"role: must be a role (got {self.role!r}); accepted: {', '.join(_ROLES)}")
        if self.actor is not None and not _ACTOR.fullmatch(self.actor):
            raise ValueError(
                f"actor: must be a name (got {self.actor!r}); accepted: 1 to 200 visible ASCII characters"
            )

    def answer(self, request: httpx.Request) -> httpx.Response:
        """The API's answer. Raises Unreachable if AWS refuses or does not answer."""
        try:
            services = _services(self.session, self.stage)
            actor = self.actor or _identity(self.session)
            credential = Credential(
                self.tenant, "read" if self.role == "read" else "write", f"direct:{actor}"
            )
            answer = resolve_for(services, credential, _event(request))
        except _AWS_ERRORS as error:
            raise Unreachable(
                f"stage {self.stage!r} in {self.session.region_name} cannot be used: {error}"
            ) from error
        return httpx.Response(
            answer["statusCode"], headers=answer["headers"], content=answer["body"].encode(), request=request
        )


class InProcess(httpx.BaseTransport):
    """Answers in the calling thread."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """The API's answer. Raises Unreachable."""
        request.read()
        return self._caller.answer(request)


class AsyncInProcess(httpx.AsyncBaseTransport):
    """Answers in a thread of the event loop's, since AWS's clients block."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """The API's answer. Raises Unreachable."""
        await request.aread()
        return await asyncio.to_thread(self._caller.answer, request)


@lru_cache(_MAX_DEPLOYMENTS)
def _services(session: Any, stage: str) -> Services:
    """The API's services, with the settings of the deployed API: no other place has its limits."""
    function = session.client("lambda").get_function_configuration(
        FunctionName=f"minute8-{stage}-api", Qualifier=LIVE
    )
    settings = Config.from_env(function["Environment"]["Variables"])
    # A platform's service may not read the masters.
    return Services(settings, clients=aws.clients_of(session), masters=StoredMasters(lambda: None))


@lru_cache(_MAX_DEPLOYMENTS)
def _identity(session: Any) -> str:
    """Whose credentials these are, as `assumed-role/billing/i-0123`. Needs no permission."""
    return str(session.client("sts").get_caller_identity()["Arn"]).partition("::")[2].partition(":")[2]


def _event(request: httpx.Request) -> Event:
    """The request as API Gateway would send it. The answer stays in this process, so it is not compressed."""
    query: dict[str, str] = {}
    for name, value in request.url.params.multi_items():
        query[name] = f"{query[name]},{value}" if name in query else value
    headers = {name: value for name, value in request.headers.items() if name != "accept-encoding"}
    event: Event = {
        "rawPath": request.url.path,
        "headers": headers,
        "queryStringParameters": query,
        "requestContext": {"http": {"method": request.method}, "requestId": uuid.uuid4().hex},
    }
    if request.content:
        event["body"] = request.content.decode()
    return event
