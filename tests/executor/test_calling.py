"""Each call gives an outcome, and each answer of a target can be stored."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from common.clock import SystemClock
from common.jobs.job import Job
from common.jobs.stored_text import StoredText
from common.planning.execution import Execution
from common.runs.claims import Claim
from common.runs.outcome import Outcome
from common.storage.table import Table
from common.storage.wire import from_wire, to_wire
from executor.calling import Admitted, CallDelay, Calls, Claimed, PayloadReader, Turns
from executor.secrets import JobSecrets
from executor.targets import Kind, answers
from minute8.eventbridge.schedule_input import PAYLOAD_FORMATS
from tests.manual_clock import ManualClock
from tests.worlds import World, at, job

MAX_RETRY_AFTER_S = 31536000.0

DUE = at("2026-11-21T03:15:00Z")
TEXTS = st.text(st.characters(codec=None, categories=None, exclude_categories=()), max_size=2_000)


@pytest.fixture
def stored(world: World) -> Job:
    world.registry.create("alice", "report", job(cron="0 9 * * *"))
    return world.store.get("alice", "report")


def inline_payload(job: Job) -> str:
    assert job.payload.text
    return job.payload.text


def called(job: Job, raised: BaseException, payload_of: PayloadReader = inline_payload) -> Outcome:
    def fails(target: Any, event: Any, timeout_s: float) -> Outcome:
        raise raised

    claim = Claim(Execution("alice", "report", DUE, DUE, 1), "m-1", DUE, DUE + 30)
    attempt = Admitted(set(), claim, job, Kind(fails), timeout_s=5, is_awaited=True)
    secrets, turns = JobSecrets(None, SystemClock()), Turns(Table(None, "test-jobs"))
    calls = Calls(ManualClock(DUE), PAYLOAD_FORMATS, payload_of, secrets, turns)
    return calls.begin(Claimed(attempt, claim, DUE, CallDelay())).finish().outcome


@pytest.mark.parametrize(
    "raised", [ValueError("negative count"), RecursionError(), MemoryError(), UnicodeError("x" * 100_000)]
)
def test_an_error_that_nobody_foresaw_is_an_attempt_that_failed(stored: Job, raised: Exception) -> None:
    outcome = called(stored, raised)
    assert (outcome.ok, outcome.permanent, outcome.throttled) == (False, False, False)
    assert outcome.error_type == type(raised).__name__


def test_an_end_of_the_process_is_no_outcome(stored: Job) -> None:
    with pytest.raises(SystemExit):
        called(stored, SystemExit())


def test_a_job_whose_event_cannot_be_made_fails_too(stored: Job) -> None:
    unknown_zone = replace(
        stored, spec=replace(stored.spec, schedule={"cron": "0 9 * * *", "timezone": "Mars/Olympus"})
    )
    unknown_zone = replace(unknown_zone, payload=StoredText.of("{{fire_date}}"))
    outcome = called(unknown_zone, AssertionError("not called"))
    assert (outcome.ok, outcome.error_type) != (True, "AssertionError")


@given(TEXTS, TEXTS, TEXTS, TEXTS, st.none() | st.floats())
def test_every_outcome_can_be_stored(
    error_type: str, error: str, log_tail: str, request_id: str, retry_after_s: float | None
) -> None:
    outcome = Outcome(False, False, error_type, error, log_tail, request_id, retry_after_s)
    item = outcome.to_item()
    assert len(str(to_wire(item)).encode()) < 6_000
    assert sum(len(text.encode()) for text in item.values() if isinstance(text, str)) <= 1_400
    assert 0 <= item.get("retry_after_s", 0) <= MAX_RETRY_AFTER_S
    assert from_wire(to_wire(item)).keys() == item.keys()


@pytest.mark.parametrize(
    ("given_s", "retention_s"),
    [(1e130, MAX_RETRY_AFTER_S), (math.inf, MAX_RETRY_AFTER_S), (math.nan, None), (-1.0, None), (60.0, 60.0)],
)
def test_a_wish_is_clamped(given_s: float, retention_s: float | None) -> None:
    assert Outcome(ok=False, retry_after_s=given_s).retry_after_s == retention_s


@pytest.mark.parametrize(
    "body",
    [
        b'{"minute8": {"retry_after_s": 1e130}}',
        b'{"minute8": {"retry_after_s": ' + b"9" * 200 + b"}}",
        b'{"minute8": {"retry_after_s": ' + b"9" * 5_000 + b"}}",
        b'{"minute8": {"retry_after_s": 1e999}}',
        b'{"minute8": {"permanent": true, "error": ' + b"[" * 900 + b"]" * 900 + b"}}",
        b'{"minute8": {"permanent": true, "error": "\\ud800"}}',
        b'{"minute8": ' + b'{"a":' * 100_000,
        b'"minute8" \xff\xfe',
    ],
)
def test_a_result_of_any_shape_is_an_outcome_that_can_be_stored(body: bytes) -> None:
    outcome = answers.retry_directive(body)
    if outcome is not None:
        to_wire(outcome.to_item())
        "".join(outcome.to_item().get(name, "") for name in ("error", "error_type")).encode()
        assert outcome.retry_after_s is None or outcome.retry_after_s <= MAX_RETRY_AFTER_S
