"""CloudFormation that any interrupted deployment can continue, and values of the types that AWS makes of them.

A kill can fall between the creation of a resource and the stack's note of it. AWS never forgets such a resource; in
ministack no stack would have it, and each later deployment would fail, or empty it.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any

logger = logging.getLogger("embedded.cloudformation")

Properties = Mapping[str, Any]
# Its physical id and its attributes.
Resource = tuple[str, Mapping[str, Any]]
# Of its logical or physical id, its properties and its stack's name.
Create = Callable[[str, Properties, str], Resource]

# The state of a stack whose operation was interrupted; the next deployment continues from the existing resources.
_AFTER_INTERRUPTION = {"ROLLBACK_IN_PROGRESS": "ROLLBACK_COMPLETE", "DELETE_IN_PROGRESS": "DELETE_FAILED"}
_DEPLOYABLE = "UPDATE_ROLLBACK_COMPLETE"


def end_interrupted_operations(stacks: Any) -> None:
    """Mark the stacks that were being deployed when the server ended: no process continues that work.

    CloudFormation refuses each deployment to a stack in progress.
    """
    for stack in stacks._data.values():
        status = stack["StackStatus"]
        if status.endswith("_IN_PROGRESS") or status == "UPDATE_ROLLBACK_FAILED":
            logger.warning("stack %s was %s when the server ended", stack["StackName"], status)
            stack["StackStatus"] = _AFTER_INTERRUPTION.get(status, _DEPLOYABLE)


def install(stacks: Any, provisioners: Any) -> None:
    """Change CloudFormation's `provisioners`; `stacks` is its store of stacks."""
    from ministack.services import (  # type: ignore[import-untyped]
        apigateway,
        dynamodb,
        eventbridge,
        lambda_svc,
        sqs,
    )

    handlers = provisioners._RESOURCE_HANDLERS

    def adopt(resource_type: str, find: Callable[[Properties], str | None], keep: Create) -> None:
        """Let a create of `resource_type` call `keep` for what exists and belongs to no stack."""
        create: Create = handlers[resource_type]["create"]

        def create_or_keep(logical_id: str, properties: Properties, stack_name: str) -> Resource:
            existing = find(properties)
            if not existing or _has_stack(stacks, existing):
                return create(logical_id, properties, stack_name)
            logger.warning("%s %s existed without a stack: %s takes it", resource_type, existing, stack_name)
            return keep(existing, properties, stack_name)

        handlers[resource_type]["create"] = create_or_keep

    def api_of(properties: Properties) -> str | None:
        return _if_in(properties.get("Tags", {}).get("ms-custom-id"), apigateway._apis)

    def replace_api(api: str, properties: Properties, stack_name: str) -> Resource:
        handlers["AWS::ApiGatewayV2::Api"]["delete"](api, properties)
        return create_api(api, properties, stack_name)

    def mapping_of(properties: Properties) -> str | None:
        function = str(properties["FunctionName"]).rpartition(":function:")[2].partition(":")[0]
        source = properties.get("EventSourceArn")
        for mapping_id, mapping in lambda_svc._esms.items():
            if (mapping["EventSourceArn"], mapping["FunctionName"]) == (source, function):
                return str(mapping_id)
        return None

    def keep_mapping(mapping: str, properties: Properties, stack_name: str) -> Resource:
        updated: Resource = provisioners._lambda_esm_update(mapping, properties, properties, stack_name)
        return updated

    def alias_of(properties: Properties) -> str | None:
        function = provisioners._lambda_function_for_cfn_ref(properties["FunctionName"])[0]
        alias = (function or {}).get("aliases", {}).get(properties["Name"])
        return alias["AliasArn"] if alias else None

    def keep_alias(arn: str, properties: Properties, stack_name: str) -> Resource:
        updated: Resource = provisioners._lambda_alias_update(arn, properties, properties, stack_name)
        return updated

    def keep_table(name: str, _properties: Properties, _stack: str) -> Resource:
        return name, {"Arn": dynamodb._tables[name]["TableArn"]}

    def keep_queue(url: str, properties: Properties, stack_name: str) -> Resource:
        updated: Resource = provisioners._sqs_update(url, {}, properties, stack_name)
        return updated

    def keep_bus(name: str, _properties: Properties, _stack: str) -> Resource:
        return name, {"Arn": eventbridge._event_buses[name]["Arn"], "Name": name}

    create_api: Create = handlers["AWS::ApiGatewayV2::Api"]["create"]
    adopt("AWS::ApiGatewayV2::Api", api_of, replace_api)
    adopt("AWS::DynamoDB::Table", lambda p: _if_in(p.get("TableName"), dynamodb._tables), keep_table)
    adopt("AWS::Events::EventBus", lambda p: _if_in(p.get("Name"), eventbridge._event_buses), keep_bus)
    adopt("AWS::Lambda::Alias", alias_of, keep_alias)
    adopt("AWS::Lambda::EventSourceMapping", mapping_of, keep_mapping)
    adopt("AWS::SQS::Queue", lambda p: sqs._queue_name_to_url.get(p.get("QueueName")), keep_queue)
    _take_numbers(lambda_svc)


def _if_in(name: str | None, names: Any) -> str | None:
    return name if name in names else None


def _has_stack(stacks: Any, physical_id: str) -> bool:
    return any(
        resource.get("PhysicalResourceId") == physical_id
        for stack in stacks._data.values()
        for resource in stack.get("_resources", {}).values()
    )


def _take_numbers(lambda_svc: Any) -> None:
    """A template's "20" is the number 20 for a mapping's MaximumConcurrency; the text would end every poll."""
    stock = lambda_svc._sqs_esm_concurrency

    def concurrency(mapping: dict[str, Any], *arguments: Any) -> int:
        scaling = mapping.get("ScalingConfig") or {}
        if isinstance(limit := scaling.get("MaximumConcurrency"), str):
            mapping["ScalingConfig"] = {**scaling, "MaximumConcurrency": int(limit)}
        return int(stock(mapping, *arguments))

    lambda_svc._sqs_esm_concurrency = concurrency
