"""Messages and stored items outlive a deployment: every released format stays readable.

A new field or version gets a new line or file here. A line is never changed: the forms are frozen since 1.0.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from msgspec import to_builtins

from common.jobs.former_jobs import former_item, load_jobs
from common.jobs.job import DELETED, Job
from common.notices.subscription import Subscription
from common.planning import packs
from common.planning.due_entry import DueEntry
from common.planning.execution import Execution, UnreadableMessage
from common.storage import keys
from common.storage.transactions import Transaction
from common.storage.wire import Expression, from_wire, item_to_wire
from common.tenants import webhook_secrets
from common.tenants.secrets import SecretKey
from minute8.eventbridge.imported_from import changed_parts, request_in, texts_of_request
from tests.worlds import job, open_world

HERE = Path(__file__).parent


def lines(name: str) -> list[Any]:
    """Each line: its kind, the stored text, and the fields that it must give."""
    return [
        pytest.param(case["text"], case["means"], id=case["what"])
        for case in map(json.loads, (HERE / name).read_text().splitlines())
    ]


@pytest.mark.parametrize(("text", "means"), lines("messages.v1.jsonl"))
def test_a_message_of_version_1_is_read_and_written_the_same(text: str, means: dict[str, Any]) -> None:
    execution = Execution(**means)
    assert Execution.decode(text) == execution
    assert execution.encode() == text


@pytest.mark.parametrize(("text", "means"), lines("messages.v2.jsonl"))
def test_a_pack_is_read_and_written_the_same_and_its_lines_are_of_version_1(
    text: str, means: list[dict[str, Any]]
) -> None:
    executions = tuple(Execution(**each) for each in means)
    assert tuple(map(Execution.decode, packs.lines(text))) == executions
    assert packs.Pack(executions).encode() == text


def test_a_wake_stays_a_wake() -> None:
    assert packs.Wake(0).encode() == "wake"
    assert packs.is_wake("wake")
    with pytest.raises(UnreadableMessage):
        Execution.decode("wake")


@pytest.mark.parametrize("version", ["0", "2", "99", '"1"', "null", "true", "1.0"])
def test_an_unknown_version_is_refused(version: str) -> None:
    text = lines("messages.v1.jsonl")[0].values[0]
    assert isinstance(text, str)
    with pytest.raises(UnreadableMessage):
        Execution.decode(text.replace('"v":1', f'"v":{version}'))


@pytest.mark.parametrize(("text", "means"), lines("due_entries.jsonl"))
def test_a_due_entry_is_read_and_written_the_same(text: str, means: dict[str, Any]) -> None:
    entry = DueEntry.decode(text)
    decoded = {
        name: getattr(entry, name)
        for name in ("tenant", "job_id", "effective_at", "schedule_revision", "catch_up")
    }
    assert decoded | {"schedule": json.loads(json.dumps(to_builtins(entry.schedule)))} == means
    assert entry.encode() == text


@pytest.mark.parametrize(("text", "means"), lines("schedules.jsonl"))
def test_a_stored_schedule_of_eventbridge_is_read_and_written_the_same(
    text: str, means: dict[str, Any]
) -> None:
    job = Job.from_item(from_wire(json.loads(text)))
    assert job.imported_from is not None
    assert request_in(*(text.text or "" for text in texts_of_request(job))) == means
    assert not changed_parts(job)
    assert item_to_wire(job.to_item()) == json.loads(text)


@pytest.mark.parametrize(("text", "means"), lines("jobs.jsonl"))
def test_a_job_is_read_and_written_the_same_with_its_payload(text: str, means: Any) -> None:
    """Of a large payload, the job's item and the payload's."""
    stored = json.loads(text)
    items = [from_wire(item) for item in (stored if isinstance(stored, list) else [stored])]
    with open_world() as world:
        world.table("jobs").put_many(items)
        job = Job.from_item(items[0])
        (read,) = world.store.texts.with_payloads([job])
        assert read.payload.value == means
        tx = Transaction(world.dynamodb)
        world.store.texts.write(tx, None, read, 0)
    assert [from_wire(item_to_wire(keys.key_of(items[0]) | read.to_item()))] == items[:1]
    assert len(tx) == int(read.payload.is_large)


@pytest.mark.parametrize(("text", "means"), lines("deleted_jobs.jsonl"))
def test_a_deleted_job_is_read_and_written_the_same(text: str, means: dict[str, Any]) -> None:
    name = "alice", "nightly"
    with open_world() as world:
        item = from_wire(json.loads(text))
        world.table("jobs").put(item)
        job = load_jobs(world.table("jobs"), [name]).get(name)
    assert job is not None and job.state == DELETED
    assert {field: getattr(job, field, None) or getattr(job.spec, field) for field in means} == means
    assert item_to_wire(former_item(job)) == json.loads(text)


@pytest.mark.parametrize(("text", "means"), lines("failure_streaks.jsonl"))
def test_stored_failures_in_a_row_are_counted(text: str, means: list[int]) -> None:
    """Before and after one more failure, of a job at revision 1."""
    with open_world() as world:
        world.registry.create("alice", "nightly", job(cron="0 3 * * *"))
        world.table("jobs").update(
            keys.job("alice", "nightly"), Expression("SET #is_failing = :true", {":true": True})
        )
        world.table("jobs").put(from_wire(json.loads(text)))
        nightly = world.store.get("alice", "nightly")
        assert [nightly.failures_in_row, world.store.failures.add(nightly, "20261121T031500Z#1")] == means


def test_a_state_of_a_later_version_is_read_without_what_is_unknown() -> None:
    lines_of_entities = map(json.loads, (HERE / "entities.jsonl").read_text().splitlines())
    for line in (line for line in lines_of_entities if line["kind"] == "Subscription"):
        item = from_wire(line["item"])
        later = re.sub(r'\{"(looked_at|kind|message_id|at)":', r'{"later":{"a":1},"\1":', item["state"])
        assert later.count("later") >= 1
        assert Subscription.from_item({**item, "state": later}) == Subscription.from_item(item)


class ReadableKms:
    """A KMS whose texts a golden file can have. It takes the encryption context of alice's webhook secret alone."""

    def encrypt(self, KeyId: str, Plaintext: bytes, EncryptionContext: dict[str, str]) -> dict[str, bytes]:
        assert EncryptionContext == {"tenant": "alice", "use": "webhook-signature"}
        return {"CiphertextBlob": b"encrypted " + Plaintext}

    def decrypt(
        self, KeyId: str, CiphertextBlob: bytes, EncryptionContext: dict[str, str]
    ) -> dict[str, bytes]:
        assert EncryptionContext == {"tenant": "alice", "use": "webhook-signature"}
        return {"Plaintext": CiphertextBlob.removeprefix(b"encrypted ")}


@pytest.mark.parametrize(("text", "means"), lines("webhook_secrets.jsonl"))
def test_webhook_secrets_are_read_and_written_the_same(
    text: str, means: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one was made at 200, the third one at 300. Without a key all are in plain text."""
    item = from_wire(json.loads(text))
    key = SecretKey(ReadableKms(), "key") if item["secret"].startswith(webhook_secrets.ENCRYPTED) else None
    fresh = reversed(means)
    monkeypatch.setattr(webhook_secrets, "new_secret", lambda: next(fresh))
    with open_world() as world:
        tenants = world.table("tenants")
        secrets = webhook_secrets.WebhookSecrets(tenants, lambda: key)
        secrets.ensure("alice", 100)
        for number in range(2, len(means) + 1):
            secrets.rotate("alice", 100 * number)
        written = tenants.get(keys.webhook_secret("alice")) or {}
        assert item_to_wire(written) == json.loads(text)
        tenants.put(item)
        assert secrets.signing("alice", 300) == tuple(means)
