"""Lists of jobs that are searched or sorted: by the directory of the tenant's jobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import dropwhile
from typing import Final, get_args

from common.errors import InvalidInput
from common.history.job_search import (
    ORDERS,
    JobSearch,
    Order,
    Place,
    matching_places,
    place_hint,
    words_of,
)
from common.history.next_fires import Fires
from common.jobs.job import Job, exists
from common.limits import SEARCH_CHARS, SEARCH_WORDS
from common.registration.target_definitions import MODELS
from minute8.api.http.paging import read_cursor
from minute8.api.http.requests import Request
from minute8.api.http.routing import Query
from minute8.api.services import Services

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
