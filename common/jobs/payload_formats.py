"""Formats of payloads besides JSON with placeholders. A field of the target chooses the format.

The room of the format implements the protocol, and the composition of each stage says which formats there are.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from common.jobs.job import Job
from common.jobs.stored_text import StoredText
from common.planning.execution import Execution

# Reads a text of a job that has an item of its own.
TextReader = Callable[[StoredText], str]


@dataclass(frozen=True, slots=True)
class LetterParts:
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

    def letter(self, job: Job, execution: Execution, body: str, read: TextReader) -> LetterParts:
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
