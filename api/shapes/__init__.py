"""The shapes that requests and answers have, for OpenAPI and the tests. Imported when the document is asked for.

`common/registration/definition.py` decides what a request's body must be. `api/views.py` writes the answers.
"""

from __future__ import annotations

from pydantic import BaseModel

from api.shapes import audit, bulk, calendars, deletions, jobs, keys, problems, runs, schedules, tenants

_ALL = (audit, bulk, calendars, deletions, jobs, keys, problems, runs, schedules, tenants)
# By the names that routes use.
TAKEN: dict[str, type[BaseModel]] = {shape.__name__: shape for part in _ALL for shape in part.TAKEN}
GIVEN: dict[str, type[BaseModel]] = {shape.__name__: shape for part in _ALL for shape in part.GIVEN}
