"""The secrets that a job names: put into the call at the last moment, and taken out of whatever the target answers.

Most jobs name none, and an executor imports this for the first that does.
"""

from __future__ import annotations

import base64
import html
import json
import re
import threading
from bisect import bisect, bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Final
from urllib.parse import quote

from common.clock import Clock
from common.jobs.job import Job
from common.jobs.placeholders import SECRET_MARK, ValueOf, json_with_secrets, with_secrets
from common.limits import SECRET_CHARS
from common.runs.outcome import Outcome, not_called, unless_minute8_fails
from common.tenants.secrets import SecretValues
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
_NOT_READ: Final = "SecretNotRead"


class _Stopped(Exception):
    """The call cannot be made; `outcome` says why."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome
        super().__init__(outcome.error)


@dataclass(frozen=True, slots=True)
class Filled:
    """A call with the values of its secrets, and what takes them out of its outcome."""

    target: Target
    event: Event
    redaction: Redaction

    def redacted(self, outcome: Outcome) -> Outcome:
        """The outcome, with references in place of values."""
        redact = self.redaction
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

    def filled(self, job: Job, event: Event, redaction: Redaction) -> Filled | Outcome:
        """The call's target and event with the values of their secrets; an outcome if it has none for one.

        `redaction` knows the values then.

        Raises PayloadTooLarge.
        """
        read: dict[str, str | None] = {}
        ends_at = self.clock.now() + _READ_WITHIN_S

        def value_of(name: str) -> str | None:
            if name not in read:
                read[name] = self._value(job, name)
                if self.clock.now() > ends_at:
                    late = f"secrets were not read within {_READ_WITHIN_S} s"
                    raise _Stopped(not_called(_NOT_READ, late))
            return read[name]

        try:
            payload = json_with_secrets(event["payload"], value_of)
            target = _target(job.spec.target, value_of)
        except _Stopped as stopped:
            return stopped.outcome
        known = {name: value for name, value in read.items() if value is not None}
        context = event["minute8"]
        if known and "outcome_token" in context:  # the job may be another one when the outcome comes
            context = {**context, "has_secrets": True}
        redaction.add(known)
        return Filled(target, {**event, "payload": payload, "minute8": context}, redaction)

    def _value(self, job: Job, name: str) -> str | None:
        """The value; None: the text is none of the job's references. Raises _Stopped."""
        is_listed = name in job.secrets
        if self.values is None:
            if not is_listed:
                return None
            raise _Stopped(_never("SecretsOff", "this deployment keeps no secrets: its secretsKey is off"))
        values, now = self.values, self.clock.now()
        value = unless_minute8_fails(lambda: values.value(job.tenant, name, now), _NOT_READ)
        if isinstance(value, Outcome):
            raise _Stopped(value)
        if value is None and is_listed:
            error_text = f"the tenant has no secret {name!r}"
            raise _Stopped(Outcome(ok=False, error_type="SecretMissing", error=error_text))
        return value


def _target(target: Target, value_of: ValueOf) -> Target:
    """The target with values in its headers, and percent-encoded in its URL. Raises _Stopped."""
    new = dict(target)
    if SECRET_MARK in (url := target.get("url", "")):
        new["url"] = with_secrets(url, value_of, lambda value: quote(value, safe=""))
    if headers := target.get("headers"):
        new["headers"] = {name: _header(name, value, value_of) for name, value in headers.items()}
    return new


def _header(name: str, value: str, value_of: ValueOf) -> str:
    if SECRET_MARK not in value:
        return value
    new = with_secrets(value, value_of)
    if not _HEADER_VALUE.fullmatch(new):
        raise _Stopped(
            _never(
                "SecretRefused", f"a secret in the header {name} has other characters than printable ASCII"
            )
        )
    return new


def _never(error_type: str, error: str) -> Outcome:
    return Outcome(ok=False, permanent=True, error_type=error_type, error=error)


