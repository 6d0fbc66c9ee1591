"""The embedded AWS's FilterLogEvents finds all events of a group, page by page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain
from types import SimpleNamespace
from typing import Any

import pytest
from ministack.services import cloudwatch_logs as stock  # type: ignore[import-untyped]

from scripts.embedded import patches

GROUP = {"logGroupName": "/aws/lambda/pages"}


@pytest.fixture
def logs() -> Iterator[SimpleNamespace]:
    """The changed service with an empty log group."""
    module = SimpleNamespace(_filter_log_events=stock._filter_log_events)
    patches.page_logs(module)
    stock._create_log_group(GROUP)
    yield module
    stock._delete_log_group(GROUP)


def put(stream: str, events: list[tuple[int, str]]) -> None:
    named = GROUP | {"logStreamName": stream}
    stock._create_log_stream(named)
    stock._put_log_events(
        named | {"logEvents": [{"timestamp": at, "message": message} for at, message in events]}
    )


def pages(logs: SimpleNamespace, **request: Any) -> list[list[str]]:
    answers: list[list[str]] = []
    token: dict[str, str] = {}
    while not answers or token:
        status, _, body = logs._filter_log_events(GROUP | request | token)
        assert status == 200
        answer = json.loads(body)
        answers.append([event["message"] for event in answer["events"]])
        token = {"nextToken": answer["nextToken"]} if "nextToken" in answer else {}
    return answers


def test_more_events_than_a_page_has(logs: SimpleNamespace) -> None:
    """A burst of 5,000 calls writes 25,000 lines: their witness saw 2,000 of the calls."""
    messages = [f"call {number}" for number in range(25_000)]
    put("one", [(1_000 + number // 7, message) for number, message in enumerate(messages)])
    assert [*chain(*pages(logs))] == messages


def test_pages_end_among_events_of_one_time(logs: SimpleNamespace) -> None:
    put("one", [(5, "a"), (6, "b"), (6, "c"), (6, "d")])
    put("other", [(6, "e"), (6, "f"), (7, "g"), (8, "h")])
    assert [*chain(*pages(logs, limit=3))] == list("abcdefgh")
    assert [*chain(*pages(logs, limit=3, startTime=6))] == list("bcdefgh")
    assert [*chain(*pages(logs, limit=2, filterPattern="g"))] == ["g"]


def test_a_group_that_does_not_exist_is_refused(logs: SimpleNamespace) -> None:
    status, _, body = logs._filter_log_events({"logGroupName": "none"})
    assert (status, json.loads(body)["__type"]) == (400, "ResourceNotFoundException")
