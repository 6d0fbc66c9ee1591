"""Whether roles, queues, tables and keys have the policies of the deployed template, statement by statement.

IAM's simulator (minute8/cli/doctor/functions.py) also knows boundaries and organizations, but only what it is asked.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Container, Iterator, Sequence
from typing import Any, Final, NamedTuple

from common.platform.findings import Finding, Repair, not_checked, ok, repairable
from minute8.cli.doctor.deployment import Deployment
from minute8.cli.doctor.settings import is_missing
from minute8.cli.doctor.template import DeployedTemplate, NoStackError, Resource

Document = dict[str, Any]
# Resource type -> the properties that hold policies.
_POLICIES_IN: Final = {
    "AWS::IAM::Role": ("AssumeRolePolicyDocument", "Policies"),
    "AWS::IAM::Policy": ("PolicyDocument", "Roles"),
    "AWS::SQS::QueuePolicy": ("PolicyDocument", "Queues"),
    "AWS::KMS::Key": ("KeyPolicy",),
}
# A policy may name an account by its number; AWS then shows the ARN of the account's root.
_ACCOUNT: Final = re.compile(r"arn:[\w-]+:iam::(\d{12}):root")
_MAX_SHOWN: Final = 10


class Policy(NamedTuple):
    """A policy of the template, empty if it has none. `current` reads what its holder has: None without it."""

    holder: str
    name: str
    document: Document
    current: Callable[[], Document | None]
    repair: Repair


def policies(deployment: Deployment) -> Iterator[Finding]:
    """Compare each policy with the deployed template: what it no longer allows or denies, and what beside."""
    try:
        template = DeployedTemplate(deployment)
    except NoStackError as error:
        yield not_checked(str(error))
        return
    compared, resources = 0, list(template.resources())
    granted = {url for resource in resources for url in resource.properties.get("Queues", ())}
    for resource in resources:
        if unread := sorted(resource.unknown.intersection(_POLICIES_IN.get(resource.type, ()))):
            yield not_checked(f"{resource.name}: the doctor cannot read its {', '.join(unread)}")
            continue
        for policy in _policies_of(deployment, resource, granted):
            compared += 1
            yield from _differences(deployment, policy)
        if resource.type == "AWS::IAM::Role":
            yield from _strangers(deployment, resource, resources)
    yield ok(f"{compared} policies are as the template says")


def _strangers(deployment: Deployment, role: Resource, resources: Sequence[Resource]) -> Iterator[Finding]:
    """Policies of a role that the template does not give it, and managed ones that it has lost."""
    client, name = deployment.client("iam"), role.physical_id
    known = {policy for resource in resources for policy in _of_role(resource, name)}
    for inline in sorted({*client.list_role_policies(RoleName=name)["PolicyNames"]} - known):
        document = client.get_role_policy(RoleName=name, PolicyName=inline)["PolicyDocument"]
        delete = functools.partial(client.delete_role_policy, RoleName=name, PolicyName=inline)
        yield repairable(
            f"{name} has a policy {inline} that the template does not have: {_shown(_statements(document))}",
            Repair(f"aws iam delete-role-policy --role-name {name} --policy-name {inline}", delete),
        )
    attached = client.list_attached_role_policies(RoleName=name)["AttachedPolicies"]
    current = {policy["PolicyArn"] for policy in attached}
    expected = {*role.properties.get("ManagedPolicyArns", ())}
    for arn in sorted(current ^ expected):
        verb, change = (
            ("detach", client.detach_role_policy) if arn in current else ("attach", client.attach_role_policy)
        )
        has = "is attached, and not in the template" if arn in current else "of the template is not attached"
        yield repairable(
            f"{name}: the policy {arn} {has}",
            Repair(
                f"aws iam {verb}-role-policy --role-name {name} --policy-arn {arn}",
                functools.partial(change, RoleName=name, PolicyArn=arn),
            ),
        )


def restoring(deployment: Deployment, role: str) -> Repair:
    """Put back all policies that the template gives a role of this name."""

    def put() -> None:
        for resource in DeployedTemplate(deployment).resources():
            for name, document in _of_role(resource, role).items():
                deployment.client("iam").put_role_policy(
                    RoleName=role, PolicyName=name, PolicyDocument=json.dumps(document)
                )

    return Repair(
        f"aws iam put-role-policy --role-name {role}, with each of its policies in the stack's template", put
    )


def allowances(deployment: Deployment, role: str) -> dict[str, set[str]]:
    """The actions that the template allows a role, by ARN, as far as the simulator can be asked without a request.

    Targets and logs are left out, whose ARNs have wildcards, and statements that ask for what a request says.
    Raises NoStackError, LookupError.
    """
    actions: dict[str, set[str]] = {}
    for resource in DeployedTemplate(deployment).resources():
        for document in _of_role(resource, role).values():
            for statement in _listed(document["Statement"]):
                if statement["Effect"] != "Allow" or not _holds_without_keys(statement):
                    continue
                for arn in _listed(statement["Resource"]):
                    if arn == "*" or "*" not in arn:
                        actions.setdefault(arn, set()).update(_listed(statement["Action"]))
    return actions


def _holds_without_keys(statement: Document) -> bool:
    """Whether a request without any key of a condition meets the statement's."""
    return all(operator.startswith("ForAllValues:") for operator in statement.get("Condition", {}))


