"""A message is delayed by 0 to 900 seconds; anything else is refused.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
"""

from __future__ import annotations

from typing import Any, Final

MAX_S: Final = 900


def install(sqs: Any) -> None:
    """Into the server's module ministack.services.sqs."""
    send = sqs._act_send_message

    def checked(request: dict[str, Any], url: str) -> Any:
        delay_s = request.get("DelaySeconds")
        if delay_s is not None and not 0 <= int(delay_s) <= MAX_S:
            reason = (
                f"Value {delay_s} for parameter DelaySeconds is invalid. Reason: must be from 0 to {MAX_S}."
            )
            raise sqs._Err("InvalidParameterValue", reason)
        return send(request, url)

    # A batch calls it for each of its messages.
    sqs._act_send_message = sqs._HANDLERS["SendMessage"] = checked
