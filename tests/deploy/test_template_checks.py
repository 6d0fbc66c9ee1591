"""cfn-lint finds no error in the template, for any parameters, in any region that it knows."""

from __future__ import annotations

import copy
import io
import itertools
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import boto3
import pytest
from cfnlint.helpers import REGIONS
from moto import mock_aws

from common.platform.findings import Level
from minute8.cli.doctor.settings import KINDS as COMPARED
from scripts import build_layer, parameters, release
from scripts.build_layer import ROOT
from scripts.deployment_plan import with_values
from scripts.embedded import start, stop
from scripts.embedded.deployment import run_osls, stage_service
from scripts.verify.account import THROWAWAY
from tests.deploy.held_policies import KINDS, HeldPolicies
from tests.doctor.described import TYPES

pytestmark = pytest.mark.embedded

# cfn-lint tries an Fn::Sub of three names with the third power of the regions: where conditions are, eight take 4 s of
# processor time, sixteen 16, and all of them more than ten minutes.
WITH_CONDITIONS = 8

EVERYTHING = {
    "maximumConcurrency": "50",
    "minimumPollers": "2",
    "maximumPollers": "20",
    "warmReads": "20000",
    "warmWrites": "10000",
    "apiReservedConcurrency": "50",
    "executorReservedConcurrency": "100",
    "executorTimeoutS": "900",
    "leastUnits": "5",
    "mostUnits": "1000",
    "alarmTopicArn": "arn:aws:sns:us-east-1:123456789012:pager",
    "targetArns": "arn:aws:lambda:us-east-1:123456789012:function:acme-*",
    "jwtIssuer": "https://issuer.example",
    "jwtAudience": "minute8",
    "runsExport": "acme-runs",
    "auditExport": "acme-audit",
    "dailyReportTopicArn": "arn:aws:sns:us-east-1:123456789012:report",
    "registrationRules": "arn:aws:events:us-east-1:123456789012:rule/platform/minute8-*",
    "kmsKeyArn": "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab",
    "secretsKey": "own",
    "otlpEndpoint": "https://otlp.acme.example",
    "otlpHeaders": "/minute8/prod/otlp-headers",
    "outcomeSenders": "210987654321,arn:aws:iam::123456789012:role/acme-functions",
}


# The template that osls makes for a stage and values of parameters.
MakeTemplate = Callable[[str, Mapping[str, str]], dict[str, Any]]


@pytest.fixture(scope="module")
def make_template(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MakeTemplate]:
    """From a service without code and layers, in a fraction of the time: the template only says how they hash."""
    directory = tmp_path_factory.mktemp("service")
    layers = [directory / "empty" / f"{name}-arm64" for name in build_layer.LAYERS]
    for layer in layers:
        (layer / "python").mkdir(parents=True)
        (layer / "python" / "empty.txt").write_text("a stand-in\n")
    service = stage_service(directory / "service", layers)
    for path in service.rglob("*.py"):
        path.write_text("")
    state = directory / "state"
    instance = start(state, 0, tied=True)

    def make(stage: str, params: Mapping[str, str]) -> dict[str, Any]:
        run_osls(["package", "--stage", stage, *parameters.arguments_of(params)], service, instance)
        template = service / ".serverless" / "cloudformation-template-update-stack.json"
        return dict(json.loads(template.read_text()))

    try:
        yield make
    finally:
        stop(state)


@pytest.fixture(scope="module")
def templates(make_template: MakeTemplate) -> dict[str, dict[str, Any]]:
    """One compilation: what the parameters decide otherwise is in the template's conditions."""
    template = with_values(make_template("prod", EVERYTHING), {})
    conditions = template.pop("Conditions")
    del template["Parameters"]
    everything = {name: _holds(condition, conditions) for name, condition in conditions.items()}
    assert {name for name, holds in everything.items() if not holds} == {"HasMaximumConcurrency"}
    chosen = {
        "everything": everything,
        "defaults": dict.fromkeys(everything, False),
        "maximum-concurrency": {**everything, "HasPollers": False, "HasMaximumConcurrency": True},
    }
    return {name: as_evaluated(template, holds) for name, holds in chosen.items()}


def test_cfn_lint_finds_no_error(templates: dict[str, dict[str, Any]], tmp_path: Path) -> None:
    for name, template in templates.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(template))
    assert _errors(tmp_path.iterdir()) == ""


