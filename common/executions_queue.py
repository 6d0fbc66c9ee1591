"""Handing executions to the queue that holds each until its second."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING

from common.clock import Clock
from common.errors import Minute8Error
from common.execution import Execution
from common.window import MAX_DELAY_S

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import SendMessageBatchRequestEntryTypeDef

BATCH_SIZE = 10
_SENDERS = 32
_UNDER_WAY = 4 * _SENDERS
_RESENDS = 5
_FIRST_WAIT_S = 0.1


class HandOverFailed(Minute8Error):
    """SQS did not take some executions, also when asked again. Whoever planned them must plan them again."""


@dataclass(frozen=True, slots=True)
class Refused:
    """An execution that SQS will never take, and what it said."""

    execution: Execution
    reason: str


class ExecutionsQueue:
    """The executions queue: SQS standard, a delay per message, the tenant as message group (fair queue)."""

    def __init__(self, client: SQSClient, url: str, clock: Clock) -> None:
        self._client = client
        self._url = url
        self._clock = clock

    def send(self, executions: Iterable[Execution]) -> tuple[int, list[Refused]]:
        """Hand over every execution, in full batches from several threads, reading the iterable as it goes.

        Returns how many were taken, and those that SQS will never take.

        Raises:
            HandOverFailed: some were not taken; the others may have been, and sending them again does no harm.
        """
        batches = _batches(iter(executions))
        first, second = next(batches, None), next(batches, None)
        if first is None:
            return 0, []
        if second is None:  # the common small case needs no threads
            refused = self._send_batch(first)
            return len(first) - len(refused), refused
        return self._send_concurrently(chain([first, second], batches))

    def _send_concurrently(self, batches: Iterator[list[Execution]]) -> tuple[int, list[Refused]]:
        taken = 0
        all_refused: list[Refused] = []
        under_way: deque[tuple[int, Future[list[Refused]]]] = deque()

        def collect_oldest() -> None:
            nonlocal taken, all_refused
            size, future = under_way.popleft()
            refused = future.result()
            taken += size - len(refused)
            all_refused += refused

        with ThreadPoolExecutor(_SENDERS, thread_name_prefix="send") as pool:
            for batch in batches:
                under_way.append((len(batch), pool.submit(self._send_batch, batch)))
                if len(under_way) == _UNDER_WAY:  # a million executions are not held at once
                    collect_oldest()
            while under_way:
                collect_oldest()
        return taken, all_refused

    def _send_batch(self, batch: list[Execution]) -> list[Refused]:
        left = deque(batch)
        refused: list[Refused] = []
        wait_s = _FIRST_WAIT_S
        for resend in range(_RESENDS + 1):
            if resend:
                self._clock.sleep(wait_s)
                wait_s *= 2
            now = self._clock.now()
            answer = self._client.send_message_batch(
                QueueUrl=self._url,
                Entries=[self._entry(str(n), execution, now) for n, execution in enumerate(left)],
            )
            failed = answer.get("Failed", [])
            sent = list(left)
            refused += [
                Refused(sent[int(f["Id"])], f"{f.get('Code')}: {f.get('Message', '')}")
                for f in failed
                if f.get("SenderFault")
            ]
            left = deque(sent[int(f["Id"])] for f in failed if not f.get("SenderFault"))
            if not left:
                return refused
        raise HandOverFailed(
            f"SQS did not take {len(left)} executions in {_RESENDS + 1} tries, first {left[0].execution_id}"
        )

    @staticmethod
    def _entry(number: str, execution: Execution, now: float) -> SendMessageBatchRequestEntryTypeDef:
        # Rounded down, so that the message is out before its second and the executor holds the last fraction: rounded
        # up, every run would be late by half a second on average.
        delay_s = int(min(max(execution.visible_at - now, 0), MAX_DELAY_S))
        return {
            "Id": number,
            "MessageBody": execution.encode(),
            "DelaySeconds": delay_s,
            "MessageGroupId": execution.tenant,
        }


def _batches(executions: Iterator[Execution]) -> Iterator[list[Execution]]:
    while batch := list(islice(executions, BATCH_SIZE)):
        yield batch