# However often a text was escaped, percent-encoded, wrapped or put into another case: without these characters, and in
# small letters, it is the same as the form of a value without them. Of white space too much of a value may consist.
# Each begins with a character, to which a search jumps: with the look behind before it, it would stop at each letter.
_ESCAPES: Final = r"\\+|2(?<=%2)5(?:25)*(?=[0-9a-f]{2})"
_UNWRAPPED: Final = re.compile(rf"\\+[nrt]?|\s+|{_ESCAPES}")
_VIEWS: Final = (None, re.compile(_ESCAPES), _UNWRAPPED)


class Redaction:
    """Puts references in place of the values in a text, also where they are escaped, encoded, wrapped, or cut off.

    docs/targets.md says what is found. Making the forms of a value takes longer than their use: a tenant's executions
    of a batch share one. Threads may use it while values are added.
    """

    def __init__(self, values: Mapping[str, str]) -> None:
        self._known: set[tuple[str, str]] = set()
        self._views = [(left_out, _Forms()) for left_out in reversed(_VIEWS)]
        self._adding = threading.Lock()
        self.add(values)

    def add(self, values: Mapping[str, str]) -> None:
        """Know these values, too."""
        with self._adding:
            new = [value for value in values.items() if value not in self._known]
            forms = [
                (_small(form), name)
                for name, value in new
                for form in _forms(value)
                if len(form) >= SECRET_CHARS
            ]
            known: set[tuple[str, str]] = set()
            for left_out, of_view in self._views:
                seen = {(_without(left_out, form), name) for form, name in forms}
                of_view.add(seen - known)
                known |= {(form, name) for form, name in seen if len(form) >= SECRET_CHARS}
            self._known.update(new)

    def __call__(self, text: str) -> str:
        """The text with `secret://name` wherever it has the value of a secret."""
        if not text:
            return ""
        small, spans = _small(text), []
        for left_out, forms in self._views:
            places = _places(small, left_out)
            seen = "".join([small[place] for place in places])
            spans += [(places[start], places[end - 1] + 1, name) for start, end, name in forms.spans(seen)]
        parts, at = [], 0
        for start, end, name in sorted(spans, key=lambda span: (span[0], -span[1])):
            if start >= at:
                parts += [text[at:start], f"{SECRET_MARK}{name}"]
            at = max(at, end)
        return "".join([*parts, text[at:]])


def _small(text: str) -> str:
    """The text in small letters, each in its place: a few letters have no single small one."""
    low = text.replace("\u03a3", "\u03c3").lower()  # the small sigma depends on what follows
    if len(low) == len(text):
        return low
    return "".join([low if len(low := letter.lower()) == 1 else letter for letter in text])


def _without(left_out: re.Pattern[str] | None, form: str) -> str:
    """The form without what is left out. In most forms it is found in a tenth of a search's time."""
    if left_out is None:
        return form
    if "%25" in form:
        return left_out.sub("", form)
    if left_out is not _UNWRAPPED:
        return form.replace("\\", "")
    while "\\\\" in form:
        form = form.replace("\\\\", "\\")
    for escape in ("\\n", "\\r", "\\t", "\\"):
        form = form.replace(escape, "")
    return "".join(form.split())


def _places(text: str, left_out: re.Pattern[str] | None) -> Sequence[int]:
    """The places of the characters that are not left out."""
    if left_out is None:
        return range(len(text))
    places: list[int] = []
    at = 0
    for match in left_out.finditer(text):
        places += range(at, match.start())
        at = match.end()
    return [*places, *range(at, len(text))] if at else range(len(text))


