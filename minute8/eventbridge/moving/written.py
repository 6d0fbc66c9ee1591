"""Schedules and their groups as texts for other tools: the AWS CLI, Terraform, CloudFormation. Pure.

A schedule is CreateSchedule's request with its Name; a group is CreateScheduleGroup's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from minute8.eventbridge.names import DEFAULT_GROUP

# https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html
_MAX_RESOURCES: Final = 500
_MAX_TEMPLATE_BYTES: Final = 999_000
# The names of Terraform's arguments that are not the same words in snake case.
_TERRAFORM_NAMES: Final = {
    "EnableECSManagedTags": "enable_ecs_managed_tags",
    "EventBridgeParameters": "eventbridge_parameters",
    "SageMakerPipelineParameters": "sagemaker_pipeline_parameters",
    "PipelineParameterList": "pipeline_parameter",
}
_CONTROLS: Final = re.compile("[\x7f-\x9f\ufffe\uffff]")
# JSON's escapes that HCL does not have.
_ESCAPES: Final = {"b": "\\u0008", "f": "\\u000c"}
# What the tools leave to the API.
NOT_IN_TOOLS: Final = "ActionAfterCompletion"

Request = Mapping[str, Any]
Files = Iterator[tuple[str, str]]


def cli(groups: Sequence[Request], schedules: Sequence[Request]) -> Files:
    """One file for each request: `aws scheduler create-schedule --cli-input-json file://…`."""
    for group in groups:
        yield f"create-schedule-group/{group['Name']}.json", _pretty(group)
    for schedule in schedules:
        group_name = schedule.get("GroupName", DEFAULT_GROUP)
        yield f"create-schedule/{group_name}/{schedule['Name']}.json", _pretty(schedule)


def lines(groups: Sequence[Request], schedules: Sequence[Request]) -> str:
    """A request on each line, groups first. `minute8 import` reads them."""
    return "".join(json.dumps(request, ensure_ascii=False) + "\n" for request in (*groups, *schedules))


def terraform(groups: Sequence[Request], schedules: Sequence[Request]) -> Files:
    """Resources of the provider hashicorp/aws."""
    labels_in_use: set[str] = set()
    labels: dict[str, str] = {}
    if groups:
        texts = []
        for group in groups:
            labels[group["Name"]] = _label(group["Name"], labels_in_use)
            tags = {tag["Key"]: tag["Value"] for tag in group.get("Tags", [])}
            body = [f"name = {_hcl(group['Name'])}", *([f"tags = {_hcl(tags)}"] if tags else [])]
            texts.append(_block(f'resource "aws_scheduler_schedule_group" "{labels[group["Name"]]}"', body))
        yield "groups.tf", "\n".join(texts)
    labels_in_use = set()
    texts = []
    for schedule in schedules:
        group_name = schedule.get("GroupName", DEFAULT_GROUP)
        label = _label(
            f"{'' if group_name == DEFAULT_GROUP else f'{group_name}_'}{schedule['Name']}", labels_in_use
        )
        body = list(_schedule_arguments(schedule, labels))
        texts.append(_block(f'resource "aws_scheduler_schedule" "{label}"', body))
    if texts:
        yield "schedules.tf", "\n".join(texts)


def cloudformation(groups: Sequence[Request], schedules: Sequence[Request]) -> Files:
    """Templates that CloudFormation takes: of 500 resources and 1 MB at most. The groups have their own, for first."""
    labels_in_use: set[str] = set()
    resources: list[tuple[str, dict[str, Any]]] = []
    for group in groups:
        resources.append(
            (_logical_id("Group", group["Name"], labels_in_use), _resource("ScheduleGroup", group))
        )
    yield from _templates("groups", resources)
    resources = []
    for schedule in schedules:
        kept = {name: value for name, value in schedule.items() if name != NOT_IN_TOOLS}
        name = f"{schedule.get('GroupName', '')}-{schedule['Name']}"
        resources.append(
            (_logical_id("Schedule", name, labels_in_use), _resource("Schedule", _upper_case(kept)))
        )
    yield from _templates("schedules", resources)


FORMATS: Final[Mapping[str, Callable[[Sequence[Request], Sequence[Request]], Files]]] = {
    "cli": cli,
    "terraform": terraform,
    "cloudformation": cloudformation,
}


def left_out(tool: str, schedule: Request) -> Iterator[str]:
    """What a tool cannot say of a schedule."""
    if tool == "cli":
        return
    if schedule.get(NOT_IN_TOOLS, "NONE") != "NONE":
        yield f"{NOT_IN_TOOLS} is left out: {tool} has no such property"
    tags = (schedule["Target"].get("EcsParameters") or {}).get("Tags", [])
    if tool == "terraform" and any(tag.keys() != {"key", "value"} for tag in tags):
        yield "Target.EcsParameters.Tags without key and value are left out: terraform has no such tags"


def _pretty(value: Any) -> str:
    """JSON that is also YAML, which has no such control characters."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return _CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n"


