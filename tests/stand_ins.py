"""Stand-ins for what surrounds Minute8 in the tests: the queue, targets, the event bus and tenants' rules."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from botocore.exceptions import ClientError
from msgspec import structs

from common.runs.outcome import Outcome
from common.storage import keys
from common.storage.conflicts import ConditionFailed
from common.storage.wire import Expression
from common.tenants.allowed_targets import Block
from common.tenants.rules_cache import KnownTenants
from common.tenants.tenant import Quotas, Tenant, TenantRules
from executor.pipeline import Message
from tests.manual_clock import ManualClock

# Lambda refuses a message that has passed the same function about this often, unless its RecursiveLoop is Allow.
# https://docs.aws.amazon.com/lambda/latest/dg/invocation-recursion.html
LOOP_LIMIT = 16


class LosesAnswers:
    """A client of which each answer to a write is lost, and the request sent again."""

    WRITES = ("put_item", "update_item", "delete_item", "batch_write_item")

    def __init__(self, client: Any) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._client, name)
        if name not in self.WRITES:
            return attribute

        def twice(**request: Any) -> Any:
            attribute(**request)
            return attribute(**request)

        return twice


class SimulatedQueue:
    """SQS in simulated time, as far as Minute8 uses it: delays, visibility, at-least-once delivery.

    Each message has a lineage: the number of executor invocations that led to it. With `refuses_loops` Lambda refuses
    messages with a long lineage; `refused` has their bodies.
    """

    refuses_loops = False

    def __init__(self, clock: ManualClock, visibility_s: float = 330) -> None:
        self._clock = clock
        self._visibility_s = visibility_s
        self._numbers = count(1)
        self._waiting: list[tuple[float, int, str, str]] = []
        self._receives: dict[str, int] = {}
        self._hidden: dict[str, float] = {}
        self.delays: list[int] = []
        self.bodies: list[str] = []
        self.deleted: list[str] = []
        self.refused: list[str] = []
        self._lineage: dict[str, int] = {}
        self._received_lineage = 0

    def send_message_batch(self, QueueUrl: str, Entries: list[Mapping[str, Any]]) -> dict[str, Any]:
        for entry in Entries:
            delay_s = entry["DelaySeconds"]
            assert 0 <= delay_s <= 900, delay_s
            self.delays.append(delay_s)
            self.bodies.append(entry["MessageBody"])
            self._put(self._clock.now() + delay_s, entry["MessageBody"])
        return {"Successful": [{"Id": entry["Id"]} for entry in Entries]}

    def _put(self, visible_at: float, body: str, message_id: str = "") -> None:
        number = next(self._numbers)
        self._lineage.setdefault(message_id or f"message-{number}", self._received_lineage)
        heapq.heappush(self._waiting, (visible_at, number, message_id or f"message-{number}", body))

    def get_queue_attributes(self, QueueUrl: str, AttributeNames: list[str]) -> dict[str, Any]:
        hidden = [
            message
            for message in self._waiting
            if message[0] > self._clock.now() and message[2] in self._receives
        ]
        due = [message for message in self._waiting if message[0] <= self._clock.now()]
        counts = {
            "ApproximateNumberOfMessages": str(len(due)),
            "ApproximateNumberOfMessagesNotVisible": str(len(hidden)),
        }
        return {"Attributes": {name: counts[name] for name in AttributeNames}}

    def purge(self) -> None:
        """As SQS's PurgeQueue; what is noted of earlier messages goes, too."""
        for kept in (self._waiting, self._receives, self._hidden, self._lineage):
            kept.clear()
        for notes in (self.delays, self.bodies, self.deleted, self.refused):
            notes.clear()

    def next_at(self) -> float | None:
        return self._waiting[0][0] if self._waiting else None

    def receive(self) -> Message | None:
        """The next visible message, taken out; `give_back` is its redelivery."""
        if not self._waiting or self._waiting[0][0] > self._clock.now():
            return None
        _, _, message_id, body = heapq.heappop(self._waiting)
        if self.refuses_loops and self._lineage[message_id] >= LOOP_LIMIT:
            self.refused.append(body)
            return self.receive()
        receives = self._receives[message_id] = self._receives.get(message_id, 0) + 1
        return Message(message_id, body, f"receipt of {message_id}", receives)

    def change_message_visibility_batch(
        self, QueueUrl: str, Entries: list[Mapping[str, Any]]
    ) -> dict[str, Any]:
        assert 0 < len(Entries) <= 10
        for entry in Entries:
            assert 0 <= entry["VisibilityTimeout"] <= 43_200
            self._hidden[entry["ReceiptHandle"]] = self._clock.now() + entry["VisibilityTimeout"]
        return {"Successful": [{"Id": entry["Id"]} for entry in Entries]}

    def delete_message_batch(self, QueueUrl: str, Entries: list[Mapping[str, Any]]) -> dict[str, Any]:
        assert 0 < len(Entries) <= 10
        self.deleted += [entry["ReceiptHandle"] for entry in Entries]
        return {"Successful": [{"Id": entry["Id"]} for entry in Entries]}

    @contextmanager
    def invocation_for(self, message: Message) -> Iterator[None]:
        """During the block, this message's invocation is the sender."""
        self._received_lineage = self._lineage.get(message.message_id, 0) + 1
        yield
        self._received_lineage = 0

    def give_back(self, message: Message) -> None:
        """The message is not deleted, so it is delivered again when it is visible."""
        visible_at = self._hidden.pop(message.receipt, self._clock.now() + self._visibility_s)
        self._put(visible_at, message.body, message.message_id)

    def __len__(self) -> int:
        return len(self._waiting)


