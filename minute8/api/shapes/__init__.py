"""The shapes of the bodies of requests and responses: routes read requests by them, OpenAPI shows them.

They are imported with the first request that has a body: building the models would delay each cold start by 40 ms.
`minute8/api/views.py` writes most responses.
"""

from __future__ import annotations

from msgspec import Struct

from minute8.api.shapes import (
    base,
    bulk,
    calendars,
    definitions,
    expected,
    jobs,
    overview,
    platform,
    runs,
    secrets,
    subscriptions,
    tenants,
    upcoming,
)

_MODULES = (
    *(
        base,
        bulk,
        calendars,
        definitions,
        expected,
        jobs,
        overview,
        platform,
        runs,
        secrets,
        subscriptions,
        tenants,
    ),
    upcoming,
)
# Routes name their shapes.
SHAPES: dict[str, type[Struct]] = {
    name: shape
    for module in _MODULES
    for name, shape in vars(module).items()
    if isinstance(shape, type) and issubclass(shape, Struct) and shape.__module__ == module.__name__
}
