"""The schedule that a stored job is, as CreateSchedule would make it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from common.jobs.job import Job
from common.jobs.large_texts import LargeTexts
from eventbridge.origin import changed_parts, request_in, texts_of_request
from eventbridge.unmapping import with_changes


def stored_request(texts: LargeTexts, tenant: str, item: Mapping[str, Any]) -> dict[str, Any]:
    """The request that made the job, with what other APIs changed since. `item` is the job's, and has an origin.

    Raises Inexpressible, MissingText, Busy.
    """
    changed = changed_parts(item["origin"], lambda: Job.from_item(item).to_item())
    request_text, payload = texts.texts(tenant, item["job_id"], texts_of_request(item))
    fields = request_in(request_text, payload)
    return with_changes(fields, changed, item, payload) if changed else fields
