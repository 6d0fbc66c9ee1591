"""The `imported_from` of a job: what the job keeps of its schedule, so that GetSchedule returns what was created. Pure.

`imported_from` has the schedule's names, and the parts of the request that the job does not hold. When Minute8's own
API changes the job for the first time, `written` gets a hash of each part of the job. The hashes tell which changed.
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

ImportedFrom = Mapping[str, Any]


def schedule_of(job: Job | None) -> ImportedFrom | None:
    """The `imported_from` of a job that is a schedule; None for other jobs and for deleted ones."""
    imported_from = job.imported_from if job is not None and exists(job) else None
    return imported_from if imported_from and "request" in imported_from else None


def requests_of(job: Job | None) -> ImportedFrom:
    """The requests about a job of this id, as `known`."""
    imported_from = (job.imported_from if job else None) or {}
    return {"known": imported_from.get("known", "")}


def kept_imported_from(old: Job | None, new: Job, now: float) -> ImportedFrom | None:
    """The `imported_from` of a changed job as it is stored.

    A schedule has hashes once another API changes it. Other jobs keep only the requests that still count.
    """
    imported_from = new.imported_from
    if imported_from and "kind" in imported_from:
        if new.state == DELETED:
            return of_deleted(imported_from)
        changed_elsewhere = (
            old is not None and imported_from is old.imported_from and "written" not in imported_from
        )
        return with_hashes(imported_from, old) if old and changed_elsewhere else imported_from
    former = still_known(requests_of(old), now)
    return {"known": former} if former else None


def imported_from_of(
    group: str, name: str, request: Mapping[str, Any], payload: Any, before: ImportedFrom | None
) -> dict[str, Any]:
    """The `imported_from` of a job that the request made. `before` is the `imported_from` of the job that it replaces.

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
    imported_from = {"kind": KIND, "group": group, "name": name, "known": (before or {}).get("known", "")}
    if (stored := StoredText(text)).is_large:  # of a universal target, whose Input is in it
        return imported_from | {"request": stored, "target_arn": target["Arn"]}
    return imported_from | {"request": text}


def with_hashes(imported_from: ImportedFrom, job: Job) -> ImportedFrom:
    """The `imported_from` with `written`, before another API changes the job for the first time."""
    return {**imported_from, "written": " ".join(f"{part}={text}" for part, text in _hashes(job).items())}


def with_known(imported_from: ImportedFrom, token: str, now: float) -> dict[str, Any]:
    """The `imported_from` with this request among the known ones."""
    fresh = still_known(imported_from, now).split()
    return {**imported_from, "known": " ".join([*fresh, f"{token}@{int(now)}"][-MAX_KNOWN:])}


def still_known(imported_from: ImportedFrom, now: float) -> str:
    """The requests that the `imported_from` knows, without those that are too old."""
    return " ".join(
        request
        for request in imported_from["known"].split()
        if int(request.partition("@")[2]) > now - KNOWN_FOR_S
    )


def of_deleted(imported_from: ImportedFrom) -> dict[str, Any]:
    """The `imported_from` of a deleted job: the requests that must not take effect again."""
    return {"kind": KIND, "known": imported_from["known"]}


def is_known(imported_from: ImportedFrom | None, token: str) -> bool:
    """Whether this request changed the schedule before."""
    return imported_from is not None and f"{token}@" in imported_from["known"]


def texts_of_request(job: Job) -> list[StoredText]:
    """The texts that `request_in` needs, in its order. The job is a schedule."""
    request = (job.imported_from or {})["request"]
    return [request if isinstance(request, StoredText) else StoredText(request), job.payload]


def request_in(request_text: str, payload: str) -> dict[str, Any]:
    """The request that made the job. `payload` is the job's, as JSON."""
    request: dict[str, Any] = json.loads(request_text)
    target = request["Target"]
    if "Input" in target and target["Input"] is None:
        target["Input"] = json.loads(payload)
    return request


def target_arn_in(imported_from: ImportedFrom) -> str:
    """The ARN of the target that the request named. No large text is read."""
    if "target_arn" in imported_from:
        return str(imported_from["target_arn"])
    return str(json.loads(imported_from["request"])["Target"]["Arn"])


def changed_parts(job: Job) -> Sequence[str]:
    """The fields of the job that changed since the request. The job is a schedule."""
    imported_from = job.imported_from or {}
    if "written" not in imported_from:
        return ()
    written, now = dict(part.split("=") for part in imported_from["written"].split()), _hashes(job)
    return [part for part in JOB_FIELDS if written[part] != now[part]]


def _hashes(job: Job) -> dict[str, str]:
    fields = {**to_builtins(job.spec), "payload": job.payload.attribute}
    return {part: _hash(fields[part]) for part in JOB_FIELDS}


def _hash(value: Any) -> str:
    if isinstance(value, Mapping) and "sha256" in value:  # of a payload with an item of its own
        return str(value["sha256"])[:12]
    return hashlib.sha256(_SORTED.encode(value).encode()).hexdigest()[:12]
