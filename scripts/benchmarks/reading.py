"""Looking at ten thousand jobs and at a platform of a million: requests, reads, bytes and seconds, next to job by job.

The API's function has its memory's share of a processor, and calls tables in memory over TLS.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from common.platform.tenants import Tenants
from common.timing.instants import DAY_S, rfc3339
from scripts.benchmarks import reading_data
from scripts.benchmarks.api_cpu import ENVIRONMENT, event
from scripts.benchmarks.reading_data import BEFORE, TENANT, ReadTables
from scripts.benchmarks.strict_aws import TlsServer, Worker, worker
from scripts.measure.prices import PRICES
from scripts.measure.result import Goal, Result, Table
from scripts.measure.rounds import track

JOBS, JOBS_BEFORE = 10_000, 1_000
PLATFORM_TENANTS, PLATFORM_JOBS = 1_000, 1_000_000
_ROUNDS = 5
_API_MB = 1_024
# What a tenant's first looks make, or have ticks make.
_MADE_BY_LOOKS, _LOOKS_THAT_MAKE = ("overview", "50 jobs with health"), 15
_UNITS = ("read units", "write units")
_MAX_PAGES = 100


@dataclass(slots=True)
class Seen:
    """What a look took: requests of the client, requests to DynamoDB, units, compressed bytes, seconds."""

    requests: int = 0
    queries: int = 0
    read_units: float = 0
    bytes: int = 0
    plain_bytes: int = 0
    seconds: float = 0
    first_s: float = 0

    @property
    def dollars(self) -> float:
        """What the look costs in reads, and in the API's function."""
        function = self.seconds * _API_MB / 1024 * PRICES["lambda_gb_s_arm64"]
        sent = self.bytes / 1e9 * PRICES["data_out_gb"]
        return (
            self.read_units * PRICES["dynamodb_read_unit"]
            + function
            + self.requests * _REQUEST_DOLLARS
            + sent
        )


_REQUEST_DOLLARS = PRICES["lambda_request"] + PRICES["http_api_request"]


class Client:
    """Asks a worker, as a browser would."""

    def __init__(self, api: Worker, tables: ReadTables, key: str) -> None:
        self._api, self._tables, self._key = api, tables, key
        self.seen = Seen()
        self.etag = ""

    def get(self, path: str, etag: str = "", **query: Any) -> dict[str, Any]:
        """One request; its answer, empty if it is unchanged."""
        headers = {"accept-encoding": "gzip"} | ({"if-none-match": etag} if etag else {})
        self._tables.counts.clear()
        handled = self._api.handle(
            event(
                self._key, "GET", path, query={name: str(value) for name, value in query.items()}, **headers
            )
        )
        answer = handled["answer"]
        if answer["statusCode"] == 503:  # busy: a directory is being made
            self.seen.seconds += handled["took_s"]
            return {}
        assert answer["statusCode"] in (200, 304), (path, answer)
        answered = {name.lower(): value for name, value in answer["headers"].items()}
        body = answer.get("body", "").encode()
        sent = base64.b64decode(body) if answer.get("isBase64Encoded") else body
        plain = gzip.decompress(sent) if answered.get("content-encoding") == "gzip" else sent
        self.etag, seen = answered.get("etag", ""), self.seen
        seen.requests += 1
        seen.queries += sum(count for name, count in self._tables.counts.items() if name not in _UNITS)
        seen.read_units += self._tables.counts["read units"]
        seen.bytes += len(sent) + len(json.dumps(answered))
        seen.plain_bytes += len(plain)
        seen.seconds += handled["took_s"]
        seen.first_s = seen.first_s or handled["took_s"]
        return json.loads(plain) if plain else {}

    def pages(self, path: str, **query: Any) -> Iterator[dict[str, Any]]:
        """All pages of a list."""
        cursor: dict[str, str] = {}
        for _ in range(_MAX_PAGES):
            page = self.get(path, **query, **cursor)
            yield page
            if not page["next_cursor"]:
                return
            cursor = {"cursor": page["next_cursor"]}
        raise AssertionError(f"{path} has too many pages")


Look = Callable[[Client], object]


def _all(path: str, **query: Any) -> Look:
    return lambda client: list(client.pages(path, **query))


def _single(path: str, **query: Any) -> Look:
    return lambda client: client.get(path, **query)


def _newest(**query: Any) -> Look:
    """Fifty runs, on as many pages as it takes."""

    def look(client: Client) -> None:
        runs = 0
        for page in client.pages("/v1/runs", limit=50, **query):
            runs += len(page["runs"])
            if runs >= 50:
                return

    return look


def _since(path: str, span_s: int, **query: Any) -> Look:
    return lambda client: list(client.pages(path, from_at=rfc3339(int(time.time()) - span_s), **query))


_LAST_MINUTES = _since("/v1/runs", 600, limit=200)


