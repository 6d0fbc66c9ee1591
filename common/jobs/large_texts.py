"""The large texts of jobs: immutable items in a partition of each job, which no list, search or tick reads.

A change of a job writes them in its own transaction. A text that no job names any more expires after an hour: until
then an executor that has read the job may still ask for it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, NoReturn

from msgspec import structs

from common.errors import Conflict
from common.jobs.job import Job, exists
from common.jobs.stored_text import StoredText, is_whole
from common.storage import keys
from common.storage.expressions import change
from common.storage.keys import key_of
from common.storage.table import Table
from common.storage.transactions import Transaction

# Longer than an attempt and the end of its run take.
SUPERSEDED_KEPT_S: Final = 3_600


class MissingText(Conflict):
    """A job names a text that is not stored."""


@dataclass(frozen=True, slots=True)
class LargeTexts:
    """The texts in the jobs table."""

    jobs: Table

    def write(self, tx: Transaction, old: Job | None, new: Job, now: float) -> None:
        """Add the texts that a changed job newly names to `tx`, and let those expire that it no longer names."""
        before = {text.sha256: text for text in _texts(old) if text.reference}
        after = {text.sha256: text for text in _texts(new)}
        for sha256, text in after.items():
            if sha256 not in before:
                tx.put(self.jobs, {**keys.job_text(new.tenant, new.job_id, sha256), "text": text.text})
        expires_at = math.floor(now) + SUPERSEDED_KEPT_S
        for sha256, text in before.items():
            if sha256 not in after:
                key = keys.job_text(new.tenant, new.job_id, sha256)
                expires = change({"expires_at": expires_at})
                tx.update(self.jobs, key, expires, stored_bytes=text.bytes)

    def with_payloads(self, jobs: Sequence[Job]) -> list[Job]:
        """The jobs with the texts of their payloads. One request reads many. Raises MissingText, Busy."""
        return [
            with_payload or _raise(job.tenant, job.job_id)
            for job, with_payload in zip(jobs, self.with_stored_payloads(jobs), strict=True)
        ]

    def with_stored_payloads(self, jobs: Sequence[Job]) -> list[Job | None]:
        """The same; None: the text is not stored, since somebody has deleted it. Raises Busy."""
        texts = self._read((job.tenant, job.job_id, job.payload) for job in jobs)
        return [
            structs.replace(job, payload=text) if text else None
            for job, text in zip(jobs, texts, strict=True)
        ]

    def texts(self, tenant: str, job_id: str, texts: Sequence[StoredText]) -> list[str]:
        """These texts of the job. Raises MissingText, Busy."""
        read = self._read((tenant, job_id, text) for text in texts)
        return [(text or _raise(tenant, job_id)).text or "" for text in read]

    def _read(self, asked_for: Iterable[tuple[str, str, StoredText]]) -> Iterator[StoredText | None]:
        text_keys = [
            (text, None if text.text is not None else keys.job_text(tenant, job_id, text.sha256))
            for tenant, job_id, text in asked_for
        ]
        missing = {_name(key): key for _, key in text_keys if key}
        read_texts: dict[tuple[str, str], str] = {}
        # An eventual read costs half. It misses only what was stored a moment ago.
        for consistent in (False, True):
            if left_out := [key for name, key in missing.items() if name not in read_texts]:
                items = self.jobs.get_many(left_out, consistent=consistent)
                read_texts |= {_name(key_of(item)): item["text"] for item in items if is_whole(item)}
        for text, key in text_keys:
            if key and _name(key) not in read_texts:
                yield None
            else:
                yield replace(text, text=read_texts[_name(key)]) if key else text


def _raise(tenant: str, job_id: str) -> NoReturn:
    raise MissingText(
        f"job {job_id!r} of {tenant!r} is damaged: put it again, or delete it; its large text is not stored"
    )


def _name(key: keys.Key) -> tuple[str, str]:
    return key["pk"], key["sk"]


def _texts(job: Job | None) -> Iterator[StoredText]:
    return (text for text in job.texts if text.is_large) if job is not None and exists(job) else iter(())
