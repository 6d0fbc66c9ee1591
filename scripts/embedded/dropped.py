"""What the server's CloudFormation drops of a template, set with the resource; and the API's address."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

Properties = Mapping[str, Any]

_ADDRESS: Final = re.compile(r"https://(\w+)\.execute-api\.[\w-]+\.[a-z.]+")
# https://docs.aws.amazon.com/lambda/latest/dg/configuration-concurrency.html
UNRESERVED_AT_LEAST: Final = 100


def install(stacks: Any, provisioners: Any, dynamodb: Any, lambda_svc: Any, endpoint_url: str) -> None:
    """Change CloudFormation's `stacks` and `provisioners`. `endpoint_url` is this server's."""

    def set_time_to_live(table: str, properties: Properties) -> None:
        if specification := properties.get("TimeToLiveSpecification"):
            dynamodb._update_ttl({"TableName": table, "TimeToLiveSpecification": specification})

    def set_units(table: str, properties: Properties) -> None:
        """A table on demand has no units; the server gives it five of each."""
        if properties.get("BillingMode") == "PAY_PER_REQUEST":
            dynamodb._tables[table]["ProvisionedThroughput"] |= {
                "ReadCapacityUnits": 0,
                "WriteCapacityUnits": 0,
            }

    def set_limits(function: str, properties: Properties) -> None:
        name = function.rpartition(":function:")[2]
        if loop := properties.get("RecursiveLoop"):
            lambda_svc._put_function_recursion_config(name, {"RecursiveLoop": loop})
        reserved = properties.get("ReservedConcurrentExecutions")
        reserved_elsewhere = [
            int(record.get("concurrency") or 0)
            for key, record in lambda_svc._functions.items()
            if key != name
        ]
        quota = lambda_svc._ACCOUNT_CONCURRENCY_CAP
        if reserved and quota and quota - sum(reserved_elsewhere) - int(reserved) < UNRESERVED_AT_LEAST:
            raise ValueError(
                f"Specified ReservedConcurrentExecutions for function decreases account's "
                f"UnreservedConcurrentExecution below its minimum value of [{UNRESERVED_AT_LEAST}]."
            )
        lambda_svc._functions[name]["concurrency"] = None if reserved is None else int(reserved)

    handlers = provisioners._RESOURCE_HANDLERS
    _after(handlers["AWS::DynamoDB::Table"], set_time_to_live)
    _after(handlers["AWS::DynamoDB::Table"], set_units)
    _after(handlers["AWS::Lambda::Function"], set_limits)
    _give_reachable_addresses(stacks, endpoint_url)
    _hold_versions_to_the_functions_concurrency(lambda_svc)


def _hold_versions_to_the_functions_concurrency(lambda_svc: Any) -> None:
    """All versions and aliases of a function share its reserved concurrency. The server holds only `$LATEST` to it."""
    stock = lambda_svc._reserved_concurrency

    def reserved(record: Properties, configuration: Properties) -> int | None:
        limit: int | None = stock(
            lambda_svc._functions.get(configuration["FunctionName"], record), configuration
        )
        return limit

    lambda_svc._reserved_concurrency = reserved


def _after(handler: dict[str, Any], do: Callable[[str, Properties], None]) -> None:
    """Call `do` with the physical id and the properties after each create and update."""
    create, update = handler["create"], handler["update"]

    def created(logical_id: str, properties: Properties, *more: Any) -> Any:
        result = create(logical_id, properties, *more)
        do(result[0], properties)
        return result

    def updated(physical_id: str, old: Properties, new: Properties, *more: Any, **named: Any) -> Any:
        result = update(physical_id, old, new, *more, **named)
        do(result[0], new)
        return result

    handler["create"], handler["update"] = created, updated


def _give_reachable_addresses(stacks: Any, endpoint_url: str) -> None:
    """A stack's outputs name an API where this server answers for it, since no name server knows AWS's name."""
    resolve = stacks._resolve_stack_outputs

    def resolved(*arguments: Any) -> Any:
        outputs, exports = resolve(*arguments)
        for output in outputs:
            output["OutputValue"] = _ADDRESS.sub(
                rf"{endpoint_url}/_aws/execute-api/\1", output["OutputValue"]
            )
        return outputs, exports

    stacks._resolve_stack_outputs = resolved
