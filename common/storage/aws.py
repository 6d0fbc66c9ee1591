"""AWS clients, built on first use and then kept: building one takes tens of milliseconds, importing this none."""

from __future__ import annotations

import gc
import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from botocore.config import Config as ClientConfig
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_events import EventBridgeClient
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sts import STSClient

Client = TypeVar("Client")

# More than any function's threads, so that no thread waits for a connection.
_POOL_CONNECTIONS = 64
_building = threading.Lock()


@cache
def dynamodb() -> DynamoDBClient:
    with _uncollected():  # every function builds this client first
        client: DynamoDBClient = tuned(_session().create_client("dynamodb", config=_own_config()))
    return client


@contextmanager
def _uncollected() -> Iterator[None]:
    """Build without the garbage collector, which would look through all that has just been imported and find nothing.

    That takes a twelfth of a cold start. What there is by then stays with the process, so it is never looked at again.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        if was_enabled:
            gc.enable()


def tuned(client: Any) -> Any:
    """Have a client of DynamoDB read items with json alone.

    botocore walks the shape of every attribute, which is three quarters of what a page costs; the result is the same
    but for binary attributes, and no item here has one.
    """
    for operation in ("Query", "GetItem", "BatchGetItem", "UpdateItem"):
        client.meta.events.register(f"before-parse.dynamodb.{operation}", _read_json)
    return client


def _read_json(response_dict: Any, customized_response_dict: dict[str, Any], **_: object) -> None:
    if response_dict["status_code"] == 200:
        customized_response_dict.update(json.loads(response_dict["body"]))
        response_dict["body"] = b"{}"


@cache
def sqs() -> SQSClient:
    client: SQSClient = _session().create_client("sqs", config=_own_config())
    return client


@cache
def events() -> EventBridgeClient:
    client: EventBridgeClient = _session().create_client("events", config=_own_config())
    return client


@cache
def sts() -> STSClient:
    """Asked inside a run's lease, whose margin it must fit into: it asks once and waits for little."""
    config = _client_config(connect_timeout=2, read_timeout=2, retries={"total_max_attempts": 1})
    client: STSClient = _session().create_client("sts", config=config)
    return client


def on_first_use(build: Callable[[], Client]) -> Client:
    """Stands for a client that most invocations never use: it is built when something is asked of it."""
    stand_in: Any = _OnFirstUse(build)
    return stand_in  # type: ignore[no-any-return]


class _OnFirstUse:
    def __init__(self, build: Callable[[], Any]) -> None:
        self._build = build

    def __getattr__(self, name: str) -> Any:
        with _building:
            client = self._build()
        return getattr(client, name)


def target_client(
    service: str, region: str, read_timeout_s: float, credentials: tuple[str, str, str] | None = None
) -> Any:
    """A new client that waits `read_timeout_s` for an answer and never tries twice: that would be a second call.

    `credentials` are access key, secret key and token of an assumed role; without them they are the function's own.
    """
    keys: tuple[str | None, str | None, str | None] = credentials or (None, None, None)
    with _building:  # targets are called from several threads, and a session builds one client at a time
        return _session().create_client(
            service,
            region_name=region,
            config=_client_config(read_timeout=read_timeout_s, retries={"total_max_attempts": 1}),
            aws_access_key_id=keys[0],
            aws_secret_access_key=keys[1],
            aws_session_token=keys[2],
        )


def new_session() -> Any:
    """botocore's own session: boto3's adds 30 ms of resource loading that nothing here uses.

    botocore asks for AWS_DEFAULT_REGION alone; as in the other SDKs and the AWS CLI, AWS_REGION goes first.
    https://docs.aws.amazon.com/sdkref/latest/guide/feature-region.html
    """
    import botocore.session

    session = botocore.session.get_session()
    if region := os.environ.get("AWS_REGION"):
        session.set_config_variable("region", region)
    return session


_session = cache(new_session)


def _own_config() -> ClientConfig:
    # What Minute8 asks of its own tables and queues is written here, not typed by tenants: botocore need not check it,
    # which takes a sixth of a request's processor time.
    return _client_config(parameter_validation=False)


def _client_config(**options: object) -> ClientConfig:
    from botocore.config import Config

    defaults: dict[str, object] = {
        "connect_timeout": 3,
        "read_timeout": 10,
        "retries": {"mode": "standard", "total_max_attempts": 4},
        "max_pool_connections": _POOL_CONNECTIONS,
        "tcp_keepalive": True,
        # Given as a whole: botocore composes its own anew for each request, which takes a fifth of its time.
        "user_agent": "minute8",
    }
    return Config(**(defaults | options))  # type: ignore[arg-type]
