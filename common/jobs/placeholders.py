"""Placeholders in a job's payload: `{{fire_time}}` and a few others, replaced before each call. No code is evaluated.

They are replaced in the strings of the JSON payload, at any depth, but not in field names. An attempt replaces them in
the payload's text, without parsing it: 128 KiB can hold 43,600 values.

| placeholder        | becomes                                                                      |
| ------------------ | ---------------------------------------------------------------------------- |
| `{{fire_time}}`    | the nominal instant, RFC 3339 in UTC: 2026-11-21T03:00:00Z                   |
| `{{fire_date}}`    | its date in the schedule's zone: 2026-11-20 in America/New_York              |
| `{{due_time}}`     | the instant at which this attempt was due (fire time + jitter, or the retry) |
| `{{execution_id}}` | the idempotency key                                                          |
| `{{job_id}}`, `{{tenant}}` | whose it is                                                          |
| `{{attempt}}`      | 1, 2, …                                                                      |
| `{{callback_url}}`, `{{callback_token}}` | with `completion: callback`: where and how the target tells its end |

`{{{{` becomes `{{`. A `{{` that begins none of these is refused when the job is registered, with its position.

A field of the target can choose another format. The room of that format implements `PayloadFormat`, and the composition
of each stage says which formats there are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from common.errors import InvalidInput, Minute8Error
from common.jobs.job import Job
from common.jobs.stored_text import StoredText
from common.limits import MAX_PLACEHOLDERS, PAYLOAD_LEVELS, RENDERED_BYTES
from common.planning.execution import Execution
from common.timing.instants import rfc3339

# The longest text of each placeholder; tests compare it with the limits of ids and times.
MAX_VALUE_CHARS: Final[Mapping[str, int]] = {
    "fire_time": 20,
    "fire_date": 10,
    "due_time": 24,
    "execution_id": 64 + 1 + 128 + 1 + 16 + 1 + 19 + 1 + 128,
    "job_id": 128,
    "tenant": 64,
    "attempt": 10,
    "callback_url": 700,
    "callback_token": 43,
}
# What a target that gets the payload alone needs to call back.
OF_CALLBACKS: Final = ("callback_url", "callback_token")
_PLACEHOLDER: Final = re.compile(r"\{\{\{\{|\{\{\s{0,8}([a-z_]{1,32})\s{0,8}\}\}|\{\{")
# The same in a string of JSON, where some white space is escaped.
_SPACE: Final = r"(?:\s|\\[tnrf]|\\u00(?:0b|1[c-f])){0,8}"
_IN_JSON: Final = re.compile(rf"\{{\{{\{{\{{|\{{\{{{_SPACE}([a-z_]{{1,32}}){_SPACE}\}}\}}|\{{\{{")
# Strings of compact JSON with what stands between them, passed over without a look at each.
_WHOLE_STRINGS: Final = re.compile(r'(?:[^"]*+"[^"\\]*+(?:\\.[^"\\]*+)*+")*+', re.DOTALL)
# The rest of a string; a colon follows the name of a field.
_REST_OF_STRING: Final = re.compile(r'[^"\\]*(?:\\.[^"\\]*)*"(:?)', re.DOTALL)


class PayloadTooLarge(Minute8Error):
    """The payload with its placeholders replaced is larger than a target accepts."""


# What may contain a mark.
_TEXT_HOLDERS: Final = (str, list, dict)


def check_payload(payload: object) -> None:
    """Refuse invalid JSON, unknown placeholders, and payloads that could grow too large. Raises InvalidInput."""
    growth = count = 0
    for path, text in strings(payload, "payload", "{{"):
        for match in _PLACEHOLDER.finditer(text):
            name, count = match[1], count + 1
            if count > MAX_PLACEHOLDERS:
                raise InvalidInput(
                    path,
                    f"has a further placeholder, after {MAX_PLACEHOLDERS} of the payload",
                    accepted=f"at most {MAX_PLACEHOLDERS} in a payload",
                    position=match.start(),
                )
            if match[0] == "{{{{":
                continue
            if name not in MAX_VALUE_CHARS:
                raise InvalidInput(
                    path,
                    "has no such placeholder" if name else "has a {{ that begins no placeholder",
                    value=text[match.start() : match.start() + 40],
                    accepted=", ".join(f"{{{{{known}}}}}" for known in MAX_VALUE_CHARS)
                    + "; {{{{ for a literal {{",
                    position=match.start(),
                )
            growth += MAX_VALUE_CHARS[name] - len(match[0])
    try:
        size = _size(payload) + growth
    except ValueError as error:  # NaN, Infinity, or a lone surrogate
        raise InvalidInput("payload", f"is no JSON: {error}", accepted="JSON as RFC 8259 has it") from None
    if size > RENDERED_BYTES:
        raise InvalidInput(
            "payload",
            f"can grow to {size} bytes by its placeholders",
            accepted=f"at most {RENDERED_BYTES} bytes after replacement",
        )


def names_callback(payload: object) -> set[str]:
    """Which of OF_CALLBACKS the payload names."""
    texts = [text for _, text in strings(payload, "payload", "{{")]
    return {match[1] for text in texts for match in _PLACEHOLDER.finditer(text)} & set(OF_CALLBACKS)


def values_for(execution: Execution, timezone: str) -> dict[str, str]:
    """The values of the placeholders for one attempt."""
    from common.timing.zones import offset_at  # most payloads have no placeholders

    return {
        "fire_time": rfc3339(execution.fire_at),
        "fire_date": _date(execution.fire_at + offset_at(timezone, execution.fire_at)),
        "due_time": rfc3339(execution.due_at),
        "execution_id": execution.execution_id,
        "job_id": execution.job_id,
        "tenant": execution.tenant,
        "attempt": str(execution.attempt),
    }


def _date(wall: int) -> str:
    return datetime.fromtimestamp(wall, UTC).date().isoformat()


def has_placeholders(payload: str) -> bool:
    """Whether something in the payload may have to be replaced. It is compact JSON, where no {{ begins two objects."""
    return "{{" in payload


def render(payload: str, values: Mapping[str, str]) -> str:
    """The payload, as compact JSON, with its placeholders replaced.

    Replaced text is not searched again, so a value cannot add another placeholder. A placeholder without a value stays
    as it is.

    Raises PayloadTooLarge.
    """
    as_json = {name: json.dumps(value, ensure_ascii=False)[1:-1] for name, value in values.items()}

    return in_strings(
        payload,
        "{{",
        lambda string: _IN_JSON.sub(lambda match: _replacement(match, as_json), string),
    )


def in_strings(payload: str, mark: str, replaced: Callable[[str], str]) -> str:
    """Compact JSON in which the strings with the mark are replaced, but not the names of fields.

    A string comes with its quotes, and with its escapes. Only those with the mark are looked at: 128 KiB can hold
    43,600. Raises PayloadTooLarge.
    """
    parts, at = [], 0
    while (found_at := payload.find(mark, at)) >= 0:
        strings_end = _WHOLE_STRINGS.match(payload, at, found_at).end()  # type: ignore[union-attr]  # it may be empty
        start = payload.find('"', strings_end, found_at)
        rest = _REST_OF_STRING.match(payload, found_at) if start >= 0 else None
        end = rest.end() - len(rest[1]) if rest else found_at + len(mark)  # a schedule's Input may be no JSON
        is_value = rest and not rest[1]
        parts += [payload[at:start], replaced(payload[start:end])] if is_value else [payload[at:end]]
        at = end
    rendered = "".join([*parts, payload[at:]])
    if rendered != payload and (size := len(rendered.encode())) > RENDERED_BYTES:
        raise PayloadTooLarge(f"the payload has {size} bytes after replacement, the most is {RENDERED_BYTES}")
    return rendered


def _size(payload: object) -> int:
    return len(json.dumps(payload, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode())


def _replacement(match: re.Match[str], values: Mapping[str, str]) -> str:
    if match[0] == "{{{{":
        return "{{"
    return values.get(match[1] or "", match[0])


def strings(payload: object, path: str, mark: str, depth: int = 0) -> Iterator[tuple[str, str]]:
    """Each string that contains the mark, and its path: `payload.files.0`. Raises InvalidInput if it nests too deep."""
    if isinstance(payload, str):
        if mark in payload:
            yield path, payload
        return
    if not isinstance(payload, _TEXT_HOLDERS):
        return
    if depth >= PAYLOAD_LEVELS:
        raise InvalidInput("payload", f"nests deeper than {PAYLOAD_LEVELS} levels", accepted="flatter JSON")
    for name, value in payload.items() if isinstance(payload, dict) else enumerate(payload):
        # A hostile payload has 64,000 values: a look at a value takes less than a generator.
        if (value or depth + 1 == PAYLOAD_LEVELS) and isinstance(value, _TEXT_HOLDERS):
            yield from strings(value, f"{path}.{name}", mark, depth + 1)


# Jobs name secrets in values of headers, a URL's path or query, and strings of the payload, but not in names of fields.
# A reference is as long as the characters of names go. It may stand within a text, as in `Bearer secret://token`.
# Values are not searched for references again.

# What a reference to a secret begins with, and the most of a job. Each can add 4 KB to a call.
SECRET_MARK: Final = "secret://"
_REFERENCE: Final = re.compile(SECRET_MARK + r"([A-Za-z0-9._-]*)")

# The value by its name; None: the reference stays as it is.
ValueOf = Callable[[str], str | None]


def secret_references(text: str) -> Iterator[re.Match[str]]:
    """Each reference of a text; its first group is the name, or empty where none follows."""
    return _REFERENCE.finditer(text)


def with_secrets(text: str, value_of: ValueOf, encoded: Callable[[str], str] = str) -> str:
    """The text with values, `encoded`, in place of references."""

    def replaced(reference: re.Match[str]) -> str:
        value = value_of(reference[1])
        return reference[0] if value is None else encoded(value)

    return _REFERENCE.sub(replaced, text)


def json_with_secrets(payload: str, value_of: ValueOf) -> str:
    """Compact JSON with values in place of references in its strings, but not in names of fields."""

    def as_json(value: str) -> str:
        return json.dumps(value, ensure_ascii=False)[1:-1]

    return in_strings(payload, SECRET_MARK, lambda string: with_secrets(string, value_of, as_json))


# Reads a text of a job that has an item of its own.
TextReader = Callable[[StoredText], str]


@dataclass(frozen=True, slots=True)
class DeadLetterParts:
    """The parts of a run's dead letter that depend on the format. `refused` is the condition if no retry is allowed."""

    execution_id: str
    target_arn: str
    body: str
    refused: str = ""


class PayloadFormat(Protocol):
    """How payloads of one format are checked and rendered."""

    def check(self, kind: str, payload: object) -> None:
        """Whether a target of this kind takes the payload. Raises InvalidInput."""

    def sample(self, payload: object) -> Any:
        """The checked payload as JSON, with some value in the place of each one that an attempt replaces."""

    def render(self, job: Job, payload: str, execution: Execution) -> str:
        """What the target gets of the payload, which is JSON, for one attempt."""

    def dead_letter(self, job: Job, execution: Execution, body: str, read: TextReader) -> DeadLetterParts:
        """The parts of a dead letter for the last attempt. The target would have got `body`."""


# By the field of the target that chooses the format.
PayloadFormats = Mapping[str, PayloadFormat]


def format_of(target: Mapping[str, Any], formats: PayloadFormats) -> PayloadFormat | None:
    """The format that the target chooses; None for JSON with placeholders."""
    return next((formats[name] for name in formats if name in target), None)


def merge_patch(value: Any, patch: Any) -> Any:
    """`value` with a JSON merge patch (RFC 7396): null removes a member, another value but an object replaces it."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(value) if isinstance(value, Mapping) else {}
    for name, change in patch.items():
        if change is None:
            result.pop(name, None)
        else:
            result[name] = merge_patch(result.get(name), change)
    return result


def patched_text(payload: str, patch: Any) -> str:
    """A payload as compact JSON, with a patch."""
    return json.dumps(merge_patch(json.loads(payload), patch), separators=(",", ":"), ensure_ascii=False)
