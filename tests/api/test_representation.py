"""How answers go over the wire: compressed, and as 304 for a client that has them already."""

from __future__ import annotations

import json

import pytest

from minute8.api.http.representation import compressed, is_known, takes_gzip
from tests.api.calls import Caller, Office
from tests.api.walk import Call, calls_of_document
from tests.worlds import job

MIN_COMPRESSED_BYTES = 1_000

GETS = [
    call for call in calls_of_document() if call.method == "GET" and call.path not in ("/v1/jobs/_export",)
]
# Their ETag is a revision, for If-Match.
REVISIONS = ("/v1/jobs/{job_id}", "/v1/calendars/{name}", "/v1/tenants/{tenant_id}")


@pytest.mark.parametrize(
    ("header", "takes"),
    [
        ("gzip", True),
        ("gzip, deflate, br, zstd", True),
        ("br;q=1.0, GZIP ; q = 0.5", True),
        ("x-gzip", True),
        ("*", True),
        ("*;q=0.1, identity", True),
        ("gzip;q=0", False),
        ("gzip;q=0.000, *", False),
        ("*;q=0", False),
        ("identity", False),
        ("br", False),
        ("", False),
        (",;=,,", False),
    ],
)
def test_which_clients_get_gzip(header: str, takes: bool) -> None:
    assert takes_gzip(header) is takes


@pytest.mark.parametrize(
    ("header", "known"),
    [
        ('W/"a"', True),
        ('"a"', True),
        ('"b", W/"a"', True),
        ("*", True),
        ('"b"', False),
        ("a", False),
        ("", False),
    ],
)
def test_which_etags_are_known(header: str, known: bool) -> None:
    assert is_known('W/"a"', header) is known


def test_a_long_answer_is_compressed_for_who_takes_it_and_says_the_same(office: Office) -> None:
    for n in range(20):
        office.alice("PUT", f"/v1/jobs/report-{n}", job(cron="0 3 * * *", name="Bericht für Ä😀"))
    plain = office.alice("GET", "/v1/jobs")
    short = office.alice("GET", "/v1/jobs", Accept_Encoding="gzip, deflate")
    assert (short.json, short.headers["etag"]) == (plain.json, plain.headers["etag"])
    assert len(short.content) * 8 < len(plain.content)
    assert short.headers["content-encoding"] == "gzip" and "content-encoding" not in plain.headers
    assert short.headers["vary"] == plain.headers["vary"] == "Accept-Encoding"
    assert office.alice("GET", "/v1/jobs", Accept_Encoding="gzip;q=0").content == plain.content


def test_every_kind_of_answer_can_be_compressed(office: Office) -> None:
    lines = tuple({"job_id": f"bad {n}"} for n in range(20))
    for answer in (
        office.alice("POST", "/v1/jobs/_bulk?atomic=true", lines, Accept_Encoding="gzip"),
        Caller(None)("GET", "/v1/openapi.json", Accept_Encoding="gzip"),
    ):
        assert answer.headers["content-encoding"] == "gzip"
        assert isinstance(json.loads(answer.text), dict)
    for n in range(9):
        office.alice("PUT", f"/v1/jobs/report-{n}", job(cron="0 3 * * *"))
    export = office.alice("GET", "/v1/jobs/_export", Accept_Encoding="gzip")
    assert export.headers["content-encoding"] == "gzip" and len(export.text.splitlines()) == 9


@pytest.mark.parametrize(
    "path",
    ["/v1/jobs", "/v1/jobs/nothing", "/v1/openapi.json", "/console", "/elsewhere", "/eventbridge/schedules"],
)
def test_browsers_stay_on_https_whatever_the_answer(office: Office, path: str) -> None:
    for caller in (office.alice, Caller(None)):
        seconds = caller("GET", path).headers["strict-transport-security"].removeprefix("max-age=")
        assert int(seconds) >= 180 * 86_400


def test_a_short_answer_stays_as_it_is() -> None:
    answer = {
        "statusCode": 200,
        "headers": {},
        "body": "x" * (MIN_COMPRESSED_BYTES - 1),
        "isBase64Encoded": False,
    }
    assert compressed(answer, "gzip") is answer
    longer = {**answer, "body": "x" * MIN_COMPRESSED_BYTES}
    assert compressed(longer, "gzip")["isBase64Encoded"] is True


@pytest.mark.parametrize("call", [call for call in GETS if call.path not in REVISIONS], ids=str)
def test_an_unchanged_answer_is_not_sent_again(settled: Office, call: Call) -> None:
    caller = settled.operator if call.role == "operator" else settled.alice_admin
    first = caller("GET", call.url)
    again = caller("GET", call.url, If_None_Match=first.headers["etag"], Accept_Encoding="gzip")
    assert (again.status, again.content, again.headers["etag"]) == (304, b"", first.headers["etag"])
    assert sum(len(name) + len(value) + 4 for name, value in again.headers.items()) < 300
    other = caller("GET", call.url, If_None_Match='"7"')
    assert (other.status, other.json) == (200, first.json)


@pytest.mark.parametrize("path", ["/v1/jobs", "/v1/runs", "/v1/jobs/report/runs", "/v1/failures"])
def test_a_poll_without_news_is_short_later_too(office: Office, path: str) -> None:
    office.alice("PUT", "/v1/jobs/report", job(cron="0 3 * * *"))
    office.world.run_until("2026-11-22T03:05:00Z", ticks=True)
    first = office.alice("GET", path)
    office.world.clock.sleep(20)
    assert office.alice("GET", path, If_None_Match=first.headers["etag"]).status == 304
    office.world.run_until("2026-11-23T03:05:00Z", ticks=True)
    later = office.alice("GET", path, If_None_Match=first.headers["etag"])
    assert (later.status == 304) == (path == "/v1/failures")


def test_an_etag_that_is_a_revision_leaves_no_answer_out(office: Office) -> None:
    """The next fire time of a job changes without a new revision."""
    office.alice("PUT", "/v1/jobs/report", job(cron="0 3 * * *"))
    assert office.alice("GET", "/v1/jobs/report", If_None_Match='"1"').status == 200