def _of_role(resource: Resource, role: str) -> dict[str, Document]:
    """The policies by their names that a resource of the template gives a role. Raises LookupError."""
    if not resource.type.startswith("AWS::IAM::"):
        return {}
    if unread := resource.unknown.intersection(_POLICIES_IN.get(resource.type, ())):
        raise LookupError(f"the doctor cannot read {', '.join(sorted(unread))} of {resource.name}")
    properties = resource.properties
    if resource.type == "AWS::IAM::Role" and resource.physical_id == role:
        return {policy["PolicyName"]: policy["PolicyDocument"] for policy in properties.get("Policies", ())}
    if resource.type == "AWS::IAM::Policy" and role in properties["Roles"]:
        return {properties["PolicyName"]: properties["PolicyDocument"]}
    return {}


def _policies_of(deployment: Deployment, resource: Resource, granted: Container[str]) -> Iterator[Policy]:
    """`granted`: the URLs of queues to which the template gives a policy; another queue has none."""
    properties = resource.properties
    match resource.type:
        case "AWS::IAM::Role":
            role = resource.physical_id
            yield _trust(deployment, role, properties["AssumeRolePolicyDocument"])
            roles = [role]
        case "AWS::IAM::Policy":
            roles = properties["Roles"]
        case "AWS::SQS::QueuePolicy":
            for url in properties["Queues"]:
                yield _policy_of_queue(deployment, url, properties["PolicyDocument"])
            return
        case "AWS::SQS::Queue":
            if resource.physical_id not in granted:
                yield _policy_of_queue(deployment, resource.physical_id, {})
            return
        case "AWS::KMS::Key":
            yield _policy_of_key(deployment, resource.physical_id, properties["KeyPolicy"])
            return
        case "AWS::DynamoDB::Table":
            yield _policy_of_table(deployment, resource)
            return
        case _:
            return
    for role in roles:
        for name, document in _of_role(resource, role).items():
            yield _policy_of_role(deployment, role, name, document)


def _policy_of_role(deployment: Deployment, role: str, name: str, document: Document) -> Policy:
    def current() -> Document:
        answer = deployment.client("iam").get_role_policy(RoleName=role, PolicyName=name)
        inline: Document = answer["PolicyDocument"]
        return inline

    return Policy(role, f"policy {name}", document, current, restoring(deployment, role))


def _trust(deployment: Deployment, role: str, document: Document) -> Policy:
    client = deployment.client("iam")
    return Policy(
        role,
        "trust policy",
        document,
        lambda: client.get_role(RoleName=role)["Role"]["AssumeRolePolicyDocument"],
        Repair(
            f"aws iam update-assume-role-policy --role-name {role}, with the stack's template",
            lambda: client.update_assume_role_policy(RoleName=role, PolicyDocument=json.dumps(document)),
        ),
    )


