"""A job as a source has it, or why it cannot become a job of Minute8; and the values of its fields as JSON."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any


class NoEquivalent(Exception):
    """Something in the source has no equivalent in Minute8; the text says what."""


_ID_CHARS = 100

# Fields that are read, with the fields inside them; None reads everything in the field.
Known = Mapping[str, "Known | None"]


@dataclass(frozen=True, slots=True)
class Defaults:
    """Values from the command line for jobs that do not have their own."""

    target: dict[str, Any] | None = None
    timezone: str | None = None


@dataclass(frozen=True, slots=True)
class SourceJob:
    """One job of a source, or why it cannot become one.

    `where` is its place in the source. `notes` say what means something else in Minute8. A `suspended` job is created
    paused; an existing job keeps its state.
    """

    where: str
    job_id: str = ""
    definition: dict[str, Any] = field(default_factory=dict)
    refusal: str = ""
    notes: tuple[str, ...] = ()
    suspended: bool = False
    # The schedule of EventBridge Scheduler that it is, for a bulk line (`eventbridge`).
    schedule: dict[str, Any] | None = None
    # What the ids of all jobs begin with that earlier states of the same entry could have made.
    family: str = ""
    # In the place of a job: the name and the tags of a group of such schedules.
    group: tuple[str, Mapping[str, str]] | None = None


def left_out(
    fields: Mapping[str, Any], known: Known, why: Mapping[str, str], within: str = ""
) -> Iterator[str]:
    """A note for each field of the source that is not read; `why` has reasons for some."""
    for name, value in fields.items():
        path = f"{within}{name}"
        inner = known.get(name)
        if value is None:
            continue
        if name not in known:
            yield f"{path} is left out" + (f": {why[path]}" if path in why else "")
        elif inner is not None and isinstance(value, Mapping):
            yield from left_out(value, inner, why, f"{path}.")


def id_of(name: str, schedule: str, is_one_of_several: bool) -> str:
    """An id of a name, with a digest of the schedule that tells it from others of the same name."""
    words = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-._")[:_ID_CHARS].strip("-._") or "job"
    return f"{words}-{hashlib.sha256(schedule.encode()).hexdigest()[:6]}" if is_one_of_several else words


def literal(text: str) -> str:
    """The text with escaped placeholders: `render` returns it unchanged."""
    return text.replace("{{", "{{{{")


def payload_of(value: Any, written: Callable[[str], str] = literal, where: str = "payload") -> Any:
    """A value of the source as JSON; `written` converts each text for a payload. Raises NotHere."""
    try:
        return _payload_of(value, written, where)
    except RecursionError:
        raise NoEquivalent(f"{where} nests too deeply") from None


def _payload_of(value: Any, written: Callable[[str], str], where: str) -> Any:
    if isinstance(value, str):
        return written(value)
    if value is None or isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, list):
        return [_payload_of(inner, written, f"{where}.{n}") for n, inner in enumerate(value)]
    if isinstance(value, Mapping):
        if odd := next((name for name in value if not isinstance(name, str)), None):
            raise NoEquivalent(f"{where} has a field {odd!r}, whose name is not text: quote it")
        return {name: _payload_of(inner, written, f"{where}.{name}") for name, inner in value.items()}
    raise NoEquivalent(f"{where} is a {type(value).__name__}, which JSON does not have: quote it")


def loads(text: str) -> Any:
    """JSON without doubled names: a parser would read only one of the values. Raises ValueError."""
    try:
        return json.loads(text, object_pairs_hook=_without_doubles, parse_constant=_no_number)
    except RecursionError:
        raise ValueError("it nests too deeply") from None


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        ((name, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"the name {name!r} appears twice")
    return fields


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is not a number in JSON")


def read_ndjson(text: str, defaults: Defaults) -> Iterator[SourceJob]:
    """Each line's job, or why it is none."""
    for number, line in enumerate(text.split("\n"), 1):  # splitlines() also splits inside JSON strings
        if line.strip():
            yield _ndjson_job(f"line {number}", line, defaults)


def _ndjson_job(where: str, line: str, defaults: Defaults) -> SourceJob:
    try:
        job = loads(line)
    except ValueError as error:
        return SourceJob(where, refusal=f"not JSON: {error}")
    if not isinstance(job, dict) or not isinstance(job.get("job_id"), str):
        return SourceJob(where, refusal="not an object with a job_id")
    job_id, suspended = job.pop("job_id"), False
    if job.get("state") in ("active", "paused"):  # the API refuses other values
        suspended = job.pop("state") == "paused"
    if defaults.target:
        job.setdefault("target", defaults.target)
    return SourceJob(where, job_id, job, suspended=suspended)
