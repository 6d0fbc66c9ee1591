"""A definition with all fields, wrong at one place: it is refused with a reason, or stored; nothing fails."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from common.errors import Minute8Error
from common.registration.calendar_store import CalendarStore
from tests.worlds import World

WRONG_VALUES: Final[tuple[Any, ...]] = (
    *(None, True, -1, 1.5, 10**40, float("inf"), "", "x", "2w", "secret://x", "{{", "\x00", "\ud800", "x" * 5_000),
    *([], [[]], [None], [{}], [{"x": 1}], ["x", "x"], {}, {"": 1}, {"x": {"x": []}}, {"cron": 1}, {"kind": "x"}),
)  # fmt: skip
SINGLE: Final = {
    "cron": "0 9 * * *",
    "timezone": "Europe/Berlin",
    "dialect": "minute8",
    "start_at": "2026-12-01T00:00:00Z",
    "exclude": {"dates": ["2026-12-24"], "calendars": ["feasts"]},
    "include_calendars": ["feasts"],
    "on_excluded": "next",
    "payload_patch": {"a": 1},
}
INTERVAL: Final = {"every": "2w", "anchor": "2026-01-01T09:00", "timezone": "Europe/Berlin"}
WHOLE: Final[dict[str, Any]] = {
    "name": "n",
    "tags": ["a"],
    "owner": "o",
    "runbook": "https://x.example.com/",
    "schedule": {"schedules": [SINGLE, INTERVAL, {"at": "2027-01-01T09:00:00Z"}], "jitter_s": 3},
    "target": {"kind": "http", "url": "https://hooks.example.com/x", "headers": {"X-A": "secret://token"}},
    "payload": {"a": ["secret://token {{attempt}}"]},
    "completion": "callback",
    "callback_timeout_s": 600,
    "retry": {"max_attempts": 3, "max_age_s": 3_600, "base_s": 5, "factor": 2, "cap_s": 60},
    "start_deadline_s": 60,
    "catch_up": "latest",
    "overlap": "skip",
    "pause_after_failures": 3,
    "on_crash": "fail",
    "dead_letter": "arn:aws:sqs:us-east-1:123456789012:q",
    "alert": {"longer_than_s": 60, "shorter_than_s": 1, "no_success_for_s": 3_600},
    "concurrency": {"key": "k", "limit": 2, "when_full": "wait", "max_wait_s": 60},
}


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    members = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for name, inner in members:
        yield (*path, name)
        yield from places(inner, (*path, name))


def changed_at(path: tuple[Any, ...], change: Callable[[Any, Any], None]) -> dict[str, Any]:
    definition = copy.deepcopy(WHOLE)
    container: Any = definition
    for name in path[:-1]:
        container = container[name]
    change(container, path[-1])
    return definition


def add_a_field(container: Any, name: Any) -> None:
    if isinstance(container[name], dict):
        container[name]["kind2"] = 1


def wrong_definitions(field: str) -> Iterator[dict[str, Any]]:
    for path in places(WHOLE):
        if path[0] != field:
            continue
        for wrong in WRONG_VALUES:
            yield changed_at(path, lambda container, name, wrong=wrong: container.__setitem__(name, wrong))
        yield changed_at(path, lambda container, name: container.__delitem__(name))
        yield changed_at(path, add_a_field)


@pytest.mark.parametrize("field", WHOLE)
def test_what_is_wrong_at_one_place_is_refused_or_stored(world: World, field: str) -> None:
    now = world.clock.now()
    CalendarStore(world.table("jobs"), world.store.audited).put(
        "alice", "feasts", {"dates": ["2026-12-24"]}, now
    )
    world.secrets.put("alice", "token", "some value", now)
    world.registry.put("alice", "job", WHOLE)
    refusals = []
    for definition in wrong_definitions(field):
        try:
            world.registry.put("alice", "job", definition)
        except Minute8Error as error:
            refusals.append(str(error))
    assert refusals
    assert all(refusals)
