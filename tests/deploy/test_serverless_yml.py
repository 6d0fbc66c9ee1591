"""serverless.yml gives the intended template: each function's environment, role and limits."""

import json
import zipfile
from collections import Counter
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml

from common.storage import keys
from common.version import VERSION
from minute8.cli.doctor import inventory
from scripts import parameters
from scripts.deployment_plan import holds, with_values
from scripts.embedded import Embedded
from scripts.embedded.deployment import client
from scripts.package_for_aws import package
from tests.alarms import template as alarms
from tests.deploy.statements import as_list, logical_name

pytestmark = pytest.mark.embedded

ROOT = Path(__file__).resolve().parent.parent.parent

# The canary has neither settings nor a version.
FUNCTIONS = ("Scheduler", "Planner", "Executor", "Notifier", "Exporter", "Outcomes", "Api")
ROLES = [function.title() for function in inventory.FUNCTIONS]


@pytest.mark.parametrize("function", ["Scheduler", "Planner"])
def test_functions_that_write_packs_are_updated_after_functions_that_read_them(
    template: dict[str, Any], function: str
) -> None:
    assert "ExecutorLambdaFunction" in template["Resources"][f"{function}LambdaFunction"]["DependsOn"]


def test_each_deployment_publishes_all_functions_under_its_digest(template: dict[str, Any]) -> None:
    resources = template["Resources"]
    digest = template["Outputs"]["Deployment"]["Value"]
    for function in FUNCTIONS:
        version, alias = resources[f"{function}Live{digest}"], resources[f"{function}Live"]
        variables = resources[f"{function}LambdaFunction"]["Properties"]["Environment"]["Variables"]
        assert version["Properties"]["Description"] == variables["DEPLOYMENT"] == digest
        assert variables["VERSION"] == VERSION
        assert alias["Properties"]["FunctionVersion"] == {
            "Fn::GetAtt": [f"{function}Live{digest}", "Version"]
        }
        # What a new version writes, the new executor reads.
        assert alias.get("DependsOn", []) == ([] if function == "Executor" else ["ExecutorLive"])


@pytest.mark.parametrize("function", ["Executor", "Outcomes"])
def test_functions_that_call_targets_can_write_no_key_and_no_tenant(
    template: dict[str, Any], function: str
) -> None:
    """The tenants table holds the keys' hashes; the audit has a table of its own."""
    policy, *_ = template["Resources"][f"{function}Role"]["Properties"]["Policies"]
    allowed = {
        action
        for entry in policy["PolicyDocument"]["Statement"]
        if {"Fn::GetAtt": ["TenantsTable", "Arn"]} in as_list(entry["Resource"])
        for action in as_list(entry["Action"])
    }
    assert allowed <= {"dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:Query"}


def test_the_executor_lists_the_changes_of_tenants_and_nothing_else(template: dict[str, Any]) -> None:
    policy, *_ = template["Resources"]["ExecutorRole"]["Properties"]["Policies"]
    [listing] = [
        entry for entry in policy["PolicyDocument"]["Statement"] if entry["Action"] == "dynamodb:Query"
    ]
    assert listing["Condition"] == {
        "ForAllValues:StringEquals": {"dynamodb:LeadingKeys": [keys.TENANT_CHANGES]}
    }


def test_who_writes_the_audit(template: dict[str, Any]) -> None:
    """Nobody updates or deletes an entry but by the removal of a tenant; only ticks and the removal write seals."""
    of_audit = {"Fn::GetAtt": ["AuditTable", "Arn"]}
    statements = {
        function: entry
        for function in ROLES
        for entry in template["Resources"][f"{function}Role"]["Properties"]["Policies"][0]["PolicyDocument"][
            "Statement"
        ]
        if of_audit in as_list(entry["Resource"])
    }
    seals = keys.seals("alice").removesuffix("alice") + "*"
    for function, entry in statements.items():
        removes = "dynamodb:BatchWriteItem" in as_list(entry["Action"])
        assert removes == (function in ("Scheduler", "Planner"))
        assert not {"dynamodb:UpdateItem", "dynamodb:DeleteItem"}.intersection(as_list(entry["Action"]))
        condition = {"ForAllValues:StringNotLike": {"dynamodb:LeadingKeys": [seals]}}
        assert entry.get("Condition") == (None if removes else condition)


@pytest.mark.parametrize("function", ROLES)
def test_each_function_runs_under_its_own_role(template: dict[str, Any], function: str) -> None:
    assert "ManagedPolicyArns" not in template["Resources"][f"{function}Role"]["Properties"]
    role = template["Resources"][f"{function}LambdaFunction"]["Properties"]["Role"]
    assert role == {"Fn::GetAtt": [f"{function}Role", "Arn"]}


