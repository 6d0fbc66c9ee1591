"""AWS clients, built on first use and then kept: building one costs tens of milliseconds, importing this costs nothing."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from botocore.config import Config as ClientConfig
    from botocore.session import Session
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_sqs import SQSClient

# More than any function's threads, so that no thread waits for a connection.
_POOL_CONNECTIONS = 64


@cache
def dynamodb() -> DynamoDBClient:
    return _session().client("dynamodb", config=_client_config())  # type: ignore[no-any-return]


@cache
def sqs() -> SQSClient:
    return _session().client("sqs", config=_client_config())  # type: ignore[no-any-return]


@lru_cache(maxsize=32)
def lambda_(read_timeout_s: float) -> LambdaClient:
    """A client that waits `read_timeout_s` for an answer and never tries twice: a second try would be a second call."""
    return _session().client(  # type: ignore[no-any-return]
        "lambda", config=_client_config(read_timeout=read_timeout_s, retries={"total_max_attempts": 1})
    )


@cache
def _session() -> Session:
    # botocore's own session: boto3's adds 30 ms of resource loading that nothing here uses.
    import botocore.session

    return botocore.session.get_session()  # type: ignore[no-any-return,no-untyped-call]


def _client_config(**options: object) -> ClientConfig:
    from botocore.config import Config

    defaults: dict[str, object] = {
        "connect_timeout": 3,
        "read_timeout": 10,
        "retries": {"mode": "standard", "total_max_attempts": 4},
        "max_pool_connections": _POOL_CONNECTIONS,
        "tcp_keepalive": True,
    }
    return Config(**(defaults | options))  # type: ignore[arg-type]
