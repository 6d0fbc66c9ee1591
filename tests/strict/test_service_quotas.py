"""Quotas of SQS and EventBridge in the strict layer."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace
from typing import Any

import pytest

from scripts.embedded.strict import service_quotas


class Refusal(Exception):
    """What the server's SQS raises."""


def queue(received: int, waiting: int) -> Any:
    """A server's SQS with a queue, and functions that receive one message."""
    later, now = time.time() + 60, time.time() - 1
    messages = [{"receive_count": 1, "visible_at": later}] * received
    messages += [{"receive_count": 0, "visible_at": at} for at in (now, later) for _ in range(waiting)]

    async def receive(_request: dict[str, Any], _url: str) -> Any:
        return {"Messages": ["one"]}

    return SimpleNamespace(
        _receive_messages_for_esm=lambda *_: ["one"],
        _act_receive_message=receive,
        _get_q=lambda _url: {"messages": messages},
        _HANDLERS={},
        _Err=Refusal,
    )


def test_a_queue_with_as_many_messages_in_flight_as_it_may_have_gives_no_more() -> None:
    sqs = queue(received=3, waiting=4)
    service_quotas.limit_messages_in_flight(sqs, most=3)
    receive = sqs._HANDLERS["ReceiveMessage"]
    assert sqs._receive_messages_for_esm("url", 10) == []
    assert asyncio.run(receive({"WaitTimeSeconds": 1}, "url")) == {}, "a long poll is told nothing"
    with pytest.raises(Refusal):
        asyncio.run(receive({}, "url"))


def test_messages_that_wait_or_are_delayed_are_not_in_flight() -> None:
    sqs = queue(received=2, waiting=4)
    service_quotas.limit_messages_in_flight(sqs, most=3)
    assert sqs._receive_messages_for_esm("url", 10) == ["one"]
    assert asyncio.run(sqs._HANDLERS["ReceiveMessage"]({}, "url")) == {"Messages": ["one"]}


def test_events_above_a_seconds_quota_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    events = SimpleNamespace(
        _put_events=lambda request: len(request["Entries"]), error_response_json=lambda code, *_: code
    )
    service_quotas.limit_events(events, most=3)
    two: dict[str, Any] = {"Entries": [{}, {}]}
    assert [events._put_events(two) for _ in range(3)] == [2, 2, "ThrottlingException"]
    now[0] += 1
    assert events._put_events(two) == 2
