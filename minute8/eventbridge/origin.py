"""The origin of a job: what the job keeps of its schedule, so that GetSchedule returns what was created. Pure.

The origin has the schedule's names, and the parts of the request that the job does not hold. When Minute8's own API
changes the job for the first time, `written` gets a hash of each part of the job. The hashes tell which parts changed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import to_builtins

from common.errors import InvalidInput
from common.jobs.job import DELETED, Job, exists
from common.jobs.stored_text import StoredText

KIND: Final = "eventbridge"
# Requests that changed a schedule are known for twice as long as a signature is valid.
KNOWN_FOR_S: Final = 30 * 60
MAX_KNOWN: Final = 32
# Of the payload of a request, and of its other fields. An item has at most 400 KB.
MAX_BYTES: Final = 272 * 1024

# The fields of a job that a schedule determines.
JOB_FIELDS: Final = (
    "schedule",
    "target",
    "payload",
    "retry",
    "name",
    "after_completion",
    "dead_letter",
)
_NOT_STORED: Final = ("Name", "GroupName", "ClientToken", "State")

# One encoder for all: json.dumps makes one for each value.
_SORTED: Final = json.JSONEncoder(sort_keys=True)

Origin = Mapping[str, Any]


def schedule_of(job: Job | None) -> Origin | None:
    """The origin of a job that is a schedule; None for other jobs and for deleted ones."""
    origin = job.origin if job is not None and exists(job) else None
    return origin if origin and "request" in origin else None


def requests_of(job: Job | None) -> Origin:
    """The requests about a job of this id, as `known`."""
    origin = (job.origin if job else None) or {}
    return {"known": origin.get("known", "")}


def kept_origin(old: Job | None, new: Job, now: float) -> Origin | None:
    """The origin of a changed job as it is stored.

    A schedule has hashes once another API changes it. Other jobs keep only the requests that still count.
    """
    origin = new.origin
    if origin and "kind" in origin:
        if new.state == DELETED:
            return of_deleted(origin)
        changed_elsewhere = old is not None and origin is old.origin and "written" not in origin
        return with_hashes(origin, old) if old and changed_elsewhere else origin
    former = still_known(requests_of(old), now)
    return {"known": former} if former else None


def origin_of(
    group: str, name: str, request: Mapping[str, Any], payload: Any, before: Origin | None
) -> dict[str, Any]:
    """The origin of a job that the request made. `before` is the origin of the job that it replaces.

    Raises InvalidInput if the request is too long to be kept.
    """
    kept = {field: value for field, value in request.items() if field not in _NOT_STORED}
    target = kept["Target"]
    # The job itself holds an Input without placeholders.
    if "Input" in target and payload == target["Input"]:
        kept["Target"] = {field: value for field, value in target.items() if field != "Input"} | {
            "Input": None
        }
    # As text: DynamoDB's numbers differ from JSON's.
    text = json.dumps(kept, ensure_ascii=False, separators=(",", ":"))
    if (size := len(text.encode(errors="replace"))) > MAX_BYTES:
        raise InvalidInput(
            "Target.Input", f"makes a schedule of {size} bytes", accepted=f"at most {MAX_BYTES}"
        )
    origin = {"kind": KIND, "group": group, "name": name, "known": (before or {}).get("known", "")}
    if (stored := StoredText(text)).is_large:  # of a universal target, whose Input is in it
        return origin | {"request": stored, "target_arn": target["Arn"]}
    return origin | {"request": text}


def with_hashes(origin: Origin, job: Job) -> Origin:
    """The origin with `written`, before another API changes the job for the first time."""
    return {**origin, "written": " ".join(f"{part}={text}" for part, text in _hashes(job).items())}


def with_known(origin: Origin, token: str, now: float) -> dict[str, Any]:
    """The origin with this request among the known ones."""
    fresh = still_known(origin, now).split()
    return {**origin, "known": " ".join([*fresh, f"{token}@{int(now)}"][-MAX_KNOWN:])}


def still_known(origin: Origin, now: float) -> str:
    """The requests that the origin knows, without those that are too old."""
    return " ".join(
        request for request in origin["known"].split() if int(request.partition("@")[2]) > now - KNOWN_FOR_S
    )


def of_deleted(origin: Origin) -> dict[str, Any]:
    """The origin of a deleted job: the requests that must not take effect again."""
    return {"kind": KIND, "known": origin["known"]}


def is_known(origin: Origin | None, token: str) -> bool:
    """Whether this request changed the schedule before."""
    return origin is not None and f"{token}@" in origin["known"]


def texts_of_request(job: Job) -> list[StoredText]:
    """The texts that `request_in` needs, in its order. The job is a schedule."""
    request = (job.origin or {})["request"]
    return [request if isinstance(request, StoredText) else StoredText(request), job.payload]


def request_in(request_text: str, payload: str) -> dict[str, Any]:
    """The request that made the job. `payload` is the job's, as JSON."""
    request: dict[str, Any] = json.loads(request_text)
    target = request["Target"]
    if "Input" in target and target["Input"] is None:
        target["Input"] = json.loads(payload)
    return request


def target_arn_in(origin: Origin) -> str:
    """The ARN of the target that the request named. No large text is read."""
    if "target_arn" in origin:
        return str(origin["target_arn"])
    return str(json.loads(origin["request"])["Target"]["Arn"])


def changed_parts(job: Job) -> Sequence[str]:
    """The fields of the job that changed since the request. The job is a schedule."""
    origin = job.origin or {}
    if "written" not in origin:
        return ()
    written, now = dict(part.split("=") for part in origin["written"].split()), _hashes(job)
    return [part for part in JOB_FIELDS if written[part] != now[part]]


def _hashes(job: Job) -> dict[str, str]:
    fields = {**to_builtins(job.spec), "payload": job.payload.attribute}
    return {part: _hash(fields[part]) for part in JOB_FIELDS}


def _hash(value: Any) -> str:
    if isinstance(value, Mapping) and "sha256" in value:  # of a payload with an item of its own
        return str(value["sha256"])[:12]
    return hashlib.sha256(_SORTED.encode(value).encode()).hexdigest()[:12]
