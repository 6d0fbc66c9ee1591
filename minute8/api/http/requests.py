"""One request, parsed and bounded: its body, query and preconditions."""

from __future__ import annotations

import base64
import binascii
import io
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NoReturn

from common.declared import read
from common.errors import NONE_YET, InvalidInput, NotFound, Unauthenticated
from common.ids import is_id
from common.limits import BODY_LEVELS
from common.platform.api_keys import Credential
from common.registration.bulk import Line
from minute8.api.http.problems import Malformed, TooLarge, UnsupportedMediaType

_TOO_DEEP = f"the body is nested more than {BODY_LEVELS} levels deep"
_BEARER = re.compile(r"bearer +(\S+) *", re.IGNORECASE)
_JSON: Final = "application/json"
_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER: Final = json.JSONDecoder()
_NDJSON = ("application/x-ndjson", "application/ndjson", "application/jsonl")
_KEY = re.compile(r'"([ !#-\[\]-~]{1,255})"|([!#-\[\]-~]{1,255})', re.ASCII)
_ETAG = re.compile(r'(?:W/)?"(\d{1,18})"|(\d{1,18})', re.ASCII)


@dataclass(frozen=True, slots=True)
class Request:
    """What a route's handler gets. `tenant` always comes from the credential."""

    credential: Credential
    now: float
    path: Mapping[str, str]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    # The name and content type of the shape that the route takes.
    shape: str = ""
    body_type: str = _JSON
    body_optional: bool = False

    @property
    def tenant(self) -> str:
        return self.credential.tenant

    def object(self) -> dict[str, Any]:
        """The body, of type application/json or the route's own: a JSON object with any fields.

        Raises Malformed, UnsupportedMediaType, InvalidInput.
        """
        content_type = self.headers.get("content-type", _JSON).split(";")[0].strip().lower()
        accepted = sorted({_JSON, self.body_type})
        if content_type not in accepted:
            raise UnsupportedMediaType(f"the body is {content_type!r}; accepted: {', '.join(accepted)}")
        body = read_json(self.body)
        if not isinstance(body, dict):
            raise InvalidInput("body", "must be an object", value=body, accepted="a JSON object")
        return body

    def shaped(self) -> Any:
        """The body, read and validated by the route's shape; without a body, the shape's defaults if the route has any.

        Raises what `object` raises.
        """
        from minute8.api.shapes import SHAPES  # see there: a cold start does not need them

        shape = SHAPES[self.shape]
        fields = self.object() if self.body or not self.body_optional else {}
        return read(fields, shape, "body")

    def no_fields(self) -> None:
        """Refuse a body that has fields, where the route takes none. Raises what `object` raises."""
        if self.body and (body := self.object()):
            name = min(body)
            raise InvalidInput(name, "is not a known field", value=body[name], accepted="none")

    def lines(self, max_lines: int, max_bytes: int) -> list[Line]:
        """The lines of NDJSON, or the elements of a JSON array; each is parsed when it is read.

        Empty lines are left out, but they count in line numbers. Raises TooLarge, UnsupportedMediaType, Malformed.
        """
        content_type = self.headers.get("content-type", "").split(";")[0].strip().lower()
        if content_type not in (*_NDJSON, _JSON):
            accepted = ", ".join((*_NDJSON, _JSON))
            raise UnsupportedMediaType(f"the body is {content_type!r}; accepted: {accepted}")
        # Not split(): two million lines take 200 MB.
        texts = _elements(self.body) if content_type == _JSON else io.BytesIO(self.body)
        numbered: list[tuple[int, bytes]] = []
        for number, text in enumerate(texts, 1):
            if text.strip():
                numbered.append((number, text))
            if len(numbered) > max_lines:
                raise TooLarge(f"the body has over {max_lines} lines; send them in parts")
        return [Line(number, partial(_value_of_line, text, max_bytes)) for number, text in numbered]

    def flag(self, name: str) -> bool:
        """Whether the query sets it to true. Raises InvalidInput."""
        text = self.query.get(name, "false")
        if text not in ("true", "false"):
            raise InvalidInput(name, "must be a boolean", value=text, accepted="true or false")
        return text == "true"

    def only_new(self) -> bool:
        """Whether the header If-None-Match lets the request only create. Raises InvalidInput."""
        text = self.headers.get("if-none-match")
        if text not in (None, "*"):
            raise InvalidInput("If-None-Match", "must be *", value=text, accepted="*, to create only")
        return text is not None

    def expected_revision(self) -> int | None:
        """The revision in If-Match, or NONE_YET with `If-None-Match: *`. Raises InvalidInput."""
        if not self.only_new():
            return self.if_match()
        if "if-match" in self.headers:
            raise InvalidInput("If-None-Match", "stands beside If-Match", value="*", accepted="one of both")
        return NONE_YET

    def if_match(self) -> int | None:
        """The revision in If-Match. Raises InvalidInput."""
        text = self.headers.get("if-match")
        if text is None:
            return None
        match = _ETAG.fullmatch(text.strip())
        if not match:
            raise InvalidInput("If-Match", "must be a revision", value=text, accepted='one ETag, such as "7"')
        return int(match[1] or match[2])

    def idempotency_key(self) -> str | None:
        """The Idempotency-Key header: an RFC 8941 string, or the same text without quotes.

        Raises InvalidInput.
        """
        text = self.headers.get("idempotency-key")
        if text is None:
            return None
        match = _KEY.fullmatch(text.strip())
        if not match:
            raise InvalidInput(
                "Idempotency-Key",
                "must be a key",
                value=text,
                accepted='1 to 255 printable ASCII characters but " and \\, such as "8e03978e-40d5-43e8-bc93"',
            )
        return match[1] or match[2]

    def path_id(self, name: str, kind: str, longest: int) -> str:
        """An id in the path, of a thing of this kind. Raises NotFound if the text cannot be an id."""
        text = self.path[name]
        if not is_id(text, longest):
            raise NotFound(kind, text)
        return text

    def number(self, name: str, default: int, highest: int) -> int:
        """A count from the query, 1 to `highest`. Raises InvalidInput."""
        text = self.query.get(name)
        if text is None:
            return default
        if not re.fullmatch(r"[0-9]{1,9}", text) or not 1 <= int(text) <= highest:
            raise InvalidInput(name, "is out of range", value=text, accepted=f"1 to {highest}")
        return int(text)


