"""The directory of a tenant's jobs: what lists search and sort by.

It is a projection, kept in a few compressed items: a tenth of the bytes of the jobs. It is made when somebody first
searches, and brought up to date by the audit, which says what changed since; a change of a job writes nothing more. The
jobs that a list shows are read themselves, so a stale directory can leave a job out, and never show a wrong one.

A change that began before the directory was read can commit after it. So changes are looked for from SETTLING_S before.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final, Literal, NamedTuple

from msgspec import Struct
from msgspec.json import Encoder
from msgspec.structs import replace

from common.cache import convert
from common.clock import CpuBudget
from common.errors import Busy
from common.jobs.job import read_spec
from common.jobs.not_running import NotRunning
from common.storage import keys
from common.storage.aws import readable
from common.storage.chunks import Chunks, Head
from common.storage.table import Query, Table
from common.storage.wire import DAMAGE, Expression, Item
from common.tenants.audit import Audit
from common.timing.instants import DAY_S
from common.timing.schedule import Schedule

# A directory of another format, of another version of Minute8, is made anew.
_FORMAT: Final = 1
# A request ends after 29 s, and a transaction in it.
SETTLING_S: Final = 60
# After so many changes they are written into the directory, and after more of them it is made anew.
RENEWED_AFTER: Final = 100
MAX_CHANGES: Final = 2_000
# Nobody has looked for so long: the directory goes.
_UNUSED_S: Final = 30 * DAY_S
# Of text in one item. Compression and base64 make it a third longer at worst, and an item holds 400 KB.
_CHUNK_BYTES: Final = 250_000
# Directories with so many jobs in all stay in memory, some 20 MB.
_REMEMBERED_JOBS: Final = 40_000
_ATTRIBUTES: Final = ("job_id", "spec", "state", "revision", "schedule")


def tags_text(tags: Iterable[str]) -> str:
    """Tags in one text, with a line feed between them. Line feeds in a tag are escaped, and so are carriage returns."""
    return "\n".join(tag.replace("\r", "\r-").replace("\n", "\r+") for tag in tags)


def has_tag(tags: str, tag: str) -> bool:
    """Whether the tag is in such a text."""
    return tags_text([tag]) in tags.split("\n")


class ListedJob(NamedTuple):
    """A job as the directory has it. `tags` are as `tags_text` has them; `schedule` is its JSON."""

    job_id: str
    name: str
    tags: str
    kind: str
    address: str
    state: str
    revision: int
    schedule: str
    # Key and limit as JSON; empty without one.
    concurrency: str = ""


class _StoredJob(Struct, frozen=True):
    """What the directory takes of a job's item, besides its definition."""

    job_id: str
    state: str
    revision: int
    schedule: Schedule


class Streak(NamedTuple):
    """How often a job has failed in a row, which a change of its revision starts anew, and why it may not run."""

    failures: int
    revision: int
    not_running: NotRunning | None = None


class _Head(Head, frozen=True, kw_only=True):
    """Which chunks are the directory. Until `up_to` is empty, it has the jobs up to that id only."""

    as_of: float
    up_to: str
    format: Literal[1]


