"""Where a definition names secrets, and whether it may name them there. Pure, but for `check_exist`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from common.errors import InvalidInput
from common.ids import SECRET_NAME_CHARS, is_id
from common.jobs.payload_formats import PayloadFormats, format_of
from common.jobs.placeholders import strings
from common.jobs.secret_references import MARK, references
from common.limits import MAX_JOB_SECRETS, MAX_REFERENCES
from common.storage import keys
from common.storage.table import Table

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
            accepted=f"at most {MAX_REFERENCES} times {MARK} in a job",
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


def names(named: Iterable[Named]) -> tuple[str, ...]:
    """Each name once, in order."""
    return tuple(sorted({name for _, name in named}))


def check_exist(tenants: Table, tenant: str, named: Iterable[Named]) -> None:
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
        if field not in _TARGET_FIELDS and isinstance(value, str) and MARK in value:
            raise InvalidInput(
                f"target.{field}",
                "cannot name a secret",
                value=value,
                accepted=f"{MARK} in headers, in a URL's path or query, and in the payload",
            )
    if MARK in (url := target.get("url", "")):
        yield "target.url", url
    for name, value in target.get("headers", {}).items():
        if MARK in value:
            yield f"target.headers.{name}", value


def _of_json(value: object, place: str) -> Iterator[tuple[str, str]]:
    texts = [*strings(value, place, MARK)]
    if json.dumps(value, ensure_ascii=False).count(MARK) > sum(text.count(MARK) for _, text in texts):
        raise InvalidInput(
            place, f"has {MARK} in the name of a field", accepted=f"{MARK} in strings that are values"
        )
    yield from texts


def _names(place: str, text: str) -> Iterator[str]:
    for reference in references(text):
        after = text[reference.end() : reference.end() + 2]
        if not is_id(reference[1], SECRET_NAME_CHARS) or after == "{{":
            raise InvalidInput(
                place,
                f"has no name of a secret after {MARK}",
                value=text[reference.start() : reference.end() + 2],
                accepted=f"1 to {SECRET_NAME_CHARS} of A-Z a-z 0-9 . _ - that begin with a letter or digit",
                position=reference.start(),
            )
        yield reference[1]
