"""Bodies at the bounds and beyond: the refusal names the bound, before anything is read or stored."""

from __future__ import annotations

import base64
import json
import tracemalloc

import pytest

from common.errors import InvalidInput
from common.platform.api_keys import Credential
from common.registration.definition import Limits, parse_definition
from common.storage import keys
from minute8.api.http.paging import write_cursor
from minute8.api.http.problems import TooLarge
from minute8.api.http.requests import Request
from minute8.eventbridge.shapes import SCHEDULE
from minute8.eventbridge.shapes import check as check_shape
from tests.api.calls import Office
from tests.worlds import job

BODY_LEVELS = 80
BULK_BYTES = 4_194_304
BULK_LINES = 1_000
MAX_PROBLEMS = 50

TOPIC = "arn:aws:sns:us-east-1:123456789012:t"


def lines_of(body: bytes) -> Request:
    headers = {"content-type": "application/x-ndjson"}
    return Request(Credential("alice", "write", ""), 0, {}, {}, headers, body)


@pytest.mark.parametrize("line", [b"1\n", b"\n", b" \n", b"{}\n"])
def test_lines_are_counted_before_they_are_split(line: bytes) -> None:
    """Two million lines took 200 MB before they were refused."""
    request = lines_of(line * (BULK_BYTES // len(line)))
    tracemalloc.start()
    try:
        if line.strip():
            with pytest.raises(TooLarge, match=f"over {BULK_LINES} lines"):
                request.lines(BULK_LINES, BULK_BYTES)
        else:
            assert request.lines(BULK_LINES, BULK_BYTES) == []
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("depth", [BODY_LEVELS, 500, 937, 5_000, 100_000])
def test_a_body_that_nests_too_deeply_is_refused(office: Office, depth: int) -> None:
    before = office.stored()
    payload = json.dumps(job(cron="0 3 * * *") | {"payload": "X"}).replace('"X"', "[" * depth + "]" * depth)
    refused = office.alice("PUT", "/v1/jobs/deep", payload.encode())
    assert (refused.status, refused.problem) == (400, "malformed-json")
    assert f"more than {BODY_LEVELS} levels" in refused.json["detail"]
    assert office.stored() == before


@pytest.mark.parametrize("source", [{"": "x"}, {"a": 10**39}, {"a": {"b": 1}}, {"a": 1.5}, {"a": "x" * 501}])
def test_a_calendars_source_is_small_and_can_be_stored(office: Office, source: object) -> None:
    refused = office.alice("PUT", "/v1/calendars/c", {"dates": [], "source": source})
    assert (refused.status, refused.json["errors"][0]["field"]) == (400, "source")


def test_calendars_are_counted_before_they_are_read(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("common.jobs.calendars.Calendars.check_named", lambda *_: pytest.fail("read"))
    for names, place in (([f"c{n}" for n in range(11)], ""), (["x" * 2_000], ".0"), ([""], ".0")):
        refused = office.alice("PUT", "/v1/jobs/a", job(cron="0 3 * * *", exclude={"calendars": names}))
        assert refused.json["errors"][0]["field"] == f"schedule.exclude.calendars{place}"


@pytest.mark.parametrize("count", [MAX_PROBLEMS, MAX_PROBLEMS + 1, 30_000])
def test_a_body_with_thousands_of_problems_names_the_first(office: Office, count: int) -> None:
    """Each took a tenth of a millisecond of the function's processor to word, and only these were sent."""
    unknown = {f"u{n}": n for n in range(count)}
    named = min(count, MAX_PROBLEMS)
    for method, path, body in (
        ("PUT", "/v1/jobs/a", job(cron="0 3 * * *") | unknown),
        ("POST", "/v1/jobs/a/pause", unknown),
        ("PUT", "/v1/subscriptions/a", unknown | {"target": {"kind": "sns", "arn": TOPIC}}),
    ):
        refused = office.alice(method, path, body)
        assert (refused.status, len(refused.json["errors"])) == (400, named)
    for check in (
        lambda: parse_definition(job(cron="0 3 * * *") | unknown, Limits()),
        lambda: check_shape(SCHEDULE, unknown),
    ):
        with pytest.raises(InvalidInput) as caught:
            check()
        assert 1 + len(caught.value.also) == named


@pytest.mark.parametrize("character", ["é", "\x01", "\U0001f600"])
def test_long_names_of_unknown_fields_are_cut_in_refusals(office: Office, character: str) -> None:
    """Lambda's answer has 6 MiB at most, and that to a bulk request within its bound had 6.5 MB."""
    sent = job(cron="0 3 * * *")
    name = character * (3_600 // (len(json.dumps(character, ensure_ascii=False).encode()) - 2))
    jobs = [{"job_id": f"job-{nth}", **sent, f"{name}{nth}": 1} for nth in range(1_000)]
    refused = office.alice("POST", "/v1/jobs/_bulk", json.dumps(jobs, ensure_ascii=False).encode())
    assert (refused.status, refused.json["refused"]) == (200, 1_000)
    assert len(refused.content) < 3_500_000
    [error] = refused.json["results"][7]["problem"]["errors"]
    assert error["field"].startswith(name[:200]) and error["field"].endswith("…")
    headers = {"kind": "http", "url": "https://example.com/", "headers": {character * 30_000: "x"}}
    refused = office.alice("PUT", "/v1/jobs/a", {**sent, "target": headers})
    assert refused.status == 400 and len(refused.content) < 10_000


def test_a_number_that_no_float_can_hold_is_refused(office: Office) -> None:
    """It ended in a 500, as a generator of odd values in each field found."""
    definition = {**job(cron="* * * * *"), "retry": {"factor": 10**400}}
    refused = office.alice("PUT", "/v1/jobs/j", definition)
    assert (refused.status, refused.json["errors"][0]["field"]) == (400, "retry.factor")


@pytest.mark.parametrize(
    "text", ["null", "true", "0", "1.5", "1e308", '"x"', "{}", "[]", "[1]", "[[1], 2, 3]"]
)
def test_a_cursor_of_any_json_is_refused(office: Office, text: str) -> None:
    """What was no list ended in a 500, on every list."""
    cursor = base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
    for caller, url in ((office.alice, "/v1/jobs"), (office.operator, "/v1/tenants")):
        refused = caller("GET", f"{url}?cursor={cursor}")
        assert (refused.status, refused.json["errors"][0]["field"]) == (400, "cursor")


def test_no_tenants_are_a_page(office: Office) -> None:
    """A new stage's list ended in a 500, and a page behind the last tenant."""
    assert office.operator("GET", "/v1/tenants").json["tenants"]
    behind = write_cursor(keys.OPERATORS, "tenants", "zzz")
    answer = office.operator("GET", f"/v1/tenants?cursor={behind}")
    assert (answer.status, answer.json) == (200, {"tenants": [], "next_cursor": None})


@pytest.mark.parametrize(
    ("calendars", "secrets", "patched_kib", "placeholders"),
    [(20, 0, 0, 0), (0, 4, 0, 1), (0, 0, 63, 600), (2, 1, 50, 100), (15, 1, 0, 100)],
)
@pytest.mark.parametrize("is_more", [False, True])
def test_what_a_call_prepares_is_bounded_in_sum(
    office: Office, calendars: int, secrets: int, patched_kib: int, placeholders: int, *, is_more: bool
) -> None:
    """Each at its bound took a third of that; all together held the processor for 95 ms."""
    names = [f"c{n}" for n in range(calendars)]
    schedule: dict[str, object] = {
        "cron": "0 3 * * *",
        "exclude": {"calendars": names[:10]},
        "include_calendars": names[10:],
    }
    for name in names:
        office.alice("PUT", f"/v1/calendars/{name}", {"dates": ["2027-01-01"]})
    secrets += 2 * is_more
    if secrets > 4:
        secrets, placeholders = 4, 400
    for n in range(secrets):
        office.alice("PUT", f"/v1/secrets/s{n}", {"value": "correct horse"})
    if patched_kib:
        schedule = {"schedules": [{**schedule, "payload_patch": {"w": 1}}]}
    payload = {
        "secrets": [f"secret://s{n}" for n in range(secrets)],
        "placeholders": ["{{attempt}}"] * placeholders,
        "fill": "x" * max(0, patched_kib * 1_024 - 14 * placeholders - 200),
    }
    answer = office.alice(
        "PUT", "/v1/jobs/j", {**job(cron="* * * * *"), "schedule": schedule, "payload": payload}
    )
    assert answer.status == (400 if is_more else 201), answer.json
    if is_more:
        assert "points to prepare a call" in answer.json["errors"][0]["message"]
