"""Which jobs of a directory a list shows, and in which order. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from common.history.job_directory import ListedJob, Streak, has_tag, tags_text
from common.history.next_fires import NextFire
from common.jobs.job import ACTIVE, Job
from common.positions import JobId
from common.projection.outcomes import LastOutcomes, RunOutcome
from common.runs.states import DISPATCHED, FAILED, QUEUED, RETRYING, RUNNING, SKIPPED, SUCCEEDED

Order = Literal["id", "name", "next", "last", "failures"]
ORDERS: Final[tuple[Order, ...]] = ("id", "name", "next", "last", "failures")
# By the last outcome, the worst first.
_WORST_FIRST: Final = (FAILED, RETRYING, SKIPPED, QUEUED, RUNNING, DISPATCHED, SUCCEEDED)
# A cursor holds the beginning of a name, and 1,000 characters in all.
_SORTED_NAME_CHARS: Final = 40
_NEVER: Final = 10**11
_NO_STREAK: Final = Streak(0, 0)
_WORD: Final = re.compile(r"[^\W_]+")

# What a job is sorted by, and its id. `None` of a job's next fire time sorts last.
Place = tuple[str | int, str]


@dataclass(frozen=True, slots=True)
class JobSearch:
    """The conditions that a job must meet, and the order of the list. Empty: no condition."""

    words: tuple[str, ...] = ()
    state: str = ""
    tag: str = ""
    name_prefix: str = ""
    target: str = ""
    kind: str = ""
    failing: bool = False
    not_running: bool = False
    order: Order = "id"

    @property
    def list_name(self) -> str:
        """The name of the list, to which a cursor is bound."""
        return f"search:{self!r}"

    def matches(self, job: ListedJob) -> bool:
        """Whether a job of the directory meets all conditions but `failing` and `not_running`."""
        return (
            self.state in ("", job.state)
            and self.kind in ("", job.kind)
            and (not self.tag or has_tag(job.tags, self.tag))
            and job_begins(self.name_prefix, job.job_id, job.name)
            and self.target in ("", job.address)
            and has_words(self.words, f"{job.job_id} {job.name} {job.tags}")
        )

    def still_matches(self, job: Job) -> bool:
        """The same for the job itself, with these two."""
        target = job.spec.target
        address = str(target.get("arn") or target.get("url") or "")
        tags, kind = tags_text(job.spec.tags), str(target.get("kind"))
        listed = ListedJob(job.job_id, job.spec.name, tags, kind, address, job.state, job.revision, "")
        is_so = (job.is_failing or not self.failing) and (bool(job.not_running) or not self.not_running)
        return is_so and self.matches(listed)


def words_of(text: str) -> tuple[str, ...]:
    """The words of a search, or of what is searched."""
    return tuple(_WORD.findall(text.casefold()))


def has_words(words: Sequence[str], text: str) -> bool:
    """Whether each word is the beginning of a word of the text."""
    if not words:
        return True
    folded = text.casefold()
    if not all(word in folded for word in words):  # most texts end here
        return False
    present = _WORD.findall(folded)
    return all(any(other.startswith(word) for other in present) for word in words)


def job_begins(prefix: str, *names: str) -> bool:
    """Whether one of a job's names begins so."""
    return not prefix or any(name.startswith(prefix) for name in names)


def matching_places(
    jobs: Iterable[ListedJob],
    search: JobSearch,
    streaks: Mapping[str, Streak],
    next_fire: NextFire,
    last: LastOutcomes | None = None,
) -> list[Place]:
    """The places of the jobs that meet the conditions, in order. `streaks` as JobDirectory.streaks gives them.

    By the last outcome, the newest of equal ones comes first, and jobs without a known one last.
    """

    def streak(job: ListedJob) -> Streak:
        stored = streaks.get(job.job_id, _NO_STREAK)
        return stored if stored.revision == job.revision else _NO_STREAK  # a change of the job starts anew

    def meets(job: ListedJob) -> bool:
        return bool(
            search.matches(job)
            and (not search.failing or streak(job).failures)
            and (not search.not_running or streak(job).not_running)
        )

    def key(job: ListedJob) -> str | int:
        match search.order:
            case "name":
                return (job.name or job.job_id).casefold()[:_SORTED_NAME_CHARS]
            case "failures":
                return -streak(job).failures
            case "last":
                return _rank(last.last(job.job_id) if last else None)
            case "next":
                at = next_fire(job) if job.state == ACTIVE else None
                return _NEVER if at is None else at
        return ""

    return sorted((key(job), job.job_id) for job in jobs if meets(job))


def _rank(outcome: RunOutcome | None) -> int:
    """Worse outcomes before better ones, and newer before older ones."""
    if outcome is None:
        return len(_WORST_FIRST) * _NEVER
    return _WORST_FIRST.index(outcome.status) * _NEVER + _NEVER - outcome.fire_at


def place_hint(order: Order) -> Any:
    """What a place in such a list is made of."""
    return tuple[str, JobId] if order in ("id", "name") else tuple[int, JobId]
