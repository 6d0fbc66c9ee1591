"""IAM's delay: a role is not there for Lambda, and its policies do not count, until some time after they were made.

https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot.html ("Changes that I make are not always immediately
visible"). A user's policies count at once here.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

# AWS says "seconds", rarely more.
DELAY_S: Final = 2.0
_FUNCTION, _MAPPING = "AWS::Lambda::Function", "AWS::Lambda::EventSourceMapping"
_CHANGES: Final = (
    *("CreateRole", "PutRolePolicy", "DeleteRolePolicy", "AttachRolePolicy", "DetachRolePolicy"),
    *("UpdateAssumeRolePolicy",),
)
# https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html#events-sqs-permissions
_NEEDED_OF_A_QUEUE: Final = ("ReceiveMessage", "DeleteMessage", "GetQueueAttributes")
_CANNOT_BE_ASSUMED: Final = "The role defined for the function cannot be assumed by Lambda."
_NOT_PERMITTED: Final = "The function execution role does not have permissions to call {} on SQS"

Role = Mapping[str, Any]

# The roles that a new resource changes, of its properties.
_NAMES: Final[Mapping[str, Callable[[Mapping[str, Any]], Sequence[str]]]] = {
    "AWS::IAM::Role": lambda properties: [properties.get("RoleName", "")],
    "AWS::IAM::Policy": lambda properties: properties.get("Roles", []),
    "AWS::IAM::ManagedPolicy": lambda properties: properties.get("Roles", []),
}


class Change(NamedTuple):
    """`before`: what the role was; None: it was not."""

    at: float
    before: Role | None


class Changes:
    """What roles were before their latest changes."""

    def __init__(self) -> None:
        self._changes: dict[str, list[Change]] = {}

    def note(self, name: str, before: Role | None, now: float) -> None:
        """The role was changed now, and was `before` until then."""
        recent = [change for change in self._changes.get(name, []) if change.at > now - DELAY_S]
        self._changes[name] = [*recent, Change(now, before)]

    def effective(self, name: str, present: Role | None, now: float) -> Role | None:
        """What the role is for the rest of AWS."""
        changes = self._changes.get(name, [])
        return next((change.before for change in changes if change.at > now - DELAY_S), present)


def install(iam: Any, evaluator: Any, lambda_svc: Any, provisioners: Any) -> None:
    """Into the server's IAM, its evaluation, Lambda and CloudFormation."""
    changes = Changes()

    def effective(name: str) -> Role | None:
        return changes.effective(name, iam._roles.get(name), time.time())

    def noting(change: Callable[..., Any], names_of: Callable[..., Sequence[str]]) -> Callable[..., Any]:
        """`change` with a note of what the roles were before. A new role without a name gets it by `change`."""

        def noted(*arguments: Any, **named: Any) -> Any:
            names, now = names_of(*arguments), time.time()
            before = {name: copy.deepcopy(iam._roles.get(name)) for name in names}
            result = change(*arguments, **named)
            for name in names:
                changes.note(name or str(result[0]), before[name], now)
            return result

        return noted

    for operation in _CHANGES:
        handler = iam._IAM_HANDLERS[operation]
        iam._IAM_HANDLERS[operation] = noting(handler, lambda request: [iam._p(request, "RoleName")])
    resources = provisioners._RESOURCE_HANDLERS
    for kind, names_of in _NAMES.items():
        resources[kind]["create"] = noting(
            resources[kind]["create"], lambda _id, new, _stack, of=names_of: of(new)
        )
    roles = resources["AWS::IAM::Role"]
    roles["update"] = noting(roles["update"], lambda physical_id, *_: [physical_id])
    _evaluate_what_is_effective(evaluator, effective)
    _refuse_new_roles(evaluator, provisioners, effective)
    _check_mappings(evaluator, lambda_svc, provisioners)


def _evaluate_what_is_effective(evaluator: Any, effective: Callable[[str], Role | None]) -> None:
    def gathered(name: str, account: str) -> list[Any]:
        role = effective(name) or {}
        documents = [
            *(role.get("InlinePolicies") or {}).values(),
            *(
                evaluator._resolve_managed_policy_document(arn, account)
                for arn in role.get("AttachedPolicies", [])
            ),
        ]
        return [evaluator.parse_policy_document(document) for document in documents if document]

    evaluator._gather_role_policies = gathered


def _refuse_new_roles(evaluator: Any, provisioners: Any, effective: Callable[[str], Role | None]) -> None:
    """Lambda refuses a function of such a role. CloudFormation tries again, so there it takes longer."""
    validate = evaluator.validate_role_arn

    def validated(arn: str) -> str | None:
        refusal: str | None = validate(arn)
        return refusal or (None if effective(_name(arn)) else _CANNOT_BE_ASSUMED)

    evaluator.validate_role_arn = validated
    functions = provisioners._RESOURCE_HANDLERS[_FUNCTION]
    create = functions["create"]

    def created(logical_id: str, properties: Mapping[str, Any], stack: str) -> Any:
        give_up_at = time.monotonic() + 2 * DELAY_S
        while validated(properties["Role"]) == _CANNOT_BE_ASSUMED and time.monotonic() < give_up_at:
            time.sleep(0.1)
        return create(logical_id, properties, stack)

    functions["create"] = created


def _check_mappings(evaluator: Any, lambda_svc: Any, provisioners: Any) -> None:
    """A mapping of a queue is refused if the function's role may not read the queue, or not yet."""

    def refusal(request: Mapping[str, Any]) -> str | None:
        source = str(request.get("EventSourceArn", ""))
        function = str(request.get("FunctionName", "")).rpartition(":function:")[2].partition(":")[0]
        record = lambda_svc._functions.get(function)
        if ":sqs:" not in source or record is None:
            return None
        role = record["config"]["Role"]
        account, region = role.split(":")[4], source.split(":")[3]
        policies = evaluator._gather_role_policies(_name(role), account)
        for action in _NEEDED_OF_A_QUEUE:
            context = evaluator.EvalContext(
                principal_arn=role,
                principal_type="AssumedRole",
                principal_account=account,
                action=f"sqs:{action}",
                resource_arn=source,
                region=region,
                service_context={},
            )
            if evaluator.evaluate(context, policies).decision != "Allow":
                return _NOT_PERMITTED.format(action)
        return None

    create = lambda_svc._create_esm

    def created(request: Mapping[str, Any]) -> Any:
        if message := refusal(request):
            return lambda_svc.error_response_json("InvalidParameterValueException", message, 400)
        return create(request)

    lambda_svc._create_esm = created
    mappings = provisioners._RESOURCE_HANDLERS[_MAPPING]
    provision = mappings["create"]

    def provisioned(logical_id: str, properties: Mapping[str, Any], stack: str) -> Any:
        if message := refusal(properties):
            raise ValueError(message)
        return provision(logical_id, properties, stack)

    mappings["create"] = provisioned


def _name(arn: str) -> str:
    return arn.rpartition("/")[2]
