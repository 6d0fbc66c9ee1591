"""A minimal replacement of the API: no keys, no checks, no problem documents, one request to DynamoDB."""

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import boto3
from boto3.dynamodb.types import TypeDeserializer

# The tenant whose jobs are read, and the one that gets new jobs: the read ones stay unchanged.
TENANT, MAKER = "bench", "bench-maker"
TABLE = "minute8-local-jobs"


@cache
def client() -> Any:
    """boto3's DynamoDB client."""
    return boto3.client("dynamodb")


def handle(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Answer /bare/get/JOB, /bare/list, or POST /bare/create/JOB."""
    _, _, verb, *rest = event["rawPath"].split("/")
    answer = json.dumps(_ROUTES[verb](event, *rest), default=float)
    return {"statusCode": 200, "headers": {"content-type": "application/json"}, "body": answer}


def _get(event: dict[str, Any], job_id: str) -> Any:
    key = {"pk": {"S": TENANT}, "sk": {"S": f"JOB#{job_id}"}}
    return _plain(client().get_item(TableName=TABLE, Key=key)["Item"])


def _list(event: dict[str, Any]) -> Any:
    answer = client().query(
        TableName=TABLE,
        KeyConditionExpression="pk = :pk AND begins_with(sk, :job)",
        ExpressionAttributeValues={":pk": {"S": TENANT}, ":job": {"S": "JOB#"}},
        Limit=20,
    )
    return [_plain(item) for item in answer["Items"]]


def _create(event: dict[str, Any], job_id: str) -> Any:
    item = {
        "pk": {"S": "bare"},
        "sk": {"S": job_id},
        "definition": {"S": json.dumps(json.loads(event["body"]))},
    }
    client().put_item(TableName=TABLE, Item=item, ConditionExpression="attribute_not_exists(pk)")
    return {"job_id": job_id}


def _plain(item: Any) -> dict[str, Any]:
    deserializer = TypeDeserializer()
    return {name: deserializer.deserialize(value) for name, value in item.items()}


_ROUTES: dict[str, Callable[..., Any]] = {"get": _get, "list": _list, "create": _create}
