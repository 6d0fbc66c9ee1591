"""The shapes of requests and answers, for OpenAPI and the tests. Imported when a client requests the document.

`common/registration/definition.py` validates a request's body. `api/views.py` writes the answers.
"""

from __future__ import annotations

from pydantic import BaseModel

from api.shapes import (
    audit,
    bulk,
    calendars,
    dead_letters,
    deletions,
    expected,
    holds,
    jobs,
    keys,
    many,
    overview,
    planning,
    problems,
    runs,
    schedules,
    subscriptions,
    tenants,
    unrecorded,
    upcoming,
    version,
)

_ALL = (
    audit,
    bulk,
    calendars,
    dead_letters,
    deletions,
    expected,
    holds,
    jobs,
    keys,
    many,
    overview,
    planning,
    problems,
    runs,
    schedules,
    subscriptions,
    tenants,
    unrecorded,
    upcoming,
    version,
)
# Routes name their shapes.
TAKEN: dict[str, type[BaseModel]] = {shape.__name__: shape for part in _ALL for shape in part.TAKEN}
GIVEN: dict[str, type[BaseModel]] = {shape.__name__: shape for part in _ALL for shape in part.GIVEN}
