"""What the owner of a job should know: what never runs, what goes on, and credentials in plain text. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import to_builtins

from common.jobs.job import Job
from common.jobs.not_running import ENDED, NEVER_FIRES
from common.jobs.placeholders import SECRET_MARK
from common.storage.domains import KNOWN_REGIONS
from common.tenants.audit import credentials_in
from common.timing.windows import MISSED_AFTER_S


def job_warnings(job: Job) -> Iterator[str]:
    """Sentences about a job as it is stored. A large payload is not looked at."""
    if job.not_running in (ENDED, NEVER_FIRES):
        yield "It fires never again: no fire time is left."
    yield from catch_up_warnings(job.spec.catch_up, job.spec.start_deadline_s)
    region = str(job.spec.target.get("arn", "::::")).split(":")[3]
    if region and region not in KNOWN_REGIONS:
        yield f"The target is in {region}, a region that Minute8 does not know: is its name right?"
    function_s, timeout_s = job.function_timeout_s, job.spec.timeout_s
    if function_s > timeout_s:
        yield f"your function may run {function_s} s, timeout_s is {timeout_s}: after a timeout others wait for it"
    for name, value in {"payload": job.payload.text or "", **to_builtins(job.spec)}.items():
        for credential in credentials_in(value):
            yield (
                f"The {name} has {credential} in plain text, for all readers of the job: "
                f"name a secret as {SECRET_MARK}NAME."
            )


def catch_up_warnings(catch_up: str, start_deadline_s: int | None) -> Iterator[str]:
    """That what is caught up would be too late to start."""
    if catch_up != "none" and start_deadline_s is not None and start_deadline_s <= MISSED_AFTER_S:
        yield (
            f"catch_up runs what was missed by over {MISSED_AFTER_S} s, "
            f"and start_deadline_s of {start_deadline_s} skips it"
        )