def _policy_of_queue(deployment: Deployment, url: str, document: Document) -> Policy:
    client, queue = deployment.client("sqs"), url.rpartition("/")[2]

    def current() -> Document | None:
        attributes = client.get_queue_attributes(QueueUrl=url, AttributeNames=["Policy"]).get(
            "Attributes", {}
        )
        policy: Document | None = json.loads(attributes.get("Policy", "null"))
        return policy

    return Policy(
        queue,
        "queue policy",
        document,
        current,
        Repair(
            f"put the policy of {queue} back, as the stack's template has it",
            lambda: client.set_queue_attributes(
                QueueUrl=url, Attributes={"Policy": json.dumps(document) if document else ""}
            ),
        ),
    )


def _policy_of_key(deployment: Deployment, key: str, document: Document) -> Policy:
    client, name = deployment.client("kms"), "default"

    def current() -> Document:
        policy: Document = json.loads(client.get_key_policy(KeyId=key, PolicyName=name)["Policy"])
        return policy

    return Policy(
        key,
        "key policy",
        document,
        current,
        Repair(
            f"put the policy of {key} back, as the stack's template has it",
            lambda: client.put_key_policy(KeyId=key, PolicyName=name, Policy=json.dumps(document)),
        ),
    )


def _policy_of_table(deployment: Deployment, table: Resource) -> Policy:
    """A policy of the table's own: it can deny what the roles' policies allow, and IAM's simulator does not know it."""
    client, name = deployment.client("dynamodb"), table.physical_id
    arn = f"arn:{deployment.partition}:dynamodb:{deployment.region}:{deployment.account}:table/{name}"

    def current() -> Document:
        policy: Document = json.loads(client.get_resource_policy(ResourceArn=arn)["Policy"])
        return policy

    return Policy(
        name,
        "resource policy",
        {},
        current,
        Repair(
            f"aws dynamodb delete-resource-policy --resource-arn {arn}",
            lambda: client.delete_resource_policy(ResourceArn=arn),
        ),
    )


def _differences(deployment: Deployment, policy: Policy) -> Iterator[Finding]:
    try:
        current = policy.current()
    except deployment.client("sts").exceptions.ClientError as error:
        if not is_missing(error):
            raise
        current = None
    expected, actual = _statements(policy.document), _statements(current or {})
    if missing := expected - actual:
        verb = "does not" if current else "is gone, so it does not"
        yield repairable(f"the {policy.name} of {policy.holder} {verb} {_shown(missing)}", policy.repair)
    if extra := actual - expected:
        message = f"the {policy.name} of {policy.holder} does more than the template says: {_shown(extra)}"
        yield repairable(message, policy.repair)


def _shown(statements: set[str]) -> str:
    more = len(statements) - _MAX_SHOWN
    return "; ".join(sorted(statements)[:_MAX_SHOWN]) + (f"; and {more} more" if more > 0 else "")


def _statements(document: Document) -> set[str]:
    """A line of text for each effect, action and resource of a policy, with its conditions and its principals."""
    return {
        f"{statement['Effect'].lower()} {action}{f' on {resource}' * bool(resource)}{_conditions(statement)}"
        for statement in _listed(document.get("Statement"))
        for action in _listed(statement.get("Action", _without(statement, "NotAction")))
        for resource in _listed(statement.get("Resource", _without(statement, "NotResource")))
    }


def _without(statement: Document, name: str) -> str:
    return f"all but {json.dumps(_normalized(statement[name]))}" if name in statement else ""


def _conditions(statement: Document) -> str:
    """The principals and conditions of a statement, as a text. Equal principals and conditions give equal texts."""
    parts = (("for", statement.get("Principal")), ("if", statement.get("Condition")))
    return "".join(f" {word} {json.dumps(_normalized(part), sort_keys=True)}" for word, part in parts if part)


def _normalized(value: Any) -> Any:
    """A value of a policy: a single text becomes a list of one text, and lists are sorted."""
    if isinstance(value, dict):
        return {key: _normalized(part) for key, part in value.items()}
    return sorted(_ACCOUNT.sub(r"\1", str(part)) for part in _listed(value))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]
