"""The payloads of jobs, as attempts need them: a process keeps the last large ones, whose contents never change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from common.jobs.job import Job
from executor.fair_cache import FairCache

if TYPE_CHECKING:
    from common.jobs.large_texts import LargeTexts

# Of the memory of 512 MB.
MAX_KEPT_BYTES: Final = 16 * 1024 * 1024


class Payloads:
    """Reads and keeps payloads."""

    def __init__(self, texts: LargeTexts, most_bytes: int = MAX_KEPT_BYTES) -> None:
        self._texts = texts
        self._kept: FairCache[str] = FairCache(most_bytes, lambda text: len(text.encode()))

    def of(self, job: Job) -> str:
        """The text of the job's payload. Raises MissingText, Busy, and whatever else a read raises."""
        payload = job.payload
        if payload.text is not None:
            return payload.text
        name = (job.tenant, job.job_id, payload.sha256)
        return self._kept.get(name, job.tenant, lambda: self._texts.texts(*name[:2], [payload])[0])
