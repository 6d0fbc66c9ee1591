"""Events about runs, published on an EventBridge bus.

An event is published after the run is recorded. It is published again if the executor may have died in between. If the
bus refuses an event, the failure is logged and the event is lost; the run record is always correct.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from common import telemetry

if TYPE_CHECKING:
    from mypy_boto3_events import EventBridgeClient

SOURCE = "minute8"

RUN_FAILED = "Run Failed"
RUN_SKIPPED = "Run Skipped"
RUN_RECOVERED = "Run Recovered"
JOB_PAUSED = "Job Paused"
JOB_NOT_RUNNING = "Job Not Running"
JOB_NOT_RUNNING_OVER = "Job Not Running Over"
ADDRESS_OFF = "Address Switched Off"
ADDRESS_OFF_OVER = "Address Switched Off Over"
PACE_EXCEEDED = "Pace Exceeded"

_log = logging.getLogger("minute8.events")


class Events:
    """An EventBridge bus; without a name events are not published.

    https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutEvents.html
    """

    def __init__(self, client: EventBridgeClient, name: str) -> None:
        self._client = client
        self._name = name

    def publish(self, detail_type: str, detail: Mapping[str, Any]) -> None:
        """Publish one event. Never raises: the run is recorded already."""
        if not self._name:
            return
        entry = {
            "EventBusName": self._name,
            "Source": SOURCE,
            "DetailType": detail_type,
            "Detail": json.dumps(detail, separators=(",", ":"), default=str),
        }
        with telemetry.tolerated("event not published", event=detail_type, detail=detail):
            answer = self._client.put_events(Entries=[entry])  # type: ignore[list-item]
            if answer["FailedEntryCount"]:
                _log.error("event refused: %s %s", detail_type, answer["Entries"])


def event_bus(name: str) -> Events:
    """The bus of that name; without a name, events are not published."""
    from common.storage import aws

    return Events(aws.on_first_use(aws.events), name)