@dataclass
class Calls:
    """The target: it records every call, and answers as `answer` says."""

    clock: ManualClock
    calls: list[tuple[float, dict[str, Any]]] = field(default_factory=list)
    answer: Callable[[Mapping[str, Any]], Outcome] = lambda event: Outcome(ok=True)

    def __call__(self, target: Mapping[str, Any], event: Mapping[str, Any], timeout_s: float) -> Outcome:
        self.calls.append((self.clock.now(), dict(event["minute8"])))
        return self.answer(event)

    @property
    def execution_ids(self) -> list[str]:
        return [context["execution_id"] for _, context in self.calls]

    def fire_times(self, job_id: str) -> list[str]:
        return [context["fire_at"] for _, context in self.calls if context["job_id"] == job_id]


class PlanningMessages:
    """The planning queue, as far as it takes requests for a removal."""

    def __init__(self) -> None:
        self.sent: list[Mapping[str, Any]] = []

    def send_message(self, **request: Any) -> None:
        self.sent.append(request)


@dataclass
class PublishedEvents:
    """Records the events for the bus, as (detail type, detail)."""

    events: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)

    def publish(self, detail_type: str, detail: Mapping[str, Any]) -> None:
        self.events.append((detail_type, detail))


_DOES_ALL = TenantRules(
    allowed_targets=["*"], quotas=Quotas(jobs=10_000_000, executions_per_day=10_000_000_000)
)


@dataclass
class AnyTenant:
    """Every tenant exists, with the same rules: by default, every target is allowed."""

    of_all: TenantRules = _DOES_ALL
    blocked: Sequence[Block] = ()

    def rules(self, tenant: str, now: float) -> TenantRules:
        return self.of_all

    def learn(self, tenants: Iterable[str], now: float) -> set[str]:
        """They are known."""
        return set(tenants)

    def blocks(self, now: float) -> Sequence[Block]:
        return self.blocked


class StoredOnDemand(KnownTenants):
    """The rules in the tenants table. A missing tenant is created when its rules are read."""

    def rules(self, tenant: str, now: float) -> TenantRules | None:
        return super().rules(tenant, now) or self._created(tenant, now)

    def read(self, tenant: str, now: float) -> TenantRules | None:
        return super().read(tenant, now) or self._created(tenant, now)

    def _created(self, tenant: str, now: float) -> TenantRules | None:
        free = Expression("attribute_not_exists(pk)", {})
        item = Tenant(tenant_id=tenant, created_at=int(now), **structs.asdict(_DOES_ALL)).to_item()
        with suppress(ConditionFailed):
            self._table.put({**keys.tenant(tenant), **item}, free)
            self._table.put({**keys.tenant_listing(tenant), **item}, free)
        return super().read(tenant, now)


class MemoryKms:
    """KMS, as far as Minute8 uses it. `refuses` is the code with which it refuses each request."""

    def __init__(self) -> None:
        self.refuses = ""
        self.decrypted: list[Mapping[str, str]] = []
        self.encrypted: dict[bytes, tuple[bytes, Mapping[str, str]]] = {}

    def encrypt(
        self, *, KeyId: str, Plaintext: bytes, EncryptionContext: Mapping[str, str]
    ) -> dict[str, Any]:
        assert 1 <= len(Plaintext) <= 4_096
        self._check("Encrypt")
        blob = f"{KeyId}#{len(self.encrypted)}".encode()
        self.encrypted[blob] = (Plaintext, dict(EncryptionContext))
        return {"CiphertextBlob": blob}

    def decrypt(
        self, *, KeyId: str, CiphertextBlob: bytes, EncryptionContext: Mapping[str, str]
    ) -> dict[str, Any]:
        self._check("Decrypt")
        value, context = self.encrypted[CiphertextBlob]
        if context != EncryptionContext or not CiphertextBlob.startswith(KeyId.encode()):
            raise ClientError({"Error": {"Code": "InvalidCiphertextException"}}, "Decrypt")
        self.decrypted.append(context)
        return {"Plaintext": value}

    def _check(self, operation: str) -> None:
        if self.refuses:
            raise ClientError({"Error": {"Code": self.refuses, "Message": "a secret thing"}}, operation)
