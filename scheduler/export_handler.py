"""The exporter's function: each hour it writes the runs of past days to the bucket of `runsExport`.

A day is written when it has settled, and looked at twice more: if runs of it have changed by then, such as a retry that
succeeded days later, it is written again. The projection says which runs a day has, and its versions say whether they
have changed. So every step can be lost, repeated or cut off: the same runs make the same objects.

A part of a day ends with a window, so a large day goes on with the next part in the next round. Nothing on the way of
an execution waits for this, and the tables are only read, but for a small item for each tenant and day.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from typing import Any, Final

from msgspec import Struct, ValidationError, structs, to_builtins

from common.cache import convert
from common.clock import Clock
from common.config import config
from common.deployment import Deployment
from common.errors import Damaged
from common.planning.chores import Chore, ChoreRunner, Done, Position
from common.planning.execution import trace_id
from common.projection.entry import RunEntry
from common.projection.state import ProjectionStates
from common.projection.windows import ProjectedRuns, ProjectedWindow
from common.runs.run import Run
from common.storage import aws, keys
from common.storage.table import Query, Tables
from common.storage.wire import Item
from common.tenants.tenant import DELETED, DELETING
from common.timing.instants import DAY_S, rfc3339
from common.timing.windows import WINDOW_S

# So long after its end a day is written, and looked at again. A retry comes at most 14 days after its run was due.
LOOKS_AFTER_S: Final = (2 * 3_600, 3 * DAY_S, 15 * DAY_S)
# Of text in one object; compressed some 3 MB.
PART_BYTES: Final = 32 * 1024 * 1024
_STATE_KEPT_S: Final = 40 * DAY_S
_READ_AT_ONCE: Final = 100
# https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteObjects.html
_DELETED_AT_ONCE: Final = 1_000
_INSTANTS: Final = ("fire_at", "due_at", "started_at", "finished_at")
_FIELDS: Final = (
    *("status", "reason", "detail", "trigger", "schedule_revision", "attempt", "lateness_s", "duration_s"),
    *("skipped_count", "dead_letter_error"),
)


@dataclass(frozen=True, slots=True)
class S3Bucket:
    """A bucket of S3."""

    client: Any
    name: str

    def put(self, name: str, data: bytes) -> None:
        """Write a whole object, in place of one of this name."""
        self.client.put_object(Bucket=self.name, Key=name, Body=data, ContentType="application/gzip")

    def delete(self, names: Iterable[str]) -> None:
        """Delete objects. Raises RuntimeError if S3 leaves one."""
        remaining = iter(names)
        while objects := [{"Key": name} for name in islice(remaining, _DELETED_AT_ONCE)]:
            answer = self.client.delete_objects(Bucket=self.name, Delete={"Objects": objects, "Quiet": True})
            if errors := answer.get("Errors"):
                raise RuntimeError(f"S3 left {len(errors)} objects, the first: {errors[0]}")

    def names(self, prefix: str) -> Iterator[str]:
        """The names of all objects that begin so."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.name, Prefix=prefix)
        return (item["Key"] for page in pages for item in page.get("Contents", ()))

    def folders(self, prefix: str) -> Iterator[str]:
        """The names up to the first / after the prefix, each once."""
        pages = self.client.get_paginator("list_objects_v2").paginate(
            Bucket=self.name, Prefix=prefix, Delimiter="/"
        )
        return (item["Prefix"] for page in pages for item in page.get("CommonPrefixes", ()))


@dataclass(frozen=True, slots=True)
class _Mark:
    """How far a look is: the day, and the last tenant of it that is done."""

    day: int
    after: str = ""

    @classmethod
    def stored(cls, at: Position | None, look: int, first_day: int) -> _Mark:
        """The mark of a look in a position; the first one if it cannot be read. Pure."""
        match (at or {}).get(f"look_{look}"):
            case [int(day), str(after)]:
                return cls(day, after)
        return cls(first_day)


class _DayState(Struct, frozen=True):
    """What of a tenant's day is written: which versions of its windows, how many parts, and from where it goes on."""

    fingerprint: str
    parts: int
    next_start: int
    is_done: bool