def test_the_doctor_expects_what_is_deployed(template: dict[str, Any]) -> None:
    resources = template["Resources"]

    def names(kind: str, attribute: str) -> set[str]:
        of_kind = [resource["Properties"] for resource in resources.values() if resource["Type"] == kind]
        return {properties[attribute].removeprefix("minute8-test-") for properties in of_kind} - {
            *(
                "canary-minute8-test",
                "exporter",
                "export",
                "registrations",
                "registrations-dead",
            )
        }

    feeds = {
        (
            str(logical_name(mapping["EventSourceArn"])).removesuffix("Queue").lower(),
            mapping["FunctionName"]["Ref"].removesuffix("Live").lower(),
            mapping["BatchSize"],
            mapping.get("FunctionResponseTypes") == ["ReportBatchItemFailures"],
        )
        for resource in resources.values()
        if resource["Type"] == "AWS::Lambda::EventSourceMapping"
        and resource.get("Condition") != "HasRegistrationRules"
        for mapping in [resource["Properties"]]
    }
    indexes = {
        resource["Properties"]["TableName"].removeprefix("minute8-test-"): tuple(
            index["IndexName"] for index in resource["Properties"]["GlobalSecondaryIndexes"]
        )
        for resource in resources.values()
        if "GlobalSecondaryIndexes" in resource.get("Properties", {})
    }
    queues = {feed.queue for feed in inventory.FEEDS}
    assert names("AWS::Lambda::Function", "FunctionName") == set(inventory.FUNCTIONS)
    assert names("AWS::DynamoDB::Table", "TableName") == set(inventory.TABLES)
    assert names("AWS::SQS::Queue", "QueueName") == queues | {f"{queue}-dead" for queue in queues}
    assert feeds == set(inventory.FEEDS)
    assert indexes == inventory.INDEXES
    assert {
        resource["Properties"]["Runtime"]
        for resource in resources.values()
        if resource["Type"] == "AWS::Lambda::Function"
    } == {inventory.RUNTIME}


def test_the_alarms_are_those_that_the_tests_make_ring(template: dict[str, Any]) -> None:
    """tests/alarms resolves deploy/alarms.yml by itself, which takes no deployment."""
    compiled = {
        name: alarms.with_names(resource["Properties"], "test")
        for name, resource in with_values(template, {})["Resources"].items()
        if resource["Type"] in ("AWS::CloudWatch::Alarm", "AWS::CloudWatch::CompositeAlarm")
    }
    evaluated = alarms.resolved("alarms.yml", "test")["Resources"]
    assert compiled == {name: resource["Properties"] for name, resource in evaluated.items()}


def test_the_doctor_knows_which_stages_are_no_production() -> None:
    stages = yaml.safe_load((ROOT / "serverless.yml").read_text())["params"]
    kept = {stage: parameters.read(stage, {})["pointInTimeRecovery"] for stage in (*stages, "prod")}
    assert {stage for stage, is_kept in kept.items() if is_kept == "false"} == set(inventory.STAGES_TO_LOSE)


def test_functions_have_layers_for_tokens_and_spans_only_where_a_parameter_asks_for_them(
    template: dict[str, Any], deployed: Embedded
) -> None:
    every, no_value = {"Ref": "DepsLambdaLayer"}, {"Ref": "AWS::NoValue"}
    with_spans = {"Fn::If": ["HasCollector", {"Ref": "OtlpLambdaLayer"}, no_value]}
    layers = {
        name.removesuffix("LambdaFunction"): resource["Properties"].get("Layers")
        for name, resource in template["Resources"].items()
        if resource["Type"] == "AWS::Lambda::Function"
    }
    assert layers.pop("Api") == [every, {"Fn::If": ["HasTokenIssuer", {"Ref": "JwtLambdaLayer"}, no_value]}]
    assert (layers.pop("Scheduler"), layers.pop("Executor")) == ([every, with_spans], [every, with_spans])
    layers.pop("Canary", None)
    assert list(layers.values()) == [[every]] * len(layers)
    functions = client(deployed, "lambda").list_functions()["Functions"]
    deployed_layers = {
        tuple(layer["Arn"].split(":")[-2] for layer in function["Layers"])
        for function in functions
        if function["FunctionName"].startswith("minute8-test-")
    }
    assert deployed_layers == {("minute8-test-deps",)}


def test_no_job_can_call_minute8_itself(template: dict[str, Any]) -> None:
    policy, *_ = template["Resources"]["ExecutorRole"]["Properties"]["Policies"]
    denied = [entry for entry in policy["PolicyDocument"]["Statement"] if entry["Effect"] == "Deny"]
    assert [entry["Action"] for entry in denied] == ["lambda:InvokeFunction"]
    assert denied[0]["Resource"]["Fn::Sub"].endswith(":function:minute8-*")


def test_a_message_stays_hidden_for_longer_than_the_executor_can_run(template: dict[str, Any]) -> None:
    queue = template["Resources"]["ExecutionsQueue"]["Properties"]
    executor = template["Resources"]["ExecutorLambdaFunction"]["Properties"]
    assert int(queue["VisibilityTimeout"]) > int(executor["Timeout"])


def test_the_queue_feeds_the_executor_without_a_batching_window(deployed: Embedded) -> None:
    mappings = client(deployed, "lambda").list_event_source_mappings()["EventSourceMappings"]
    [mapping] = [
        mapping
        for mapping in mappings
        if mapping["FunctionArn"].endswith("function:minute8-test-executor:live")
    ]
    assert (mapping["BatchSize"], mapping["MaximumBatchingWindowInSeconds"]) == (10, 0)
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]