def bearer(headers: Mapping[str, str]) -> str:
    """The API key of a request. Raises Unauthenticated."""
    match = _BEARER.fullmatch(headers.get("authorization", ""))
    if not match:
        raise Unauthenticated("send your API key as `Authorization: Bearer m8_…`")
    return match[1]


def _elements(body: bytes) -> Iterator[bytes]:
    """The texts of a JSON array's elements. Only one element at a time is in memory as values, which take more room.

    Raises Malformed, InvalidInput.
    """
    try:
        text = body.decode()
        at = _after_space(text, 0)
        if not text.startswith("[", at):
            raise InvalidInput(
                "body", "must be a list", value=text[:100], accepted="a JSON array of jobs, or NDJSON"
            )
        at = _after_space(text, at + 1)
        while not text.startswith("]", at):
            _, end = _DECODER.raw_decode(text, at)
            yield text[at:end].encode()
            at = _after_space(text, end)
            if text.startswith(",", at) and not text.startswith("]", after := _after_space(text, at + 1)):
                at = after
            elif not text.startswith("]", at):
                raise json.JSONDecodeError("Expecting ',' delimiter", text, at)
        if (at := _after_space(text, at + 1)) < len(text):
            raise json.JSONDecodeError("Extra data", text, at)
    except json.JSONDecodeError as error:
        raise Malformed(f"{error.msg} at position {error.pos}", error.pos) from None
    except UnicodeError:
        raise Malformed("the body is not valid Unicode") from None
    except RecursionError:
        raise Malformed(_TOO_DEEP) from None
    except ValueError:  # int() has no other reason here
        raise Malformed("a number has thousands of digits") from None


def _after_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _value_of_line(line: bytes, max_bytes: int) -> Any:
    """What a line contains. Raises TooLarge, Malformed."""
    if len(line) > max_bytes:
        raise TooLarge(f"the line has {len(line)} bytes; accepted: at most {max_bytes}")
    return read_json(line)


def raw_body(body: str | None, is_base64: bool, longest: int) -> bytes:
    """The body's bytes. Raises TooLarge, Malformed."""
    if len(body or "") > (longest * 2 if is_base64 else longest):
        raise TooLarge(f"the body has over {longest} bytes, which are the most")
    try:
        data = base64.b64decode(body or "", validate=True) if is_base64 else (body or "").encode()
    except (binascii.Error, ValueError):
        raise Malformed("the body is not valid text") from None
    if len(data) > longest:
        raise TooLarge(f"the body has {len(data)} bytes; accepted: at most {longest}")
    return data


def read_json(data: bytes) -> Any:
    """JSON that means one thing to every reader: no doubled names, no NaN, no lone surrogates. Raises Malformed."""
    if not data.strip():
        raise Malformed("the body is empty; a JSON object is expected")
    try:
        value = json.loads(
            data.decode(),
            parse_constant=_no_number,
            parse_float=_finite,
            object_pairs_hook=_without_doubles,
        )
        _check_depth(value)
        json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise Malformed(f"{error.msg} at position {error.pos}", error.pos) from None
    except UnicodeError:
        raise Malformed("the body is not valid Unicode") from None
    except RecursionError:
        raise Malformed(_TOO_DEEP) from None
    except ValueError:  # int() has no other reason here
        raise Malformed("a number has thousands of digits") from None
    return value


def _check_depth(value: Any) -> None:
    """Check the nesting level by level: later readers may recurse. Raises Malformed."""
    level = [value]
    for _ in range(BODY_LEVELS):
        level = [
            inner
            for value_of_level in level
            if isinstance(value_of_level, dict | list)
            for inner in (value_of_level.values() if isinstance(value_of_level, dict) else value_of_level)
        ]
        if not level:
            return
    raise Malformed(_TOO_DEEP)


def _no_number(text: str) -> NoReturn:
    raise Malformed(f"{text} is not a number in JSON")


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise Malformed(f"{text} is larger than any number that every reader can hold")
    return value


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, value in pairs:
        if name in fields:
            raise Malformed(f"the name {name[:100]!r} occurs twice in one object")
        fields[name] = value
    return fields