@dataclass(frozen=True, slots=True)
class Exporter:
    """Exports. `steps` is its chore."""

    tables: Tables
    bucket: S3Bucket
    prefix: str
    clock: Clock

    def steps(self, at: Position | None, done: Done) -> Iterator[Position]:
        """A chore: each step exports a tenant's day, or what there is time for of it."""
        now = self.clock.now()
        state = ProjectionStates(self.tables.due).read()
        if state is None:
            return
        self._remove_former_tenants(done)
        # The projection has this day from its beginning on.
        first_day = -(-state.since // DAY_S) * DAY_S
        marks = [_Mark.stored(at, look, first_day) for look in range(len(LOOKS_AFTER_S))]
        for look, after_s in enumerate(LOOKS_AFTER_S):
            while marks[look].day + DAY_S + after_s <= now:
                for mark in self._export_day(marks[look], done):
                    marks[look] = mark
                    yield {f"look_{nth}": [each.day, each.after] for nth, each in enumerate(marks)}

    def _export_day(self, mark: _Mark, done: Done) -> Iterator[_Mark]:
        """Export the day of all tenants after the mark. Yields where it goes on."""
        for tenant in self._tenants_after(mark.after):
            unfinished = [tenant]
            while unfinished:
                unfinished = self._export_parts(tenant, mark.day, done)
                if unfinished:
                    yield mark
            mark = replace(mark, after=tenant)
            yield mark
        yield _Mark(mark.day + DAY_S)

    def _export_parts(self, tenant: str, day: int, done: Done) -> list[str]:
        """Returns the tenant if the time is up before its day is done. An error holds no other tenant back."""
        unfinished: list[str] = []

        def export(tenant: str) -> None:
            if not self._export(tenant, day, done):
                unfinished.append(tenant)

        done.each([tenant], export, lambda tenant: f"{tenant} {_date(day)}")
        return unfinished

    def _export(self, tenant: str, day: int, done: Done) -> bool:
        """Write a tenant's day if it has changed since it was written. False if the time is over before."""
        windows = ProjectedRuns(self.tables.runs)
        of_day = list(windows.between(tenant, day, day + DAY_S, consistent=True))
        if not of_day:
            return True
        stored = self._state(tenant, day)
        fingerprint = _fingerprint(of_day)
        is_same = stored is not None and stored.fingerprint == fingerprint
        if stored and stored.is_done and (is_same or not self._has_all_records(tenant, windows, of_day)):
            return True  # written, or some have expired: what is written has more than could be written now
        state = stored if stored and is_same else _DayState(fingerprint, 0, 0, False)
        part = _Part()
        for window in of_day:
            if window.start < state.next_start:
                continue
            for line in self._lines(tenant, windows, window, done):
                part.add(line)
            state = structs.replace(state, next_start=window.start + WINDOW_S)
            if part.size >= PART_BYTES:
                state = self._put_part(tenant, day, state, part, done)
                part = _Part()
            if done.is_time_up and window is not of_day[-1]:
                self._put_part(tenant, day, state, part, done)
                return False
        state = self._put_part(tenant, day, structs.replace(state, is_done=True), part, done)
        self._drop_parts(tenant, day, state.parts)
        done.counts["days"] += 1
        return True

    def _lines(
        self, tenant: str, windows: ProjectedRuns, window: ProjectedWindow, done: Done
    ) -> Iterator[bytes]:
        """The runs of a window that are over, each as a line. Of these it counts what cannot be read.

        Raises Damaged: some of its runs are not known, and would be missing in the files.
        """
        entries = windows.runs_of(tenant, window, passes_over=False)
        over = (run for run in entries if not run.is_open)
        while runs := list(islice(over, _READ_AT_ONCE)):
            records = {(item["sk"], item["job_id"]): item for item in self._records(tenant, runs)}
            for run in runs:
                try:
                    if record := records.get(run.key):
                        yield line_of(Run.from_item(record))
                except Damaged:
                    done.counts["unreadable"] += 1

    def _records(self, tenant: str, runs: Iterable[RunEntry]) -> Iterator[Item]:
        run_keys = [keys.run(tenant, run.job_id, run.run_name) for run in runs]
        return self.tables.runs.get_many(run_keys, consistent=False)

    def _has_all_records(
        self, tenant: str, windows: ProjectedRuns, of_day: Iterable[ProjectedWindow]
    ) -> bool:
        """Whether the oldest runs of the day are still kept: records expire in the order of their fire times."""
        for window in of_day:
            oldest = list(windows.runs_of(tenant, window))[-_READ_AT_ONCE:]
            if oldest:
                return len(list(self._records(tenant, oldest))) == len(oldest)
        return True

    def _put_part(self, tenant: str, day: int, state: _DayState, part: _Part, done: Done) -> _DayState:
        """Write the part, if it has runs, and then how far the day is."""
        if part.runs:
            self.bucket.put(self._name(tenant, day, state.parts), part.data())
            state = structs.replace(state, parts=state.parts + 1)
            done.counts.update(objects=1, runs=part.runs)
        self.tables.jobs.put(
            {
                **keys.exported_day(tenant, _date(day)),
                "fingerprint": state.fingerprint,
                "parts": state.parts,
                "next_start": state.next_start,
                "is_done": state.is_done,
                "expires_at": day + _STATE_KEPT_S,
            }
        )
        return state

    def _drop_parts(self, tenant: str, day: int, kept: int) -> None:
        """Delete the parts that a day had before and has no longer."""
        names = {self._name(tenant, day, number) for number in range(kept)}
        self.bucket.delete(
            [name for name in self.bucket.names(self._of_day(tenant, day)) if name not in names]
        )

    def _state(self, tenant: str, day: int) -> _DayState | None:
        """None: nothing is written, or nobody can read how much, so the day is written anew."""
        item = self.tables.jobs.get(keys.exported_day(tenant, _date(day)))
        with suppress(ValidationError):
            return convert(item, _DayState)
        return None

    def _tenants_after(self, after: str) -> Iterator[str]:
        start = keys.tenant_listing(after) if after else None
        return (item["sk"] for item in self.tables.tenants.query(Query(keys.TENANTS, after=start)))

    def _remove_former_tenants(self, done: Done) -> None:
        """Delete the objects of tenants that were deleted within a month: so long they leave a tombstone."""
        listed = set(self._tenants_after(""))
        before = f"{self.prefix}/tenant="
        for folder in self.bucket.folders(before):
            tenant = folder.removeprefix(before).rstrip("/")
            item = None if tenant in listed else self.tables.tenants.get(keys.tenant(tenant))
            # A table that was made anew knows no tenant: their history stays.
            if item is None or item.get("state") not in (DELETING, DELETED):
                continue
            names = list(self.bucket.names(self._of_tenant(tenant)))
            if names:
                self.bucket.delete(names)
                done.counts["removed_tenants"] += 1

    def _of_tenant(self, tenant: str) -> str:
        return f"{self.prefix}/tenant={tenant}/"

    def _of_day(self, tenant: str, day: int) -> str:
        return f"{self._of_tenant(tenant)}day={_date(day)}/"

    def _name(self, tenant: str, day: int, number: int) -> str:
        return f"{self._of_day(tenant, day)}part-{number:04}.json.gz"


class _Part:
    """Lines, compressed while they come."""

    def __init__(self) -> None:
        self.runs = 0
        self.size = 0
        self._buffer = io.BytesIO()
        # Without the time of writing: the same lines are the same bytes.
        self._file = gzip.GzipFile(fileobj=self._buffer, mode="wb", compresslevel=6, mtime=0)

    def add(self, line: bytes) -> None:
        self._file.write(line)
        self.size += len(line)
        self.runs += 1

    def data(self) -> bytes:
        """The whole object; nothing can be added after this."""
        self._file.close()
        return self._buffer.getvalue()


def line_of(run: Run) -> bytes:
    """A run as a line: its fields have the names and forms of the API. Of its attempts, the last one's error. Pure."""
    fields, last = to_builtins(run), to_builtins(run.last_attempt) if run.last_attempt else {}
    line: dict[str, Any] = {
        "execution_id": run.execution_id,
        "job_id": run.job_id,
        **{name: rfc3339(fields[name]) for name in _INSTANTS if name in fields},
        **{name: fields[name] for name in _FIELDS if name in fields},
        **{name: last[name] for name in ("error_type", "error") if name in last},
        "trace_id": trace_id(run.execution_id),
    }
    return json.dumps(line, ensure_ascii=False, separators=(",", ":"), default=float).encode() + b"\n"


def _fingerprint(windows: Iterable[ProjectedWindow]) -> str:
    versions = json.dumps([[window.start, window.version] for window in windows])
    return hashlib.blake2b(versions.encode(), digest_size=8).hexdigest()


def _date(day: int) -> str:
    return rfc3339(day)[:10]


# No tenant's window begins later than this after the round's begin. The function has 300 s.
_MAX_WORK_S: Final = 200


def handle(event: object, context: object) -> dict[str, int]:
    """One round. Returns what it did; raises RuntimeError if a day could not be exported."""
    export = exporter()
    runner = ChoreRunner(export.tables.due, export.clock, "export")
    (done,) = runner.run([Chore("export", export.steps)], export.clock.now() + _MAX_WORK_S)
    if failed := done.errors + done.problems:
        raise RuntimeError(f"{len(failed)} days could not be exported, the first: {failed[0]}")
    return dict(done.counts)


@cache
def exporter() -> Exporter:
    """This process's exporter."""
    deployment, settings = Deployment(config()), config()
    bucket = S3Bucket(aws.s3(), settings.required("runs_export"))
    return Exporter(deployment.tables, bucket, f"minute8-{settings.stage}/runs", deployment.clock)
