"""The saved queries of Logs Insights: each names only fields and messages of log lines that are really emitted."""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
import yaml

from common import config, telemetry
from common.platform.api_keys import Credential
from common.runs.outcome import Outcome
from executor import handler as executor_handler
from executor.batch import execute_batch
from executor.pipeline import Message
from executor.recorder import Report
from minute8.api.http.refusals import log_refused
from scheduler import handler
from tests.scheduler_handler import serve
from tests.worlds import World, at, job

QUERIES = yaml.safe_load((Path(__file__).resolve().parents[2] / "deploy" / "queries.yml").read_text())[
    "Resources"
]
_WORDS = {"fields", "filter", "sort", "limit", "stats", "count", "as", "by", "in", "or", "and", "asc", "desc"}


@pytest.fixture
def lines(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[list[Any]]:
    """The log lines of a tick, a lost execution, a failed run, and a message that fails."""
    serve(world, monkeypatch)
    # powertools keeps the stdout of the test that logged first.
    for kept in logging.getLogger("minute8").handlers:
        monkeypatch.setattr(kept, "stream", sys.stdout)
    for cached in (config.config, telemetry.metrics, telemetry.logger):
        cached.cache_clear()
    world.registry.create("alice", "fails", job(cron="* * * * *"))
    world.target.answer = lambda event: Outcome(ok=False, permanent=True, error_type="Boom", error="it broke")
    world.run_until("2026-11-21T03:14:00Z")
    skipped = Report("skipped", world.reports[0].execution, detail="overlap")
    executor_handler._log_and_count([*world.reports, skipped], failed=0)
    log_refused(Credential("alice", "read", "k1"), "GET /v1/jobs/{job_id}", HTTPStatus.NOT_FOUND)
    broken = replace(world.executor, due_jobs=None)  # type: ignore[arg-type]
    execute_batch(broken, [Message("m-1", world.sqs.bodies[0])])
    world.clock.move_to(at("2026-11-21T03:18:00Z"))
    handler.handle({}, None)
    world.sqs._waiting.clear()
    world.clock.move_to(at("2026-11-21T03:58:00Z"))
    handler.handle({}, None)
    yield [json.loads(line) for line in capsys.readouterr().out.splitlines() if "message" in line]
    for cached in (config.config, telemetry.metrics, telemetry.logger):
        cached.cache_clear()


def test_each_query_finds_lines_with_all_its_fields_and_lines_name_the_execution(
    lines: list[dict[str, Any]],
) -> None:
    for name, query in QUERIES.items():
        text = query["Properties"]["QueryString"]
        bare = re.sub(r'"[^"]*"', "", text)
        fields = (
            set(re.findall(r"(?<![@\w])[a-z_]+", re.sub(r"as \w+|sort (runs|requests)", "", bare))) - _WORDS
        )
        messages = re.findall(r'"([a-z ]+)"', text) or ["failed"]
        matching = [line for line in lines if line["message"] in messages]
        assert matching, name
        assert {line["message"] for line in matching} | {"share", "skipped"} >= set(messages), name
        emitted = {field for line in matching for field in line}
        # Of one execution, lines of several kinds are found.
        emitted |= {field for line in lines for field in line if "execution_id" in line}
        assert fields <= emitted, (name, fields - emitted)
    for message in ("failed", "message failed"):
        (line, *_) = (line for line in lines if line["message"] == message)
        assert {"tenant", "job_id", "execution_id", "attempt", "trace_id"} <= line.keys()
