"""The secrets that a job names: put into the call at the last moment, and taken out of whatever the target answers.

Most jobs name none, and an executor imports this for the first that does.
"""

from __future__ import annotations

import base64
import html
import json
import re
from bisect import bisect
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import quote, quote_plus

from common.clock import Clock
from common.errors import shown
from common.jobs.job import Job
from common.jobs.secret_references import MARK, ValueOf, filled, filled_json
from common.runs.outcome import Outcome
from common.tenants.secrets import MIN_CHARS, SecretValues
from executor.targets import Target
from executor.targets.events import Event

# As the definition's own (common/registration/target_definitions.py), but longer.
_HEADER_VALUE: Final = re.compile(r"[!-~](?:[ -~]*[!-~])?", re.ASCII)
# As Go writes JSON, and JavaScript URLs.
_GO: Final = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})
_JAVASCRIPT: Final = "!'()*"
# An answer is cut before it is redacted: so many characters of a value are redacted at its edges.
_EDGE: Final = 4
# Less than the margin of an attempt's lease. What was read stays known to the next try.
_READ_WITHIN_S: Final = 4


class _Stopped(Exception):
    """The call cannot be made; `outcome` says why."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome
        super().__init__(outcome.error)


@dataclass(frozen=True, slots=True)
class Filled:
    """A call with the values of its secrets. `values`: by name."""

    target: Target
    event: Event
    values: Mapping[str, str]

    def redacted(self, outcome: Outcome) -> Outcome:
        """The outcome, with references in place of values."""
        redact = Redaction(self.values)
        return replace(
            outcome,
            error_type=redact(outcome.error_type),
            error=redact(outcome.error),
            log_tail=redact(outcome.log_tail),
            request_id=redact(outcome.request_id),
        )


@dataclass(frozen=True, slots=True)
class JobSecrets:
    """Puts secrets into calls. `values` is None if the deployment keeps none."""

    values: SecretValues | None
    clock: Clock

    def filled(self, job: Job, event: Event) -> Filled | Outcome:
        """The call's target and event with the values of their secrets; an outcome if it has none for one.

        Raises PayloadTooLarge.
        """
        read: dict[str, str | None] = {}
        ends_at = self.clock.now() + _READ_WITHIN_S

        def value_of(name: str) -> str | None:
            if name not in read:
                read[name] = self._value(job, name)
                if self.clock.now() > ends_at:
                    raise _Stopped(_not_read(f"secrets were not read within {_READ_WITHIN_S} s"))
            return read[name]

        try:
            payload = filled_json(event["payload"], value_of)
            target = _target(job.spec.target, value_of)
        except _Stopped as stopped:
            return stopped.outcome
        known = {name: value for name, value in read.items() if value is not None}
        context = event["minute8"]
        if known and "outcome_token" in context:  # the job may be another one when the outcome comes
            context = {**context, "has_secrets": True}
        return Filled(target, {**event, "payload": payload, "minute8": context}, known)

    def _value(self, job: Job, name: str) -> str | None:
        """The value; None: the text is none of the job's references. Raises _Stopped."""
        is_listed = name in job.secrets
        if self.values is None:
            if not is_listed:
                return None
            raise _Stopped(_never("SecretsOff", "this deployment keeps no secrets: its secretsKey is off"))
        try:
            value = self.values.value(job.tenant, name, self.clock.now())
        except Exception as error:  # noqa: BLE001  that Minute8 cannot read it is no attempt of the tenant's
            raise _Stopped(_not_read(shown(str(error)))) from None
        if value is None and is_listed:
            error_text = f"the tenant has no secret {name!r}"
            raise _Stopped(Outcome(ok=False, error_type="SecretMissing", error=error_text))
        return value


def _target(target: Target, value_of: ValueOf) -> Target:
    """The target with values in its headers, and percent-encoded in its URL. Raises _Stopped."""
    new = dict(target)
    if MARK in (url := target.get("url", "")):
        new["url"] = filled(url, value_of, lambda value: quote(value, safe=""))
    if headers := target.get("headers"):
        new["headers"] = {name: _header(name, value, value_of) for name, value in headers.items()}
    return new


def _header(name: str, value: str, value_of: ValueOf) -> str:
    if MARK not in value:
        return value
    new = filled(value, value_of)
    if not _HEADER_VALUE.fullmatch(new):
        raise _Stopped(
            _never(
                "SecretRefused", f"a secret in the header {name} has other characters than printable ASCII"
            )
        )
    return new


