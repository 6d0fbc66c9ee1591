"""Asks for a removal now: a message in the planning queue. A planner takes it and deletes what is over.

Without it, ended jobs and groups of schedules that are being deleted wait for the next tick. The request can be lost:
the tick deletes what is left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from botocore.exceptions import BotoCoreError, ClientError

from common import telemetry
from common.clock import Clock

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

BODY: Final = '{"v":1,"removal":true}'
# Jobs whose last runs end within these seconds are deleted together.
GATHER_S: Final = 2


class RemovalRequests:
    """The requests of one process."""

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
            self._sqs.send_message(QueueUrl=self._queue_url, MessageBody=BODY, DelaySeconds=delay_s)
        except (BotoCoreError, ClientError) as error:
            telemetry.logger().warning("removal left to the next tick", error=repr(error))
            return False
        return True
