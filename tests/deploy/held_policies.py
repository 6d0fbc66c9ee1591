"""A stage whose roles, queues and keys have the policies of a compiled template, for the doctor to look at."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from botocore.exceptions import ClientError

from common.platform.findings import Finding
from minute8.cli.doctor.deployment import Deployment
from minute8.cli.doctor.policies import policies
from minute8.cli.doctor.template import DeployedTemplate, Resource
from tests.deploy.statements import as_list
from tests.manual_clock import ManualClock

KINDS: Final = ("AWS::IAM::Policy", "AWS::IAM::Role", "AWS::SQS::QueuePolicy")
_QUEUES: Final = "https://sqs.us-east-1.amazonaws.com/123456789012/"


class HeldPolicies:
    """What each holder has, and the clients that the doctor reads it with. Each is its own client."""

    class exceptions:
        ClientError = ClientError

    def __init__(self, template: dict[str, Any]) -> None:
        self._template = template
        self._deployment = Deployment(
            "prod", "aws", "us-east-1", "123456789012", lambda _: self, ManualClock(0)
        )
        # By holder and name; the trust of a role and the policies of queues and keys have no name.
        self._held: dict[tuple[str, str], Any] = {}
        for resource in DeployedTemplate(self._deployment).resources():
            self._block(resource)

    def findings(self) -> list[Finding]:
        """What the doctor finds."""
        return list(policies(self._deployment))

    def actions(self) -> list[tuple[str, str, str]]:
        """Each action, with the holder and the name of its policy."""
        return sorted(
            {
                (holder, name, action)
                for (holder, name), document in self._held.items()
                for statement in document["Statement"]
                for action in as_list(statement["Action"])
            }
        )

    @contextmanager
    def without(self, holder: str, name: str, action: str) -> Iterator[set[str]]:
        """A policy that has lost an action on all its resources, which are given."""
        policy = self._held[holder, name]
        with_it = [entry for entry in policy["Statement"] if action in as_list(entry["Action"])]
        statements = [
            {**entry, "Action": [other for other in as_list(entry["Action"]) if other != action]}
            for entry in policy["Statement"]
        ]
        self._held[holder, name] = {**policy, "Statement": statements}
        yield {resource for entry in with_it for resource in as_list(entry.get("Resource", ""))}
        self._held[holder, name] = policy

    def _block(self, resource: Resource) -> None:
        properties = resource.properties
        match resource.type:
            case "AWS::IAM::Role":
                self._held[resource.physical_id, ""] = properties["AssumeRolePolicyDocument"]
                for policy in properties["Policies"]:
                    self._held[resource.physical_id, policy["PolicyName"]] = policy["PolicyDocument"]
            case "AWS::IAM::Policy":
                for role in properties["Roles"]:
                    self._held[role, properties["PolicyName"]] = properties["PolicyDocument"]
            case "AWS::SQS::QueuePolicy":
                for queue in properties["Queues"]:
                    self._held[queue, ""] = properties["PolicyDocument"]
            case "AWS::KMS::Key":
                self._held[resource.physical_id, ""] = properties["KeyPolicy"]

    # --- clients --------------------------------------------------------------------------------
    def describe_stacks(self, StackName: str) -> dict[str, Any]:
        return {"Stacks": [{"StackName": StackName}]}

    def get_template(self, StackName: str) -> dict[str, Any]:
        return {"TemplateBody": self._template}

    def get_paginator(self, operation: str) -> Any:
        assert operation == "list_stack_resources"
        return self

    def paginate(self, StackName: str) -> list[dict[str, Any]]:
        summaries = [
            {"LogicalResourceId": name, "PhysicalResourceId": _physical_id(name, resource)}
            for name, resource in self._template["Resources"].items()
        ]
        return [{"StackResourceSummaries": summaries}]

    def get_role(self, RoleName: str) -> dict[str, Any]:
        return {"Role": {"AssumeRolePolicyDocument": self._held[RoleName, ""]}}

    def get_role_policy(self, RoleName: str, PolicyName: str) -> dict[str, Any]:
        return {"PolicyDocument": self._held[RoleName, PolicyName]}

    def list_role_policies(self, RoleName: str) -> dict[str, Any]:
        return {"PolicyNames": [name for holder, name in self._held if holder == RoleName and name]}

    def list_attached_role_policies(self, RoleName: str) -> dict[str, Any]:
        return {"AttachedPolicies": []}

    def get_queue_attributes(self, QueueUrl: str, AttributeNames: list[str]) -> dict[str, Any]:
        if (QueueUrl, "") not in self._held:  # as most queues
            return {}
        return {"Attributes": {"Policy": json.dumps(self._held[QueueUrl, ""])}}

    def get_key_policy(self, KeyId: str, PolicyName: str) -> dict[str, Any]:
        return {"Policy": json.dumps(self._held[KeyId, ""])}

    def get_resource_policy(self, ResourceArn: str) -> None:
        raise ClientError({"Error": {"Code": "PolicyNotFoundException", "Message": ""}}, "GetResourcePolicy")


def _physical_id(name: str, resource: dict[str, Any]) -> str:
    """As CloudFormation has it: of a queue its address."""
    return _QUEUES + resource["Properties"]["QueueName"] if resource["Type"] == "AWS::SQS::Queue" else name
