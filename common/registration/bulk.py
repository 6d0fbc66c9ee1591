"""Bulk requests: each line is a job to create or replace, or one that needs no change.

First all lines are checked against the stored jobs, the quotas and the allowed targets. Then the changes are written,
up to MAX_AT_ONCE in a transaction. A tenant's registrations all write its counts, so parallel transactions would not
be faster; several jobs in one transaction write the counts once.

With `atomic` nothing is written unless every line is valid, allowed and within the quotas. The writing itself can still
stop early: because of conflicts, the time limit or a crash. Some transactions are then done, and others not. Sending
the request again completes it: a line that is done costs one read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal

from common.errors import NONE_YET, Busy, InvalidInput, Minute8Error
from common.ids import check_id
from common.jobs.job import Job, check_revision, exists
from common.jobs.store import MAX_AT_ONCE, as_noted
from common.limits import JOB_ID_CHARS
from common.registration.definition import build_job, changed_fields, old_if_same
from common.registration.job_warnings import job_warnings
from common.registration.registry import Imports, JobValidator, Registry, split_initial_state

Result = Literal["created", "replaced", "unchanged", "refused"]
RESULTS: Final[tuple[Result, ...]] = ("created", "replaced", "unchanged", "refused")

# How many jobs are in memory at a time; with the largest payloads they take some 70 MB.
_MAX_COMPARED_JOBS: Final = 25
_OUT_OF_TIME: Final = "the time of the request is used up; nothing of this line was stored, send it again"


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the request, from 1. `read` gives what it holds, or raises why that cannot be read.

    It is read each time that it is needed: a payload can take twenty times its text in memory.
    """

    number: int
    read: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class LineOutcome:
    """The result of a line. `revision` is the stored one; `changed` names the replaced fields.

    `warnings` are of a job that changes.
    """

    number: int
    job_id: str | None
    result: Result
    revision: int | None = None
    group: str = ""
    changed: tuple[str, ...] = ()
    error: Minute8Error | None = None
    warnings: tuple[str, ...] = ()


class BulkRefused(Minute8Error):
    """Some lines are refused, so nothing of the request was stored."""

    def __init__(self, refused: Sequence[LineOutcome], lines: int) -> None:
        self.refused = refused
        super().__init__(
            f"{len(refused)} of {lines} lines are refused, and nothing was stored; the first: line "
            f"{refused[0].number}: {refused[0].error}"
        )


class Unfinished(Minute8Error):
    """Some of a request was stored before it stopped. Sending it again completes it."""

    def __init__(self, done: int, remaining: int, why: Minute8Error) -> None:
        super().__init__(
            f"{done} lines are stored and {remaining} are not: {why}; send the same again to finish"
        )


@dataclass(frozen=True, slots=True)
class _NamedLine:
    """A line that names its job."""

    line: Line
    validator: JobValidator
    job_id: str
    imports: Imports
    # The group of the other API's resource that the line comes from.
    group: str
    only_new: bool

    @property
    def number(self) -> int:
        return self.line.number

    def of(self, old: Job | None, now: float) -> Job:
        """The job that the line makes of the stored one: the same object if nothing changes.

        Raises InvalidInput, and with `only_new` RevisionMismatch.
        """
        raw = dict(self.line.read())
        del raw["job_id"]
        resource = raw.pop(self.imports.field, None)
        fields, initial = split_initial_state(raw)
        validator = self.validator
        new = build_job(
            validator.tenant, self.job_id, validator.validated(fields), old, now, validator.limits
        )
        if resource is not None:
            new = self.imports.with_import(new, resource, old)
        if old is None or not exists(old):
            return initial.applied_to(new)
        new = old_if_same(old, new) if self.imports.are_same(old, new) else new
        if self.only_new and new is not old:
            check_revision(old, self.job_id, NONE_YET)
        return new

    def outcome(self, old: Job | None, new: Job) -> LineOutcome:
        result: Result = "unchanged"
        names: tuple[str, ...] = ()
        if old is None or not exists(old):
            result = "created"
        elif new is not old:
            result, names = "replaced", changed_fields(old, new)
            names += () if self.imports.are_same(old, new) else (self.imports.field,)
        warnings = () if result == "unchanged" else tuple(job_warnings(new))
        return LineOutcome(
            self.number, self.job_id, result, new.revision, new.group, names, warnings=warnings
        )

    def refused(self, error: Minute8Error) -> LineOutcome:
        return LineOutcome(self.number, self.job_id, "refused", error=error)


