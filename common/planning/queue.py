"""Enqueues executions, whose seconds SQS waits for, and asks planners for removals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

from botocore.exceptions import BotoCoreError, ClientError

from common import telemetry
from common.clock import Clock
from common.errors import Minute8Error
from common.planning.execution import Execution
from common.planning.packs import QueueMessage, alone
from common.timing.windows import MAX_DELAY_S

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import SendMessageBatchRequestEntryTypeDef

BATCH_SIZE = 10
_SENDERS = 32
_RESENDS = 5
_FIRST_WAIT_S = 0.1
# If there is time, batches are sent in this part of a second. SQS delays by whole seconds, so a message that is sent at
# x.9 comes out 0.1 s before its own second, and executors are paid to hold it for that time. The rest of the second is
# for the request to arrive: a message that reaches SQS in the next second comes out late.
LATE = (0.88, 0.96)
# For the messages of a large crowd: packs.EARLY_FROM.
EARLY = (0.1, 0.3)


class HandOverFailed(Minute8Error):
    """SQS did not accept some executions, even after retries. The caller must plan them again."""


@dataclass(frozen=True, slots=True)
class Refused:
    """An execution that SQS will never accept, alone or in its pack, and the error."""

    execution: Execution
    reason: str


class ExecutionsQueue:
    """The executions queue: SQS standard, a delay per message, the tenant as message group (fair queue)."""

    def __init__(self, client: SQSClient, url: str, clock: Clock) -> None:
        self._client = client
        self._url = url
        self._clock = clock

    def send(
        self, executions: Iterable[Execution], *, send_late_until: float = 0.0
    ) -> tuple[int, list[Refused]]:
        """Enqueue every execution, each as a message of its own; see `send_packs`."""
        return self.send_packs(map(alone, executions), send_late_until=send_late_until)

    def send_packs(
        self, packs: Iterable[QueueMessage], *, send_late_until: float = 0.0
    ) -> tuple[int, list[Refused]]:
        """Enqueue every execution of these packs, in full batches from several threads, while reading the iterable.

        Before `send_late_until`, batches are sent late in each second, so that executors hold the messages for less
        time, and those of a large crowd early in it. From then on each batch is sent at once.

        Returns how many executions were accepted, and those that SQS will never accept.

        Raises:
            HandOverFailed: some were not accepted; the others may have been, and sending them again does no harm.
        """
        batches = _batches(iter(packs))
        first, second = next(batches, None), next(batches, None)
        if first is None:
            return 0, []
        if second is None:  # the common small case needs no threads
            refused = self._send_batch(first, send_late_until)
            return _count(first) - len(refused), refused
        from common.storage.metering import ahead  # executors send a few

        accepted, all_refused = 0, []
        sending = ahead(
            lambda batch: (_count(batch), self._send_batch(batch, send_late_until)),
            chain([first, second], batches),
            _SENDERS,
        )
        for count, refused in sending:
            accepted += count - len(refused)
            all_refused += refused
        return accepted, all_refused

    def waiting(self) -> tuple[int, int]:
        """About how many messages are due and not received, and how many are received and not deleted."""
        response = self._client.get_queue_attributes(
            QueueUrl=self._url,
            AttributeNames=["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"],
        )
        counts = response["Attributes"]
        return (
            int(counts.get("ApproximateNumberOfMessages", 0)),
            int(counts.get("ApproximateNumberOfMessagesNotVisible", 0)),
        )

    def _send_batch(self, batch: list[QueueMessage], send_late_until: float) -> list[Refused]:
        unsent = [(pack, pack.encode()) for pack in batch]
        refused: list[Refused] = []
        wait_s = _FIRST_WAIT_S
        self._await_part(EARLY if any(pack.is_early for pack in batch) else LATE, send_late_until)
        for resend in range(_RESENDS + 1):
            if resend:
                self._clock.sleep(wait_s)
                wait_s *= 2
            now = self._clock.now()
            response = self._client.send_message_batch(
                QueueUrl=self._url,
                Entries=[self._entry(str(n), *message, now) for n, message in enumerate(unsent)],
            )
            failed = response.get("Failed", [])
            refused += [
                Refused(execution, f"{f.get('Code')}: {f.get('Message', '')}")
                for f in failed
                if f.get("SenderFault")
                for execution in unsent[int(f["Id"])][0].executions
            ]
            unsent = [unsent[int(f["Id"])] for f in failed if not f.get("SenderFault")]
            if not unsent:
                return refused
        raise HandOverFailed(
            f"SQS did not take {len(unsent)} messages in {_RESENDS + 1} tries, first {unsent[0][1][:200]!r}"
        )

    def _await_part(self, part: tuple[float, float], until: float) -> None:
        while (now := self._clock.now()) < until and (wait_s := seconds_until_part(part, now)):
            self._clock.sleep(min(wait_s, until - now))

    @staticmethod
    def _entry(number: str, pack: QueueMessage, body: str, now: float) -> SendMessageBatchRequestEntryTypeDef:
        # Rounded down, so that the message is out before its second and the executor holds the last fraction: rounded
        # up, every run would be late by half a second on average.
        delay_s = int(min(max(pack.visible_at - now, 0), MAX_DELAY_S))
        return {
            "Id": number,
            "MessageBody": body,
            "DelaySeconds": delay_s,
            "MessageGroupId": pack.group,
        }


def seconds_until_part(part: tuple[float, float], now: float) -> float:
    """The wait until this part of a second, in which messages should be sent; 0 within it."""
    begin, end = part
    fraction = now % 1
    if begin <= fraction < end:
        return 0.0
    return (begin - fraction) % 1 + 0.001  # within it, also where the sum is rounded down


def _batches(packs: Iterator[QueueMessage]) -> Iterator[list[QueueMessage]]:
    while batch := list(islice(packs, BATCH_SIZE)):
        yield batch


def _count(packs: Iterable[QueueMessage]) -> int:
    return sum(len(pack.executions) for pack in packs)


REMOVAL_REQUEST: Final = '{"v":1,"removal":true}'
# Jobs whose last runs end within these seconds are deleted together.
GATHER_S: Final = 2


class RemovalRequests:
    """Asks for a removal now: a planner takes the message and deletes what is over. For one process.

    Without it, ended jobs and groups of schedules that are being deleted wait for the next tick, which also deletes
    what a lost request leaves.
    """

    def __init__(self, sqs: SQSClient, queue_url: str, clock: Clock) -> None:
        self._sqs = sqs
        self._queue_url = queue_url
        self._clock = clock
        # A message that is under way is read after all that was noted until then.
        self._covered_until = 0.0

    def ask(self) -> None:
        """Let a planner begin at once. Raises nothing."""
        self._send(0)

    def ask_soon(self) -> None:
        """Let a planner begin within seconds, once for all that ends until then. Raises nothing."""
        now = self._clock.now()
        if now >= self._covered_until and self._send(GATHER_S):
            self._covered_until = now + GATHER_S

    def _send(self, delay_s: int) -> bool:
        if not self._queue_url:
            return False
        try:
            self._sqs.send_message(
                QueueUrl=self._queue_url, MessageBody=REMOVAL_REQUEST, DelaySeconds=delay_s
            )
        except (BotoCoreError, ClientError) as error:
            telemetry.logger().warning("removal left to the next tick", error=repr(error))
            return False
        return True
