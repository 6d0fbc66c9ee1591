"""The API Lambda: an HTTP API's event (payload format 2.0) in, an answer out. It reads the registrations queue too."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from common.config import config
from common.storage import aws
from minute8.api.app import Event, resolve
from minute8.api.services import Services

if TYPE_CHECKING:
    from minute8.api.registrations import Registrations


def handle(event: Event, context: object) -> Event:
    """Answer one request, or apply a batch of registrations."""
    if "Records" in event:
        return _registrations().handle(event["Records"])
    return resolve(_services(), event)


@cache
def _registrations() -> Registrations:
    # Few deployments have them.
    from common.events import event_bus
    from minute8.api.registrations import Registrations

    settings = config()
    return Registrations(
        _services(),
        event_bus(settings.required("event_bus")),
        aws.sqs(),
        settings.required("registrations_dead_url"),
    )


@cache
def _services() -> Services:
    return Services(config())


if aws.in_lambda():
    # The init phase has a whole processor, a request a part of one: building clients then takes longer.
    aws.warm_up(_services, aws.sqs)