def test_the_doctor_compares_each_type_of_resource_or_says_why_not(
    templates: dict[str, dict[str, Any]],
) -> None:
    types = {resource["Type"] for resource in templates["everything"]["Resources"].values()}
    assert types - {*COMPARED, *TYPES} == set()


def test_a_key_encrypts_every_table_queue_and_log_group_and_roles_may_use_it(
    templates: dict[str, dict[str, Any]],
) -> None:
    key = EVERYTHING["kmsKeyArn"]
    key_in = {
        "AWS::DynamoDB::Table": lambda properties: properties["SSESpecification"]["KMSMasterKeyId"],
        "AWS::SQS::Queue": lambda properties: properties["KmsMasterKeyId"],
        "AWS::Logs::LogGroup": lambda properties: properties["KmsKeyId"],
    }
    resources = templates["everything"]["Resources"]
    keys = [
        (resource["Type"], key_in[resource["Type"]](resource["Properties"]))
        for resource in resources.values()
        if resource["Type"] in key_in
    ]
    assert {key_of for _, key_of in keys} == {key}
    assert {kind for kind, _ in keys} == set(key_in)
    roles = {name: role for name, role in resources.items() if role["Type"] == "AWS::IAM::Role"}
    may = {
        name
        for name, role in roles.items()
        if any(policy["PolicyName"] == "encryption" for policy in role["Properties"]["Policies"])
    }
    assert roles.keys() - may == {"CanaryRole"}


# No function's own role has them: each is there with a parameter. Their names in the template -> holder and name.
OF_A_PARAMETER = {
    "AuditExportPolicy": {("SchedulerRole", "audit-export")},
    "CanaryRole": {("CanaryRole", ""), ("CanaryRole", "canary")},
    "CollectorHeadersPolicy": {("ExecutorRole", "collector-headers"), ("SchedulerRole", "collector-headers")},
    "DailyReportPolicy": {("NotifierRole", "daily-report")},
    "ExporterRole": {("ExporterRole", ""), ("ExporterRole", "exporter"), ("ExporterRole", "encryption")},
    "OutcomesPolicy": {("minute8-prod-outcomes", "")},
    "RegistrationsPolicy": {("minute8-prod-registrations", "")},
    "SecretsDecryption": {("ExecutorRole", "secrets")},
    "SecretsEncryption": {("ApiRole", "secrets")},
    "WebhookSecretsDecryption": {("ApiRole", "webhook-secrets"), ("NotifierRole", "webhook-secrets")},
}


def test_the_doctor_names_each_permission_that_a_policy_has_lost(
    templates: dict[str, dict[str, Any]],
) -> None:
    """Each action of each policy, of roles and queues, is taken away by itself."""
    held = HeldPolicies(templates["everything"])
    assert [finding.level for finding in held.findings()] == [Level.OK]
    named = set()
    for holder, name, action in held.actions():
        with held.without(holder, name, action) as resources:
            finding, _ = held.findings()
        assert finding.level == Level.FAILED
        assert finding.repair
        for resource in resources:
            assert re.search(
                rf"(allow|deny) {re.escape(action)} (on|for) {re.escape(resource)}", finding.message
            )
        named.add((holder.rpartition("/")[2], name))
    everything, defaults = (templates[name]["Resources"] for name in ("everything", "defaults"))
    optional = {name for name in everything if everything[name]["Type"] in KINDS} - defaults.keys()
    assert optional == OF_A_PARAMETER.keys()
    assert set.union(*OF_A_PARAMETER.values()) <= named


def test_without_a_key_nothing_names_kms(make_template: MakeTemplate) -> None:
    template = with_values(make_template("dev", {}), {})
    conditions = template.pop("Conditions")
    del template["Parameters"]
    holding = {name: _holds(condition, conditions) for name, condition in conditions.items()}
    assert "kms" not in json.dumps(as_evaluated(template, holding)).lower()


def _errors(templates: Iterable[Path], at_a_time: int = len(REGIONS)) -> str:
    """What cfn-lint finds in any region that it knows, with so many regions in each run."""
    lint = Path(sys.executable).with_name("cfn-lint")
    paths = [str(path) for path in templates]
    errors = []
    for first in range(0, len(REGIONS), at_a_time):
        regions = REGIONS[first : first + at_a_time]
        linted = subprocess.run(
            # Warnings are of the framework's own: needless DependsOn.
            [str(lint), "--regions", *regions, "--ignore-checks", "W", "--", *paths],
            capture_output=True,
            text=True,
            check=False,
        )
        if linted.returncode:
            errors.append(f"{linted.stdout}{linted.stderr}")
    return "".join(errors)


