"""What the owner of a job should know: what never runs, what goes on, and credentials in plain text. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final

from common.jobs.job import Job
from common.jobs.not_running import ENDED, NEVER_FIRES
from common.jobs.secret_references import MARK
from common.timing.windows import MISSED_AFTER_S

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
    yield from catch_up_warnings(job.spec.catch_up, job.spec.start_deadline_s)
    function_s, timeout_s = job.function_timeout_s, job.spec.timeout_s
    if function_s > timeout_s:
        yield f"your function may run {function_s} s, timeout_s is {timeout_s}: after a timeout others wait for it"
    for where, credential in _credentials(job):
        yield f"{where} has {credential} in plain text, for all readers of the job: name a secret as {MARK}NAME."


def catch_up_warnings(catch_up: str, start_deadline_s: int | None) -> Iterator[str]:
    """That what is caught up would be too late to start."""
    if catch_up != "none" and start_deadline_s is not None and start_deadline_s <= MISSED_AFTER_S:
        yield (
            f"catch_up runs what was missed by over {MISSED_AFTER_S} s, "
            f"and start_deadline_s of {start_deadline_s} skips it"
        )


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
