"""Whether a target takes a payload, also with the patches of several schedules. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from common.errors import InvalidInput
from common.jobs.payload_formats import PayloadFormats, format_of
from common.jobs.payload_patch import merge_patch
from common.jobs.placeholders import check_payload
from common.limits import PATCHED_BYTES, RENDERED_BYTES
from common.storage.aws_operations import check_parameters

# A patch is a part of the job's item, which stays small.
MAX_PATCH_BYTES: Final = 1_024


@dataclass(frozen=True, slots=True)
class PayloadChecks:
    """Checks the payloads of one definition. `most_bytes` is the tenant's quota."""

    target: Mapping[str, Any]
    formats: PayloadFormats
    most_bytes: int

    def check(self, payload: object) -> None:
        """Raises InvalidInput."""
        payload_text(payload, self.most_bytes, placeholders=format_of(self.target, self.formats) is None)
        check_fits(self.target, payload, self.formats)

    def check_patch(self, payload: object, patch: object, where: str) -> None:
        """A patch is short, and the target takes the payload with it. Raises InvalidInput, which names `where`."""
        size = len(_compact(patch))
        if size > MAX_PATCH_BYTES:
            raise InvalidInput(
                where, f"has {size} bytes", accepted=f"at most {MAX_PATCH_BYTES} bytes of JSON"
            )
        try:
            patched = merge_patch(payload, patch)
            if (size := len(_compact(patched))) > PATCHED_BYTES:
                raise InvalidInput(
                    "payload", f"has {size} bytes", accepted=f"at most {PATCHED_BYTES} bytes of JSON"
                )
            self.check(patched)
        except InvalidInput as error:
            raise InvalidInput(
                where, f"{error.field} {error.message}, with this patch", value=patch, accepted=error.accepted
            ) from None


def _compact(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode(errors="replace")


def check_fits(target: Mapping[str, Any], payload: object, formats: PayloadFormats) -> None:
    """Whether a target that gets the payload alone can take this one. Raises InvalidInput."""
    payload_format = format_of(target, formats)
    if payload_format:
        payload_format.check(target["kind"], payload)
    if target["kind"] == "aws_operation":
        check_parameters(target["arn"], payload_format.sample(payload) if payload_format else payload)
        if stop := target.get("stop"):
            _check_stop(stop)
    if payload_format or target["kind"] == "aws_operation":
        return
    if target.get("envelope", True):
        return
    if target["kind"] == "event_bus" and not isinstance(payload, Mapping):
        raise InvalidInput(
            "payload",
            "is the whole event on the bus, because envelope is false",
            value=payload,
            accepted="a JSON object",
        )
    if target["kind"] in ("sqs", "sns") and payload in (None, ""):
        raise InvalidInput(
            "payload",
            "is the whole message, because envelope is false, and a message cannot be empty",
            accepted="a text, or other JSON",
        )


def _check_stop(stop: Mapping[str, Any]) -> None:
    try:
        check_parameters(stop["arn"], stop["parameters"])
    except InvalidInput as error:
        raise InvalidInput(
            "target.stop", f"{error.field} {error.message}", value=stop, accepted=error.accepted
        ) from None


def payload_text(payload: object, most_bytes: int, *, placeholders: bool = True) -> str:
    """The payload as compact JSON. Raises InvalidInput if it is too large or has unknown placeholders.

    Without placeholders it is a text that the target gets as it is, so its own bytes count.
    """
    if placeholders:
        check_payload(payload)
    text = json.dumps(payload, separators=(",", ":"), ensure_ascii=False)
    sent, most = text, min(most_bytes, RENDERED_BYTES)
    if not placeholders and isinstance(payload, str):
        sent, most = payload, most_bytes
    size = len(sent.encode(errors="replace"))
    if size > most:
        raise InvalidInput("payload", f"has {size} bytes", accepted=f"at most {most} bytes of JSON")
    return text
