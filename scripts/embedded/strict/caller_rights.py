"""CloudFormation creates what a template says with the rights of the user who deploys it, as on AWS.

A resource is refused to a user who may not make it under its name. What changes and removes it is not checked.
https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/control-access-with-iam.html
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple


class Right(NamedTuple):
    """An action and the resource that it is about: `service:place:name`, where the place is region and account."""

    action: str
    resource: str = ""


# By type. A property's name in braces stands for its value; {generated} for the name that CloudFormation makes.
_NEEDED: Final[Mapping[str, tuple[Right, ...]]] = {
    "AWS::ApiGatewayV2::Api": (Right("apigateway:POST", "apigateway:{region}::/apis"),),
    "AWS::ApiGatewayV2::Stage": (Right("apigateway:POST", "apigateway:{region}::/apis/{ApiId}/stages"),),
    "AWS::CloudWatch::Alarm": (Right("cloudwatch:PutMetricAlarm", "cloudwatch:{place}:alarm:{AlarmName}"),),
    "AWS::CloudWatch::CompositeAlarm": (
        Right("cloudwatch:PutCompositeAlarm", "cloudwatch:{place}:alarm:{AlarmName}"),
    ),
    "AWS::CloudWatch::Dashboard": (
        Right("cloudwatch:PutDashboard", "cloudwatch::{account}:dashboard/{DashboardName}"),
    ),
    "AWS::DynamoDB::Table": (Right("dynamodb:CreateTable", "dynamodb:{place}:table/{TableName}"),),
    "AWS::Events::EventBus": (Right("events:CreateEventBus", "events:{place}:event-bus/{Name}"),),
    "AWS::Events::Rule": (
        Right("events:PutRule", "events:{place}:rule/{Name}"),
        Right("events:PutTargets", "events:{place}:rule/{Name}"),
    ),
    "AWS::IAM::Role": (
        Right("iam:CreateRole", "iam::{account}:role/{generated}"),
        Right("iam:PutRolePolicy", "iam::{account}:role/{generated}"),
    ),
    "AWS::Lambda::EventSourceMapping": (Right("lambda:CreateEventSourceMapping"),),
    "AWS::Lambda::Function": (Right("lambda:CreateFunction", "lambda:{place}:function:{FunctionName}"),),
    "AWS::Lambda::LayerVersion": (Right("lambda:PublishLayerVersion", "lambda:{place}:layer:{LayerName}"),),
    "AWS::Logs::LogGroup": (Right("logs:CreateLogGroup", "logs:{place}:log-group:{LogGroupName}"),),
    "AWS::S3::Bucket": (Right("s3:CreateBucket", "s3:::{generated}"),),
    "AWS::SQS::Queue": (Right("sqs:CreateQueue", "sqs:{place}:{QueueName}"),),
}


def install(evaluator: Any, provisioners: Any, place_of: Callable[[], tuple[str, str]]) -> None:
    """Into the server's CloudFormation; `place_of` is the region and the account of the present request."""

    def checked(create: Callable[..., Any], rights: tuple[Right, ...]) -> Callable[..., Any]:
        def created(logical_id: str, properties: Mapping[str, Any], stack: str) -> Any:
            for right in rights:
                _check(right, properties, f"{stack}-{logical_id}-1ABC")
            return create(logical_id, properties, stack)

        return created

    def _check(right: Right, properties: Mapping[str, Any], generated: str) -> None:
        kind, _, user = evaluator.caller_arn().rpartition(":user/")
        if not kind:
            return
        region, account = place_of()
        own = {"region": region, "account": account, "place": f"{region}:{account}"}
        names = defaultdict(lambda: generated, {**properties, **own, "generated": generated.lower()})
        if right.resource.startswith("iam:"):
            names["generated"] = generated
        resource = f"arn:aws:{right.resource.format_map(names)}" if right.resource else "*"
        context = evaluator.EvalContext(
            principal_arn=evaluator.caller_arn(),
            principal_type="User",
            principal_account=account,
            action=right.action,
            resource_arn=resource,
            region=region,
            service_context={},
        )
        if evaluator.evaluate(context, evaluator._gather_user_policies(user, account)).decision != "Allow":
            raise ValueError(
                f"User: {user} is not authorized to perform: {right.action} on resource: {resource}"
            )

    for kind, rights in _NEEDED.items():
        handler = provisioners._RESOURCE_HANDLERS[kind]
        handler["create"] = checked(handler["create"], rights)