def put_all(
    registry: Registry,
    tenant: str,
    lines: Sequence[Line],
    *,
    until: float,
    atomic: bool = False,
    dry_run: bool = False,
    only_new: bool = False,
) -> list[LineOutcome]:
    """Create and replace jobs; with `dry_run` only return what would happen. Outcomes are in the order of the lines.

    With `only_new` a line that would replace a job is refused.
    No transaction begins after `until`. A new one-off that is past is refused, unless the registry accepts it.
    Raises TenantSuspended, NotFound (the tenant), and with `atomic` BulkRefused. If the writing stops, raises its cause
    if nothing is stored, else Unfinished.
    """
    compared = list(_compared(registry, tenant, lines, only_new))
    outcomes = {outcome.number: outcome for _, outcome in compared}
    if dry_run:
        return list(outcomes.values())
    refused = [outcome for outcome in outcomes.values() if outcome.error]
    if atomic and refused:
        raise BulkRefused(refused, len(lines))
    # Jobs of one group together: each group in a transaction needs a query for a shard with room.
    changing = sorted(
        (outcome.group, outcome.number, named_line)
        for named_line, outcome in compared
        if named_line and outcome.result in ("created", "replaced")
    )
    for done, outcome in enumerate(
        _written(registry, tenant, [named_line for *_, named_line in changing], until)
    ):
        if atomic and outcome.error:
            raise Unfinished(done, len(changing) - done, outcome.error) if done else outcome.error
        outcomes[outcome.number] = outcome
    return list(outcomes.values())


def _compared(
    registry: Registry, tenant: str, lines: Sequence[Line], only_new: bool
) -> Iterator[tuple[_NamedLine | None, LineOutcome]]:
    """What each line would change in the stored jobs, after the lines before it."""
    validator = registry.validator(tenant)
    times = Counter(_id_in(line) for line in lines)
    now = registry.store.clock.now()
    room = registry.store.ledger.room(tenant, now)
    groups = registry.imports.review(registry.store, tenant)
    for start in range(0, len(lines), _MAX_COMPARED_JOBS):
        named = [
            _named(registry, validator, line, times, only_new)
            for line in lines[start : start + _MAX_COMPARED_JOBS]
        ]
        olds = registry.store.load_all(
            tenant, [named_line.job_id for named_line in named if isinstance(named_line, _NamedLine)]
        )
        for named_line in named:
            if isinstance(named_line, LineOutcome):
                yield None, named_line
                continue
            old = olds.get(named_line.job_id)
            try:
                new = named_line.of(old, now)
                if new is not old:
                    groups.check(old, new)
                    room.take([(old, new)])
                    groups.take(old, new)
            except Minute8Error as error:
                yield named_line, named_line.refused(error)
            else:
                yield named_line, named_line.outcome(old, as_noted(new, registry.store.why_over(new)))


def _named(
    registry: Registry, validator: JobValidator, line: Line, times: Mapping[str | None, int], only_new: bool
) -> _NamedLine | LineOutcome:
    """The line with its job's id, or why it is refused."""
    job_id = None
    try:
        holds = line.read()
        if not isinstance(holds, Mapping):
            raise InvalidInput("job", "must be an object", value=holds, accepted="a JSON object")
        job_id = check_id("job_id", holds.get("job_id"), JOB_ID_CHARS)
        if times[job_id] > 1:
            message = f"appears on {times[job_id]} lines"
            raise InvalidInput("job_id", message, value=job_id, accepted="each job once")
        imports = registry.imports
        group = imports.group_in(holds.get(imports.field))
        return _NamedLine(line, validator, job_id, imports, group, only_new)
    except Minute8Error as error:
        return LineOutcome(line.number, job_id, "refused", error=error)


def _id_in(line: Line) -> str | None:
    try:
        holds = line.read()
    except Minute8Error:
        return None
    job_id = holds.get("job_id") if isinstance(holds, Mapping) else None
    return job_id if isinstance(job_id, str) else None


def _written(
    registry: Registry, tenant: str, changing: Sequence[_NamedLine], until: float
) -> Iterator[LineOutcome]:
    ensured: set[str] = set()
    for start in range(0, len(changing), MAX_AT_ONCE):
        lines_of_batch = changing[start : start + MAX_AT_ONCE]
        if registry.store.clock.now() < until:
            yield from _written_together(registry, tenant, lines_of_batch, ensured)
        else:
            yield from (line.refused(Busy(_OUT_OF_TIME)) for line in lines_of_batch)


def _written_together(
    registry: Registry, tenant: str, lines_of_batch: Sequence[_NamedLine], ensured: set[str]
) -> Iterator[LineOutcome]:
    """Write in one transaction; if a job prevents that, or the jobs are too much for one, in two halves.

    `ensured` are the groups that the request has found or made.
    """
    olds: dict[str, Job | None] = {}

    def change(line: _NamedLine, old: Job | None, now: float) -> Job:
        olds[line.job_id] = old
        return line.of(old, now)

    try:
        for group in sorted({line.group for line in lines_of_batch} - ensured):
            registry.imports.ensure_group(registry.store, tenant, group)
            ensured.add(group)
        news = registry.store.change_all(
            tenant, {line.job_id: partial(change, line) for line in lines_of_batch}
        )
    except Minute8Error as error:
        if len(lines_of_batch) == 1 or isinstance(error, Busy):
            yield from (line.refused(error) for line in lines_of_batch)
        else:
            half = len(lines_of_batch) // 2
            yield from _written_together(registry, tenant, lines_of_batch[:half], ensured)
            yield from _written_together(registry, tenant, lines_of_batch[half:], ensured)
    else:
        yield from (line.outcome(olds[line.job_id], news[line.job_id]) for line in lines_of_batch)