def test_tables_are_warmed_if_asked_and_only_those_on_the_way_of_a_run(template: dict[str, Any]) -> None:
    warm = {
        name: resource["Properties"]["WarmThroughput"]["Fn::If"]
        for name, resource in template["Resources"].items()
        if "WarmThroughput" in resource.get("Properties", {})
    }
    no_value = {"Ref": "AWS::NoValue"}
    assert warm == {
        "JobsTable": ["HasWarmReads", {"ReadUnitsPerSecond": {"Ref": "warmReads"}}, no_value],
        "TenantsTable": ["HasWarmReads", {"ReadUnitsPerSecond": {"Ref": "warmReads"}}, no_value],
        "RunsTable": ["HasWarmWrites", {"WriteUnitsPerSecond": {"Ref": "warmWrites"}}, no_value],
    }
    for name in ("warmReads", "warmWrites"):
        condition = template["Conditions"][f"Has{name[0].upper()}{name[1:]}"]
        assert condition == {"Fn::Not": [{"Fn::Equals": [{"Ref": name}, "off"]}]}
        assert template["Parameters"][name]["Default"] == "off"


def test_the_tick_is_at_minute_eight_of_every_ten(deployed: Embedded) -> None:
    rules = {
        rule["Name"].rpartition("-")[2]: rule for rule in client(deployed, "events").list_rules()["Rules"]
    }
    assert {name: rule["ScheduleExpression"] for name, rule in rules.items()} == {
        "tick": "cron(8/10 * * * ? *)",
        "notify": "cron(* * * * ? *)",
        "export": inventory.EXPORT_EXPRESSION,
    }
    assert (inventory.TICK_EXPRESSION, inventory.ROUND_EXPRESSION) == (
        "cron(8/10 * * * ? *)",
        "cron(* * * * ? *)",
    )
    assert {rule["State"] for rule in rules.values()} == {"ENABLED"}


def test_the_package_for_aws_keeps_production_data(tmp_path: Path) -> None:
    archives = package("prod", tmp_path)
    compiled = (archives / "cloudformation-template-update-stack.json").read_text()
    template = json.loads(compiled)
    kept = [
        resource["Type"]
        for resource in template["Resources"].values()
        if resource.get("DeletionPolicy") == "RetainExceptOnCreate"
    ]
    assert Counter(kept) == {
        "AWS::DynamoDB::Table": 5,
        "AWS::Lambda::Version": len(FUNCTIONS),
        "AWS::KMS::Key": 1,
    }
    assert holds(with_values(template, {}), "KeepsInstants")
    kept_instants = json.dumps({"PointInTimeRecoveryEnabled": {"Fn::If": ["KeepsInstants", True, False]}})
    assert json.dumps(template).count(kept_instants) == 5
    # Otherwise the tables of a failed first deployment would stay. scripts/deploy.py protects them after a success.
    assert "DeletionProtectionEnabled" not in compiled
    assert "ms-custom-id" not in compiled
    # Lambda's limits are 50 MB packed and 250 MB unpacked; a cold start slows down long before.
    with zipfile.ZipFile(archives / "minute8.zip") as code:
        packed = Counter[bool]()
        assert not [name for name in code.namelist() if "tracing" in name or "_spans" in name]
        for entry in code.infolist():
            packed[entry.filename.endswith(".pyc")] += entry.compress_size
    # What a function does not import it does not read; tests/docs/test_architecture.py bounds what each imports.
    assert packed[False] < 890_000
    assert packed[True] < 1_890_000  # compiled modules
    with zipfile.ZipFile(archives / "canary.zip") as code:
        assert set(code.namelist()) == {
            "minute8/__init__.py",
            "minute8/canary/__init__.py",
            "minute8/canary/handler.py",
        }
    for name in ("minute8", "deps", "jwt", "otlp"):
        assert _not_compiled(archives / f"{name}.zip") == [], name
    assert (archives / "deps.zip").stat().st_size < 10_000_000
    assert (archives / "jwt.zip").stat().st_size < 10_000_000
    assert (archives / "otlp.zip").stat().st_size < 5_000_000


def _not_compiled(archive: Path) -> list[str]:
    """Its modules that Lambda's Python 3.13 would have to compile."""
    with zipfile.ZipFile(archive) as content:
        names = set(content.namelist())
        modules = [PurePosixPath(name) for name in names if name.endswith(".py")]
        assert modules
        compiled = {
            module: str(module.parent / "__pycache__" / f"{module.stem}.cpython-313.pyc")
            for module in modules
        }
        return [
            str(module)
            for module, name in compiled.items()
            if name not in names or not content.read(name).startswith(_MAGIC_OF_3_13)
        ]


# Of importlib.util.MAGIC_NUMBER in CPython 3.13.
_MAGIC_OF_3_13 = bytes.fromhex("f30d0d0a")
