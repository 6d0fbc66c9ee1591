"""The API Lambda: an HTTP API's event (payload format 2.0) in, an answer out."""

from __future__ import annotations

from functools import cache

from api.app import Event, resolve
from api.services import Services
from common.config import config
from common.storage import aws


def handle(event: Event, context: object) -> Event:
    """Answer one request."""
    return resolve(_services(), event)


@cache
def _services() -> Services:
    return Services.of(config(), aws.own_clients())


if aws.in_lambda():
    # The init phase has a whole processor, a request at 256 MB a seventh of one: building clients then takes a second.
    aws.warm_up(_services)
