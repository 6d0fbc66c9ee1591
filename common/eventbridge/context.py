"""What a target of an EventBridge schedule receives: its Input as it is, with the context attributes replaced. Pure.

https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-schedule-context-attributes.html
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from typing import Final

from common.timing.instants import rfc3339

_ATTRIBUTE: Final = re.compile(
    r"<aws\.scheduler\.(schedule-arn|scheduled-time|execution-id|attempt-number)>", re.ASCII
)
# The longest schedule ARN is 200 characters.
_LONGEST: Final = {"schedule-arn": 200, "scheduled-time": 20, "execution-id": 16, "attempt-number": 10}


def input_text(text: str | None, schedule_arn: str, fire_at: int, execution_id: str, attempt: int) -> str:
    """The Input for one attempt; EventBridge Scheduler's own notification if there is none.

    Each attempt has an id of its own, the same whenever it is computed. Other texts in angle brackets stay.
    """
    if not text:
        return _notification(schedule_arn, fire_at, execution_id)
    values = {
        "schedule-arn": schedule_arn,
        "scheduled-time": rfc3339(fire_at),
        "execution-id": hashlib.sha256(f"{execution_id}/{attempt}".encode()).hexdigest()[:16],
        "attempt-number": str(attempt),
    }
    return _ATTRIBUTE.sub(lambda match: values[match[1]], text)


def longest_bytes(text: str | None) -> int:
    """The most bytes of `input_text`."""
    if not text:
        return 1_024
    growth = sum(_LONGEST[match[1]] - len(match[0]) for match in _ATTRIBUTE.finditer(text))
    return len(text.encode(errors="replace")) + max(0, growth)


def is_json(text: str, *, an_object: bool = False) -> bool:
    """Whether an Input is JSON (an object) when its attributes are replaced."""
    arn = "arn:aws:scheduler:us-east-1:123456789012:schedule/default/name"
    try:
        found = json.loads(input_text(text, arn, 0, "", 1))
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) or not an_object


def _notification(schedule_arn: str, fire_at: int, execution_id: str) -> str:
    _, _, _, region, account, _ = schedule_arn.split(":", 5)
    event = {
        "version": "0",
        "id": str(uuid.UUID(bytes=hashlib.sha256(execution_id.encode()).digest()[:16])),
        "detail-type": "Scheduled Event",
        "source": "aws.scheduler",
        "account": account,
        "time": rfc3339(fire_at),
        "region": region,
        "resources": [schedule_arn],
        "detail": "{}",
    }
    return json.dumps(event)
