"""How an answer goes over the wire: compressed for whoever takes that, or left out for whoever has it already."""

from __future__ import annotations

import base64
import gzip
import hashlib
from typing import Any, Final

# Below this, the headers are longer than what compression saves.
MIN_COMPRESSED_BYTES: Final = 1_000
# The runtime writes an answer as JSON text once more. With level 1, compressing 100 KB takes less time than that.
_GZIP_LEVEL: Final = 1

Event = dict[str, Any]


def takes_gzip(accept_encoding: str) -> bool:
    """Whether the header Accept-Encoding takes gzip: RFC 9110, section 12.5.3."""
    weights = {}
    for part in accept_encoding.lower().split(","):
        coding, _, parameter = part.partition(";")
        weights[coding.strip()] = parameter.replace(" ", "").removeprefix("q=")
    weight = next((weights[name] for name in ("gzip", "x-gzip", "*") if name in weights), "0")
    return weight.strip("0.") != "" or weight == ""


def compressed(answer: Event, accept_encoding: str) -> Event:
    """The answer as the client takes it: a text that is long enough is compressed, and base64 for the gateway."""
    text = answer["body"]
    if answer["isBase64Encoded"] or len(text) < MIN_COMPRESSED_BYTES:
        return answer
    headers = {**answer["headers"], "Vary": "Accept-Encoding"}
    if not takes_gzip(accept_encoding):
        return {**answer, "headers": headers}
    body = gzip.compress(text.encode(), _GZIP_LEVEL, mtime=0)
    return {
        **answer,
        "headers": {**headers, "Content-Encoding": "gzip"},
        "body": base64.b64encode(body).decode(),
        "isBase64Encoded": True,
    }


def etag_of(text: str) -> str:
    """A weak ETag of a list: the same list has the same one, compressed or not."""
    return f'W/"{hashlib.blake2b(text.encode(), digest_size=9).hexdigest()}"'


def is_known(etag: str, if_none_match: str) -> bool:
    """Whether the header If-None-Match names the ETag, or any: RFC 9110, section 13.1.2."""
    known = [text.strip().removeprefix("W/") for text in if_none_match.split(",")]
    return "*" in known or etag.removeprefix("W/") in known