class _Forms:
    """Forms of values, in order: of thousands with the same beginning or end, a text is compared with two."""

    def __init__(self) -> None:
        self._by_beginning: dict[str, list[tuple[str, str]]] = {}
        # A part of it where the text ends, and the others, read backwards, where it begins.
        self._beginnings: dict[str, str] = {}
        self._backwards: dict[str, list[tuple[str, str]]] = {}
        self._longest = 0

    def add(self, forms: Iterable[tuple[str, str]]) -> None:
        """Know these forms, too. A thread that searches sees each list as it was, or as it becomes."""
        by_beginning: dict[str, list[tuple[str, str]]] = {}
        backwards: dict[str, list[tuple[str, str]]] = {}
        for form, name in forms:
            # Without what is left out a form can be shorter than a value: then only its edges count.
            if len(form) >= SECRET_CHARS:
                by_beginning.setdefault(form[:SECRET_CHARS], []).append((form, name))
            for length in range(_EDGE, min(SECRET_CHARS, len(form) + 1)):
                self._beginnings.setdefault(form[:length], name)
            if len(form) >= _EDGE:
                backwards.setdefault(form[-_EDGE:], []).append((form[::-1], name))
            self._longest = max(self._longest, len(form))
        for own, new in ((self._by_beginning, by_beginning), (self._backwards, backwards)):
            for key, same in new.items():
                own[key] = sorted([*own.get(key, ()), *same])

    def spans(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Where the text has a form: also its beginning, anywhere, and parts of it where the text begins and ends."""
        for start in range(len(text) - SECRET_CHARS + 1):
            if same := self._by_beginning.get(text[start : start + SECRET_CHARS]):
                # Its neighbours have most in common with what follows.
                at = bisect(same, (text[start:], ""))
                for form, name in same[max(at - 1, 0) : at + 1]:
                    yield start, start + _common(text, start, form), name
        # Without a character that was cut in two.
        beginning, ending = text.lstrip("\ufffd"), text.rstrip("\ufffd")
        for length in range(_EDGE, SECRET_CHARS):
            if name_of_end := self._beginnings.get(ending[-length:] if len(ending) >= length else ""):
                yield len(ending) - length, len(text), name_of_end
        for end in range(_EDGE, min(self._longest, len(beginning)) + 1):
            if same := self._backwards.get(beginning[end - _EDGE : end]):
                backwards = beginning[:end][::-1]
                at = bisect_left(same, (backwards, ""))
                if at < len(same) and same[at][0].startswith(backwards):
                    yield 0, len(text) - len(beginning) + end, same[at][1]


def _common(text: str, start: int, form: str) -> int:
    """How many characters the form and the text from `start` on begin with; SECRET_CHARS are known to be the same."""
    least, most = SECRET_CHARS, min(len(form), len(text) - start)
    while least < most:
        middle = (least + most + 1) // 2
        if text.startswith(form[:middle], start):
            least = middle
        else:
            most = middle - 1
    return least


def _forms(value: str) -> set[str]:
    """How a value may stand in an answer or a log: as it is, its lines, escaped, percent-encoded, in Base64 and hex.

    Each also stands for its other cases.
    """
    forms = {value, value.strip(), *(line.strip() for line in value.splitlines())}
    forms |= {json.dumps(value, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)}
    forms |= {
        json.dumps(value, ensure_ascii=False)[1:-1].translate(_GO),
        repr(value)[1:-1],
        html.escape(value),
    }
    quoted = quote(value, safe="")
    forms |= {quoted, quoted.replace("%2F", "/"), quoted.replace("%20", "+")}
    forms |= {reduce(lambda text, char: text.replace(quote(char), char), _JAVASCRIPT, quoted)}
    encoded = value.encode()
    forms |= {encoded.hex(), repr(encoded)[2:-1], repr(encoded + b"'")[2:-2], repr(encoded + b"'\"")[2:-4]}
    for before in range(3):
        text = base64.b64encode(bytes(before) + encoded).decode()
        # Without the characters that depend on what stands before and after it.
        alone = text[-(-before * 8 // 6) : (before + len(encoded)) * 8 // 6]
        forms |= {alone, alone.translate(str.maketrans("+/", "-_"))}
    return forms
