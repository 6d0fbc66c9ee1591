"""A change by PATCH, by a line of a bulk request and by PUT: three ways to write the same job."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from common.jobs.job import Job
from common.jobs.placeholders import merge_patch
from common.registration import bulk
from common.registration.definition import definition_of, same_json
from tests.worlds import ARN, World, job, open_world

T = "alice"
# In CI, and as many as wanted elsewhere: MINUTE8_FUZZ=20000
EXAMPLES = int(os.environ.get("MINUTE8_FUZZ", "40"))


@pytest.fixture(scope="module")
def shared() -> Iterator[World]:
    with open_world() as world:
        yield world


def put_line(world: World, job_id: str, definition: dict[str, Any]) -> bulk.LineOutcome:
    line = bulk.Line(1, lambda: {"job_id": job_id, **definition})
    (outcome,) = bulk.put_all(world.registry, T, [line], until=world.clock.now() + 60)
    return outcome


@pytest.mark.parametrize(
    ("before", "after"), [(1, True), (True, 1), (0, False), ({"dry_run": 1}, {"dry_run": True}), (1, 1.0)]
)
def test_values_that_only_python_calls_equal_are_a_change(world: World, before: Any, after: Any) -> None:
    definition = job(cron="0 3 * * *", payload=[before])
    world.registry.create(T, "patched", definition)
    world.registry.create(T, "put", definition)
    assert world.registry.patch(T, "patched", {"payload": [after]}).new.revision == 2
    outcome = put_line(world, "put", definition | {"payload": [after]})
    assert (outcome.result, outcome.changed) == ("replaced", ("payload",))
    for name in ("patched", "put"):
        assert identical(world.store.get(T, name).payload.value, [after])


@pytest.mark.parametrize("factor", [2, 2.0, 1.23456, 1.1, 9.999999999999998, 1 / 3 + 1])
def test_a_factor_is_stored_as_it_was_sent(world: World, factor: float) -> None:
    definition = job(cron="0 3 * * *", retry={"factor": factor})
    created = world.registry.create(T, "report", definition)
    stored = world.store.get(T, "report")
    assert stored.spec.retry.factor == factor
    assert identical(stored.spec.retry.factor, created.spec.retry.factor)
    assert put_line(world, "report", definition).result == "unchanged"


def test_an_interval_keeps_its_anchor_while_it_stays_the_same(world: World) -> None:
    first = world.registry.create(T, "daily", job(every="1d")).schedule.timing
    world.clock.sleep(3_600 * 23)
    for changes in (
        {"schedule": {"end_at": "2027-01-01T00:00:00Z"}},
        {"schedule": {"jitter_s": 5}},
        {"schedule": {"exclude": {"dates": ["2026-12-24"]}}},
        {"schedule": {"every": "24h"}},
        {"schedule": {"end_at": None, "exclude": None}},
    ):
        assert world.registry.patch(T, "daily", changes).new.schedule.timing == first, changes
    assert put_line(world, "daily", job(every=86_400, jitter_s=9)).result == "replaced"
    assert world.store.get(T, "daily").schedule.timing == first
    world.run_until("2026-11-22T03:15:00Z", ticks=True)
    assert world.target.fire_times("daily") == ["2026-11-22T03:12:00Z"]


def test_an_interval_that_changes_or_loses_its_anchor_counts_from_now(world: World) -> None:
    world.registry.create(T, "often", job(every="1h"))
    world.registry.create(T, "anchored", job(every="1h", anchor="2026-01-01T00:07:00Z"))
    world.clock.sleep(100)
    now = int(world.clock.now())
    for job_id, changes in (("often", {"every": "2h"}), ("anchored", {"anchor": None})):
        timing = world.registry.patch(T, job_id, {"schedule": changes}).new.schedule.timing
        assert timing == replace(timing, anchor_at=now)


SCALARS = (
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([0.0, 1.0, -0.0, 0.5, "", "1", "ä"])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["", "a", "b"]), inner, max_size=2)
    ),
    max_leaves=5,
)
RETRIES = st.fixed_dictionaries(
    {},
    optional={
        "max_attempts": st.integers(1, 3),
        "factor": st.integers(1, 3) | st.floats(1, 10),
        "cap_s": st.integers(1, 9),
    },
)
# Each removes the other kind when it is merged.
TIMINGS = st.sampled_from(["0 3 * * *", "@daily"]).map(lambda cron: {"cron": cron, "every": None}) | (
    st.sampled_from([86_400, "1d", "24h", 60]).map(lambda every: {"every": every, "cron": None})
)
BOUNDS = st.fixed_dictionaries(
    {},
    optional={
        "end_at": st.sampled_from(["2027-01-01T00:00:00Z", "2028-01-01T00:00:00+01:00"]),
        "jitter_s": st.integers(0, 2),
        "spread_s": st.integers(0, 2),
        "exclude": st.sampled_from([{}, {"dates": []}, {"dates": ["2026-12-24"]}]),
    },
)
DEFINITIONS = st.fixed_dictionaries(
    {
        "schedule": st.builds(lambda timing, bounds: timing | bounds, TIMINGS, BOUNDS),
        "target": st.just({"kind": "lambda", "arn": ARN}),
    },
    optional={
        "payload": VALUES,
        "retry": RETRIES,
        "tags": st.lists(st.sampled_from(["a", "b"]), max_size=2),
        "timeout_s": st.integers(1, 3),
        "overlap": st.sampled_from(["allow", "skip"]),
        "start_deadline_s": st.integers(1, 2),
    },
)


@given(before=DEFINITIONS, changes=DEFINITIONS)
@settings(max_examples=EXAMPLES, deadline=None, phases=[Phase.explicit, Phase.generate])
def test_patch_bulk_and_put_store_the_same(
    shared: World, before: dict[str, Any], changes: dict[str, Any]
) -> None:
    world, registry = shared, shared.registry
    names = ("put", "patched", "line")
    olds = {name: registry.put(T, name, before) for name in names}
    old = olds["put"]
    world.clock.sleep(7)
    expected = registry.put(T, "put", merge_patch(definition_of(old), changes))
    patched_job = registry.patch(T, "patched", changes).new
    outcome = put_line(world, "line", merge_patch(definition_of(old), changes))
    for job_id in ("patched", "line"):
        assert_same(registry.store.get(T, job_id), registry.store.get(T, "put"))
    assert_same(patched_job, expected)
    same = identical(definition_of(expected), definition_of(old))
    assert outcome.result == ("unchanged" if same else "replaced")
    for job_id in ("patched", "line"):
        assert (registry.store.get(T, job_id).revision == olds[job_id].revision) == same
    assert put_line(world, "line", definition_of(expected)).result == "unchanged"
    for name in names:
        registry.store.delete(T, name)


def assert_same(value: Job, other: Job) -> None:
    assert identical(definition_of(value), definition_of(other))
    assert value.schedule == other.schedule


@given(VALUES, VALUES)
def test_same_json_is_identity(value: Any, other: Any) -> None:
    assert same_json(value, other) == identical(value, other)
    assert same_json(value, value)


def identical(value: Any, other: Any) -> bool:
    """Whether two values have the same JSON text, by their Python types."""
    if type(value) is not type(other):
        return False
    if isinstance(value, dict):
        return value.keys() == other.keys() and all(identical(value[name], other[name]) for name in value)
    if isinstance(value, list):
        return len(value) == len(other) and all(map(identical, value, other))
    return repr(value) == repr(other)
