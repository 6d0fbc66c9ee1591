"""What a job may have at most is taken, and one more is refused by its field. docs/limits.md has each bound."""

from __future__ import annotations

from typing import Any

import pytest

from common.errors import InvalidInput
from common.registration.calendar_store import CalendarStore
from tests.worlds import World, job, open_world

CRON = {"cron": "0 3 * * *"}
HTTP = {"kind": "http", "url": "https://example.com/", "method": "POST"}


def cron_of(chars: int) -> dict[str, Any]:
    return {"cron": f"{'0,' * (chars // 2)}0"[: chars - 8].rstrip(",").ljust(chars - 8, "0") + " 3 * * *"}


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def dates(count: int) -> list[str]:
    return [f"20{30 + n // 336}-{n // 28 % 12 + 1:02}-{n % 28 + 1:02}" for n in range(count)]


def names(count: int) -> list[str]:
    return [f"c{n}" for n in range(count)]


def patched(size: int) -> dict[str, Any]:
    """A job whose payload has so many bytes with its schedule's patch."""
    patch = {"w": 1}
    empty_bytes = len('{"v":"","w":1}')
    return {
        "schedule": {"schedules": [{**CRON, "payload_patch": patch}]},
        "payload": {"v": "x" * (size - empty_bytes), "w": 0},
    }


def with_patch(size: int) -> dict[str, Any]:
    """A job with a patch of so many bytes."""
    patch = {"v": "x" * (size - len('{"v":""}'))}
    return {"schedule": {"schedules": [{**CRON, "payload_patch": patch}]}, "payload": {"v": ""}}


# The field, what has as much as it may, and what has one more.
BOUNDS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("schedule.cron", cron_of(256), cron_of(257)),
    (
        "schedule.spread_s",
        {"schedule": {**CRON, "spread_s": 3_600}},
        {"schedule": {**CRON, "spread_s": 3_601}},
    ),
    ("schedule.jitter_s", {"jitter_s": 86_400}, {"jitter_s": 86_401}),
    (
        "schedule.pace.per_second",
        {"pace": {"key": "k", "per_second": 1_000, "tolerance_s": 600}},
        {"pace": {"key": "k", "per_second": 1_001, "tolerance_s": 600}},
    ),
    (
        "schedule.pace.tolerance_s",
        {"pace": {"key": "k", "per_second": 1, "tolerance_s": 600}},
        {"pace": {"key": "k", "per_second": 1, "tolerance_s": 601}},
    ),
    ("schedule.exclude.dates", {"exclude": {"dates": dates(400)}}, {"exclude": {"dates": dates(401)}}),
    (
        "schedule.exclude.calendars",
        {"exclude": {"calendars": names(10)}},
        {"exclude": {"calendars": names(11)}},
    ),
    ("schedule.include_calendars", {"include_calendars": names(10)}, {"include_calendars": names(11)}),
    ("name", {"name": "x" * 200}, {"name": "x" * 201}),
    ("tags", {"tags": [f"t{n}" for n in range(20)]}, {"tags": [f"t{n}" for n in range(21)]}),
    ("tags.0", {"tags": ["x" * 64]}, {"tags": ["x" * 65]}),
    (
        "target.url",
        {"target": {**HTTP, "url": f"https://example.com/{'x' * 2_028}"}},
        {"target": {**HTTP, "url": f"https://example.com/{'x' * 2_029}"}},
    ),
    (
        "target.headers",
        {"target": {**HTTP, "headers": {f"x-{n}": "v" for n in range(20)}}},
        {"target": {**HTTP, "headers": {f"x-{n}": "v" for n in range(21)}}},
    ),
    ("retry.max_attempts", {"retry": {"max_attempts": 186}}, {"retry": {"max_attempts": 187}}),
    ("payload", {"payload": nested(64)}, {"payload": nested(65)}),
    ("payload.0", {"payload": ["{{attempt}}" * 1_000]}, {"payload": ["{{attempt}}" * 1_001]}),
    ("payload", {"payload": "x" * (128 * 1024 - 2)}, {"payload": "x" * (128 * 1024 - 1)}),
    ("schedule.schedules.0.payload_patch", patched(64 * 1024), patched(64 * 1024 + 1)),
    ("schedule.schedules.0.payload_patch", with_patch(1_024), with_patch(1_025)),
    ("payload.20", {"payload": ["secret://s0"] * 20}, {"payload": ["secret://s0"] * 21}),
    (
        "payload.4",
        {"payload": [f"secret://s{n}" for n in range(4)]},
        {"payload": [f"secret://s{n}" for n in range(5)]},
    ),
]


def definition(fields: dict[str, Any]) -> dict[str, Any]:
    """A job with these fields of its schedule or its own."""
    own = {"name", "tags", "target", "retry", "payload"}
    timing = {name: value for name, value in fields.items() if name not in {*own, "schedule"}}
    spec = {name: value for name, value in fields.items() if name in {*own, "schedule"}}
    return {**job(**{**CRON, **timing}), **spec}


@pytest.fixture(scope="module")
def settled() -> Any:
    """A tenant that has what the jobs name."""
    with open_world() as world:
        calendars = CalendarStore(world.table("jobs"), world.store.audited)
        for name in names(11):
            calendars.put("alice", name, {"dates": ["2026-12-24"]}, int(world.clock.now()))
        for n in range(5):
            world.secrets.put("alice", f"s{n}", "x" * 16, world.clock.now())
        yield world


@pytest.mark.parametrize(
    ("field", "most", "more"), BOUNDS, ids=[f"{n} {field}" for n, (field, *_) in enumerate(BOUNDS)]
)
def test_the_most_is_taken_and_one_more_refused(
    settled: World, field: str, most: dict[str, Any], more: dict[str, Any]
) -> None:
    settled.registry.put("alice", "at-the-bound", definition(most))
    with pytest.raises(InvalidInput) as refused:
        settled.registry.put("alice", "at-the-bound", definition(more))
    assert refused.value.field == field


def test_what_a_call_prepares_has_85_points(settled: World) -> None:
    """Four for each of ten calendars are 40, 20 for each of two secrets are 40, and 1 for 33 placeholders."""

    def with_placeholders(count: int) -> dict[str, Any]:
        payload = {"a": ["secret://s0", "secret://s1"], "p": "{{attempt}}" * count}
        return {**job(**CRON, exclude={"calendars": names(10)}), "payload": payload}

    settled.registry.put("alice", "points", with_placeholders(33 * 5))
    with pytest.raises(InvalidInput, match="85 points"):
        settled.registry.put("alice", "points", with_placeholders(33 * 5 + 33))
