"""The published policies: they allow what the precheck asks for and what CloudFormation calls, and fit into IAM."""

from __future__ import annotations

import json
import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from botocore import xform_name
from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER  # type: ignore[import-untyped]

from scripts.build_layer import ROOT
from scripts.precheck import DEPLOY_POLICY, NEEDED, NEEDED_BY_VERIFY, POLICIES
from tests.api import test_bulk, test_calendars, test_manual
from tests.api.conftest import open_office, settle
from tests.api.walk import calls_of_document
from tests.deploy.role_calls import Recorder, play
from tests.deploy.statements import as_list
from tests.worlds import job, open_world

# https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html, without white space.
MAX_CHARACTERS = 6_144
PLACES = {"dynamodb": "dynamodb:us-east-1:1:table/", "sqs": "sqs:us-east-1:1:"}
SETTINGS = {
    ("lambda:GetFunctionConfiguration", f"arn:aws:lambda:us-east-1:1:function:minute8-prod-api{alias}")
    for alias in ("", ":live")
}
# Explanations of many jobs at once.
OF_LARGE_TENANTS = ("dynamodb:BatchGetItem", "arn:aws:dynamodb:us-east-1:1:table/minute8-prod-runs")
# A tenant that a test's operator makes.
BY_OPERATORS = ("dynamodb:PutItem", "TenantsTable")
# The client without HTTP reads no masters: its audit has no HMAC.
BY_THE_API_ALONE = "ssm:GetParameter"
# Of services that use minute8.direct.
DIRECT_POLICY = DEPLOY_POLICY.with_name("direct.json")
# Of `minute8 doctor`, and of its repairs.
DOCTOR_POLICIES = tuple(DEPLOY_POLICY.with_name(name) for name in ("doctor.json", "doctor-fix.json"))
DOCTORS_SERVICES = ("cloudwatch", "dynamodb", "events", "iam", "kms", "lambda", "sqs", "ssm")
# Called for properties that the template does not use, or by the service itself.
OTHER_SERVICES = (
    *("ec2", "elasticfilesystem", "firehose", "kinesis", "kms", "s3files", "s3tables"),
    *("secretsmanager", "xray"),
)
NOT_ACTIONS = {"s3:REST.PUT.OBJECT"}
SECRET_CHANGES = {("PUT", "secrets"), ("DELETE", "secrets")}
# No role of the template has a boundary, and no policy belongs to a group or a user.
UNUSED = {"iam:DeleteRolePermissionsBoundary", "iam:PutRolePermissionsBoundary"} | {
    f"iam:{verb}{owner}Policy" for verb in ("Delete", "Get", "Put") for owner in ("Group", "User")
}


def statements(policy: Path) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = json.loads(policy.read_text())["Statement"]
    return content


def allows(policies: tuple[Path, ...], action: str, arn: str | None = None) -> bool:
    """Whether a statement allows the action, on this ARN or on some."""
    for statement in (statement for policy in policies for statement in statements(policy)):
        actions, resources = statement["Action"], statement["Resource"]
        actions = [actions] if isinstance(actions, str) else actions
        resources = [resources] if isinstance(resources, str) else resources
        if any(fnmatchcase(action.lower(), pattern.lower()) for pattern in actions) and (
            arn is None or any(fnmatchcase(arn, pattern) for pattern in resources)
        ):
            return True
    return False


@pytest.mark.parametrize("policy", (*POLICIES, DIRECT_POLICY), ids=lambda policy: policy.stem)
def test_iam_takes_the_policy(policy: Path) -> None:
    assert len(re.sub(r"\s", "", policy.read_text())) < MAX_CHARACTERS
    assert {statement["Effect"] for statement in statements(policy)} == {"Allow"}
    assert all(statement["Sid"].isalnum() for statement in statements(policy))


@pytest.mark.parametrize(("policies", "needed"), [((DEPLOY_POLICY,), NEEDED), (POLICIES, NEEDED_BY_VERIFY)])
def test_the_policies_allow_what_is_asked_of_iams_simulator(policies: tuple[Path, ...], needed: Any) -> None:
    refused = []
    for pattern, actions in needed.items():
        resource = pattern.format(region="eu-west-1", account="123456789012", stage="prod")
        arn = resource if resource == "*" else f"arn:aws:{resource}"
        refused += [f"{action} on {arn}" for action in actions if not allows(policies, action, arn)]
    assert refused == []


