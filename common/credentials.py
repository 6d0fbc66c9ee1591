"""What credentials in plain text look like: a job's warnings name them, and the audit hides them. Pure."""

from __future__ import annotations

import json
import re
from typing import Final

# Each with what it is called. What precedes the credential itself is `kept`.
CREDENTIALS: Final = (
    (re.compile(r"\bsk-[A-Za-z0-9_-]{16,}"), "a key that begins with sk-"),
    (re.compile(r"\bAKIA[0-9A-Z]{16}\b"), "an access key of AWS"),
    (re.compile(r"(?P<kept>://)[^/\s:@]+:[^/\s@]+(?=@)"), "a password in a URL"),
    (
        re.compile(
            r"(?i)(?P<kept>[?&](?:[a-z_-]*token|(?:api|access)?[_-]?key|secret|password|sig|signature)=)"
            r"(?!secret://)[^&#\s\"]+"
        ),
        "a credential in a URL's query",
    ),
    # Words of prose have no digit.
    (re.compile(r"\b(?P<kept>Bearer\s+)(?=\S*\d)[A-Za-z0-9._~+/=-]{6,}"), "a bearer token"),
    # A field or header of JSON, also of JSON in a string of JSON. Tokens of pages and of requests are no secrets.
    (
        re.compile(
            r'(?i)(?P<kept>"(?P<name>(?![\w.-]*(?:next|page|client|request|continuation)[_-]?token\\*")[\w.-]{0,60}?'
            r"(?:authorization|passwo?r?d|passphrase|pwd|secret|token|cookie|credentials?"
            r"|(?:api|access|secret|private|signing|account)[_-]?key))"
            r'\\*"\s*:\s*\\*")(?![^"\\]*secret://|arn:|\{\{)[^"\\]+'
        ),
        "a value named {name}",
    ),
)


def credentials_in(value: object) -> list[str]:
    """What in a text, or in a value of JSON, looks like a credential: what each is called."""
    text = value if isinstance(value, str) else json.dumps(value)
    matches = ((match, words) for look, words in CREDENTIALS for match in look.finditer(text))
    return list(dict.fromkeys(words.format(**match.groupdict()) for match, words in matches))


def hidden(text: str) -> str:
    """The text with `…` in place of credentials."""
    for look, _ in CREDENTIALS:
        text = look.sub(lambda match: (match.groupdict().get("kept") or "") + "…", text)
    return text
