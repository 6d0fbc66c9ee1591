"""The API's function in a separate process: one request, its status, its seconds and the process's peak memory.

Not a test: `test_hostile_tenant.py` runs it, with the tables and the key in its environment.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

from tests.processes import peak_mb

LAMBDA = {"kind": "lambda", "arn": "arn:aws:lambda:us-east-1:123456789012:function:target"}
BULK = ("POST", "/v1/jobs/_bulk", "application/x-ndjson")
MAX_BULK = 4 * 1024 * 1024
# As many values as JSON can have in a payload's bytes: each takes twenty times its text in memory.
WORST_PAYLOAD = "[" + ",".join(["[]"] * 43_600) + "]"


def definition(payload: str, job_id: str = "") -> str:
    fields = {"schedule": {"cron": "0 3 * * *"}, "target": LAMBDA, "payload": "PAYLOAD"}
    named = {"job_id": job_id} | fields if job_id else fields
    return json.dumps(named).replace('"PAYLOAD"', payload)


def many_lines() -> bytes:
    lines = (definition('"' + "x" * 3_900 + '"', f"job-{n}") for n in range(1_000))
    return "\n".join(lines).encode()[:MAX_BULK]


def worst_payloads() -> bytes:
    return "\n".join(definition(WORST_PAYLOAD, f"job-{n}") for n in range(31)).encode()


def over_worst_payloads() -> bytes:
    return "\n".join(definition("1", f"job-{n}") for n in range(31)).encode()


def worst_lines() -> bytes:
    return b"\n".join(b"[" + b",".join([b"{}"] * 174_000) + b"]" for _ in range(8))


BODIES: dict[str, tuple[tuple[str, str, str], Callable[[], bytes]]] = {
    "nothing": (("GET", "/v1/tenant", "application/json"), bytes),
    "two million lines": (BULK, lambda: b"1\n" * (MAX_BULK // 2)),
    "lines of nothing but values": (BULK, worst_lines),
    "a thousand jobs": (BULK, many_lines),
    "payloads of nothing but values": (BULK, worst_payloads),
    "changes of such payloads": (BULK, over_worst_payloads),
    "one line of 4 MiB": (BULK, lambda: b'{"a":"' + b"x" * (MAX_BULK - 10) + b'"}'),
    "a job": (("PUT", "/v1/jobs/a", "application/json"), lambda: definition(WORST_PAYLOAD).encode()),
    "a body of nothing but values": (
        ("PUT", "/v1/jobs/a", "application/json"),
        lambda: b"[" + b",".join([b"{}"] * 174_000) + b"]",
    ),
    "a calendar": (
        ("PUT", "/v1/calendars/c", "application/json"),
        lambda: json.dumps(
            {"dates": [f"{2000 + n // 336}-{1 + n // 28 % 12:02}-{1 + n % 28:02}" for n in range(2_500)]}
        ).encode(),
    ),
    "a list of jobs with full calendars": (("GET", "/v1/jobs?limit=200", "application/json"), bytes),
    "an iCalendar": (
        ("PUT", "/v1/calendars/c", "application/json"),
        lambda: json.dumps({"icalendar": "BEGIN:VEVENT\n" * 35_000}).encode(),
    ),
}


# Reads of what hostile tenants store, and what is stored before each.
LISTS = {
    "health of jobs with full calendars": "/v1/jobs?limit=200&health=true",
    "what is coming of jobs with full calendars": "/v1/upcoming?limit=1000",
    "the density of jobs with full calendars": "/v1/density",
    "what was expected of jobs with full calendars": "/v1/expected?limit=200",
    "a search beside deleted jobs": "/v1/jobs?tag=nobody",
    "what was expected beside deleted jobs": "/v1/expected?limit=200",
    "all runs beside deleted jobs": "/v1/runs",
    "a list of payloads of nothing but values": "/v1/jobs?limit=200",
    "an export of payloads of nothing but values": "/v1/jobs/_export",
}
BODIES |= {name: (("GET", url, "application/json"), bytes) for name, url in LISTS.items()}

DELETED_JOBS = 15_000
FULL_CALENDARS = 10
"""So many calendars exclude every date for 68 years."""


def _full_calendars() -> Iterator[tuple[tuple[str, str, str], bytes]]:
    """Ten calendars of 2,500 dates, and a page of jobs that name them and never fire."""
    today = datetime.now(UTC).date()
    for number in range(FULL_CALENDARS):
        dates = [(today + timedelta(days=FULL_CALENDARS * n + number)).isoformat() for n in range(2_500)]
        body = json.dumps({"dates": dates}).encode()
        yield ("PUT", f"/v1/calendars/full-{number}", "application/json"), body
    exclude = {"calendars": [f"full-{number}" for number in range(FULL_CALENDARS)]}
    lines = (
        {
            "job_id": f"0never-{n}",
            "schedule": {"cron": f"{n % 60} 3 * * *", "exclude": exclude},
            "target": LAMBDA,
        }
        for n in range(200)
    )
    yield BULK, "\n".join(map(json.dumps, lines)).encode()


def _deleted_jobs() -> Iterator[tuple[tuple[str, str, str], bytes]]:
    """What thousands of deleted jobs leave. Nothing bounds their number; deleting them here would take minutes."""
    from common.storage import aws, keys
    from common.storage.table import Table

    table = Table(aws.dynamodb(), os.environ["JOBS_TABLE"])
    table.put_many(
        [
            {**keys.former_job("alice", f"deleted-{n:05}"), "tenant": "alice", "job_id": f"deleted-{n:05}"}
            for n in range(DELETED_JOBS)
        ]
    )
    yield BULK, definition("1", "live").encode()


def _worst_payloads() -> Iterator[tuple[tuple[str, str, str], bytes]]:
    """Jobs that are the first of each list."""
    lines = (definition(WORST_PAYLOAD, f"00-{n:02}") for n in range(30))
    yield BULK, "\n".join(lines).encode()


# Requests that are made before the measured one.
BEFORE: dict[str, Callable[[], Iterator[tuple[tuple[str, str, str], bytes]]]] = {
    name: before
    for end, before in (
        ("full calendars", _full_calendars),
        ("deleted jobs", _deleted_jobs),
        ("payloads of nothing but values", _worst_payloads),
    )
    for name in BODIES
    if name.endswith(end) and BODIES[name][0][0] == "GET"
}


def _event(call: tuple[str, str, str], body: bytes) -> dict[str, object]:
    method, url, kind = call
    path, _, query = url.partition("?")
    return {
        "version": "2.0",
        "rawPath": path,
        "rawQueryString": query,
        "queryStringParameters": dict(pair.split("=") for pair in query.split("&") if pair),
        "headers": {"content-type": kind, "authorization": f"Bearer {os.environ['API_KEY']}"},
        "requestContext": {"http": {"method": method, "path": path}, "requestId": "1", "stage": "$default"},
        "body": base64.b64encode(body).decode(),
        "isBase64Encoded": True,
    }


def main() -> None:
    # The deployed function's layer does not contain them.
    sys.modules.update(dict.fromkeys(("holidays", "icalendar")))  # type: ignore[arg-type]
    from minute8.api import handler

    (call, body) = BODIES[sys.argv[1]]
    for earlier, earlier_body in BEFORE.get(sys.argv[1], list)():
        assert handler.handle(_event(earlier, earlier_body), None)["statusCode"] in (200, 201)
    request = _event(call, body())
    began, cpu = time.monotonic(), time.process_time()
    answer = handler.handle(request, None)
    figures = {
        "status": answer["statusCode"],
        "body": answer["body"][:300],
        "bytes": len(answer["body"]),
        "s": round(time.monotonic() - began, 2),
        "cpu_s": round(time.process_time() - cpu, 2),
        "mb": peak_mb(),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
