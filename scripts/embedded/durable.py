"""Durable functions, as far as ministack lacks them: names that start once, and executions of `Event` calls.

https://docs.aws.amazon.com/lambda/latest/dg/durable-execution-idempotency.html
"""

from __future__ import annotations

import json
import threading
from contextvars import ContextVar, copy_context
from typing import Any, Final

_HEADER: Final = "x-amz-durable-execution-name"

_name: ContextVar[str] = ContextVar("_name", default="")


def install(lambda_svc: Any, lambda_durable: Any) -> None:
    """Into the server's modules ministack.services.lambda_svc and ministack.services.lambda_durable."""
    invoke, retried = lambda_svc._invoke, lambda_svc.invoke_async_with_retry
    create, listed = lambda_durable.create_execution_for_invoke, lambda_durable.handle_list_by_function

    def existing(function: str, name: str) -> dict[str, Any] | None:
        arn = lambda_svc._func_arn(function)
        records = lambda_durable._executions.values()
        named = (
            each for each in records if (each["FunctionArn"], each["DurableExecutionName"]) == (arn, name)
        )
        return next(named, None)

    async def invoked(function: str, event: Any, headers: Any, *more: Any, **named: Any) -> Any:
        config = (lambda_svc._functions.get(function) or {}).get("config") or {}
        if config.get("DurableConfig"):
            config["DurableConfig"]["Enabled"] = True  # ministack asks for it, AWS has no such field
        name = str(headers.get(_HEADER, ""))
        record = existing(function, name) if name else None
        if record is None:
            token = _name.set(name)
            try:
                status, answered, body = await invoke(function, event, headers, *more, **named)
            finally:
                _name.reset(token)
            if name and (record := existing(function, name)):
                answered = answered | {"X-Amz-Durable-Execution-Arn": record["DurableExecutionArn"]}
            return status, answered, body
        if record["InputPayload"] != json.dumps(event):
            words = f"The durable execution {name} has another payload"
            return lambda_svc.error_response_json("DurableExecutionAlreadyStartedException", words, 409)
        return 202, {"X-Amz-Durable-Execution-Arn": record["DurableExecutionArn"]}, b""

    def created(*arguments: Any, **named: Any) -> Any:
        return create(*arguments, **named | {"name": _name.get() or None})

    def run_in_thread(record: dict[str, Any], event: Any) -> None:
        """An `Event` call of a durable function: ministack's resumption runs it, and notes how it ended."""
        arn = event.get("DurableExecutionArn", "") if isinstance(event, dict) else ""
        if arn not in lambda_durable._executions:
            retried(record, event)
            return
        arguments = record["config"]["FunctionName"], arn, event
        context = copy_context()
        threading.Thread(
            target=context.run, args=(lambda_svc.invoke_durable_resume, *arguments), daemon=True
        ).start()

    def by_version(function: str, query: Any, lookup: Any) -> Any:
        """The list of an alias is that of its version."""
        names = query.get("Qualifier") or [""]
        alias = names[0] if isinstance(names, list) else names
        record = lambda_svc._functions.get(lambda_svc._resolve_name(function)) or {}
        version = record.get("aliases", {}).get(alias, {}).get("FunctionVersion", alias)
        return listed(function, {**query, "Qualifier": [version]}, lookup)

    lambda_svc._invoke = invoked
    lambda_svc.invoke_async_with_retry = run_in_thread
    lambda_durable.create_execution_for_invoke = created
    lambda_durable.handle_list_by_function = by_version
