"""Lists of jobs that are searched or sorted: by the directory of the tenant's jobs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import dropwhile
from typing import Any, Final, Literal, get_args

from common.errors import InvalidInput
from common.history.job_directory import ListedJob, Streak, has_tag, tags_text
from common.history.next_fires import Fires, NextFire
from common.jobs.job import ACTIVE, Job, exists
from common.limits import SEARCH_CHARS, SEARCH_WORDS
from common.projection.outcomes import LastOutcomes, RunOutcome
from common.registration.target_definitions import MODELS
from common.runs.states import DISPATCHED, FAILED, QUEUED, RETRYING, RUNNING, SKIPPED, SUCCEEDED
from common.storage.bounded import JobId
from minute8.api.http.paging import read_cursor
from minute8.api.http.requests import Request
from minute8.api.http.routing import Query
from minute8.api.services import Services

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
            and (not search.not_running or streaks.get(job.job_id, _NO_STREAK).not_running)
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


# Jobs that are read together.
_READ_AT_ONCE: Final = 50
SEARCH: Final = (
    Query(
        "q",
        "Only jobs in whose id, name and tags each of these words begins a word.",
        {"type": "string", "minLength": 1, "maxLength": SEARCH_CHARS},
    ),
    Query("kind", "Only jobs with a target of this kind.", {"type": "string", "enum": list(MODELS)}),
    Query("failing", "Only jobs whose last run failed.", {"type": "boolean", "default": False}),
    Query("not_running", "Only jobs that do not run.", {"type": "boolean", "default": False}),
    Query(
        "sort",
        "By id, by name, by the next fire time, by the last outcome, the worst first, or by failures in a row, "
        "the most first. The last outcome is what ticks have written down, up to half an hour ago.",
        {"type": "string", "enum": list(ORDERS), "default": "id"},
    ),
)


def search_of(
    query: Mapping[str, str], fields: Mapping[str, str], failing: bool, not_running: bool
) -> JobSearch | None:
    """The search in a query whose simple conditions are `fields`; None for a plain list. Raises InvalidInput."""
    text = query.get("q", "")
    words = words_of(text)
    if "q" in query and not (len(text) <= SEARCH_CHARS and 0 < len(words) <= SEARCH_WORDS):
        accepted = f"1 to {SEARCH_WORDS} words, {SEARCH_CHARS} characters at most"
        raise InvalidInput("q", "must be words", value=text, accepted=accepted)
    kind = _one_of(query, "kind", "", tuple(MODELS))
    orders: tuple[Order, ...] = get_args(Order)
    order = next(known for known in orders if known == _one_of(query, "sort", "id", ORDERS))
    search = JobSearch(words, **fields, kind=kind, failing=failing, not_running=not_running, order=order)
    return search if search != JobSearch() else None


def _one_of(query: Mapping[str, str], name: str, default: str, accepted: tuple[str, ...]) -> str:
    text = query.get(name, default)
    if name in query and text not in accepted:
        raise InvalidInput(name, "is not known", value=text, accepted=", ".join(accepted))
    return text


def searched(
    services: Services, request: Request, search: JobSearch
) -> tuple[int, Iterator[tuple[Place, Job]]]:
    """How many jobs the directory has for the search; and those after the request's cursor, each with its place.

    Raises InvalidInput, Busy.
    """

    hint = place_hint(search.order)
    after: Place | None = read_cursor(request.tenant, search.list_name, request.query.get("cursor"), hint)
    directory, tenant = services.directory, request.tenant
    jobs = directory.listed(tenant, request.now)
    needs_streaks = search.failing or search.not_running or search.order == "failures"
    streaks = directory.streaks(tenant) if needs_streaks else {}
    last = services.listed_health.last_outcomes(tenant, request.now) if search.order == "last" else None
    fires = Fires.of(services.store.jobs, tenant, request.now)
    places = matching_places(jobs, search, streaks, fires.next, last)
    rest = places if after is None else list(dropwhile(lambda place: place <= after, places))
    return len(places), _read(services, request.tenant, search, rest)


def _read(
    services: Services, tenant: str, search: JobSearch, places: list[Place]
) -> Iterator[tuple[Place, Job]]:
    """The jobs at these places, read while they are consumed. What has changed meanwhile is left out."""
    for start in range(0, len(places), _READ_AT_ONCE):
        part = places[start : start + _READ_AT_ONCE]
        loaded = services.store.load_all(tenant, [job_id for _, job_id in part])
        for place in part:
            job = loaded.get(place[1])
            if job is not None and exists(job) and search.still_matches(job):
                yield place, job
