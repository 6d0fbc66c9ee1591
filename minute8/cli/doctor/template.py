"""The template that the stage was deployed with, with its references replaced by what they name.

CloudFormation compares templates, and not what exists: so it does not notice what a person changed. The doctor compares
what exists with this.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from minute8.cli.doctor.deployment import Deployment

_REFERENCE: Final = re.compile(r"\$\{([\w:.]+)\}")
_NO_VALUE: Final = object()


class UnknownReferenceError(LookupError):
    """The template refers to something whose value the doctor cannot know."""


class NoStackError(LookupError):
    """The stage was deployed by other means."""


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource of the stack: its name in the template, its type, the physical id, and properties as deployed.

    A property whose value the doctor cannot know is left out of `properties`, and named in `unknown`.
    """

    name: str
    type: str
    physical_id: str
    properties: dict[str, Any]
    unknown: frozenset[str]


class DeployedTemplate:
    """The template of the stage's stack, and the physical ids of what the stack has, by their names in the template.

    Reads both when it is made; raises NoStackError and botocore's errors.
    """

    def __init__(self, deployment: Deployment) -> None:
        client, stack = deployment.client("cloudformation"), deployment.named()
        try:
            (description,) = client.describe_stacks(StackName=stack)["Stacks"]
        except client.exceptions.ClientError as error:
            if "does not exist" not in str(error):
                raise
            raise NoStackError(f"there is no stack {stack}: it was deployed by other means") from error
        body = client.get_template(StackName=stack)["TemplateBody"]
        self._template: dict[str, Any] = json.loads(body) if isinstance(body, str) else body
        self.physical_ids: dict[str, str] = {
            resource["LogicalResourceId"]: resource["PhysicalResourceId"]
            for page in client.get_paginator("list_stack_resources").paginate(StackName=stack)
            for resource in page["StackResourceSummaries"]
            if resource.get("PhysicalResourceId")
        }
        parameters = {
            name: parameter.get("Default") for name, parameter in self._template.get("Parameters", {}).items()
        }
        self._values: dict[str, Any] = {
            **parameters,
            **{item["ParameterKey"]: item["ParameterValue"] for item in description.get("Parameters", ())},
            **self.physical_ids,
            "AWS::AccountId": deployment.account,
            "AWS::NoValue": _NO_VALUE,
            "AWS::Partition": deployment.partition,
            "AWS::Region": deployment.region,
            "AWS::StackName": stack,
            "AWS::URLSuffix": "amazonaws.com.cn" if deployment.partition == "aws-cn" else "amazonaws.com",
        }
        self._of = deployment

    def resources(self) -> Iterator[Resource]:
        """The resources that the stack has; one whose condition does not hold is not among them."""
        for name, resource in self._template["Resources"].items():
            if name not in self.physical_ids or not self._holds(resource.get("Condition")):
                continue
            properties, unknown = {}, set()
            for key, value in resource.get("Properties", {}).items():
                try:
                    resolved = self.resolved(value)
                except UnknownReferenceError:
                    unknown.add(key)
                else:
                    if resolved is not _NO_VALUE:
                        properties[key] = resolved
            yield Resource(name, resource["Type"], self.physical_ids[name], properties, frozenset(unknown))

    def resolved(self, value: Any) -> Any:
        """A value with its references replaced. Raises UnknownReferenceError."""
        match value:
            case list():
                parts = [self.resolved(part) for part in value]
                return [part for part in parts if part is not _NO_VALUE]
            case {"Ref": str(name)}:
                return self._value(name)
            case {"Fn::GetAtt": [str(name), str(attribute)]}:
                return self._attribute(name, attribute)
            case {"Fn::If": [str(condition), then, otherwise]}:
                return self.resolved(then if self._holds(condition) else otherwise)
            case {"Fn::Join": [str(separator), parts]}:
                return separator.join(str(part) for part in self.resolved(parts))
            case {"Fn::Split": [str(separator), text]}:
                return str(self.resolved(text)).split(separator)
            case {"Fn::Sub": str(text)}:
                return _REFERENCE.sub(lambda reference: str(self._named(reference[1])), text)
            case dict():
                return self._resolved_members(value)
        return value

    def _resolved_members(self, value: Mapping[str, Any]) -> dict[str, Any]:
        if unread := next((key for key in value if key.startswith("Fn::")), None):
            raise UnknownReferenceError(unread)
        members = {key: self.resolved(part) for key, part in value.items()}
        return {key: part for key, part in members.items() if part is not _NO_VALUE}

    def _named(self, reference: str) -> Any:
        name, dot, attribute = reference.partition(".")
        return self._attribute(name, attribute) if dot else self._value(reference)

    def _value(self, name: str) -> Any:
        if name not in self._values:
            raise UnknownReferenceError(name)
        return self._values[name]

    def _holds(self, condition: Any) -> bool:
        """Whether a condition, by its name or written out, holds."""
        match condition:
            case None:
                return True
            case str() as name:
                return self._holds(self._template["Conditions"][name])
            case {"Condition": str(name)}:
                return self._holds(name)
            case {"Fn::Equals": [first, second]}:
                return str(self.resolved(first)) == str(self.resolved(second))
            case {"Fn::Not": [inner]}:
                return not self._holds(inner)
            case {"Fn::And": inners}:
                return all(self._holds(inner) for inner in inners)
            case {"Fn::Or": inners}:
                return any(self._holds(inner) for inner in inners)
        raise UnknownReferenceError(json.dumps(condition)[:100])

    def _attribute(self, name: str, attribute: str) -> str:
        """The attributes that the templates of Minute8 use. Raises UnknownReferenceError for others."""
        physical_id = str(self._value(name)).rstrip("/")
        last, kind = re.split(r"[/:]", physical_id)[-1], self._template["Resources"][name]["Type"]
        if attribute in ("QueueName", "Version"):
            return last
        if attribute != "Arn" or kind not in _ARNS:
            raise UnknownReferenceError(f"{name}.{attribute}")
        where = f"{self._of.region}:{self._of.account}"
        return f"arn:{self._of.partition}:" + _ARNS[kind].format(
            where=where, account=self._of.account, name=last
        )


_ARNS: Final = {
    "AWS::DynamoDB::Table": "dynamodb:{where}:table/{name}",
    "AWS::Events::EventBus": "events:{where}:event-bus/{name}",
    "AWS::Events::Rule": "events:{where}:rule/{name}",
    "AWS::IAM::Role": "iam::{account}:role/{name}",
    "AWS::KMS::Key": "kms:{where}:key/{name}",
    "AWS::Lambda::Function": "lambda:{where}:function:{name}",
    "AWS::Logs::LogGroup": "logs:{where}:log-group:{name}",
    "AWS::SQS::Queue": "sqs:{where}:{name}",
}
