"""What credentials in plain text look like: a job's warnings name them, and the audit hides them. Pure."""

from __future__ import annotations

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
)
_SECRET_NAME: Final = re.compile(r"(?i)authorization|token|api-?key|secret|passw|cookie|credential")


def is_secret_name(header: str) -> bool:
    """Whether a header of this name is for a credential."""
    return bool(_SECRET_NAME.search(header))


def hidden(text: str) -> str:
    """The text with `…` in place of credentials."""
    for look, _ in CREDENTIALS:
        text = look.sub(lambda match: (match.groupdict().get("kept") or "") + "…", text)
    return text