def _schedule_arguments(schedule: Request, groups: Mapping[str, str]) -> Iterator[str]:
    for name, value in schedule.items():
        if name == "GroupName":
            label = groups.get(value)
            yield (
                f"group_name = aws_scheduler_schedule_group.{label}.name"
                if label
                else f"group_name = {_hcl(value)}"
            )
        elif name != NOT_IN_TOOLS:
            yield from _argument(name, value)


def _argument(name: str, value: Any) -> Iterator[str]:
    """An argument, or blocks: Terraform writes a structure as a block, and a list of structures as many."""
    own_name = _TERRAFORM_NAMES.get(name) or re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    value = _as_terraform(name, value)
    if name == "awsvpcConfiguration":  # Terraform has its members one level higher
        yield from _arguments(value)
    elif name in ("Tags", "tags"):
        yield f"{own_name} = {_hcl(value)}"
    elif isinstance(value, Mapping):
        yield _block(own_name, list(_arguments(value))).rstrip("\n")
    elif isinstance(value, list) and value and isinstance(value[0], Mapping):
        for structure in value:
            yield from _argument(name, structure)
    else:
        yield f"{own_name} = {_hcl(value)}"


def _arguments(members: Mapping[str, Any]) -> Iterator[str]:
    for name, value in members.items():
        yield from _argument(name, value)


def _as_terraform(name: str, value: Any) -> Any:
    """The value where Terraform's has another type."""
    if name == "AssignPublicIp":
        return value == "ENABLED"
    if name == "Tags":
        return {tag["key"]: tag["value"] for tag in value if tag.keys() == {"key", "value"}}
    return value


def _block(head: str, body: Sequence[str]) -> str:
    indented = "\n".join(body).replace("\n", "\n  ")
    return f"{head} {{\n  {indented}\n}}\n" if body else f"{head} {{}}\n"


def _hcl(value: Any) -> str:
    """A value as HCL. In a text `${` and `%{` begin templates, and control characters have one form."""
    if isinstance(value, str):
        text = re.sub(
            r"\\(.)", lambda escape: _ESCAPES.get(escape[1], escape[0]), json.dumps(value, ensure_ascii=False)
        )
        return text.replace("${", "$${").replace("%{", "%%{").replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_hcl(name)} = {_hcl(part)}" for name, part in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_hcl, value)) + "]"
    return json.dumps(value)


def _label(text: str, labels_in_use: set[str]) -> str:
    """A name of a Terraform resource that is not labels_in_use; it begins with a letter."""
    label = re.sub(r"[^A-Za-z0-9_-]", "_", text)
    return _free(label if label[:1].isalpha() else f"s_{label}", labels_in_use, "_")


def _logical_id(kind: str, text: str, labels_in_use: set[str]) -> str:
    """A logical id of CloudFormation, which has letters and digits alone."""
    words = re.split(r"[^A-Za-z0-9]+", text)
    return _free(kind + "".join(word[:1].upper() + word[1:] for word in words), labels_in_use, "x")


def _free(label: str, labels_in_use: set[str], sign: str) -> str:
    free, number = label, 2
    while free in labels_in_use:
        free, number = f"{label}{sign}{number}", number + 1
    labels_in_use.add(free)
    return free


def _resource(kind: str, properties: Request) -> dict[str, Any]:
    return {"Type": f"AWS::Scheduler::{kind}", "Properties": dict(properties)}


def _upper_case(value: Any, inside: str = "") -> Any:
    """CloudFormation writes ECS's parameters with capital letters; the tags of a task are free maps."""
    if isinstance(value, Mapping) and inside != "Tags":
        return {name[:1].upper() + name[1:]: _upper_case(part, name) for name, part in value.items()}
    return [_upper_case(part, inside) for part in value] if isinstance(value, list) else value


def _templates(name: str, resources: Sequence[tuple[str, dict[str, Any]]]) -> Files:
    for number, part in enumerate(_in_size(resources), 1):
        template = {"AWSTemplateFormatVersion": "2010-09-09", "Resources": dict(part)}
        yield f"{name}-{number}.template.json", _pretty(template)


def _in_size(resources: Sequence[tuple[str, dict[str, Any]]]) -> Iterator[list[tuple[str, dict[str, Any]]]]:
    """The resources in lists that are short enough for a template."""
    part: list[tuple[str, dict[str, Any]]] = []
    size = 0
    for logical_id, resource in resources:
        text = _pretty({logical_id: resource})
        own_size = len(text.encode()) + 2 * text.count("\n")
        if len(part) == _MAX_RESOURCES or (part and size + own_size > _MAX_TEMPLATE_BYTES):
            yield part
            part, size = [], 0
        part.append((logical_id, resource))
        size += own_size
    if part:
        yield part
