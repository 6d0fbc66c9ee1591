"""The alarms of a stage, with every reference resolved. tests/deploy compares them with a compiled template."""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

from scripts import parameters
from scripts.cloudwatch.alarms import DECLARED, declared
from scripts.deployment_plan import with_values

ROOT: Final = Path(__file__).resolve().parents[2]
API_ID: Final = "8c0ffee7"
_DECLARED: Final = declared()
# Those that notify somebody; the others are parts of them.
NOTIFYING: Final = [name for name, alarm in _DECLARED.items() if "AlarmActions" in alarm]


def resolved(name: str, stage: str = "prod") -> dict[str, Any]:
    """A file of deploy/ with the stage's parameters, and with the names that CloudFormation would give it."""
    return deepcopy(_resolved(name, stage))


@cache
def _resolved(name: str, stage: str) -> dict[str, Any]:
    params = parameters.read(stage, {}) | {"canary": "true"}
    text = (ROOT / "deploy" / name).read_text().replace("${sls:stage}", stage)
    text = text.replace("${file(./deploy/alarm_list.js):arns}", "[]")
    declared_params = {name: parameter.declaration for name, parameter in parameters.PARAMETERS.items()}
    content: dict[str, Any] = with_names(
        with_values({**yaml.safe_load(text), "Parameters": declared_params}, params), stage
    )
    return content


def alarms(stage: str = "prod") -> dict[str, dict[str, Any]]:
    """Alarm, without the stage -> its properties."""
    resources = resolved("alarms.yml", stage)["Resources"].values()
    return dict(zip(_DECLARED, (resource["Properties"] for resource in resources), strict=True))


@cache
def conditions() -> dict[str, str]:
    """Of the alarms that not each stage has: alarm -> its condition."""
    resources = yaml.safe_load(DECLARED.read_text())["Resources"].values()
    named = zip(_DECLARED, resources, strict=True)
    return {name: resource["Condition"] for name, resource in named if "Condition" in resource}


def with_names(value: Any, stage: str) -> Any:
    """A part of a template with the names that CloudFormation would put in the place of references."""
    match value:
        case {"Ref": "HttpApi"}:
            return API_ID
        case {"Ref": str(name)} if name.endswith("LambdaFunction"):
            return f"minute8-{stage}-{name.removesuffix('LambdaFunction').lower()}"
        case {"Ref": str(name)} if name.endswith("Table"):
            return f"minute8-{stage}-{name.removesuffix('Table').lower()}"
        case {"Fn::GetAtt": [str(name), "QueueName"]}:
            return f"minute8-{stage}-{name.replace('DeadLetterQueue', '-dead').removesuffix('Queue').lower()}"
        case dict():
            return {key: with_names(item, stage) for key, item in value.items()}
        case list():
            return [with_names(item, stage) for item in value]
    return value
