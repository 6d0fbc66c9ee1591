"""A durable function: it waits for an hour without costing anything, and goes on where it was after a failure.

Deploy it by template.yml, and register the alias with `"invocation": "Event", "durable": true` in the target.
https://docs.aws.amazon.com/lambda/latest/dg/durable-functions.html
"""

from typing import Any

from aws_durable_execution_sdk_python import DurableContext, durable_execution
from aws_durable_execution_sdk_python.config import Duration


@durable_execution
def handle(event: dict[str, Any], context: DurableContext) -> dict[str, Any]:
    """Order a report, wait until it is ready, and fetch it. A step that is done is not repeated."""
    payload = event["payload"] or {}
    order = context.step(lambda _: f"order of {event['minute8']['execution_id']}", name="order")
    context.wait(Duration.from_seconds(int(payload.get("wait_s", 3_600))), name="until it is ready")
    rows = context.step(lambda _: len(order), name="fetch")
    return {"order": order, "rows": rows}
