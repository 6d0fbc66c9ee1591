"""What the owner of a job should know: what never runs, what goes on, and credentials in plain text. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator

from msgspec import to_builtins

from common.credentials import CREDENTIALS, is_secret_name
from common.jobs.job import Job
from common.jobs.not_running import ENDED, NEVER_FIRES
from common.jobs.secret_references import MARK
from common.timing.windows import MISSED_AFTER_S


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
        if is_secret_name(name) and MARK not in str(value):
            yield f"The header {name}", "credentials"
    fields = {"payload": job.payload.text or "", **to_builtins(job.spec)}
    for name, value in fields.items():
        where, text = f"The {name}", value if isinstance(value, str) else json.dumps(value)
        yield from ((where, credential) for look, credential in CREDENTIALS if look.search(text))