def _unchanged(client: Client) -> None:
    client.get("/v1/jobs", limit=50, sort="name")
    client.seen = Seen()
    client.get("/v1/jobs", client.etag, limit=50, sort="name")


def _overview_before(client: Client) -> None:
    """The console's: all jobs, the expected runs of a day, what is coming."""
    since = rfc3339(int(time.time()) - DAY_S)
    list(client.pages("/v1/jobs", limit=200))
    list(client.pages("/v1/expected", limit=5000, from_at=since))
    client.get("/v1/density")


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, by whom, and the goals: requests to the API and to DynamoDB, seconds, compressed KB."""

    look: Look
    requests: int | None = None
    queries: int | None = None
    seconds: float | None = None
    kilobytes: float | None = None
    # The same job by job.
    before: Look | None = None


_PAGE = {"limit": 50}
_BEFORE = _all("/v1/jobs", limit=200)
TENANTS_QUESTIONS: Mapping[str, Question] = {
    "overview": Question(_single("/v1/overview"), 3, None, 0.5, 40, _overview_before),
    "what is coming": Question(_single("/v1/upcoming"), 3, None, 1.5),
    "density of a day": Question(_single("/v1/density"), 3, None, 1.5),
    "the newest 50 runs": Question(_newest(), None, 10, 0.3, None, _newest()),
    "the same, failed only": Question(
        _newest(status="failed"), None, 10, 0.3, None, _newest(status="failed")
    ),
    "the same, by tag": Question(_newest(tag="billing"), None, 10, 0.3),
    "the same, by target": Question(_newest(target="lambda"), None, 10, 0.3),
    "the last ten minutes": Question(_LAST_MINUTES, None, 30, None, None, _LAST_MINUTES),
    "a day's summary": Question(_since("/v1/summary", DAY_S), None, 5),
    "a week's summary": Question(
        _since("/v1/summary", 7 * DAY_S), None, 5, None, None, _since("/v1/summary", 7 * DAY_S)
    ),
    "jobs by two words": Question(
        _single("/v1/jobs", **_PAGE, q="report 77"), None, None, 0.3, None, _BEFORE
    ),
    "jobs by tag": Question(_single("/v1/jobs", **_PAGE, tag="billing"), None, None, 0.3),
    "jobs by name": Question(_single("/v1/jobs", **_PAGE, sort="name"), None, None, 0.3),
    "jobs by the next fire time": Question(_single("/v1/jobs", **_PAGE, sort="next"), None, None, 0.3),
    "jobs by failures": Question(_single("/v1/jobs", **_PAGE, sort="failures"), None, None, 0.3),
    "jobs by name, nothing new": Question(_unchanged, None, None, 0.3, 0.5),
    "50 jobs with health": Question(
        _single("/v1/jobs", **_PAGE, health="true"),
        None,
        None,
        0.3,
        None,
        _all("/v1/jobs", limit=200, health="true"),
    ),
}
PLATFORM_QUESTIONS: Mapping[str, Question] = {
    "tenants by failed runs": Question(
        _single("/v1/operator-overview", **_PAGE, sort="failing"), 5, None, 1.0
    ),
    "tenants by late runs": Question(_single("/v1/operator-overview", **_PAGE, sort="late"), 5, None, 1.0),
    "tenants by load": Question(_single("/v1/operator-overview", **_PAGE, sort="load"), 5, None, 1.0),
    "tenants by quota": Question(_single("/v1/operator-overview", **_PAGE, sort="quota"), 5, None, 1.0),
    "density of an hour": Question(_all("/v1/operator-density"), 5, None, 1.0),
}


@dataclass(slots=True)
class Measured:
    """A question's looks: the first one of a new environment, the median of the others, and the same job by job."""

    cold: Seen
    warm: Seen
    before: Seen | None = None


@contextmanager
def _environment(tables: ReadTables, tenant: str | None) -> Iterator[Callable[[], Client]]:
    """A new environment of the API, and clients with a key of the tenant; None: with an operator's."""
    keys_of = Tenants(tables.named.tenants).api_keys
    now = time.time()
    key, _ = keys_of.create_key(tenant, "read", now) if tenant else keys_of.create_operator_key(now)
    names = {f"{name.upper()}_TABLE": f"bench-{name}" for name in reading_data.TABLES}
    with tempfile.TemporaryDirectory() as directory:
        server = TlsServer(Path(directory), tables.answer)
        settings = {**ENVIRONMENT, **names, **server.environment, "AWS_LAMBDA_FUNCTION_NAME": "bench-api"}
        with server, worker("minute8.api", settings, _API_MB) as api:
            yield lambda: Client(api, tables, key)


