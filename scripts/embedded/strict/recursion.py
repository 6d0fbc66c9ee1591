"""Recursive-loop detection through queues: a chain of Lambda → SQS → Lambda is stopped after 16 invocations.

The server counts direct invocations by itself, by a header that its workers add to each request. Here a sent message
keeps the count, and the invocation that it leads to goes on from there. As on AWS, that is so only if the request
carries the trace header, which botocore adds by itself. (Not counted: ways by SNS and S3.)
https://docs.aws.amazon.com/lambda/latest/dg/invocation-recursion.html
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

_LINEAGE = "Root=1-00000000-000000000000000000000000;Lineage=1:minute8:"
_sender_depth: ContextVar[int] = ContextVar("_sender_depth", default=0)


def install(sqs: Any, lambda_svc: Any) -> None:
    """Into the server's modules ministack.services.sqs and .lambda_svc."""
    handle_request, build_attributes, run_batch = (
        sqs.handle_request,
        sqs._build_send_sys_attrs,
        lambda_svc._run_sqs_batch,
    )

    async def with_depth(method: str, path: str, headers: Any, body: Any, query: Any) -> Any:
        _sender_depth.set(lambda_svc._inbound_invoke_depth(headers) if "x-amzn-trace-id" in headers else 0)
        return await handle_request(method, path, headers, body, query)

    def with_lineage(now: float, request: Any) -> dict[str, Any]:
        attributes: dict[str, Any] = build_attributes(now, request)
        if depth := _sender_depth.get():
            attributes.setdefault("AWSTraceHeader", f"{_LINEAGE}{depth}")
        return attributes

    def unless_recursive(esm: Any, function: Any, event: Any, *rest: Any) -> None:
        reached = depth(event) + 1
        if lambda_svc._recursive_loop_drop(esm["FunctionName"], function, reached):
            return  # the messages come again after their visibility timeout, up to the queue's maxReceiveCount
        token = lambda_svc._invoke_depth.set(reached)
        try:
            run_batch(esm, function, event, *rest)
        finally:
            lambda_svc._invoke_depth.reset(token)

    def with_trace(config: Any, inbound: str | None = None) -> str:
        return trace_id(config, inbound) or f"{_LINEAGE}{lambda_svc._invoke_depth.get()}"

    trace_id, lambda_svc._xray_trace_id_for_invocation = lambda_svc._xray_trace_id_for_invocation, with_trace
    sqs.handle_request, sqs._build_send_sys_attrs = with_depth, with_lineage
    lambda_svc._run_sqs_batch = unless_recursive


def depth(event: Any) -> int:
    """How many invocations led to a batch: of all its messages the most."""
    headers = [record["attributes"].get("AWSTraceHeader", "") for record in event["Records"]]
    counts = [header.rpartition(":")[2] for header in headers if "Lineage=" in header]
    return max((int(count) for count in counts if count.isdigit()), default=0)
