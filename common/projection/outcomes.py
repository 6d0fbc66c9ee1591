"""The last outcomes of each job of a tenant, for lists of jobs.

Looks make them of the projection's windows, a part each, and keep them in a few compressed items. Later looks add the
windows since, and what has changed in earlier ones (`windows.py`). So a run costs nothing for it, and
a tenant that nobody looks at has none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Final, Literal, NamedTuple

from common.clock import CpuBudget
from common.errors import Busy
from common.planning.execution import SCHEDULE, trigger_of
from common.projection.entry import RunEntry, RunKey, fire_time
from common.projection.state import ProjectionState
from common.projection.windows import RETENTION_S as LATE_RETENTION_S
from common.projection.windows import LateRuns, ProjectedRuns
from common.runs import states
from common.storage import keys
from common.storage.chunks import Chunks, Head
from common.storage.table import Table
from common.timing.instants import DAY_S, compact_time
from common.timing.windows import WINDOW_S, window_start

# Outcomes of a job.
MAX_OUTCOMES: Final = 20
# Another format is made anew.
_FORMAT: Final = 1
# The first look goes back so far. What is asked for again within that time goes on from there.
_FIRST_S: Final = 7 * DAY_S
_UNUSED_S: Final = 7 * DAY_S
assert _UNUSED_S < LATE_RETENTION_S
# Of one request, of a whole core.
_STEP_CPU_S: Final = 0.2
# So much later windows are read again by each look, until one of them stores them.
_STORED_AFTER_S: Final = 12 * WINDOW_S
# A tick writes a note at most so long before the window, and its clock may differ from ours.
_SETTLING_S: Final = WINDOW_S
_CHUNK_CHARS: Final = 250_000
# Of a window with more runs the newest are read. Of more notes of changes none: all is made anew.
MAX_RUNS_OF_WINDOW: Final = 50_000
MAX_LATE_RUNS: Final = 20_000
# Rows of all tenants that stay in memory, some 10 MB.
_REMEMBERED_ROWS: Final = 40_000

# A letter for each outcome; hexadecimal digits, blanks, colons and tabs are taken.
_LETTERS: Final[Mapping[tuple[str, str], str]] = {
    (states.SUCCEEDED, ""): "S",
    (states.FAILED, ""): "F",
    (states.DISPATCHED, ""): "D",
    (states.RUNNING, ""): "R",
    (states.RETRYING, ""): "T",
    (states.QUEUED, ""): "Q",
    (states.SKIPPED, ""): "X",
    **{
        (states.SKIPPED, reason): letter
        for reason, letter in {
            states.DELETED_JOB: "G",
            states.PAUSED_JOB: "P",
            states.RESCHEDULED: "N",
            states.EXCLUDED: "E",
            states.MISFIRE: "L",
            states.MISSED: "M",
            states.OVERLAP: "O",
            states.CANCELLED: "C",
            states.SUSPENDED_TENANT: "U",
            states.TARGET_NOT_ALLOWED: "W",
            states.BLOCKED: "H",
            states.CONCURRENCY: "K",
            states.INVALID: "V",
        }.items()
    },
}
_OUTCOMES: Final = {letter: outcome for outcome, letter in _LETTERS.items()}


class RunOutcome(NamedTuple):
    """How a run ended, or where it is."""

    fire_at: int
    # The trigger id, if the run has one: the rest of its name.
    suffix: str
    letter: str

    @classmethod
    def of_entry(cls, entry: RunEntry) -> RunOutcome:
        letter = _LETTERS.get((entry.status, entry.reason)) or _LETTERS.get((entry.status, ""), "X")
        return cls(entry.fire_at, entry.run_name.partition(":")[2], letter)

    @property
    def run_name(self) -> str:
        name = compact_time(self.fire_at)
        return f"{name}:{self.suffix}" if self.suffix else name

    @property
    def status(self) -> str:
        return _OUTCOMES[self.letter][0]

    @property
    def reason(self) -> str:
        return _OUTCOMES[self.letter][1]

    @property
    def trigger(self) -> str:
        return trigger_of(self.run_name) if self.suffix else SCHEDULE


@dataclass(frozen=True, slots=True)
class LastOutcomes:
    """The last outcomes by job, as text, of fire times from `since` on and before `until`.

    Of the window that starts at `partial_at` and perhaps of earlier ones some are missing.
    """

    since: int
    until: int
    rows: Mapping[str, str]
    partial_at: int = 0

    @property
    def whole_from(self) -> int:
        """From when on no outcome is missing."""
        return max(self.since, self.partial_at + WINDOW_S if self.partial_at else 0)

    def of(self, job_id: str) -> list[RunOutcome]:
        """Up to MAX_OUTCOMES outcomes of a job, the newest first, with none missing among them."""
        return [run for run in decoded(self.rows.get(job_id, "")) if run.fire_at >= self.whole_from]

    def after(
        self, changes: Mapping[RunKey, RunEntry | None], until: int, partial_at: int = 0
    ) -> LastOutcomes:
        """The outcomes up to `until`, after changes. Runs from before `since` would leave a gap, and are left out."""
        recent = {key: entry for key, entry in changes.items() if fire_time(key[0]) >= self.since}
        return LastOutcomes(self.since, until, changed(self.rows, recent), partial_at or self.partial_at)

    def last(self, job_id: str) -> RunOutcome | None:
        """The newest outcome of a job; None: none is known."""
        return next(iter(decoded(self.rows.get(job_id, "").partition(" ")[0])), None)


class _Head(Head, frozen=True, kw_only=True):
    format: Literal[1]
    since: int
    until: int
    partial_at: int
    noted_at: float


@dataclass(frozen=True, slots=True)
class _Known:
    """What is stored or in memory. `noted_at`: changes noted before are in it."""

    token: str
    chunks: tuple[str, ...]
    last: LastOutcomes
    noted_at: float
    stored_until: int


@dataclass(slots=True)
class JobOutcomes:
    """The outcomes in the runs table. The tenant comes from the credential."""

    runs: Table
    _remembered: dict[str, _Known] = field(default_factory=dict)

    def of_tenant(
        self,
        tenant: str,
        state: ProjectionState,
        now: float,
        existing: Callable[[], Collection[str] | None],
    ) -> LastOutcomes:
        """The outcomes of all jobs up to where the projection is.

        `existing` gives the jobs that are to be kept when they are stored; None: all.

        Raises:
            Busy: they are being made; the next request goes on with it.
        """
        known = self._known(tenant, now)
        notes = LateRuns(self.runs).since(tenant, known.noted_at - _SETTLING_S)
        late = list(islice(notes, MAX_LATE_RUNS + 1))
        if len(late) > MAX_LATE_RUNS:
            known, late = self._anew(now, known), []
        target = max(state.until_of(tenant), known.last.until)
        read = self._read(tenant, known.last, target)
        known = replace(known, last=read.after(dict(late), read.until), noted_at=now)
        is_made = known.last.until == target
        if not is_made or target - known.stored_until >= _STORED_AFTER_S:
            known = self._store(tenant, known, now, existing())
        self._remember(tenant, known)
        if not is_made:
            raise Busy("the last outcomes of jobs are being read; try again")
        return known.last

    def _read(self, tenant: str, last: LastOutcomes, target: int) -> LastOutcomes:
        """The outcomes after those of the windows up to `target`, or up to where the time goes."""
        windows, budget = ProjectedRuns(self.runs), CpuBudget(_STEP_CPU_S)
        entries: dict[RunKey, RunEntry | None] = {}
        until, partial_at = target, 0
        for window in windows.between(tenant, last.until, target):
            runs = list(islice(windows.runs_of(tenant, window), MAX_RUNS_OF_WINDOW + 1))
            if len(runs) > MAX_RUNS_OF_WINDOW:
                partial_at = window.start
            entries |= {entry.key: entry for entry in runs}
            if budget.is_spent:
                until = min(target, window.start + WINDOW_S)
                break
        return last.after(entries, until, partial_at)

    def forget(self, tenant: str) -> None:
        """Have them made anew."""
        self.runs.delete(keys.last_outcomes(tenant))

    def _known(self, tenant: str, now: float) -> _Known:
        head = self._stored(tenant).head()
        token = head.token if head else ""
        remembered = self._remembered.pop(tenant, None)
        if remembered and remembered.token == token and now - remembered.noted_at < _UNUSED_S:
            return remembered
        if head and now - head.noted_at < _UNUSED_S:
            texts = self._stored(tenant).read(head.chunks)
            if texts is not None:
                lines = (line.partition("\t") for text in texts for line in text.splitlines())
                rows = {job_id: row for job_id, _, row in lines}
                last = LastOutcomes(head.since, head.until, rows, head.partial_at)
                return _Known(token, head.chunks, last, head.noted_at, head.until)
        chunks = head.chunks if head else ()
        return self._anew(now, _Known(token, chunks, LastOutcomes(0, 0, {}), now, 0))

    def _anew(self, now: float, before: _Known) -> _Known:
        """Nothing yet, in place of what is stored."""
        since = window_start(int(now) - _FIRST_S)
        return _Known(before.token, before.chunks, LastOutcomes(since, since, {}), now, since)

    def _store(self, tenant: str, known: _Known, now: float, existing: Collection[str] | None) -> _Known:
        rows = known.last.rows
        if existing is not None:
            rows = {job_id: row for job_id, row in rows.items() if job_id in existing}
        last = replace(known.last, rows=rows)
        head: dict[str, Any] = {
            "format": _FORMAT,
            "since": last.since,
            "until": last.until,
            "partial_at": last.partial_at,
            "noted_at": int(known.noted_at),
        }
        stored = self._stored(tenant).store(
            head, _texts(rows), int(now) + _UNUSED_S, replaces=known.token, dropped=known.chunks
        )
        if stored is None:  # another request was faster; the next look reads what that one has
            return replace(known, last=last)
        return _Known(stored["token"], tuple(stored["chunks"]), last, known.noted_at, last.until)

    def _stored(self, tenant: str) -> Chunks[_Head]:
        return Chunks(self.runs, lambda name: keys.last_outcomes(tenant, name), _Head)

    def _remember(self, tenant: str, known: _Known) -> None:
        self._remembered[tenant] = known
        while sum(len(known.last.rows) for known in self._remembered.values()) > _REMEMBERED_ROWS:
            del self._remembered[next(iter(self._remembered))]


def changed(rows: Mapping[str, str], changes: Mapping[RunKey, RunEntry | None]) -> dict[str, str]:
    """The rows after some changes of runs; None: the run is gone. Pure."""
    by_job: defaultdict[str, dict[tuple[int, str], RunOutcome | None]] = defaultdict(dict)
    for (run_name, job_id), entry in changes.items():
        place = fire_time(run_name), run_name.partition(":")[2]
        by_job[job_id][place] = RunOutcome.of_entry(entry) if entry else None
    after = dict(rows)
    for job_id, news in by_job.items():
        before = {(run.fire_at, run.suffix): run for run in decoded(after.get(job_id, ""))}
        outcomes = sorted((run for run in (before | news).values() if run), reverse=True)
        after[job_id] = encoded(outcomes[:MAX_OUTCOMES])
        if not outcomes:
            del after[job_id]
    return after


def encoded(outcomes: Iterable[RunOutcome]) -> str:
    """Outcomes as text, the newest first: the distance from the newer one, a letter, and the suffix if it differs."""
    words, newer, suffix_before = [], 0, ""
    for fire_at, suffix, letter in outcomes:
        word = f"{abs(newer - fire_at):x}{letter}"
        words.append(word if suffix == suffix_before else f"{word}:{suffix}")
        newer, suffix_before = fire_at, suffix
    return " ".join(words)


def decoded(row: str) -> list[RunOutcome]:
    """The inverse of `encoded`."""
    outcomes: list[RunOutcome] = []
    newer, suffix = 0, ""
    for word in row.split():
        place, has_suffix, its_suffix = word.partition(":")
        if has_suffix:
            suffix = its_suffix
        newer = abs(newer - int(place[:-1], 16))
        outcomes.append(RunOutcome(newer, suffix, place[-1]))
    return outcomes


def _texts(rows: Mapping[str, str]) -> Iterator[str]:
    lines: list[str] = []
    size = 0
    for job_id, row in sorted(rows.items()):
        lines.append(f"{job_id}\t{row}")
        size += len(lines[-1])
        if size > _CHUNK_CHARS:
            yield "\n".join(lines)
            lines, size = [], 0
    if lines:
        yield "\n".join(lines)