def test_the_policy_allows_what_cloudformation_calls_for_the_templates_resources() -> None:
    """AWS's schema of a resource lists what its handlers call with the user's rights."""
    written = [ROOT / "serverless.yml", *(ROOT / "deploy").glob("*.yml")]
    types = {name for path in written for name in re.findall(r"Type: (AWS::\w+::\w+)\s", path.read_text())}
    types |= {  # those that the framework makes
        *("AWS::ApiGatewayV2::Api", "AWS::ApiGatewayV2::Integration", "AWS::ApiGatewayV2::Route"),
        *("AWS::ApiGatewayV2::Stage", "AWS::Events::Rule", "AWS::Lambda::EventInvokeConfig"),
        *(
            "AWS::Lambda::Function",
            "AWS::Lambda::LayerVersion",
            "AWS::Lambda::Permission",
            "AWS::Logs::LogGroup",
        ),
        *("AWS::S3::Bucket", "AWS::S3::BucketPolicy"),
    }
    assert len(types) > 20
    refused = set()
    for name in types:
        schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", name).schema
        called = {
            action for handler in schema.get("handlers", {}).values() for action in handler["permissions"]
        }
        refused |= {
            action
            for action in called - NOT_ACTIONS - UNUSED
            if action.partition(":")[0] not in OTHER_SERVICES or name.startswith("AWS::KMS::")
            if not allows((DEPLOY_POLICY,), action)
        }
    assert refused == set()


def test_keys_are_changed_by_cloudformation_alone() -> None:
    """A key of KMS has no name that a policy could narrow."""
    of_keys = [each for each in statements(DEPLOY_POLICY) if "kms:" in str(each["Action"])]
    condition = {"ForAnyValue:StringEquals": {"aws:CalledVia": "cloudformation.amazonaws.com"}}
    assert [each["Condition"] for each in of_keys] == [condition]


def test_the_policy_of_direct_allows_what_the_routes_of_a_tenant_call_and_nothing_else() -> None:
    """tests/end_to_end/test_direct.py calls them with IAM enforced."""
    recorder = Recorder()
    with recorder.installed():
        play(test_bulk, test_calendars, test_manual)
    with recorder.installed(), open_world() as world, pytest.MonkeyPatch.context() as patch:
        office = open_office(world, patch)
        settle(office, office.alice)
        order = ("GET", "POST", "PATCH", "PUT", "DELETE")
        for call in sorted(calls_of_document(), key=lambda call: order.index(call.method)):
            # docs/client.md says what putting and deleting secrets needs beside the policy.
            if call.role in ("read", "write") and (call.method, call.url.split("/")[2]) not in SECRET_CHANGES:
                assert office.alice(call.method, call.url, call.body).status < 500, call
        large = job(cron="0 9 * * *", payload="x" * 2_000)
        office.alice("PUT", "/v1/jobs/large", large)
        office.alice("PUT", "/v1/jobs/large", large | {"payload": "x"})
        named = job(cron="0 9 * * *", payload="secret://holidays")
        assert office.alice("PUT", "/v1/jobs/named", named).status == 201
    called = {
        (need.action, f"arn:aws:{PLACES[need.action.partition(':')[0]]}minute8-prod-{_suffix(need.resource)}")
        for need in recorder.needed
        if need.function == "Api" and need[1:3] != BY_OPERATORS and need.action != BY_THE_API_ALONE
    }
    assert [need for need in sorted(called) if not allows((DIRECT_POLICY,), *need)] == []
    granted = {
        (action, resource.replace(":*:*:", ":us-east-1:1:").replace("minute8-*", "minute8-prod"))
        for statement in statements(DIRECT_POLICY)
        for action in as_list(statement["Action"])
        for resource in as_list(statement["Resource"])
    }
    assert sorted(granted - called - SETTINGS - {OF_LARGE_TENANTS}) == []


def _suffix(resource: str) -> str:
    """`jobs` of JobsTable, `runs/index/failures` of an index."""
    table, _, index = resource.removesuffix("}").removeprefix("${").partition(".Arn}/")
    name = re.sub(r"(Table|Queue)$", "", table).lower()
    return f"{name}/{index}" if index else name


def test_the_doctors_policies_allow_what_its_code_calls() -> None:
    code = "\n".join(path.read_text() for path in (ROOT / "minute8" / "cli" / "doctor").glob("*.py"))
    called = set(re.findall(r"\.([a-z]+(?:_[a-z]+)+)\(", code))
    actions: dict[str, set[str]] = {}
    for service in DOCTORS_SERVICES:
        for operation in botocore.session.get_session().get_service_model(service).operation_names:
            actions.setdefault(xform_name(operation), set()).add(f"{service}:{operation}")
    calls = {name: actions[name] for name in called & actions.keys()}
    assert {"put_key_policy", "get_queue_attributes"} <= calls.keys()
    refused = [
        name
        for name, of_services in calls.items()
        if not any(allows(DOCTOR_POLICIES, action) for action in of_services)
    ]
    assert refused == []