def run(scale: float) -> Result:
    """Measure with 10,000 jobs, and a platform of a million, at scale 1. Raises QuotaError without quotas."""
    now, load = int(time.time()), os.getloadavg()[0]
    jobs, before_jobs = max(50, int(JOBS * scale)), max(20, int(JOBS_BEFORE * scale))
    rounds = max(2, round(_ROUNDS * min(1, scale)))
    tables, before = ReadTables(), ReadTables()
    runs = reading_data.tenant_of(tables, TENANT, jobs, now)
    reading_data.project(tables, now)
    reading_data.tenant_of(before, BEFORE, before_jobs, now)
    measured = {}
    _make_directory(tables)
    first_s = {name: _first_looks(tables, TENANTS_QUESTIONS[name]) for name in _MADE_BY_LOOKS}
    for name, question in track(list(TENANTS_QUESTIONS.items()), "questions"):
        measured[name] = _ask(tables, TENANT, question, rounds)
    for name, question in track(list(TENANTS_QUESTIONS.items()), "questions, job by job"):
        measured[name].before = _before(before, BEFORE, question)
    platform = ReadTables()
    tenants, platform_jobs = max(10, int(PLATFORM_TENANTS * scale)), max(100, int(PLATFORM_JOBS * scale))
    reading_data.platform_of(platform, tenants, platform_jobs, now)
    reading_data.project(platform, now)
    for name, question in track(list(PLATFORM_QUESTIONS.items()), "questions of the platform"):
        measured[name] = _ask(platform, None, question, rounds)
    firsts = ", ".join(f"{name} {took_s:.2f} s" for name, took_s in first_s.items())
    title = f"{jobs:,} jobs with {runs:,} runs; {tenants:,} tenants with {platform_jobs:,} jobs"
    return Result(
        "reading",
        scale,
        tables=[Table(title, _HEAD, [_row(*each) for each in measured.items()])],
        goals=list(_goals(measured)),
        figures={name: asdict(each) for name, each in measured.items()},
        notes=[
            f"The first look ever, which ends with a part: {firsts}.",
            f"Job by job: {before_jobs:,} jobs, without the projection.",
            *["Other programs kept this machine busy."] * (load > 1),
        ],
    )  # fmt: skip


def _make_directory(tables: ReadTables) -> Seen:
    """The first search of a tenant, which makes the directory of its jobs in as many requests as it takes."""
    with _environment(tables, TENANT) as new_client:
        client = new_client()
        for _ in range(_MAX_PAGES):
            if client.get("/v1/jobs", limit=50, sort="name").get("jobs"):
                return client.seen
    raise AssertionError("the directory is never made")


def _before(tables: ReadTables, tenant: str | None, question: Question) -> Seen | None:
    if question.before is None:
        return None
    with _environment(tables, tenant) as client:
        return _looked(client(), question.before)


def _first_looks(tables: ReadTables, question: Question) -> float:
    """Look until all that looks make is made. Returns how long the first one took."""
    with _environment(tables, TENANT) as client:
        first = _looked(client(), question.look)
        for _ in range(_LOOKS_THAT_MAKE):
            question.look(client())
    return first.seconds


def _ask(tables: ReadTables, tenant: str | None, question: Question, rounds: int) -> Measured:
    with _environment(tables, tenant) as new_client:
        cold = _looked(new_client(), question.look)
        looks = [_looked(new_client(), question.look) for _ in range(rounds)]
    warm = looks[-1]
    warm.seconds = statistics.median(look.seconds for look in looks)
    return Measured(cold, warm)


def _looked(client: Client, look: Look) -> Seen:
    look(client)
    return client.seen


_HEAD = ["asked for", "requests", "queries", "read units", "KB sent", "of KB", "s in a new environment", "s"]
_HEAD += ["job by job: requests", "queries", "s", "KB"]


def _row(name: str, measured: Measured) -> list[str]:
    warm, before = measured.warm, measured.before
    cells = [
        name,
        f"{warm.requests}",
        f"{warm.queries}",
        f"{warm.read_units:,.0f}",
        f"{warm.bytes / 1000:.1f}",
    ]
    cells += [f"{warm.plain_bytes / 1000:,.0f}", f"{measured.cold.seconds:.2f}", f"{warm.seconds:.2f}"]
    if before is None:
        return [*cells, "", "", "", ""]
    counts = [f"{before.requests}", f"{before.queries:,}", f"{before.seconds:.1f}"]
    return [*cells, *counts, f"{before.bytes / 1000:,.0f}"]


def _goals(measured: Mapping[str, Measured]) -> Iterator[Goal]:
    for name, question in ({**TENANTS_QUESTIONS, **PLATFORM_QUESTIONS}).items():
        warm = measured[name].warm
        for words, bound, value in (
            ("requests", question.requests, warm.requests),
            ("queries", question.queries, warm.queries),
            ("s", question.seconds, round(warm.seconds, 3)),
            ("KB", question.kilobytes, round(warm.bytes / 1000, 1)),
        ):
            if bound is not None:
                yield Goal(f"{name}, {words}", bound, value, at_least=False)