def _not_read(error: str) -> Outcome:
    return Outcome(ok=False, throttled=True, error_type="SecretNotRead", error=error)


def _never(error_type: str, error: str) -> Outcome:
    return Outcome(ok=False, permanent=True, error_type=error_type, error=error)


class Redaction:
    """Puts references in place of the values in a text, also where they are escaped, encoded, or cut off."""

    def __init__(self, values: Mapping[str, str]) -> None:
        forms = {
            (form, name) for name, value in values.items() for form in _forms(value) if len(form) >= MIN_CHARS
        }
        # However often a text was escaped: without its backslashes it is the same.
        unescaped = {(form.replace("\\", ""), name) for form, name in forms}
        self._unescaped, self._escaped = _Forms(unescaped), _Forms(forms - unescaped)

    def __call__(self, text: str) -> str:
        """The text with `secret://name` wherever it has the value of a secret."""
        if not text:
            return ""
        places = [place for place, character in enumerate(text) if character != "\\"]
        unescaped = "".join(text[place] for place in places)
        spans = [
            (places[start], places[end - 1] + 1, name)
            for start, end, name in self._unescaped.spans(unescaped)
        ]
        if len(unescaped) < len(text):
            spans += self._escaped.spans(text)
        parts, at = [], 0
        for start, end, name in sorted(spans, key=lambda span: (span[0], -span[1])):
            if start >= at:
                parts += [text[at:start], f"{MARK}{name}"]
            at = max(at, end)
        return "".join([*parts, text[at:]])


class _Forms:
    """Forms of values, in order: of thousands with the same beginning, a text is compared with two."""

    def __init__(self, forms: Iterable[tuple[str, str]]) -> None:
        # Without its backslashes a form can be shorter than a value: then only its edges count.
        self._all = sorted(form for form in forms if len(form[0]) >= _EDGE)
        self._by_beginning: dict[str, list[tuple[str, str]]] = {}
        for form, name in (form for form in self._all if len(form[0]) >= MIN_CHARS):
            self._by_beginning.setdefault(form[:MIN_CHARS], []).append((form, name))

    def spans(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Where the text has a form: also its beginning, anywhere, and parts of it where the text begins and ends."""
        for start in range(len(text) - MIN_CHARS + 1):
            if same := self._by_beginning.get(text[start : start + MIN_CHARS]):
                # Its neighbours have most in common with what follows.
                at = bisect(same, (text[start:], ""))
                for form, name in same[max(at - 1, 0) : at + 1]:
                    yield start, start + _common(text, start, form), name
        # Without a character that was cut in two.
        beginning, ending = text.lstrip("\ufffd"), text.rstrip("\ufffd")
        for form, name in self._all:
            for length in range(_EDGE, MIN_CHARS):
                if ending.endswith(form[:length]):
                    yield len(ending) - length, len(text), name
            last = beginning.find(form[-_EDGE:])
            while 0 <= last < len(form):
                if form.endswith(beginning[: last + _EDGE]):
                    yield 0, len(text) - len(beginning) + last + _EDGE, name
                last = beginning.find(form[-_EDGE:], last + 1)


def _common(text: str, start: int, form: str) -> int:
    """How many characters the form and the text from `start` on begin with; MIN_CHARS are known to be the same."""
    least, most = MIN_CHARS, min(len(form), len(text) - start)
    while least < most:
        middle = (least + most + 1) // 2
        if text.startswith(form[:middle], start):
            least = middle
        else:
            most = middle - 1
    return least


def _forms(value: str) -> set[str]:
    """How a value may stand in an answer or a log: as it is, its lines, escaped, percent-encoded, in Base64 and hex."""
    forms = {value, value.strip(), *(line.strip() for line in value.splitlines())}
    forms |= {json.dumps(value, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)}
    forms |= {json.dumps(value, ensure_ascii=False)[1:-1].translate(_GO), quote(value, safe=_JAVASCRIPT)}
    forms |= {repr(value)[1:-1], html.escape(value), quote(value, safe=""), quote(value), quote_plus(value)}
    encoded = value.encode()
    forms |= {encoded.hex(), encoded.hex().upper()}
    for before in range(3):
        text = base64.b64encode(bytes(before) + encoded).decode()
        # Without the characters that depend on what stands before and after it.
        alone = text[-(-before * 8 // 6) : (before + len(encoded)) * 8 // 6]
        forms |= {alone, alone.translate(str.maketrans("+/", "-_"))}
    return forms
