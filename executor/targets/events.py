"""The event for a target: its bytes, and ids derived from its execution.

`payload` is text of JSON; a schedule's is its Input. `minute8` is the context. So no payload is parsed to be sent.
The ids are derived, never random: repeated calls carry the same ids, so the service or the target can detect them.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

Event = Mapping[str, Any]

_UNNAMEABLE = re.compile(r"[^A-Za-z0-9_-]", re.ASCII)
_json = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)


def encoded(payload: str, context: Mapping[str, Any]) -> str:
    """The event as JSON in UTF-8."""
    return f'{{"payload":{_escaped(payload)},"minute8":{_json.encode(context)}}}'


def _escaped(text: str) -> str:
    """SQS and SNS refuse U+FFFE and U+FFFF, so they are escaped in the JSON."""
    return text if text.isascii() else text.replace("\ufffe", "\\ufffe").replace("\uffff", "\\uffff")


def event_body(target: Mapping[str, Any], event: Event) -> str:
    """What the target gets, as JSON: the event, or only its payload if the job sets `envelope` to false.

    The Input of an EventBridge schedule is a text of JSON already.
    """
    if "schedule_arn" in target:
        return str(event["payload"])
    if not target.get("envelope", True):
        return _escaped(event["payload"])
    return encoded(event["payload"], event["minute8"])


def payload_body(event: Event) -> str:
    """The payload alone, as JSON."""
    return str(event["payload"])


def message_body(target: Mapping[str, Any], event: Event) -> str:
    """`event_body` for targets that take any text: a payload that is a text is passed as it is."""
    body = event_body(target, event)
    return str(json.loads(body)) if is_plain(target, event) and "schedule_arn" not in target else body


def is_plain(target: Mapping[str, Any], event: Event) -> bool:
    """Whether the target gets the payload's own text, without JSON around it."""
    alone = not target.get("envelope", True) and event["payload"].startswith('"')
    return alone or "schedule_arn" in target


def is_empty(target: Mapping[str, Any], event: Event) -> bool:
    """Whether the target gets the payload alone, and there is none."""
    alone = not target.get("envelope", True) and "schedule_arn" not in target
    return bool(alone and event["payload"] == "null")


def context(event: Event, name: str) -> str:
    """One of the texts of the context that the executor put into the event."""
    return str(event["minute8"][name])


def execution_hash(event: Event) -> str:
    """64 hexadecimal digits of the execution id, for ids that must be short or without punctuation."""
    return hashlib.sha256(context(event, "execution_id").encode()).hexdigest()


def group_of(event: Event) -> str:
    """A message group per job, at most 128 characters: one tenant's job never waits for another's."""
    name = f"{context(event, 'tenant')}:{context(event, 'job_id')}"
    return name if len(name) <= 128 else hashlib.sha256(name.encode()).hexdigest()


def execution_name(event: Event) -> str:
    """A name for what the execution starts, at most 80 of A-Z a-z 0-9 - _: job, fire time, and a hash."""
    job = _UNNAMEABLE.sub("-", context(event, "job_id"))[:40]
    fire_at = re.sub(r"[^0-9TZ]", "", context(event, "fire_at"))
    return f"{job}_{fire_at}_{execution_hash(event)[:20]}"


def message_attributes(event: Event) -> dict[str, Any]:
    """Attributes that subscribers can filter by without reading the body."""
    values = {f"minute8_{name}": context(event, name) for name in ("tenant", "job_id", "execution_id")}
    values["traceparent"] = context(event, "traceparent")
    return {name: {"DataType": "String", "StringValue": value} for name, value in values.items()}
