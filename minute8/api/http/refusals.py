"""A log line for each refused request of a known caller: the access log of API Gateway knows no tenant."""

from __future__ import annotations

from http import HTTPStatus

from common import telemetry
from common.platform.api_keys import Credential


def log_refused(credential: Credential, route: str, status: HTTPStatus) -> None:
    """`route` is the method and the route's path or operation, without values. Routes for anybody are left out."""
    if credential.key_id:
        telemetry.logger().info(
            "request refused",
            tenant=credential.tenant,
            key=credential.key_id,
            route=route,
            status=status.value,
        )
