"""Whether a target takes a payload, also with patches of several schedules; and which secrets a definition may name.

Pure, but for `check_secrets_exist`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from common.errors import InvalidInput
from common.ids import SECRET_NAME_CHARS, is_id
from common.jobs.placeholders import (
    SECRET_MARK,
    PayloadFormat,
    PayloadFormats,
    check_payload,
    format_of,
    merge_patch,
    secret_references,
    strings,
)
from common.limits import MAX_JOB_SECRETS, MAX_PATCH_BYTES, MAX_REFERENCES, PATCHED_BYTES, RENDERED_BYTES
from common.storage import keys
from common.storage.aws_operations import check_parameters
from common.storage.table import Table


@dataclass(frozen=True, slots=True)
class PayloadChecks:
    """Checks the payloads of one definition. `most_bytes` is the tenant's quota."""

    target: Mapping[str, Any]
    formats: PayloadFormats
    most_bytes: int

    def check(self, payload: object) -> None:
        """Raises InvalidInput."""
        payload_format = format_of(self.target, self.formats)
        payload_text(payload, self.most_bytes, placeholders=payload_format is None)
        check_fits(self.target, payload, payload_format)

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


def check_fits(target: Mapping[str, Any], payload: object, payload_format: PayloadFormat | None) -> None:
    """Whether a target that gets the payload alone can take this one. Raises InvalidInput."""
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


_TARGET_FIELDS: Final = ("url", "headers")


class Named(NamedTuple):
    """A secret, and the place of the definition that names it."""

    place: str
    name: str


def named_by(
    target: Mapping[str, Any],
    payload: object,
    patches: Iterable[tuple[int, object]],
    formats: PayloadFormats,
) -> tuple[Named, ...]:
    """The secrets that a job names, each place once. `patches` come with the places of their schedules.

    Raises InvalidInput.
    """
    places = [*_of_target(target)]
    if format_of(target, formats) is None:  # the Input of a schedule is sent as it is
        places += _of_json(payload, "payload")
        for number, patch in patches:
            places += _of_json(patch, f"schedule.schedules.{number}.payload_patch")
    named = tuple(Named(place, name) for place, text in places for name in _names(place, text))
    if len(named) > MAX_REFERENCES:
        raise InvalidInput(
            named[MAX_REFERENCES].place,
            f"names a secret, as {MAX_REFERENCES} places before it do",
            value=named[MAX_REFERENCES].name,
            accepted=f"at most {MAX_REFERENCES} times {SECRET_MARK} in a job",
        )
    secrets = list(dict.fromkeys(name for _, name in named))
    if len(secrets) > MAX_JOB_SECRETS:
        too_many = next(place for place, name in named if name == secrets[MAX_JOB_SECRETS])
        raise InvalidInput(
            too_many,
            f"names a further secret, the job has {MAX_JOB_SECRETS} before it",
            value=secrets[MAX_JOB_SECRETS],
            accepted=f"at most {MAX_JOB_SECRETS} secrets in a job",
        )
    return named


def secret_names(named: Iterable[Named]) -> tuple[str, ...]:
    """Each name once, in order."""
    return tuple(sorted({name for _, name in named}))


def check_secrets_exist(tenants: Table, tenant: str, named: Iterable[Named]) -> None:
    """Raises InvalidInput for the first name that is no secret of the tenant's."""
    is_stored: dict[str, bool] = {}
    for place, name in named:
        if name not in is_stored:
            is_stored[name] = tenants.get(keys.secret(tenant, name)) is not None
        if not is_stored[name]:
            raise InvalidInput(
                place,
                "no such secret",
                value=name,
                accepted="the name of a secret that is put before, with PUT /v1/secrets/{name}",
            )


def _of_target(target: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for field, value in target.items():
        if field not in _TARGET_FIELDS and isinstance(value, str) and SECRET_MARK in value:
            raise InvalidInput(
                f"target.{field}",
                "cannot name a secret",
                value=value,
                accepted=f"{SECRET_MARK} in headers, in a URL's path or query, and in the payload",
            )
    if SECRET_MARK in (url := target.get("url", "")):
        yield "target.url", url
    for name, value in target.get("headers", {}).items():
        if SECRET_MARK in value:
            yield f"target.headers.{name}", value


def _of_json(value: object, place: str) -> Iterator[tuple[str, str]]:
    texts = [*strings(value, place, SECRET_MARK)]
    if json.dumps(value, ensure_ascii=False).count(SECRET_MARK) > sum(
        text.count(SECRET_MARK) for _, text in texts
    ):
        raise InvalidInput(
            place,
            f"has {SECRET_MARK} in the name of a field",
            accepted=f"{SECRET_MARK} in strings that are values",
        )
    yield from texts


def _names(place: str, text: str) -> Iterator[str]:
    for reference in secret_references(text):
        after = text[reference.end() : reference.end() + 2]
        if not is_id(reference[1], SECRET_NAME_CHARS) or after == "{{":
            raise InvalidInput(
                place,
                f"has no name of a secret after {SECRET_MARK}",
                value=text[reference.start() : reference.end() + 2],
                accepted=f"1 to {SECRET_NAME_CHARS} of A-Z a-z 0-9 . _ - that begin with a letter or digit",
                position=reference.start(),
            )
        yield reference[1]
