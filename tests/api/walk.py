"""Every operation of the generated OpenAPI document as a call that would work for alice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from api.app import ROUTES
from api.openapi import document
from tests.worlds import job

# A body for every shape that a route takes. A new shape needs an example here.
BODIES: dict[str, Any] = {
    "NewJob": job(cron="* * * * *"),
    "JobPatch": {"tags": ["patched"]},
    "PreviewRequest": {"schedule": {"cron": "30 2 * * *", "timezone": "Europe/Paris"}, "count": 3},
    "Pause": {"note": "maintenance"},
    "NewCalendar": {"dates": ["2026-12-24"]},
    "RunNow": {"nonce": "walk"},
    "NewBackfill": {"start_at": "2026-11-21T00:00:00Z", "end_at": "2026-11-21T00:02:00Z"},
}
# What alice has, in the fixture `settled`.
NAMES = {
    "job_id": "report",
    "execution_id": "alice:report:20261121T031300Z:1",
    "backfill_id": "one",
    "name": "holidays",
}
# Where another run is needed: one that has failed, one that waits.
RUNS = {
    "/v1/runs/{execution_id}/retry": "alice:fails:20261121T031230Z:1",
    "/v1/runs/{execution_id}/cancel": "alice:report:20261121T031900Z:1",
}


@dataclass(frozen=True)
class Call:
    """One operation, filled in. `names` is whether its path names something of alice's."""

    method: str
    path: str
    url: str
    body: Any
    role: str
    names: bool

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


def calls_of_document() -> Iterator[Call]:
    for path, operations in document(ROUTES)["paths"].items():
        for method, operation in operations.items():
            if "security" not in operation:
                continue
            yield Call(
                method=method.upper(),
                path=path,
                url=path.format(**NAMES | {"execution_id": RUNS.get(path, NAMES["execution_id"])}),
                body=_body(operation),
                role=operation["x-minute8-role"],
                names="{" in path,
            )


def _body(operation: dict[str, Any]) -> Any:
    if "requestBody" not in operation:
        return None
    (content,) = operation["requestBody"]["content"].values()
    return BODIES[content["schema"]["$ref"].rpartition("/")[2]]
