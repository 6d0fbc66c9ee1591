"""What the hop over HTTP costs: a request by the client, next to the same by `minute8.direct`, on the embedded AWS."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from unittest import mock

import boto3

from minute8 import direct
from minute8.client import Client
from scripts.demo.stage import Stage
from scripts.embedded import deploy, kill, start
from scripts.measure.result import Goal, Result, Table
from scripts.measure.rounds import ratio, take_turns

_TENANT = "acme"
_TARGET = {"kind": "lambda", "arn": "arn:aws:lambda:us-east-1:123456789012:function:report"}
_LISTED = 20
_CALLS = 20
_ROUNDS = 9


def run(scale: float) -> Result:
    """Measure, with twenty requests of each kind in a round at scale 1."""
    calls = max(2, int(_CALLS * min(scale, 1)))
    with _clients() as (over_http, without_http):
        requests = {
            f"{kind}, {way}": _timed(request, calls)
            for way, client in (("over HTTP", over_http), ("direct", without_http))
            for kind, request in _requests(client).items()
        }
        take_turns(requests, 1)
        measured = take_turns(requests, max(2, round(_ROUNDS * min(scale, 1))))
    kinds = list(_requests(without_http))
    ratios = {kind: ratio(measured[f"{kind}, over HTTP"], measured[f"{kind}, direct"]) for kind in kinds}
    rows = [
        [
            kind,
            *(
                f"{statistics.median(measured[f'{kind}, {way}']) * 1000:.1f}"
                for way in ("over HTTP", "direct")
            ),
            f"{ratios[kind]:.1f}",
        ]
        for kind in kinds
    ]
    return Result(
        "direct",
        scale,
        tables=[Table("Time of a request, ms", ["request", "over HTTP", "direct", "ratio"], rows)],
        goals=[Goal("direct: get a job, time over HTTP / direct", 1, ratios["get a job"], at_least=True)],
        figures={"ratios": ratios},
    )


@contextmanager
def _clients() -> Iterator[tuple[Client, direct.Client]]:
    """Both, of one tenant of a new embedded AWS."""
    with tempfile.TemporaryDirectory(prefix="minute8-bench-") as directory:
        try:
            embedded = deploy(start(Path(directory), 0, tied=True), stage="local")
            stage = Stage(embedded.env(), "local")
            stage.allow([_TENANT], _TARGET["arn"])
            with (
                mock.patch.dict(os.environ, embedded.env()),
                Client(embedded.api_url, stage.key_for_a_day(_TENANT)) as over_http,
                direct.Client(boto3.Session(), _TENANT, stage="local") as without_http,
            ):
                yield over_http, without_http
        finally:
            kill(Path(directory))


def _requests(client: Client | direct.Client) -> dict[str, Callable[[], object]]:
    """The same methods, whichever client it is."""
    numbers = count()

    def put() -> object:
        changed = {"schedule": {"cron": "30 2 1 1 *"}, "target": _TARGET, "name": str(time.time())}
        return client.put_job(f"job-{next(numbers) % _LISTED}", changed)

    return {
        "put a job": put,
        "get a job": lambda: client.get_job("job-0"),
        f"list {_LISTED} jobs": lambda: client.list_jobs_page(limit=_LISTED),
    }


def _timed(request: Callable[[], object], calls: int) -> Callable[[], float]:
    """Seconds for one of so many calls."""

    def timed() -> float:
        began = time.perf_counter()
        for _ in range(calls):
            request()
        return (time.perf_counter() - began) / calls

    return timed
