"""What docs/limits.md says of input: at the bound a request is accepted, one beyond it is refused as its row says.

The numbers are the page's, not the code's. tests/docs/test_limits.py compares the page with the code.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.api.calls import Answer, Office
from tests.worlds import job

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "limits.md").read_text()
UNITS = {"KiB": 1024, "MiB": 1024 * 1024, "days": 86_400}
DAILY: dict[str, Any] = job(cron="0 3 * * *")
URL = "https://hooks.example.com/"


def put(office: Office, **fields: Any) -> Answer:
    return office.alice("PUT", "/v1/jobs/report", DAILY | fields)


def scheduled(office: Office, **schedule: Any) -> Answer:
    return put(office, schedule=DAILY["schedule"] | schedule)


def to_endpoint(office: Office, **target: Any) -> Answer:
    return put(office, target={"kind": "http", "url": URL} | target)


def sized(office: Office, method: str, url: str, text: str, size: int, **headers: str) -> Answer:
    return office.alice(method, url, text.encode().ljust(size), **headers)


def nested(levels: int) -> Any:
    return json.loads("[" * levels + "]" * levels)


def with_calendars(office: Office, many: int, field: str) -> Answer:
    for number in range(11):
        office.alice("PUT", f"/v1/calendars/c{number}", {"dates": ["2026-12-24"]})
    names = [f"c{number}" for number in range(many)]
    fields = {"exclude": {"calendars": names}} if field == "exclude" else {"include_calendars": names}
    return scheduled(office, **fields)


def one_more(office: Office, many: int, make: Callable[[int], Answer]) -> Answer:
    """The answer to the last of `many`; all before it succeed."""
    assert all(make(number).status < 300 for number in range(many - 1))
    return make(many - 1)


def secret(office: Office, value: str) -> Answer:
    return office.alice("PUT", "/v1/secrets/token", {"value": value})


def put_calendar(office: Office, **fields: Any) -> Answer:
    return office.alice("PUT", "/v1/calendars/holidays", {"dates": []} | fields)


def put_secret(office: Office, number: int) -> Answer:
    return office.alice("PUT", f"/v1/secrets/s{number}", {"value": "long enough"})


def block(office: Office, number: int) -> Answer:
    return office.operator("POST", "/v1/blocks", {"pattern": f"h{number}.example.com"})


def subscribe(office: Office, number: int = 0, **fields: Any) -> Answer:
    target = {"kind": "http", "url": URL}
    return office.alice("PUT", f"/v1/subscriptions/s{number}", {"target": target} | fields)


def secrets_named(office: Office, many: int) -> Answer:
    secret(office, "long enough")
    return put(office, payload=["secret://token"] * many)


def skipped(office: Office, many: int) -> Answer:
    office.alice("PUT", "/v1/jobs/report", job(every=3600))
    return office.alice("POST", "/v1/jobs/report/skip", {"count": many})


def backfilled(office: Office, many: int) -> Answer:
    office.operator("PATCH", "/v1/tenants/alice", {"quotas": {"executions_per_day": None}})
    office.alice("PUT", "/v1/jobs/report", job(cron="* * * * *"))
    end_at = datetime.fromtimestamp(office.world.clock.now(), UTC)
    span = {"start_at": (end_at - timedelta(minutes=many)).isoformat(), "end_at": end_at.isoformat()}
    return office.alice("POST", "/v1/jobs/report/backfills", span)


# Of a row, its number in order of appearance, and what happens to a request with so much of it.
INPUT: dict[tuple[str, int], Callable[[Office, int], Answer]] = {
    ("body of a request", 0): lambda o, n: sized(o, "PUT", "/v1/jobs/report", json.dumps(DAILY), n),
    ("body of a bulk request", 0): lambda o, n: sized(
        o, "POST", "/v1/jobs/_bulk", "", n, Content_Type="application/x-ndjson"
    ),
    ("nesting of a payload", 0): lambda o, n: put(o, payload=nested(n)),
    ("cron expression", 0): lambda o, n: scheduled(
        o, cron=f"{'1' * (2 - n % 2)}{',1' * ((n - 9) // 2)} 3 * * *"
    ),
    ("spread (`jitter_s`)", 0): lambda o, n: scheduled(o, jitter_s=n),
    ("`pace`: `per_second`; `tolerance_s`", 1): lambda o, n: scheduled(o, pace={"per_second": n}),
    ("`pace`: `per_second`; `tolerance_s`", 3): lambda o, n: scheduled(
        o, pace={"per_second": 1, "tolerance_s": n}
    ),
    ("a job's own excluded dates", 0): lambda o, n: scheduled(
        o, exclude={"dates": [f"{2030 + day // 28}-01-{day % 28 + 1:02}" for day in range(n)]}
    ),
    ("calendars that a job names", 0): lambda o, n: with_calendars(o, n, "exclude"),
    ("calendars that a job names", 1): lambda o, n: with_calendars(o, n, "include"),
    ("calendars of a tenant", 0): lambda o, n: one_more(
        o, n, lambda number: o.alice("PUT", f"/v1/calendars/c{number}", {"dates": []})
    ),
    ("dates of a calendar", 0): lambda o, n: put_calendar(
        o, dates=[f"{2000 + day // 300}-{day // 25 % 12 + 1:02}-{day % 25 + 1:02}" for day in range(n)]
    ),
    ("`source` of a calendar", 0): lambda o, n: put_calendar(o, source={"a": "x" * (n - len("{'a': ''}"))}),
    ("name, note", 0): lambda o, n: put(o, name="x" * n),
    ("name, note", 1): lambda o, n: put(o, state="paused", note="x" * n),
    ("tags", 0): lambda o, n: put(o, tags=[f"t{number}" for number in range(n)]),
    ("tags", 1): lambda o, n: put(o, tags=["x" * n]),
    ("ids of jobs, calendars; nonces", 0): lambda o, n: o.alice("PUT", f"/v1/jobs/{'x' * n}", DAILY),
    ("ids of jobs, calendars; nonces", 1): lambda o, n: o.alice(
        "PUT", f"/v1/calendars/{'x' * n}", {"dates": []}
    ),
    ("URL; headers of an `http` target", 0): lambda o, n: to_endpoint(o, url=URL.ljust(n, "x")),
    ("URL; headers of an `http` target", 1): lambda o, n: to_endpoint(
        o, headers={f"x-{number}": "1" for number in range(n)}
    ),
    ("attempts; age", 0): lambda o, n: put(o, retry={"max_attempts": n}),
    ("attempts; age", 1): lambda o, n: put(o, retry={"max_age_s": n}),
    ("fire times of a backfill", 0): backfilled,
    ("words of a search of jobs", 0): lambda o, n: o.alice("GET", f"/v1/jobs?q={'+'.join('x' * n)}"),
    ("words of a search of jobs", 1): lambda o, n: o.alice("GET", f"/v1/jobs?q={'x' * n}"),
    ("fire times that one call skips, or takes back", 0): skipped,
    ("blocked patterns of targets", 0): lambda o, n: one_more(o, n, lambda number: block(o, number)),
    ("secrets; one's value", 0): lambda o, n: one_more(o, n, lambda number: put_secret(o, number)),
    ("secrets; one's value", 2): lambda o, n: secret(o, "é" * (n // 2) + "x" * (n % 2)),
    ("lines of a secret", 0): lambda o, n: secret(o, "\n".join(f"line {number:03}" for number in range(n))),
    ("`secret://` in a job", 0): secrets_named,
    ("page of a list", 0): lambda o, n: o.alice("GET", f"/v1/jobs?limit={n}"),
    ("subscriptions of a tenant", 0): lambda o, n: one_more(o, n, lambda number: subscribe(o, number)),
    ("`delay_s`, `group_s`; `name_prefix`, `tag`", 0): lambda o, n: subscribe(o, delay_s=n),
    ("`delay_s`, `group_s`; `name_prefix`, `tag`", 1): lambda o, n: subscribe(o, tag="x" * n),
}
# The last column of a row with several bounds, or that says nothing of the status.
STATUS = {
    ("blocked patterns of targets", 0): 409,
    ("secrets; one's value", 2): 400,
    ("page of a list", 0): 400,
}


def row(quantity: str) -> tuple[list[int], str]:
    """The numbers of a row in units of one, and its last column."""
    ((bound, beyond),) = re.findall(rf"^\| {re.escape(quantity)} \| (.*?) \| (.*?) \|$", PAGE, re.MULTILINE)
    numbers = re.findall(r"(?<![\w`])([\d,]*\d)(?: (\w+))?", bound)
    return [int(number.replace(",", "")) * UNITS.get(unit, 1) for number, unit in numbers], beyond


@pytest.mark.parametrize(("quantity", "place"), INPUT)
def test_a_bound_is_where_the_page_says(office: Office, quantity: str, place: int) -> None:
    numbers, beyond = row(quantity)
    send, most = INPUT[quantity, place], numbers[place]
    accepted = send(office, most)
    assert accepted.status < 300, accepted.text
    refused = send(office, most + 1)
    assert refused.status == STATUS.get((quantity, place), int(beyond[:3]) if beyond[:3].isdigit() else 0), (
        refused.text
    )


def test_a_secrets_value_has_a_least_length(office: Office) -> None:
    least = row("secrets; one's value")[0][1]
    assert secret(office, "x" * least).status < 300
    assert secret(office, "x" * (least - 1)).status == 400
