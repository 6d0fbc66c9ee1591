"""A large payload is an item of its own: the job's item stays small, and an attempt reads it when it is made."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from msgspec import structs

from common.jobs.job import Job
from common.jobs.large_texts import MissingText
from common.jobs.stored_text import StoredText
from common.runs.outcome import Outcome
from common.storage import keys
from common.storage.table import Query
from common.storage.wire import Item, item_bytes, to_wire
from common.tenants.audit import Audit
from tests.worlds import World, at, job

INLINE_BYTES = 1_024
SUPERSEDED_KEPT_S = 3_600

DUE = "2026-11-21T03:15:00Z"
KIB = 1024


def payload_of(size: int) -> str:
    """A payload whose JSON has so many bytes."""
    return "x" * (size - 2)


def stored_item(world: World, job_id: str = "job") -> Item:
    return world.table("jobs").get(keys.job("alice", job_id)) or {}


def texts_of(world: World, job_id: str = "job") -> list[Item]:
    return list(world.table("jobs").query(Query(keys.texts_of_job("alice", job_id))))


def seen_payloads(world: World) -> list[Any]:
    seen: list[Any] = []

    def call(event: Mapping[str, Any]) -> Outcome:
        seen.append(json.loads(event["payload"]))
        return Outcome(ok=True)

    world.target.answer = call
    return seen


@pytest.mark.parametrize("size", [10, INLINE_BYTES, INLINE_BYTES + 1, 10 * KIB, 128 * KIB])
@pytest.mark.parametrize("invocation", ["RequestResponse", "Event"])
def test_the_target_gets_a_payload_of_any_size(world: World, size: int, invocation: str) -> None:
    seen = seen_payloads(world)
    world.registry.create("alice", "job", job(at=DUE, payload=payload_of(size), invocation=invocation))
    assert len(texts_of(world)) == (size > INLINE_BYTES)
    assert item_bytes(to_wire(stored_item(world))) < 1_000 + INLINE_BYTES
    world.run_until("2026-11-21T03:16:00Z")
    assert seen == [payload_of(size)]


def test_placeholders_of_a_large_payload_are_replaced(world: World) -> None:
    seen = seen_payloads(world)
    world.registry.create("alice", "job", job(at=DUE, payload=["{{job_id}}", payload_of(5_000)]))
    world.run_until("2026-11-21T03:16:00Z")
    assert seen == [["job", payload_of(5_000)]]


def test_what_is_no_change_of_the_payload_writes_none(world: World) -> None:
    world.registry.create("alice", "job", job(cron="0 3 * * *", payload=payload_of(5_000)))
    before = texts_of(world)
    world.registry.patch("alice", "job", {"name": "another"})
    world.store.pause("alice", "job")
    world.store.resume("alice", "job")
    unchanged = world.store.get("alice", "job")
    world.registry.put("alice", "job", job(cron="0 3 * * *", payload=payload_of(5_000), name="another"))
    assert world.store.get("alice", "job") == unchanged
    assert texts_of(world) == before
    assert "expires_at" not in before[0]


def test_a_payload_that_no_job_names_any_more_expires(world: World) -> None:
    """Until then, an executor that has read the job still finds it."""
    world.registry.create("alice", "job", job(cron="0 3 * * *", payload=payload_of(5_000)))
    loaded = world.store.get("alice", "job")
    world.registry.patch("alice", "job", {"payload": payload_of(6_000)})
    assert world.executor.calls.payload_of(loaded) == json.dumps(payload_of(5_000))
    expires_at = int(world.clock.now()) + SUPERSEDED_KEPT_S
    kept = {len(text["text"]): text.get("expires_at") for text in texts_of(world)}
    assert kept == {5_000: expires_at, 6_000: None}
    world.registry.patch("alice", "job", {"payload": payload_of(5_000)})
    kept = {len(text["text"]): text.get("expires_at") for text in texts_of(world)}
    assert kept == {5_000: None, 6_000: expires_at}
    world.registry.patch("alice", "job", {"payload": "small"})
    world.registry.patch("alice", "job", {"payload": payload_of(7_000)})
    world.store.delete("alice", "job")
    assert all("expires_at" in text for text in texts_of(world))


def test_a_payload_that_cannot_be_read_is_no_attempt_of_the_tenants(world: World) -> None:
    seen = seen_payloads(world)
    world.registry.create("alice", "job", job(at=DUE, payload=payload_of(5_000), retry={"max_attempts": 1}))
    (text,) = texts_of(world)
    world.table("jobs").delete(keys.key_of(text))
    world.run_until("2026-11-21T03:15:10Z")
    (run,) = world.runs.of_job("alice", "job", limit=10)
    assert (run.status, run.attempts[0].error_type) == ("retrying", "PayloadNotRead")
    world.table("jobs").put(text)
    world.run_until("2026-11-21T03:45:00Z")
    assert (world.statuses("alice", "job"), seen) == (["succeeded"], [payload_of(5_000)])


def test_a_job_that_an_earlier_version_stored_keeps_its_payload(world: World) -> None:
    """It is called as it is. Its first change gives the payload an item of its own."""
    seen = seen_payloads(world)
    world.registry.create("alice", "job", job(cron="15 3 * * *", payload=payload_of(5_000)))
    (text,) = texts_of(world)
    world.table("jobs").delete(keys.key_of(text))
    world.table("jobs").put({**stored_item(world), "payload": text["text"]})
    world.run_until("2026-11-21T03:16:00Z")
    assert seen == [payload_of(5_000)]
    world.registry.put("alice", "job", job(cron="15 3 * * *", payload=payload_of(5_000)))
    assert texts_of(world) == [], "nothing has changed"
    world.store.pause("alice", "job")
    assert texts_of(world) == [text]
    assert stored_item(world)["payload"] == {"bytes": 5_000, "sha256": text["sk"]}
    (entry,) = Audit(world.table("tenants")).newest("alice", 1)
    assert "payload" not in {**entry.before, **entry.after}


def test_a_process_keeps_the_payloads_that_it_has_read(world: World) -> None:
    world.registry.create("alice", "job", job(cron="* * * * *", payload=payload_of(5_000)))
    loaded = world.store.get("alice", "job")
    reads: list[str] = []
    world.dynamodb.before = reads.append
    for _ in range(3):
        assert world.executor.calls.payload_of(loaded)
    assert reads == ["batch_get_item"]


def test_jobs_with_texts_that_are_gone_say_so(world: World) -> None:
    world.registry.create("alice", "job", job(at=DUE, payload=payload_of(5_000)))
    stored = world.store.get("alice", "job")
    elsewhere = structs.replace(
        stored, payload=StoredText.from_attribute({"bytes": 9_999, "sha256": "0" * 64})
    )
    with pytest.raises(MissingText, match=r"job 'job' of 'alice' is damaged: .*its large text is not stored"):
        world.store.texts.with_payloads([elsewhere])
    with pytest.raises(LookupError):
        assert stored.payload.value
    (read,) = world.store.texts.with_payloads([stored])
    assert read == stored == Job.from_item(stored_item(world))
    assert at(DUE) > world.clock.now()


def test_a_job_that_ends_and_is_deleted_takes_its_payload_along(world: World) -> None:
    fields = job(at=DUE, payload=payload_of(5_000), after_completion="delete")
    world.registry.create("alice", "job", fields)
    world.run_until("2026-11-21T03:40:00Z", ticks=True)
    assert stored_item(world) == {}
    (text,) = texts_of(world)
    assert text["expires_at"] < at("2026-11-21T05:00:00Z")


def test_a_payload_that_was_deleted_by_hand_is_stored_again(world: World) -> None:
    fields = job(cron="0 3 * * *", payload=payload_of(5_000))
    world.registry.create("alice", "job", fields)
    (text,) = texts_of(world)
    world.table("jobs").delete(keys.key_of(text))
    for payload in ("small", payload_of(5_000)):
        world.registry.put("alice", "job", {**fields, "payload": payload})
    assert texts_of(world) == [text]


def test_a_retry_sends_the_payload_that_the_job_has_by_then(world: World) -> None:
    """The one before may have expired."""
    seen: list[str] = []

    def call(event: Mapping[str, Any]) -> Outcome:
        seen.append(json.loads(event["payload"]))
        return Outcome(ok=len(seen) > 1, error_type="Boom", error="once")

    world.target.answer = call
    world.registry.create("alice", "job", job(at=DUE, payload=payload_of(5_000)))
    world.run_until("2026-11-21T03:15:05Z")
    world.registry.patch("alice", "job", {"payload": payload_of(6_000)})
    world.table("jobs").delete(keys.job_text("alice", "job", StoredText.of(payload_of(5_000)).sha256))
    world.run_until("2026-11-21T05:15:00Z")
    assert (seen, world.statuses("alice", "job")) == ([payload_of(5_000), payload_of(6_000)], ["succeeded"])