@dataclass(frozen=True, slots=True)
class JobDirectory:
    """The directories in the jobs table. The tenant comes from the credential."""

    jobs: Table
    audit: Audit
    # By tenant, the last used at the end.
    _remembered: dict[str, tuple[tuple[str, ...], tuple[ListedJob, ...]]] = field(default_factory=dict)

    def listed(self, tenant: str, now: float) -> Sequence[ListedJob]:
        """The tenant's jobs, in no order. Raises Busy while it is made: each request goes on with it."""
        head = self._stored(tenant).head()
        rows = self._read(tenant, head) if head else None
        changed = self._changed(tenant, head.as_of) if head else None
        if head is None or rows is None or changed is None:
            anew = _Head(token=head.token if head else "", as_of=now, up_to="", format=_FORMAT)
            return self._make(tenant, anew, ())
        if head.up_to:
            return self._make(tenant, head, rows)
        if changed:
            rows = self._with(tenant, rows, changed)
        if len(changed) > RENEWED_AFTER or head.expires_at < now + _UNUSED_S / 2:
            self._store(tenant, replace(head, as_of=now, chunks=()), rows, replaced=head.chunks)
        return rows

    def streaks(self, tenant: str) -> dict[str, Streak]:
        """What is noted of jobs that fail or do not run, by id. One query."""
        items = self.jobs.query(
            Query(
                tenant,
                sk_prefix=keys.STREAK_PREFIX,
                where=Expression("#failures > :none OR attribute_exists(#not_running)", {":none": 0}),
                attributes=("sk", "failures", "revision", "not_running"),
                consistent=False,
            )
        )

        def streak(item: Item) -> tuple[str, Streak]:
            note = NotRunning.of_item(item)
            return item["sk"].removeprefix(keys.STREAK_PREFIX), Streak(
                int(item["failures"]), int(item["revision"]), note
            )

        return dict(readable(items, streak))

    def _read(self, tenant: str, head: _Head) -> tuple[ListedJob, ...] | None:
        """What the chunks hold; None if one of them is gone."""
        known = self._remembered.pop(tenant, None)
        if known is None or known[0] != head.chunks:
            texts = self._stored(tenant).read(head.chunks)
            if texts is None:
                return None
            known = head.chunks, tuple(chain.from_iterable(map(_decoded, texts)))
        self._remember(tenant, *known)
        return known[1]

    def _remember(self, tenant: str, chunks: tuple[str, ...], rows: tuple[ListedJob, ...]) -> None:
        self._remembered[tenant] = chunks, rows
        while sum(len(jobs) for _, jobs in self._remembered.values()) > _REMEMBERED_JOBS:
            del self._remembered[next(iter(self._remembered))]

    def _changed(self, tenant: str, as_of: float) -> list[str] | None:
        """The jobs that have changed since; None if the tenant has made too many changes, of jobs or others."""
        subjects = self.audit.subjects_since(tenant, "job", as_of - SETTLING_S, MAX_CHANGES)
        return None if subjects is None else sorted(set(subjects))

    def _with(self, tenant: str, rows: Iterable[ListedJob], changed: Sequence[str]) -> tuple[ListedJob, ...]:
        """The jobs, of which some have changed."""
        items = self.jobs.get_many([keys.job(tenant, job_id) for job_id in changed], attributes=_ATTRIBUTES)
        news = [job for item in items if (job := _listed(item))]
        outdated = set(changed)
        return (*(row for row in rows if row.job_id not in outdated), *news)

    def _make(self, tenant: str, head: _Head, before: Sequence[ListedJob]) -> Sequence[ListedJob]:
        """Make the directory of the jobs from where it ends on, within a budget. Raises Busy if that is spent."""
        budget = CpuBudget()
        items = self.jobs.query(
            Query(
                tenant,
                sk_prefix=keys.JOB_PREFIX,
                after=keys.job(tenant, head.up_to) if head.up_to else None,
                attributes=_ATTRIBUTES,
            )
        )
        rows: list[ListedJob] = []
        for item in items:
            if job := _listed(item):
                rows.append(job)
            if rows and budget.is_spent:
                self._store(tenant, replace(head, up_to=rows[-1].job_id), rows)
                count = len(before) + len(rows)
                raise Busy(f"the directory of jobs is being made, {count} jobs so far; try again")
        self._store(tenant, replace(head, up_to=""), rows)
        all_rows = (*before, *rows)
        # What this request has read is new; what earlier ones read may have changed.
        changed = self._changed(tenant, head.as_of) if before else None
        return self._with(tenant, all_rows, changed) if changed else all_rows

    def _store(
        self,
        tenant: str,
        head: _Head,
        rows: Sequence[ListedJob],
        replaced: Sequence[str] = (),
    ) -> None:
        """Store `rows` besides the chunks of `head`, if its token is still the stored one.

        If another request was faster, its directory stays.
        """
        new = {"format": _FORMAT, "as_of": int(head.as_of), "up_to": head.up_to}
        expires_at = int(head.as_of) + _UNUSED_S
        self._stored(tenant).store(
            new, _chunks(rows), expires_at, replaces=head.token, kept=head.chunks, dropped=replaced
        )

    def _stored(self, tenant: str) -> Chunks[_Head]:
        return Chunks(self.jobs, lambda name: keys.job_directory(tenant, name), _Head)


def _listed(item: Mapping[str, Any]) -> ListedJob | None:
    """The job of an item; None if somebody has damaged it. Lists without a search name such jobs."""
    with suppress(*DAMAGE):
        job, spec = convert(item, _StoredJob), read_spec(item)
        kind, address = convert(
            (spec.target.get("kind", ""), spec.target.get("arn") or spec.target.get("url") or ""),
            tuple[str, str],
        )
        schedule = _ENCODER.encode(job.schedule).decode()
        concurrency = json.dumps([shared.key, shared.limit]) if (shared := spec.concurrency) else ""
        return ListedJob(
            job.job_id,
            spec.name,
            tags_text(spec.tags),
            kind,
            address,
            job.state,
            job.revision,
            schedule,
            concurrency,
        )
    return None


_ENCODER: Final = Encoder()


def _chunks(rows: Sequence[ListedJob]) -> Iterator[str]:
    """The rows as texts of chunks: JSON of columns, each schedule once."""
    chunk: list[ListedJob] = []
    schedules: dict[str, int] = {}
    size = 0
    for row in rows:
        chunk.append(row)
        size += sum(len(value.encode()) for value in row if isinstance(value, str)) - len(row.schedule)
        if row.schedule not in schedules:
            schedules[row.schedule] = len(schedules)
            size += len(row.schedule.encode())
        if size > _CHUNK_BYTES:
            yield _encoded(chunk, schedules)
            chunk, schedules, size = [], {}, 0
    if chunk:
        yield _encoded(chunk, schedules)


def _encoded(rows: Sequence[ListedJob], schedules: Mapping[str, int]) -> str:
    *columns, used, concurrency = zip(*rows, strict=True)
    chunk = [*columns, [schedules[schedule] for schedule in used], concurrency, list(schedules)]
    return json.dumps(chunk, ensure_ascii=False, separators=(",", ":"))


def _decoded(text: str) -> Iterator[ListedJob]:
    """The inverse of `_encoded`."""
    *columns, numbers, concurrency, schedules = json.loads(text)
    return map(ListedJob, *columns, [schedules[number] for number in numbers], concurrency)
