"""EventBridge buses. https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutEvents.html"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from common.runs.outcome import Outcome
from executor.targets import answers
from executor.targets.clients import client
from executor.targets.events import Event, event_body


def call(target: Mapping[str, Any], event: Event, timeout_s: float) -> Outcome:
    """Put one event, with payload and context as its detail."""
    entry = {
        "EventBusName": target["arn"],
        "Source": target["source"],
        "DetailType": target["detail_type"],
        "Detail": event_body(target, event),
    }
    try:
        answer = client("events", target, event, timeout_s).put_events(Entries=[entry])
    except (BotoCoreError, ClientError) as error:
        return answers.refused_by_aws(error, timeout_s)
    request_id = answers.request_id(answer)
    if answer.get("FailedEntryCount"):  # PutEvents answers 200 even if it refused the entry
        refused = answer["Entries"][0]
        return answers.failed(
            refused.get("ErrorCode", "FailedEntry"), refused.get("ErrorMessage", ""), request_id=request_id
        )
    return Outcome(ok=True, request_id=request_id)
