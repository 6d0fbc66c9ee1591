"""A short poll asks some of SQS's servers, so it can find nothing in a queue that has messages. A long poll asks all.

Here every second short poll finds nothing.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-short-and-long-polling.html
"""

from __future__ import annotations

import itertools
from typing import Any, Final

EVERY: Final = 2


def install(sqs: Any) -> None:
    """Into the server's module ministack.services.sqs."""
    receive, numbers = sqs._act_receive_message, itertools.count(1)

    async def sampled(request: dict[str, Any], url: str) -> Any:
        queue = sqs._get_q(request.get("QueueUrl", url))
        wait_s = request.get("WaitTimeSeconds", queue["attributes"].get("ReceiveMessageWaitTimeSeconds", "0"))
        if int(wait_s) == 0 and next(numbers) % EVERY == 0:
            return {}
        return await receive(request, url)

    sqs._act_receive_message = sqs._HANDLERS["ReceiveMessage"] = sampled
