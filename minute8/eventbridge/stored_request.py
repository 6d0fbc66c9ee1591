"""The schedule that a stored job is, as CreateSchedule would make it."""

from __future__ import annotations

from typing import Any

from msgspec import to_builtins

from common.jobs.job import Job
from common.jobs.large_texts import LargeTexts
from minute8.eventbridge.imported_from import changed_parts, request_in, texts_of_request
from minute8.eventbridge.unmapping import with_changes


def stored_request(texts: LargeTexts, job: Job) -> dict[str, Any]:
    """The request that made the job, which is a schedule, with what other APIs changed since.

    Raises Inexpressible, MissingText, Busy.
    """
    changed = changed_parts(job)
    request_text, payload = texts.texts(job.tenant, job.job_id, texts_of_request(job))
    fields = request_in(request_text, payload)
    return with_changes(fields, changed, to_builtins(job.spec), payload) if changed else fields
