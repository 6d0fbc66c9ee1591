"""AWS clients, built on first use and then kept: building one takes tens of milliseconds, importing this none."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from botocore.config import Config as ClientConfig
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_sqs import SQSClient

# More than any function's threads, so that no thread waits for a connection.
_POOL_CONNECTIONS = 64


@cache
def dynamodb() -> DynamoDBClient:
    client: DynamoDBClient = _session().create_client("dynamodb", config=_client_config())
    return client


@cache
def sqs() -> SQSClient:
    client: SQSClient = _session().create_client("sqs", config=_client_config())
    return client


@lru_cache(maxsize=32)
def lambda_(read_timeout_s: float) -> LambdaClient:
    """A client that waits `read_timeout_s` for an answer and never tries twice: a second try would be a second call."""
    client: LambdaClient = _session().create_client(
        "lambda", config=_client_config(read_timeout=read_timeout_s, retries={"total_max_attempts": 1})
    )
    return client


@cache
def _session() -> Any:
    # botocore's own session: boto3's adds 30 ms of resource loading that nothing here uses.
    import botocore.session

    return botocore.session.get_session()


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
