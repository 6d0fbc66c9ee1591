"""The policies of a function's role, as the template of the deployed stack has them.

A deployment of an unchanged template does not put back what was changed by hand: CloudFormation compares templates, and
not what is there.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from cli.doctor.deployment import Deployment
from common.platform.findings import Repair

_NAMED: Final = re.compile(r"\$\{([\w:.]+)\}")


def restoring(deployment: Deployment, function: str, role_arn: str) -> Repair:
    """Put back the role's own policies."""
    role = role_arn.rpartition("/")[2]

    def put() -> None:
        for name, document in policies(deployment, function).items():
            deployment.client("iam").put_role_policy(
                RoleName=role, PolicyName=name, PolicyDocument=json.dumps(document)
            )

    return Repair(
        f"aws iam put-role-policy --role-name {role}, with the policy {function!r} of the stack's template",
        put,
    )


def policies(deployment: Deployment, function: str) -> dict[str, Any]:
    """The role's policies by their names. Raises LookupError if the template has something that is not understood."""
    body = deployment.client("cloudformation").get_template(StackName=deployment.named())["TemplateBody"]
    template = json.loads(body) if isinstance(body, str) else body
    role = template["Resources"][f"{function.title()}Role"]["Properties"]
    return {
        policy["PolicyName"]: resolved(deployment, policy["PolicyDocument"])
        for policy in role.get("Policies", ())
    }


def resolved(deployment: Deployment, value: Any) -> Any:
    """A value of the template with its references replaced. Raises LookupError."""
    if isinstance(value, list):
        return [resolved(deployment, one) for one in value]
    if not isinstance(value, dict):
        return value
    match value:
        case {"Fn::GetAtt": [name, "Arn"]}:
            return _arn(deployment, name)
        case {"Fn::Sub": str(text)}:
            return _NAMED.sub(lambda found: _named(deployment, found[1]), text)
        case {"Fn::Split": [separator, inner]}:
            return resolved(deployment, inner).split(separator)
    if unknown := [name for name in value if name == "Ref" or name.startswith("Fn::")]:
        raise LookupError(f"the template has {unknown[0]} in a policy: {json.dumps(value)[:200]}")
    return {name: resolved(deployment, one) for name, one in value.items()}


def _named(deployment: Deployment, name: str) -> str:
    pseudo = {
        "AWS::Partition": deployment.partition,
        "AWS::Region": deployment.region,
        "AWS::AccountId": deployment.account,
    }
    return pseudo[name] if name in pseudo else _arn(deployment, name.removesuffix(".Arn"))


def _arn(deployment: Deployment, name: str) -> str:
    if (arn := deployment.arn(name)) is None:
        raise LookupError(f"the template names {name} in a policy, and its ARN is not known")
    return arn