def _documented() -> set[tuple[str, str]]:
    """Each parameter and value that a page shows on a command line."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "Makefile"]
    shown = re.compile(r"""--param(?:=| )["']?(\w+)=([^"'`\s]*)""")
    documented = {match for page in pages for match in shown.findall(page.read_text())}
    assert len(documented) > 10
    return documented - {("name", "value")}


def _packaged_sets() -> dict[str, dict[str, str]]:
    """The arguments of `make verify`, everything off, and what pages show, in as few packages as can be."""
    sets = {"verify": dict(THROWAWAY), "off": dict.fromkeys(parameters.OPTIONAL, "off")}
    for name, value in sorted(_documented()):
        number = next(count for count in itertools.count() if name not in sets.get(f"pages-{count}", {}))
        sets.setdefault(f"pages-{number}", {})[name] = value
    return sets


@pytest.mark.release
def test_osls_takes_what_verify_gives_and_what_each_page_shows(
    make_template: MakeTemplate, tmp_path: Path
) -> None:
    templates = []
    for name, params in _packaged_sets().items():
        arguments = parameters.arguments_of(params)
        assert parameters.refusals("trial", arguments) == [], name
        templates.append(tmp_path / f"{name}.json")
        templates[-1].write_text(json.dumps(make_template("trial", params)))
    assert _errors(templates, WITH_CONDITIONS) == ""


@pytest.mark.release
def test_a_release_is_the_packaged_template_with_parameters(
    make_template: MakeTemplate, tmp_path: Path
) -> None:
    """cfn-lint takes it in all regions, and with values for its parameters it is what is deployed."""
    archive = release.build({}, tmp_path)
    folder = archive.with_suffix("")
    assert {"template.json", "README.md", "minute8.zip", "deps.zip"} <= {p.name for p in folder.iterdir()}
    assert _errors([folder / "template.json"], WITH_CONDITIONS) == ""
    template = json.loads((folder / "template.json").read_text())
    deployed = make_template("trial", release._WITH_SPANS)
    settings = template["Resources"]["SettingsVersion"]["Properties"]["Content"]["Fn::Sub"]
    names = deployed["Parameters"].keys()
    assert template["Parameters"].keys() - names == {"Stage", "CodeBucket", "CodePrefix"}
    assert [line.partition("=")[0] for line in settings.splitlines()] == sorted(names)
    for name in (*release._SETTINGS, "SettingsVersion"):
        del template["Resources"][name]
    for name in release._BUCKET:
        del deployed["Resources"][name]
    deployed["Outputs"] = {
        name: output for name, output in deployed["Outputs"].items() if not release._OF_THE_TOOL.search(name)
    }
    values = {"Stage": "trial", "SettingsVersion": "7"}
    released = _without(_with_values(template, values), f"{_digest(template)}-7", _digest(template))
    packed = _without(_with_values(deployed, {}), _digest(deployed))
    for name, parameter in packed.pop("Parameters").items():
        assert released["Parameters"][name] == parameter | (
            {"Default": "off"} if name == "otlpEndpoint" else {}
        )
    del released["Parameters"]
    assert released["Resources"].keys() == packed["Resources"].keys()
    for name, resource in released["Resources"].items():
        assert resource == packed["Resources"][name], name
    assert released == packed


def _digest(template: dict[str, Any]) -> str:
    """What names the deployment in the names of its versions."""
    (name,) = (name for name in template["Resources"] if re.fullmatch(r"ExecutorLive[0-9a-f]+", name))
    return str(name.removeprefix("ExecutorLive"))


def _without(template: Any, *digests: str) -> Any:
    text = json.dumps(template)
    for digest in digests:
        text = text.replace(digest, "digest")
    return json.loads(text)


def _with_values(value: Any, values: dict[str, str]) -> Any:
    """A template with values for its parameters, its numbers as texts, and no place of archives."""
    match value:
        case {"Ref": name} if name in values:
            return values[name]
        case {"S3Key": _, **more}:
            more.pop("S3Bucket")
            return _with_values(more, values)
        case {"Fn::Sub": str(text)}:
            for name, own in values.items():
                text = text.replace(f"${{{name}}}", own)
            return {"Fn::Sub": text} if re.search(r"\$\{(?!!)", text) else text.replace("${!", "${")
        case dict():
            return {name: _with_values(part, values) for name, part in value.items()}
        case list():
            return [_with_values(part, values) for part in value]
    return value if isinstance(value, bool) else str(value)


@pytest.mark.filterwarnings("ignore:Tried to parse AWS")
@pytest.mark.parametrize(
    ("name", "billing"), [("defaults", "PAY_PER_REQUEST"), ("everything", "PROVISIONED")]
)
def test_motos_cloudformation_makes_the_stack(
    templates: dict[str, dict[str, Any]], name: str, billing: str
) -> None:
    """All but API Gateway and functions' aliases, of which it knows nothing."""
    with mock_aws():
        services = ("s3", "cloudformation", "dynamodb", "sqs")
        clients = {service: boto3.client(service, "us-east-1") for service in services}  # type: ignore[call-overload]
        clients["s3"].create_bucket(Bucket="code")
        template = _without_aliases(_with_code(copy.deepcopy(templates[name]), clients["s3"]))
        clients["cloudformation"].create_stack(
            StackName="minute8-prod",
            TemplateBody=json.dumps(template),
            Capabilities=["CAPABILITY_NAMED_IAM"],
        )
        (stack,) = clients["cloudformation"].describe_stacks(StackName="minute8-prod")["Stacks"]
        assert stack["StackStatus"] == "CREATE_COMPLETE"
        outputs = {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}
        runs = clients["dynamodb"].describe_table(TableName=outputs["RunsTableName"])["Table"]
        assert runs["BillingModeSummary"]["BillingMode"] == billing
        assert [index["IndexName"] for index in runs["GlobalSecondaryIndexes"]] == ["failures"]
        queue = clients["sqs"].get_queue_attributes(
            QueueUrl=outputs["ExecutionsQueueUrl"], AttributeNames=["All"]
        )["Attributes"]
        assert int(queue["VisibilityTimeout"]) == int(EVERYTHING["executorTimeoutS"]) * 6 // 5


def _without_aliases(template: dict[str, Any]) -> dict[str, Any]:
    """The template whose mappings, rules and permissions name the functions themselves."""
    aliases = {
        name: resource["Properties"]["FunctionName"]
        for name, resource in template["Resources"].items()
        if resource["Type"] == "AWS::Lambda::Alias"
    }
    for name, resource in list(template["Resources"].items()):
        if resource["Type"] in ("AWS::Lambda::Alias", "AWS::Lambda::Version"):
            del template["Resources"][name]
        elif resource["Type"] == "AWS::Lambda::EventInvokeConfig":
            resource["Properties"].pop("Qualifier", None)
        needed = resource.pop("DependsOn", [])
        needed = [needed] if isinstance(needed, str) else needed
        resource["DependsOn"] = [other for other in needed if other not in aliases]

    def named(value: Any) -> Any:
        match value:
            case {"Ref": str(name)} if name in aliases:
                return {"Fn::GetAtt": [aliases[name]["Ref"], "Arn"]}
            case {"Fn::Join": [":", [{"Fn::GetAtt": [str(name), "Arn"]}, "live"]]}:
                return {"Fn::GetAtt": [name, "Arn"]}
            case dict():
                return {key: named(part) for key, part in value.items()}
            case list():
                return [named(part) for part in value]
        return value

    return dict(named(template))


def _with_code(template: dict[str, Any], s3: Any) -> dict[str, Any]:
    """The template with its code in the bucket `code`, in place of the framework's own."""
    for name in ("ServerlessDeploymentBucket", "ServerlessDeploymentBucketPolicy"):
        template["Resources"].pop(name, None)
    template["Outputs"].pop("ServerlessDeploymentBucketName", None)
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as content:
        content.writestr("handler.py", "")
    for resource in template["Resources"].values():
        for part in ("Code", "Content"):
            if "S3Key" in (code := resource["Properties"].get(part, {})):
                code["S3Bucket"] = "code"
                s3.put_object(Bucket="code", Key=code["S3Key"], Body=archive.getvalue())
    return template


@pytest.fixture
def parliament(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module. Of pkg_resources, which setuptools no longer has, it uses one function."""
    resources: Any = ModuleType("pkg_resources")
    resources.resource_filename = lambda module, name: str(Path(find_spec(module).origin).with_name(name))  # type: ignore[union-attr, arg-type]
    monkeypatch.setitem(sys.modules, "pkg_resources", resources)
    return import_module("parliament")


# It leaves its own configuration open.
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_parliament_finds_no_fault_with_the_roles(
    templates: dict[str, dict[str, Any]], parliament: Any
) -> None:
    resources = templates["everything"]["Resources"]
    roles = {name: resource for name, resource in resources.items() if resource["Type"] == "AWS::IAM::Role"}
    assert len(roles) == 8
    for name, role in roles.items():
        documents = [policy["PolicyDocument"] for policy in role["Properties"]["Policies"]]
        statements = [statement for document in documents for statement in document["Statement"]]
        # Which of its actions apply depends on what targetArns names.
        of_targets = [statement for statement in statements if "Fn::Split" in statement["Resource"]]
        assert len(of_targets) == (name in ("ExecutorRole", "NotifierRole", "ApiRole"))
        findings = []
        for document in documents:
            checked = [statement for statement in document["Statement"] if statement not in of_targets]
            written = json.dumps(_written_out({**document, "Statement": checked}, resources))
            analysis = parliament.analyze_policy_string(written)
            findings += [f"{finding.issue} {finding.detail}" for finding in analysis.findings]
        # AWS shows composite alarms only to those who may describe all alarms.
        assert findings == ["RESOURCE_STAR ['cloudwatch:DescribeAlarms']"] * (name == "ApiRole"), (
            name,
            findings,
        )


def _written_out(value: Any, resources: dict[str, Any]) -> Any:
    """A policy with ARNs in place of the template's functions."""
    if isinstance(value, list):
        return [_written_out(item, resources) for item in value]
    if not isinstance(value, dict):
        return value
    match value:
        case {"Fn::GetAtt": [name, "Arn"]}:
            service, path = _ARNS[resources[name]["Type"]]
            return f"arn:aws:{service}:us-east-1:123456789012:{path}{name}"
        case {"Fn::Sub": str(text)}:
            text = re.sub(
                r"\$\{(\w+)\.Arn\}", lambda m: _written_out({"Fn::GetAtt": [m[1], "Arn"]}, resources), text
            )
            for name, own in _PSEUDO.items():
                text = text.replace(f"${{AWS::{name}}}", own)
            return text
        case {"Fn::Split": [separator, text]}:
            return _written_out(text, resources).split(separator)
    return {name: _written_out(item, resources) for name, item in value.items()}


_PSEUDO = {"Partition": "aws", "Region": "us-east-1", "AccountId": "123456789012"}
_ARNS = {
    "AWS::DynamoDB::Table": ("dynamodb", "table/"),
    "AWS::SQS::Queue": ("sqs", ""),
    "AWS::Events::EventBus": ("events", "event-bus/"),
}


def as_evaluated(template: dict[str, Any], holds: dict[str, bool]) -> dict[str, Any]:
    """The template without its conditions, which compare only constants."""
    resources = {
        name: resource
        for name, resource in template["Resources"].items()
        if holds.get(resource.get("Condition", ""), True)
    }
    folded = _folded({**template, "Resources": resources}, holds)
    assert isinstance(folded, dict)
    for resource in folded["Resources"].values():
        resource.pop("Condition", None)
    return folded


def _holds(condition: dict[str, Any], all_of_them: dict[str, Any]) -> bool:
    ((function, arguments),) = condition.items()
    match function:
        case "Fn::Equals":
            return str(arguments[0]) == str(arguments[1])
        case "Fn::Not":
            return not _holds(arguments[0], all_of_them)
        case "Fn::And":
            return all(_holds(condition, all_of_them) for condition in arguments)
    raise AssertionError(function)


_NOTHING = {"Ref": "AWS::NoValue"}


def _folded(value: Any, holds: dict[str, bool]) -> Any:
    if isinstance(value, dict):
        if set(value) == {"Fn::If"}:
            name, yes, no = value["Fn::If"]
            return _folded(yes if holds[name] else no, holds)
        parts = {name: _folded(part, holds) for name, part in value.items()}
        return {name: part for name, part in parts.items() if part != _NOTHING}
    if isinstance(value, list):
        return [part for part in (_folded(item, holds) for item in value) if part != _NOTHING]
    return value
