"""What the owner of a stored job should know: it fires never again, or has credentials in plain text. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final

from common.jobs.job import Job
from common.jobs.not_running import ENDED, NEVER_FIRES
from common.jobs.secret_references import MARK

# What credentials look like, and what they are called.
_LOOKS: Final = (
    (re.compile(r"\bsk-[A-Za-z0-9_-]{16,}"), "a key that begins with sk-"),
    (re.compile(r"\bAKIA[0-9A-Z]{16}\b"), "an access key of AWS"),
    (re.compile(r"://[^/\s:@]+:[^/\s@]+@"), "a password in a URL"),
)
_SECRET_HEADERS: Final = frozenset({"authorization", "proxy-authorization", "x-api-key", "cookie"})


def job_warnings(job: Job) -> Iterator[str]:
    """Sentences about a job as it is stored. A large payload is not looked at."""
    if job.not_running in (ENDED, NEVER_FIRES):
        yield "It fires never again: no fire time is left."
    for where, credential in _credentials(job):
        yield f"{where} has {credential} in plain text, for all readers of the job: name a secret as {MARK}NAME."


def _credentials(job: Job) -> Iterator[tuple[str, str]]:
    for name, value in (job.spec.target.get("headers") or {}).items():
        if name.casefold() in _SECRET_HEADERS and MARK not in str(value):
            yield f"The header {name}", "credentials"
    for where, text in (
        ("The target", json.dumps(job.spec.target)),
        ("The schedule", json.dumps(job.spec.schedule)),
        ("The payload", job.payload.text or ""),
    ):
        yield from ((where, credential) for look, credential in _LOOKS if look.search(text))
