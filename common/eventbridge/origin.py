"""What a job keeps of the schedule that it came from, so that GetSchedule returns what was created. Pure.

Kept are the schedule's names and its request, as far as the job does not hold the same. `written` has a hash of each
part of the job as the request made it: a part that was changed since, by Minute8's own API, is found by it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

KIND: Final = "eventbridge"
# For so long the requests that changed a schedule are known: twice as long as a signature is valid.
KNOWN_FOR_S: Final = 30 * 60
MOST_KNOWN: Final = 32

# The parts of a job that a schedule says, by the names in its item.
_PARTS: Final = ("schedule_given", "target", "payload", "retry", "name", "after_completion", "dead_letter")
_NOT_KEPT: Final = ("Name", "GroupName", "ClientToken", "State")

Origin = Mapping[str, Any]


def origin_of(
    group: str, name: str, request: Mapping[str, Any], item: Mapping[str, Any], before: Origin | None
) -> dict[str, Any]:
    """The origin of a job whose item the request made. `before` is the origin of the job that it replaces."""
    kept = {field: value for field, value in request.items() if field not in _NOT_KEPT}
    target = kept["Target"]
    # A text without placeholders, which the job itself holds.
    if "Input" in target and json.loads(item["payload"]) == target["Input"]:
        kept["Target"] = {field: value for field, value in target.items() if field != "Input"} | {
            "Input": None
        }
    return {
        "kind": KIND,
        "group": group,
        "name": name,
        # As text: DynamoDB's numbers differ from JSON's.
        "request": json.dumps(kept, ensure_ascii=False, separators=(",", ":")),
        "written": _hashes(item),
        "known": (before or {}).get("known", ""),
    }


def with_known(origin: Origin, token: str, now: float) -> dict[str, Any]:
    """The origin that also knows this request."""
    fresh = [one for one in origin["known"].split() if int(one.partition("@")[2]) > now - KNOWN_FOR_S]
    return {**origin, "known": " ".join([*fresh, f"{token}@{int(now)}"][-MOST_KNOWN:])}


def is_known(origin: Origin | None, token: str) -> bool:
    """Whether this request changed the schedule before."""
    return origin is not None and f"{token}@" in origin["known"]


def request_in(origin: Origin, payload: Any) -> dict[str, Any]:
    """The request that made the job, with AWS's defaults."""
    request: dict[str, Any] = json.loads(origin["request"])
    target = request["Target"]
    if "Input" in target and target["Input"] is None:
        target["Input"] = payload
    return request


def changed_parts(origin: Origin, item: Mapping[str, Any]) -> Sequence[str]:
    """The parts of the job that were changed since the request, by their names in a job."""
    written, now = origin["written"], _hashes(item)
    return [
        {"schedule_given": "schedule"}.get(part, part)
        for part in _PARTS
        if written.get(part, "") != now.get(part, "")
    ]


def _hashes(item: Mapping[str, Any]) -> dict[str, str]:
    return {part: _hash(item[part]) for part in _PARTS if item.get(part) is not None}


def _hash(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
