"""The API Lambda: an HTTP API's event (payload format 2.0) in, an answer out."""

from __future__ import annotations

from functools import cache
from typing import Any

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver

from api.app import build
from api.services import Services
from common.config import config


def handle(event: dict[str, Any], context: Any) -> dict[str, Any]:
    return _app().resolve(event, context)


@cache
def _app() -> APIGatewayHttpResolver:
    return build(Services.of(config()))
